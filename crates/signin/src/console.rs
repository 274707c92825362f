//! Sign-ins to the console: its client app is built in, and its sessions name a person and a sign-in. There is no token.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_oauth::{Challenge, verify_pkce};
use chancery_record::{Timestamp, Value};
use chancery_resource::{CONSOLE, Context, MasterKey, Problem, Scope, StateTable, StoreError, Tx, random};
use chancery_store::Mode;
use uuid::Uuid;

use crate::{code, people::names_of, provider::Provider, redeem::is_session_good};

/// Where it begins, below the public URL.
pub const CONSOLE_PATH: &str = "/console";
/// Where its sign-ins come back to, below the public URL.
pub const CONSOLE_RETURN: &str = "/console/signin";

/// How old the last use of a session may be before it is written again, in ms.
pub const USE_MS: i64 = 60_000;

/// How long sessions of the console last, in ms.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLifetimes {
    /// Since the last use.
    pub idle: i64,
    /// In all.
    pub longest: i64,
}

/// A session of the console.
#[derive(Clone, Debug)]
pub struct ConsoleSession {
    /// The platform user.
    pub person: Uuid,
    /// The sign-in session, which it ends with.
    pub sign_in: Uuid,
    /// The instance by which the person signed in.
    pub instance: Uuid,
    /// The class of the sign-in.
    pub acr: String,
    /// When the person last proved something.
    pub proven_on: Timestamp,
    /// When it was last used, as far as that is written.
    pub seen_on: Timestamp,
    /// When it ends, however much it is used.
    pub expires_on: Timestamp,
}

/// The digest that the value of a session's cookie is kept by.
pub fn console_digest(master: &MasterKey, cookie: &str) -> Vec<u8> {
    master.digest("console-session", cookie.as_bytes())
}

/// The session with this digest, while it and its sign-in last.
///
/// # Errors
/// Errors of the store.
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

/// What the person of a session is called: the name to show, and the login name.
///
/// # Errors
/// Errors of the store.
pub fn console_names(tx: &mut Tx<'_>, session: &ConsoleSession) -> Result<(String, String), StoreError> {
    let ConsoleSession { sign_in, person, instance, .. } = *session;
    let names = names_of(tx, &[(sign_in, person, instance)])?.remove(&sign_in).unwrap_or_default();
    Ok((names.shown().to_owned(), names.login.unwrap_or_default()))
}

impl ConsoleSession {
    /// Whether a use is to be written: once in a minute.
    pub const fn is_use_noted(&self, now: Timestamp) -> bool {
        now.0 - self.seen_on.0 >= USE_MS
    }
}

/// Notes that a session was used.
///
/// # Errors
/// Errors of the store.
pub fn note_console_use(tx: &mut Tx<'_>, digest: &[u8], now: Timestamp) -> Result<(), StoreError> {
    let text = StateTable::ConsoleSession.update("SET seen_on = ?2 WHERE digest = ?1");
    tx.queue(&text, vec![digest.to_vec().into(), now.0.into()])
}

/// Ends a session.
///
/// # Errors
/// Errors of the store.
pub fn end_console_session(tx: &mut Tx<'_>, digest: &[u8]) -> Result<(), StoreError> {
    tx.queue(&StateTable::ConsoleSession.delete("WHERE digest = ?1"), vec![digest.to_vec().into()])
}

/// What a browser shows that comes back from a sign-in.
#[derive(Clone)]
pub struct ConsoleEntry {
    /// The code.
    pub code: String,
    /// The verifier of its PKCE challenge.
    pub verifier: String,
    /// The digest of the session that the browser had, which ends.
    pub former: Option<Vec<u8>>,
}

impl Provider<'_> {
    /// Makes a session of a code, without a wire; the value of its cookie. `None`: the code is not good.
    ///
    /// # Errors
    /// Those of the store.
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
    let Some(found) = code::find(tx, master, &entry.code, now)? else { return Ok(None) };
    let challenge = found.contents.challenge.as_deref().and_then(Challenge::read);
    let is_ours = found.application == CONSOLE
        && challenge.is_some()
        && verify_pkce(challenge.as_ref(), Some(&entry.verifier)).is_ok();
    if !is_ours || !found.claim(context, tx)? {
        return Ok(None);
    }
    let granted = &found.contents.granted;
    let Some(sign_in) = granted.session else { return Ok(None) };
    if !is_session_good(tx, sign_in, now)? {
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

/// How a person wants pages to look; empty where nothing was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsolePreference {
    /// `light` or `dark`.
    pub theme: String,
    /// `en` or `de`.
    pub language: String,
    /// `compact`.
    pub density: String,
    /// The zone in which times are shown; that of the browser where it is empty.
    pub zone: String,
    /// `off`: single letters do not act.
    pub single_keys: String,
}

/// How a person wants pages to look.
///
/// # Errors
/// Errors of the store.
pub fn console_preference(tx: &mut Tx<'_>, person: Uuid) -> Result<ConsolePreference, StoreError> {
    let text =
        "SELECT theme, language, density, zone, single_keys FROM console_preference WHERE person_id = ?1";
    let found = tx.one(text, &[person.into()], |row| {
        Ok(ConsolePreference {
            theme: row.text(0)?.to_owned(),
            language: row.text(1)?.to_owned(),
            density: row.text(2)?.to_owned(),
            zone: row.text(3)?.to_owned(),
            single_keys: row.text(4)?.to_owned(),
        })
    });
    Ok(found?.unwrap_or_default())
}

/// Keeps how a person wants pages to look.
///
/// # Errors
/// Errors of the store.
pub fn keep_console_preference(
    tx: &mut Tx<'_>,
    person: Uuid,
    wanted: &ConsolePreference,
) -> Result<(), StoreError> {
    let text = StateTable::ConsolePreference.insert(
        "(person_id, theme, language, density, zone, single_keys) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (person_id) DO UPDATE SET theme = ?2, language = ?3, density = ?4, zone = ?5, single_keys = ?6",
    );
    let ConsolePreference { theme, language, density, zone, single_keys } = wanted;
    let chosen = [theme, language, density, zone, single_keys].map(|text| text.as_str().into());
    tx.queue(&text, std::iter::once(person.into()).chain(chosen).collect())
}

/// How long the link of the first administrator is good, in ms.
const SETUP_MS: i64 = 3_600_000;

fn setup_digest(master: &MasterKey, code: &str) -> Vec<u8> {
    master.digest("console-setup", code.as_bytes())
}

/// The link is good until somebody is `SystemAdmin`, by whatever way.
const NO_ADMINISTRATOR: &str =
    "NOT EXISTS (SELECT 1 FROM role_assignment r WHERE r.role_type = 'SystemAdmin')";

/// Makes the code of the first administrator's link; any former one ends.
///
/// # Errors
/// Errors of the store.
pub fn open_setup(tx: &mut Tx<'_>, master: &MasterKey, now: Timestamp) -> Result<String, StoreError> {
    let code = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let text = StateTable::ConsoleSetup.insert(
        "(id, digest, expires_on) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET digest = ?1, expires_on = ?2",
    );
    tx.queue(&text, vec![setup_digest(master, &code).into(), now.plus(SETUP_MS).0.into()])?;
    Ok(code)
}

/// Whether a code of the first administrator's link is good now.
///
/// # Errors
/// Errors of the store.
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

/// Uses the code up. `false`: another request has done that.
///
/// # Errors
/// Errors of the store.
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
