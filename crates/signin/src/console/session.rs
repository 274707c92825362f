//! The sessions of the console.

use chancery_record::Timestamp;
use chancery_resource::{MasterKey, StateTable, StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

use crate::person::{
    IdentityKey,
    names::{NameQuery, names_of},
};

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

selectable! {
    /// A session of the console.
    #[derive(Clone, Debug)]
    pub struct ConsoleSession from "FROM console_session c \
        JOIN sign_in_session s ON s.id = c.sign_in_session_id AND s.ended_on IS NULL AND s.expires_on > ?2 \
        WHERE c.digest = ?1 AND c.expires_on > ?2 AND c.seen_on > ?3" {
        /// The platform user.
        pub person: Uuid = "c.person_id",
        /// The sign-in session, with which it ends.
        pub sign_in: Uuid = "c.sign_in_session_id",
        /// The authentication class of the sign-in.
        pub acr: String = "c.acr",
        /// When the person last proved a factor.
        pub proven_on: Timestamp = "c.proven_on",
        /// The last use that was written.
        pub seen_on: Timestamp = "c.seen_on",
        /// When it expires, whether it is used or not.
        pub expires_on: Timestamp = "c.expires_on",
        /// The identity provider instance through which the person signed in.
        pub instance: Uuid = "s.idp_instance_id",
    }
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
    let key = [digest.to_vec().into(), now.0.into(), (now.0 - idle).into()];
    tx.one(ConsoleSession::SELECT, &key, ConsoleSession::read)
}

/// The names of a session's person: the display name and the login name.
pub fn console_names(tx: &mut Tx<'_>, session: &ConsoleSession) -> Result<(String, String), StoreError> {
    let ConsoleSession { sign_in, person, instance, .. } = *session;
    let query = NameQuery { session: sign_in, identity: IdentityKey { person, instance } };
    let names = names_of(tx, &[query])?.remove(&sign_in).unwrap_or_default();
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
