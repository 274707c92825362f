//! Sign-ins to the console: its client app is built in, and its sessions refer to a person and a sign-in session.
//! There is no token.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_oauth::{Challenge, verify_pkce};
use chancery_record::{Timestamp, Value};
use chancery_resource::{CONSOLE, Context, MasterKey, Problem, Scope, StateTable, StoreError, Tx, random};
use chancery_store::Mode;
use uuid::Uuid;

use crate::{
    grant::authorization_code, person::names::names_of, provider::Provider, session::is_session_active,
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

/// A session of the console.
#[derive(Clone, Debug)]
pub struct ConsoleSession {
    /// The platform user.
    pub person: Uuid,
    /// The sign-in session, with which it ends.
    pub sign_in: Uuid,
    /// The instance by which the person signed in.
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

/// The data of a browser that returns from a sign-in.
#[derive(Clone)]
pub struct ConsoleEntry {
    /// The code.
    pub code: String,
    /// The verifier of its PKCE challenge.
    pub verifier: String,
    /// The digest of the browser's previous session, which ends.
    pub former: Option<Vec<u8>>,
}

impl Provider<'_> {
    /// Exchanges a code for a session, inside the process. Returns the cookie value. `None`: the code is invalid.
    pub async fn enter_console(
        self,
        entry: ConsoleEntry,
        lifetimes: ConsoleLifetimes,
        now: Timestamp,
    ) -> Result<Option<String>, Problem> {
        let context = Context::of_server(self.context, Scope::Everything, now);
        let entering = self
            .store
            .run("EnterConsole", Mode::Write, None, move |tx| enter(&context, tx, &entry, lifetimes.longest));
        entering.await
    }
}

fn enter(
    context: &Context,
    tx: &mut Tx<'_>,
    entry: &ConsoleEntry,
    longest: i64,
) -> Result<Option<String>, Problem> {
    let (master, now) = (&context.app.master, context.now);
    let Some(stored) = authorization_code::find(tx, master, &entry.code, now)? else { return Ok(None) };
    let challenge = stored.contents.challenge.as_deref().and_then(Challenge::read);
    let is_ours = stored.application == CONSOLE
        && challenge.is_some()
        && verify_pkce(challenge.as_ref(), Some(&entry.verifier)).is_ok();
    if !is_ours || !stored.claim(context, tx)? {
        return Ok(None);
    }
    let granted = &stored.contents.granted;
    let Some(sign_in) = granted.session else { return Ok(None) };
    if !is_session_active(tx, sign_in, now)? {
        return Ok(None);
    }
    if let Some(former) = &entry.former {
        end_console_session(tx, former)?;
    }
    let cookie = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let text = StateTable::ConsoleSession.insert(
        "(digest, person_id, sign_in_session_id, acr, made_on, seen_on, proven_on, expires_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)",
    );
    let parameters: Vec<Value> = vec![
        console_digest(master, &cookie).into(),
        granted.person.into(),
        sign_in.into(),
        granted.acr.as_str().into(),
        now.0.into(),
        (granted.auth_time * 1000).into(),
        now.plus(longest).0.into(),
    ];
    tx.queue(&text, parameters)?;
    Ok(Some(cookie))
}

/// A person's display preferences; empty if nothing was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsolePreference {
    /// `light` or `dark`.
    pub theme: String,
    /// `en` or `de`.
    pub language: String,
    /// `compact`.
    pub density: String,
    /// The time zone of displayed times; empty: that of the browser.
    pub zone: String,
    /// `off`: single-letter shortcuts are disabled.
    pub single_keys: String,
}

/// A person's display preferences; empty if nothing was chosen.
pub fn console_preference(tx: &mut Tx<'_>, person: Uuid) -> Result<ConsolePreference, StoreError> {
    let text =
        "SELECT theme, language, density, zone, single_keys FROM console_preference WHERE person_id = ?1";
    let preference = tx.one(text, &[person.into()], |row| {
        Ok(ConsolePreference {
            theme: row.text(0)?.to_owned(),
            language: row.text(1)?.to_owned(),
            density: row.text(2)?.to_owned(),
            zone: row.text(3)?.to_owned(),
            single_keys: row.text(4)?.to_owned(),
        })
    });
    Ok(preference?.unwrap_or_default())
}

/// Stores a person's display preferences.
pub fn store_console_preference(
    tx: &mut Tx<'_>,
    person: Uuid,
    preference: &ConsolePreference,
) -> Result<(), StoreError> {
    let text = StateTable::ConsolePreference.insert(
        "(person_id, theme, language, density, zone, single_keys) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (person_id) DO UPDATE SET theme = ?2, language = ?3, density = ?4, zone = ?5, single_keys = ?6",
    );
    let ConsolePreference { theme, language, density, zone, single_keys } = preference;
    let chosen = [theme, language, density, zone, single_keys].map(|text| text.as_str().into());
    tx.queue(&text, std::iter::once(person.into()).chain(chosen).collect())
}

/// The lifetime of the first administrator's link, in ms.
const SETUP_MS: i64 = 3_600_000;

fn setup_digest(master: &MasterKey, code: &str) -> Vec<u8> {
    master.digest("console-setup", code.as_bytes())
}

/// The link is valid only while there is no `SystemAdmin`.
const NO_ADMINISTRATOR: &str =
    "NOT EXISTS (SELECT 1 FROM role_assignment r WHERE r.role_type = 'SystemAdmin')";

/// Creates the code of the first administrator's link; an earlier one becomes invalid.
pub fn open_setup(tx: &mut Tx<'_>, master: &MasterKey, now: Timestamp) -> Result<String, StoreError> {
    let code = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let text = StateTable::ConsoleSetup.insert(
        "(id, digest, expires_on) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET digest = ?1, expires_on = ?2",
    );
    tx.queue(&text, vec![setup_digest(master, &code).into(), now.plus(SETUP_MS).0.into()])?;
    Ok(code)
}

/// Whether a code of the first administrator's link is valid now.
pub fn is_setup_open(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    code: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let text =
        format!("SELECT 1 FROM console_setup WHERE digest = ?1 AND expires_on > ?2 AND {NO_ADMINISTRATOR}");
    Ok(tx.one(&text, &[setup_digest(master, code).into(), now.0.into()], |_| Ok(()))?.is_some())
}

/// Deletes the code. `false`: another request has used it.
pub fn spend_setup(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    code: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let good = format_args!("WHERE digest = ?1 AND expires_on > ?2 AND {NO_ADMINISTRATOR}");
    let text = StateTable::ConsoleSetup.delete(good);
    Ok(tx.execute(&text, &[setup_digest(master, code).into(), now.0.into()])? == 1)
}
