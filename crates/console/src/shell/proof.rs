//! Fresh proofs: what reaches far is done only by who has just proven who they are. A form that comes too late, or after
//! its session, is kept in a page until its person has signed in again.

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

/// How long a proof is fresh, in ms.
const FRESH_MS: i64 = 10 * 60_000;
/// What forms send for the server alone.
const UNTOLD: [&str; 12] = [
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
/// The most characters that are shown of what a kept form sends in one field.
const LONGEST_TOLD: usize = 500;
/// The cookie that a kept form belongs to.
const KEPT: &str = "console-kept";

/// Whether an operation wants a fresh proof, whatever it is asked for: it gives rights or decides who gets in, makes a secret, or
/// takes a password.
pub fn is_wanted(op: &Op) -> bool {
    let makes_secret = matches!(op.action, Action::Create | Action::CreateBatch)
        && op.shape.fields.iter().any(is_shown_once);
    let takes_password = match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().any(is_password),
        Action::ReplaceMembers(fields) => fields.iter().any(|field| reaches(op, field.wire())),
        _ => false,
    };
    op.writes() && (op.is_grave() || makes_secret || takes_password)
}

fn is_password(field: &Field) -> bool {
    matches!(field.kind, Kind::Text(rule) if rule.format == Some("password"))
}

/// Whether a person is reached by what this member of a row says: who sets it gets what is sent there.
fn reaches(op: &Op, wire: &str) -> bool {
    let protection = op.shape.writes.protection;
    protection.is_some_and(|protection| protection.reached_by.iter().any(|field| field.wire() == wire))
}

/// Whether an operation wants a fresh proof for what it is asked for: as [`is_wanted`], or it changes by what a person is reached.
fn is_wanted_for(input: &Input) -> bool {
    let changes = matches!(input.op.action, Action::Replace | Action::Patch | Action::ReplaceBatch);
    let named =
        |row: &Value| row.as_object().is_some_and(|row| row.keys().any(|wire| reaches(input.op, wire)));
    let is_reached = changes
        && input.body.as_ref().is_some_and(|body| match body {
            Value::Array(rows) => rows.iter().any(named),
            row => named(row),
        });
    is_reached || is_wanted(input.op)
}

/// The groups that get members by what an operation is asked for, as far as ids say: where one gives a role, so do they.
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

    /// Goes on where what is to be done wants no fresh proof, or the person has just given one.
    ///
    /// # Errors
    /// The proof is too old; those of the store.
    pub async fn prove(&self, inputs: &[Input]) -> Result<(), Problem> {
        if !self.is_stale() {
            return Ok(());
        }
        if inputs.iter().any(is_wanted_for) {
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

/// Whether a form is of a page of the session whose cookie came along, which may have ended, or was kept from such a page for this
/// browser.
pub fn is_own(app: &App, cookies: &Cookies, form: &[(String, String)]) -> bool {
    let master = &app.context.master;
    let session = cookies.find(SESSION).map(|cookie| console_digest(master, &cookie));
    let kept = cookies.find(KEPT).map(String::into_bytes);
    [(session, "csrf"), (kept, "kept")].into_iter().any(|(secret, name)| {
        secret.zip(one(form, name)).is_some_and(|(secret, shown)| forgery::is_ours(master, &secret, shown))
    })
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
    let sent: Vec<Value> = told(words, form).collect();
    let kept = forgery::token(&app.context.master, cookie.as_bytes());
    hidden.push(json!({ "name": "kept", "value": kept }));
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

/// What a form sends, for people: what they typed or chose. Of secrets it says no more than that there is one.
fn told(words: &Words, form: &Parameters) -> impl Iterator<Item = Value> {
    // what was there when the form was opened is sent along, and changes nothing
    let base: Value = one(form, "base").and_then(|base| serde_json::from_str(base).ok()).unwrap_or_default();
    // the value of an option is a secret where its name says so
    let option = one(form, "name").or_else(|| base.get("name")?.as_str()).unwrap_or_default();
    let is_secret_value = is_secret_name(option.trim());
    let is_told = move |name: &str, value: &str| {
        let was = base.get(name).map(plain);
        !UNTOLD.contains(&name) && was.unwrap_or_default() != value
    };
    form.iter().enumerate().filter_map(move |(at, (name, value))| {
        // a switch sends `false` before itself
        let is_overruled = value == "false" && form.iter().skip(at + 1).any(|(later, _)| later == name);
        (is_told(name, value) && !is_overruled).then(|| {
            let mut text: String = value.chars().take(LONGEST_TOLD).collect();
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

/// Whether a control of this name may hold a secret, wherever there is one. A part of a setting is named behind a dot.
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

/// The names of the controls of a field that may hold a secret: a file may hold a private key, as its parts may where it is
/// uploaded, and the value of a header may let somebody in.
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
    page(200, "message.html", &visit::plain(parts, words, None, heading, &content))
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
            assert!(is_wanted(find(name)), "{name}");
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
            assert!(!is_wanted(find(name)), "{name}");
        }
    }
}
