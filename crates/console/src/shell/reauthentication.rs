//! Reauthentication before critical operations. A form that arrives after the proof or the session has expired is held in
//! a page until the user has signed in again.

use std::{collections::HashSet, sync::LazyLock};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Field, Kind, parse_id};
use chancery_resource::{
    Action, Body, CarriedBy, Custom, Op, Problem, ProblemKind, Protection, RelationChange, Shape, random,
    settings::CATALOGUE,
};
use chancery_signin::{ConsolePreference, console_digest};
use chancery_web::{AnswerBody, App, Cookies, Input};
use http::{Response, request::Parts};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    directory,
    fields::{is_secret, is_shown_once, plain},
    forgery,
    render::page,
    session::SESSION,
    visit::{self, Parameters, Visit, one},
    words::Words,
};

/// How long a reauthentication is valid, in ms.
const FRESH_MS: i64 = 10 * 60_000;
/// Form fields for the server only.
const INTERNAL_FIELDS: [&str; 12] = [
    "csrf",
    "kept",
    "key",
    "base",
    "concurrencyToken",
    "tokens",
    "sealed",
    "merge",
    "back",
    "review",
    "step",
    "sure",
];
/// Maximum length of a submitted value on the page of a held form, in characters.
const LONGEST_SHOWN: usize = 500;
/// The cookie that a held form is bound to.
const HELD_FORM: &str = "console-kept";

/// Whether an operation always requires reauthentication: it grants permissions, affects who can sign in, generates a
/// secret, or takes a password.
pub fn is_required(op: &Op) -> bool {
    let makes_secret = matches!(op.action, Action::Create | Action::CreateBatch)
        && op.shape.fields.iter().any(is_shown_once);
    let takes_password = match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().any(is_password),
        Action::ReplaceMembers(fields) => fields.iter().any(|field| reaches(op, field.wire())),
        _ => false,
    };
    op.writes() && (op.is_sensitive() || makes_secret || takes_password)
}

fn is_password(field: &Field) -> bool {
    matches!(field.kind, Kind::Text(rule) if rule.format == Some("password"))
}

/// Whether messages to a person are sent to this member of a row: whoever sets it receives them.
fn reaches(op: &Op, wire: &str) -> bool {
    let protection = op.shape.writes.protection;
    protection.is_some_and(|protection| protection.contact_fields.iter().any(|field| field.wire() == wire))
}

/// Whether an operation requires reauthentication with this input: as [`is_required`], or it changes a contact address.
fn is_required_for(input: &Input) -> bool {
    let changes = matches!(input.op.action, Action::Replace | Action::Patch | Action::ReplaceBatch);
    let named =
        |row: &Value| row.as_object().is_some_and(|row| row.keys().any(|wire| reaches(input.op, wire)));
    let is_reached = changes
        && input.body.as_ref().is_some_and(|body| match body {
            Value::Array(rows) => rows.iter().any(named),
            row => named(row),
        });
    is_reached || is_required(input.op)
}

/// The groups that get members by this input, as far as ids tell: if a group grants a role, so does the membership.
fn joined(input: &Input) -> Option<(&'static Shape, Vec<Uuid>)> {
    let Action::Relate(relation, RelationChange::Set | RelationChange::Add) = input.op.action else {
        return None;
    };
    let gives = |shape: &Shape| {
        let passes_on = |protection: &Protection| {
            protection.carried_by == CarriedBy::Itself && protection.links.protect(relation)
        };
        shape.writes.protection.is_some_and(passes_on)
    };
    let shape = [input.op.shape, relation.target].into_iter().find(|shape| gives(shape))?;
    let related = input.body.as_ref().and_then(|body| body["relatedIds"].as_array());
    let related = related.into_iter().flatten().filter_map(Value::as_str);
    let ids = input.path.iter().map(String::as_str).chain(related);
    Some((shape, ids.filter_map(parse_id).collect()))
}

impl Visit<'_> {
    /// Whether the last proof is too old for critical operations.
    pub const fn is_stale(&self) -> bool {
        self.now.0 - self.visitor.session.proven_on.0 > FRESH_MS
    }

    /// Succeeds if the user has reauthenticated recently.
    ///
    /// # Errors
    /// The proof is too old.
    pub fn fresh(&self) -> Result<(), Problem> {
        if self.is_stale() {
            return Err(Problem::new(ProblemKind::Unauthorized, self.words.page("again_text")));
        }
        Ok(())
    }

    /// Succeeds if the inputs require no reauthentication, or the user has reauthenticated recently.
    ///
    /// # Errors
    /// The proof is too old.
    pub async fn prove(&self, inputs: &[Input]) -> Result<(), Problem> {
        if !self.is_stale() {
            return Ok(());
        }
        if inputs.iter().any(is_required_for) {
            return self.fresh();
        }
        for (shape, ids) in inputs.iter().filter_map(joined) {
            if !self.app.carried_roles(&self.visitor, shape, ids, self.now).await?.is_empty() {
                return self.fresh();
            }
        }
        Ok(())
    }
}

/// Whether a form belongs to a page of the session of the cookie, which may have ended, or was held in a page for this
/// browser.
pub fn is_own(app: &App, cookies: &Cookies, form: &[(String, String)]) -> bool {
    let master = &app.context.master;
    let session = cookies.find(SESSION).map(|cookie| console_digest(master, &cookie));
    let held = cookies.find(HELD_FORM).map(String::into_bytes);
    [(session, "csrf"), (held, "kept")].into_iter().any(|(secret, name)| {
        secret.zip(one(form, name)).is_some_and(|(secret, shown)| forgery::is_ours(master, &secret, shown))
    })
}

/// A form that is held in a page.
pub struct HeldForm<'a> {
    /// The texts of the page.
    pub words: &'static Words,
    /// The preference of the user; `None` without a session.
    pub preference: Option<&'a ConsolePreference>,
    /// The submitted fields.
    pub form: &'a Parameters,
}

/// What the page of a held form says about the reason.
pub struct Explanation {
    /// The status of the response.
    pub status: u16,
    /// The context of the template, without the form.
    pub content: Value,
}

/// The page of a held form that requires reauthentication: it links to the sign-in, in a tab of its own.
pub fn prompt(words: &Words) -> Explanation {
    let content = json!({
        "heading": words.page("again_title"), "text": words.page("again_text"), "hint": words.page("again_hint"),
        "wait": null, "trace": "", "link": { "href": "/console/proof", "label": words.page("again_link") },
    });
    Explanation { status: 401, content }
}

/// Holds a form in a page that explains why, and sends it again.
pub fn hold_form(
    app: &App,
    parts: &Parts,
    mut cookies: Cookies,
    held: &HeldForm<'_>,
    explanation: Explanation,
) -> Result<Response<AnswerBody>, Problem> {
    let HeldForm { words, preference, form } = *held;
    let Explanation { status, mut content } = explanation;
    let cookie = cookies.find(HELD_FORM).unwrap_or_else(|| BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
    cookies.set(HELD_FORM, &cookie, None);
    let typed = form.iter().filter(|(name, _)| name != "csrf" && name != "kept");
    let mut hidden: Vec<Value> = typed.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let sent: Vec<Value> = described_fields(words, form).collect();
    let token = forgery::token(&app.context.master, cookie.as_bytes());
    hidden.push(json!({ "name": "kept", "value": token }));
    if let Some(members) = content.as_object_mut() {
        members.insert("action".to_owned(), json!(parts.uri.path()));
        members.insert("hidden".to_owned(), Value::Array(hidden));
        members.insert("sent".to_owned(), Value::Array(sent));
        members.insert("send".to_owned(), json!(words.page("again_send")));
    }
    let heading = content.get("heading").and_then(Value::as_str).unwrap_or_default();
    let mut response =
        page(status, "again.html", &visit::plain(parts, words, preference, heading, &content))?;
    cookies.write(&mut response);
    Ok(response)
}

/// The submitted fields for display: entered or selected values. Secrets are masked.
fn described_fields(words: &Words, form: &Parameters) -> impl Iterator<Item = Value> {
    // the original values are submitted, too, and change nothing
    let base: Value = one(form, "base").and_then(|base| serde_json::from_str(base).ok()).unwrap_or_default();
    // whether the value of an option is secret depends on its name
    let option = one(form, "name").or_else(|| base.get("name")?.as_str()).unwrap_or_default();
    let is_secret_value = is_secret_name(option.trim());
    let is_changed = move |name: &str, value: &str| {
        let was = base.get(name).map(plain);
        !INTERNAL_FIELDS.contains(&name) && was.unwrap_or_default() != value
    };
    form.iter().enumerate().filter_map(move |(at, (name, value))| {
        // a checkbox is preceded by a hidden `false`
        let is_overruled = value == "false" && form.iter().skip(at + 1).any(|(later, _)| later == name);
        (is_changed(name, value) && !is_overruled).then(|| {
            let mut text: String = value.chars().take(LONGEST_SHOWN).collect();
            if text.len() < value.len() {
                text.push('…');
            }
            if text.is_empty() {
                text.push_str(words.page("not_set"));
            }
            let is_hidden = is_secret_name(name) || (name == "value" && is_secret_value);
            let text = if is_hidden { "•••••".to_owned() } else { text };
            json!({ "label": words.field(name), "text": text })
        })
    })
}

/// Whether a control of this name may contain a secret in any form. The part of a structured setting follows a dot.
fn is_secret_name(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let fields = directory::operations().flat_map(|op| {
            let own: &[Field] = match op.action {
                Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields,
                _ => &[],
            };
            own.iter().chain(op.shape.fields)
        });
        let names = fields.flat_map(secret_names);
        names.chain(CATALOGUE.iter().filter(|entry| entry.secret).map(|entry| entry.name)).collect()
    });
    NAMES.contains(name.split('.').next().unwrap_or_default())
}

/// The names of the controls of a field that may contain a secret: a file may contain a private key, so may its parts in
/// an upload, and a header value may be a credential.
fn secret_names(field: &'static Field) -> Vec<&'static str> {
    match field.kind {
        Kind::Object(parts) => {
            parts.iter().filter(|part| matches!(part.kind, Kind::Text(_))).map(Field::wire).collect()
        }
        Kind::Bytes(_) | Kind::Pairs(_) => vec![field.wire()],
        _ if is_secret(field, &Value::Null) => vec![field.wire()],
        _ => Vec::new(),
    }
}

/// The page at the end of a reauthentication in a tab of its own.
pub fn proven(parts: &Parts, words: &'static Words) -> Result<Response<AnswerBody>, Problem> {
    let heading = words.page("proven_title");
    let content = json!({
        "heading": heading, "text": words.page("proven_text"), "facts": [], "trace": "",
        "link": { "href": "/console", "label": words.page("to_overview") },
    });
    page(200, "message.html", &visit::plain(parts, words, None, heading, &content))
}

#[cfg(test)]
mod tests {
    use super::is_required;

    #[test]
    fn critical_operations_require_a_fresh_proof() {
        let find = |name: &str| {
            let services = [&chancery_userstore::SERVICE, &chancery_management::SERVICE];
            services.into_iter().flat_map(chancery_resource::Service::all).find(|op| op.name == name).unwrap()
        };
        for name in [
            "CreateRoleAssignment",
            "CreateClientAppRole",
            "DeleteClientAppSecret",
            "CreateClientAppKeySet",
            "CreateClientAppFederatedIdentity",
            "PatchClientAppRedirectUri",
            "CreateClientAppResource",
            "CreateIdpInstanceScimToken",
            "CreateScimToken",
            "CreateEventSubscription",
            "CreateEventSubscriptionSecret",
            "SetInitialPassword",
            "ResetPassword",
            "ChangePassword",
            "RemovePasswordBatch",
            "IssueTemporaryAccessPass",
            "DeletePasskeyCredential",
            "DeleteSignInFactor",
            "CreateSecurityContact",
            "UpdateUserEmailAddress",
            "StartRecovery",
            "ApproveRecovery",
            "EraseUser",
            "SignOutApplicationUser",
            "EndSignInSession",
        ] {
            assert!(is_required(find(name)), "{name}");
        }
        for name in [
            "GetRoleAssignments",
            "GetScimTokens",
            "CreateClientApp",
            "CreateClientAppScope",
            "CreateUser",
            "PatchUser",
            "SetUserState",
            "ResetAccessFailedCount",
            "SendPasswordResetEmail",
            "DeleteUser",
            "CreateUserProfile",
            "CreateGroupMetadata",
        ] {
            assert!(!is_required(find(name)), "{name}");
        }
    }
}
