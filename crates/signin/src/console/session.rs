//! The sessions of the console.

use chancery_record::Timestamp;
use chancery_resource::{MasterKey, StateTable, StoreError, Tx};
use uuid::Uuid;

use crate::person::names::names_of;

/// The minimum interval between two writes of a session's last use, in ms.
pub const USE_MS: i64 = 60_000;

/// How long sessions of the console last, in ms.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLifetimes {
    /// Since the last use.
    pub idle: i64,
    /// In total.
    pub longest: i64,
}

/// A session of the console.
#[derive(Clone, Debug)]
pub struct ConsoleSession {
    /// The platform user.
    pub person: Uuid,
    /// The sign-in session, with which it ends.
    pub sign_in: Uuid,
    /// The identity provider instance through which the person signed in.
    pub instance: Uuid,
    /// The authentication class of the sign-in.
    pub acr: String,
    /// When the person last proved a factor.
    pub proven_on: Timestamp,
    /// The last use that was written.
    pub seen_on: Timestamp,
    /// When it expires, whether it is used or not.
    pub expires_on: Timestamp,
}

/// The digest of a session cookie, under which the session is stored.
pub fn console_digest(master: &MasterKey, cookie: &str) -> Vec<u8> {
    master.digest("console-session", cookie.as_bytes())
}

/// The session with this digest, if it and its sign-in session are active.
pub fn find_console_session(
    tx: &mut Tx<'_>,
    digest: &[u8],
    idle: i64,
    now: Timestamp,
) -> Result<Option<ConsoleSession>, StoreError> {
    let text = "SELECT c.person_id, c.sign_in_session_id, c.acr, c.proven_on, c.seen_on, c.expires_on, s.idp_instance_id \
        FROM console_session c JOIN sign_in_session s ON s.id = c.sign_in_session_id AND s.ended_on IS NULL \
        AND s.expires_on > ?2 WHERE c.digest = ?1 AND c.expires_on > ?2 AND c.seen_on > ?3";
    let key = [digest.to_vec().into(), now.0.into(), (now.0 - idle).into()];
    tx.one(text, &key, |row| {
        Ok(ConsoleSession {
            person: row.id(0)?,
            sign_in: row.id(1)?,
            acr: row.text(2)?.to_owned(),
            proven_on: Timestamp(row.int(3)?),
            seen_on: Timestamp(row.int(4)?),
            expires_on: Timestamp(row.int(5)?),
            instance: row.id(6)?,
        })
    })
}

/// The names of a session's person: the display name and the login name.
pub fn console_names(tx: &mut Tx<'_>, session: &ConsoleSession) -> Result<(String, String), StoreError> {
    let ConsoleSession { sign_in, person, instance, .. } = *session;
    let names = names_of(tx, &[(sign_in, person, instance)])?.remove(&sign_in).unwrap_or_default();
    Ok((names.display_name().to_owned(), names.login.unwrap_or_default()))
}

impl ConsoleSession {
    /// Whether the last use is to be written: once a minute.
    pub const fn is_use_noted(&self, now: Timestamp) -> bool {
        now.0 - self.seen_on.0 >= USE_MS
    }
}

/// Writes the last use of a session.
pub fn note_console_use(tx: &mut Tx<'_>, digest: &[u8], now: Timestamp) -> Result<(), StoreError> {
    let text = StateTable::ConsoleSession.update("SET seen_on = ?2 WHERE digest = ?1");
    tx.queue(&text, vec![digest.to_vec().into(), now.0.into()])
}

/// Ends a session.
pub fn end_console_session(tx: &mut Tx<'_>, digest: &[u8]) -> Result<(), StoreError> {
    tx.queue(&StateTable::ConsoleSession.delete("WHERE digest = ?1"), vec![digest.to_vec().into()])
}
