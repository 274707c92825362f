//! Sign-in to the console through this server's own provider, and sign-out.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Timestamp;
use chancery_resource::{CONSOLE, MasterKey, Problem, random};
use chancery_signin::{CONSOLE_RETURN, ConsoleEntry, console_digest, end_console_session};
use chancery_store::{Mode, Tx};
use chancery_web::{AnswerBody, App, Cookies, sign_out};
use http::{Response, request::Parts};
use serde::{Deserialize, Serialize};

use super::render::see_other;

/// The cookie of the session.
pub const SESSION: &str = "console";
/// The cookie of a pending sign-in: the response is validated against it.
const PENDING_SIGN_IN: &str = "console-entry";
/// How long a sign-in may take, in ms.
const LONGEST: i64 = 30 * 60_000;
/// The maximum length of the return path, in bytes.
const LONGEST_BACK: usize = 768;

/// A pending sign-in, sealed in a cookie.
#[derive(Serialize, Deserialize)]
struct PendingSignIn {
    state: String,
    verifier: String,
    back: String,
    until: i64,
}

impl PendingSignIn {
    fn seal(&self, master: &MasterKey) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.encode(master.seal(PENDING_SIGN_IN, &text))
    }

    fn open(master: &MasterKey, sealed: &str, now: Timestamp) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let entry: Self = serde_json::from_slice(master.open(PENDING_SIGN_IN, &sealed)?.expose()).ok()?;
        (entry.until > now.0).then_some(entry)
    }
}

/// Redirects to the sign-in, and from there back to this path. `is_fresh` requires reauthentication of signed-in users,
/// too.
pub fn authorize(
    app: &App,
    mut cookies: Cookies,
    back: &str,
    is_fresh: bool,
    now: Timestamp,
) -> Response<AnswerBody> {
    let master = &app.context.master;
    let [state, verifier] = [(); 2].map(|()| BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
    let challenge = chancery_oauth::Challenge::of(&verifier).to_string();
    let back = if back.len() <= LONGEST_BACK { back } else { "/console" };
    let entry =
        PendingSignIn { state: state.clone(), verifier, back: back.to_owned(), until: now.0 + LONGEST };
    cookies.set(PENDING_SIGN_IN, &entry.seal(master), None);
    let public_url = &app.token_service.public_url;
    let redirect_uri = format!("{public_url}{CONSOLE_RETURN}");
    let client = CONSOLE.to_string();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("client_id", &client).append_pair("redirect_uri", &redirect_uri);
    query.append_pair("response_type", "code").append_pair("scope", "openid").append_pair("state", &state);
    query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
    if app.sign_in.admin_acr != "sfa" {
        query.append_pair("acr_values", app.sign_in.admin_acr);
    }
    // after an expired session the user reauthenticates; a session is never based on a proof older than its maximum
    // lifetime
    let max_age = if is_fresh { 0 } else { app.console_lifetimes.longest / 1000 };
    query.append_pair("max_age", &max_age.to_string());
    let mut response = see_other(&format!("/connect/authorize?{}", query.finish()));
    cookies.write(&mut response);
    response
}

/// The result of a sign-in.
pub enum SignInResult {
    /// The user is signed in.
    SignedIn(Response<AnswerBody>),
    /// The user cancelled, or the provider refused: its error.
    Refused(String),
    /// The response matches no pending sign-in of this browser.
    Unknown,
}

/// Handles the authorization response: starts a session and redirects to the requested path.
pub async fn callback(
    app: &App,
    mut cookies: Cookies,
    query: &[(String, String)],
    now: Timestamp,
) -> Result<SignInResult, Problem> {
    let one = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let master = &app.context.master;
    let entry = cookies.find(PENDING_SIGN_IN).and_then(|sealed| PendingSignIn::open(master, &sealed, now));
    let Some(entry) = entry.filter(|entry| one("state") == Some(&entry.state)) else {
        return Ok(SignInResult::Unknown);
    };
    if let Some(error) = one("error") {
        return Ok(SignInResult::Refused(error.to_owned()));
    }
    let former = cookies.find(SESSION).map(|cookie| console_digest(master, &cookie));
    let shown =
        ConsoleEntry { code: one("code").unwrap_or_default().to_owned(), verifier: entry.verifier, former };
    let entered = app.provider(&app.store).enter_console(shown, app.console_lifetimes, now).await?;
    let Some(cookie) = entered else { return Ok(SignInResult::Unknown) };
    cookies.set(PENDING_SIGN_IN, "", Some(0));
    cookies.set(SESSION, &cookie, None);
    let mut response = see_other(&entry.back);
    cookies.write(&mut response);
    Ok(SignInResult::SignedIn(response))
}

/// Ends the session and the sign-in, which would otherwise sign in the next user of the browser.
pub async fn end(
    app: &App,
    parts: &Parts,
    mut cookies: Cookies,
    digest: Vec<u8>,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let ending = move |tx: &mut Tx<'_>| end_console_session(tx, &digest);
    app.store.run("LeaveConsole", Mode::Write, None, ending).await?;
    cookies.set(SESSION, "", Some(0));
    let mut response = sign_out(app, parts, now).await?;
    let name = http::HeaderName::from_static("clear-site-data");
    response.headers_mut().insert(name, http::HeaderValue::from_static("\"cache\""));
    cookies.write(&mut response);
    Ok(response)
}
