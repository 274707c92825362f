//! Fresh proofs: what reaches far is done only by who has just proven who they are. A form that comes too late, or after
//! its session, is kept in a page until its person has signed in again.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_resource::{Method, Op, Problem, ProblemKind, random};
use chancery_signin::ConsolePreference;
use chancery_web::{AnswerBody, App, Cookies};
use http::{Response, request::Parts};
use serde_json::{Value, json};

use crate::{
    forgery,
    render::page,
    visit::{Parameters, Visit, one, plain},
    words::Words,
};

/// How long a proof is fresh, in ms.
const FRESH_MS: i64 = 10 * 60_000;
/// The cookie that a kept form belongs to.
const KEPT: &str = "console-kept";
/// The paths of operations that want a fresh proof wherever they write.
const GRAVE: [&str; 5] =
    ["/RoleAssignment", "/ClientAppSecret", "/ClientAppKeySet", "/CertStore", "/SignInSession"];
/// The names of other operations that want one.
const GRAVE_NAMES: [&str; 5] = [
    "EraseUser",
    "SignOutApplicationUser",
    "DeleteSignInFactor",
    "CreateEventSubscription",
    "CreateEventSubscriptionSecret",
];

/// Whether an operation wants a fresh proof: it grants, makes secrets and keys, ends sessions, or erases.
pub fn is_wanted(op: &Op) -> bool {
    let is_grave = GRAVE.iter().any(|path| op.path.split('/').nth(1) == path.get(1..));
    // recoveries and access passes let people in
    let is_entry = op.path.starts_with("/administration/passkey-security/");
    op.method != Method::Get
        && (is_grave || is_entry || GRAVE_NAMES.contains(&op.name) || op.name.contains("ScimToken"))
}

impl Visit<'_> {
    /// Whether the person's proof is too old for what reaches far.
    pub const fn is_stale(&self) -> bool {
        self.now.0 - self.visitor.session.proven_on.0 > FRESH_MS
    }

    /// Goes on where the person has just proven who they are.
    ///
    /// # Errors
    /// The proof is too old.
    pub fn fresh(&self) -> Result<(), Problem> {
        if self.is_stale() {
            return Err(Problem::new(ProblemKind::Unauthorized, self.words.page("again_text")));
        }
        Ok(())
    }
}

/// Whether a form is one that was kept for this browser.
pub fn is_kept(app: &App, cookies: &Cookies, form: &[(String, String)]) -> bool {
    let (Some(cookie), Some(shown)) = (cookies.find(KEPT), one(form, "kept")) else { return false };
    forgery::is_ours(&app.context.master, cookie.as_bytes(), shown)
}

/// What the page of a kept form says where it wants a proof: it leads to the sign-in, in a tab of its own.
pub fn asked(words: &Words) -> (u16, Value) {
    let content = json!({
        "heading": words.page("again_title"), "text": words.page("again_text"), "hint": words.page("again_hint"),
        "wait": null, "trace": "", "link": { "href": "/console/proof", "label": words.page("again_link") },
    });
    (401, content)
}

/// Keeps a form in a page that says why, and sends the form again.
///
/// # Errors
/// The page cannot be made.
pub fn keep(
    app: &App,
    parts: &Parts,
    mut cookies: Cookies,
    (words, preference, form): (&'static Words, Option<&ConsolePreference>, &Parameters),
    (status, mut content): (u16, Value),
) -> Result<Response<AnswerBody>, Problem> {
    let cookie = cookies.find(KEPT).unwrap_or_else(|| BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
    cookies.set(KEPT, &cookie, None);
    let typed = form.iter().filter(|(name, _)| name != "csrf" && name != "kept");
    let mut hidden: Vec<Value> = typed.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let kept = forgery::token(&app.context.master, cookie.as_bytes());
    hidden.push(json!({ "name": "kept", "value": kept }));
    if let Some(members) = content.as_object_mut() {
        members.insert("action".to_owned(), json!(parts.uri.path()));
        members.insert("hidden".to_owned(), Value::Array(hidden));
        members.insert("send".to_owned(), json!(words.page("again_send")));
    }
    let heading = content.get("heading").and_then(Value::as_str).unwrap_or_default();
    let mut response = page(status, "again.html", &plain(parts, words, preference, heading, &content))?;
    cookies.write(&mut response);
    Ok(response)
}

/// The page where a proof in a tab of its own ends.
///
/// # Errors
/// The page cannot be made.
pub fn proven(parts: &Parts, words: &'static Words) -> Result<Response<AnswerBody>, Problem> {
    let heading = words.page("proven_title");
    let content = json!({
        "heading": heading, "text": words.page("proven_text"), "facts": [], "trace": "",
        "link": { "href": "/console", "label": words.page("to_overview") },
    });
    page(200, "message.html", &plain(parts, words, None, heading, &content))
}

#[cfg(test)]
mod tests {
    use super::is_wanted;

    #[test]
    fn what_reaches_far_wants_a_proof() {
        let find = |name: &str| {
            let services = [&chancery_userstore::SERVICE, &chancery_management::SERVICE];
            services.into_iter().flat_map(chancery_resource::Service::all).find(|op| op.name == name).unwrap()
        };
        for name in [
            "CreateRoleAssignment",
            "DeleteClientAppSecret",
            "CreateClientAppKeySet",
            "EraseUser",
            "ApproveRecovery",
            "SignOutApplicationUser",
        ] {
            assert!(is_wanted(find(name)), "{name}");
        }
        for name in ["GetRoleAssignments", "CreateClientApp", "DeleteUser", "CreateClientAppScope"] {
            assert!(!is_wanted(find(name)), "{name}");
        }
    }
}
