//! The return of a browser from a sign-in to the console: its code is exchanged inside the process.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_oauth::{Challenge, verify_pkce};
use chancery_record::{Timestamp, Value};
use chancery_resource::{CONSOLE, Context, Problem, Scope, StateTable, Tx, random};
use chancery_store::Mode;

use super::session::{ConsoleLifetimes, console_digest, end_console_session};
use crate::{grant::authorization_code, provider::Provider, session::is_session_active};

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
