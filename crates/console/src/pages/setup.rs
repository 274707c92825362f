//! Creation of the first administrator: a link in the log after the first start, valid for an hour and for one use.

use std::sync::Arc;

use chancery_auth::load_store_context;
use chancery_record::{Timestamp, read_json};
use chancery_resource::{
    AppContext, Call, Context, Op, Out, Preconditions, Problem, Request, Scope, Steps, StoreError, Task, Tx,
    run,
};
use chancery_signin::{is_setup_open, spend_setup};
use chancery_store::Mode;
use chancery_userstore::user::MIRROR;
use chancery_web::{AnswerBody, App};
use http::{Method, Response, request::Parts};
use serde_json::{Map, Value, json};

use super::{
    first_sign_in::{BY_PASSKEY, PassPage, WAY, can_make_passkeys, way_field},
    welcome::PATH as WIZARD,
};
use crate::shell::{
    directory::operation,
    fields::{self, control_field},
    forgery,
    render::{page, see_other},
    visit::{one, plain},
    words::Words,
};

/// The user store of the first administrator.
const STORE: &str = "default";

/// The path of the setup link with this code.
pub fn setup_path(code: &str) -> String {
    format!("/console/setup/{code}")
}

/// The fields of the form: each with its control, its `autocomplete` value, and whether it is required.
const FIELDS: [(&str, &str, &str, bool); 7] = [
    ("firstName", "text", "given-name", false),
    ("lastName", "text", "family-name", false),
    ("emailAddress", "email", "email", false),
    ("loginName", "text", "username", true),
    (WAY, "choice", "off", false),
    ("password", "secret", "new-password", true),
    ("repeated", "secret", "new-password", true),
];

/// A submitted form.
struct Typed<'a> {
    form: &'a [(String, String)],
    /// The errors, by wire name.
    wrong: &'a [(String, String)],
}

/// Answers a request for the page. Opening it does not use the link up: previews and prefetches open it, too.
///
/// # Errors
/// The link is unknown or no longer valid: the response does not distinguish them.
pub async fn answer(
    app: &App,
    parts: &Parts,
    code: &str,
    form: &[(String, String)],
    words: &'static Words,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let (master, shown) = (app.context.master.clone(), code.to_owned());
    let url = app.token_service.public_url.clone();
    let query = move |tx: &mut Tx<'_>| {
        let is_open = is_setup_open(tx, &master, &shown, now)?;
        let store = load_store_context(tx, STORE)?;
        let can = store.is_some_and(|store| can_make_passkeys(&store.scope.options, &url));
        Ok::<_, Problem>(is_open.then_some(can))
    };
    let link = app.store.run("FindSetup", Mode::Quick, None, query).await?;
    let can_choose = link.ok_or_else(|| Problem::not_found("page here"))?;
    let show = |wrong: &[(String, String)]| show(app, parts, code, &Typed { form, wrong }, words, can_choose);
    if parts.method == Method::GET {
        return show(&[]);
    }
    let is_ours = forgery::is_same_origin(&parts.headers, &app.token_service.public_url)
        && forgery::is_ours(&app.context.master, code.as_bytes(), one(form, "csrf").unwrap_or_default());
    if !is_ours {
        return Err(Problem::new(chancery_resource::ProblemKind::Forbidden, "The form is of another page."));
    }
    let by_passkey = can_choose && one(form, WAY) == Some(BY_PASSKEY);
    if !by_passkey && one(form, "password") != one(form, "repeated") {
        return show(&[("repeated".to_owned(), words.page("passwords_differ").to_owned())]);
    }
    let (context, code_of, sent) = (Arc::clone(&app.context), code.to_owned(), form.to_vec());
    let creation =
        move |tx: &mut Tx<'_>| create_administrator(&context, tx, &code_of, &sent, by_passkey, now);
    match app.store.run("FirstAdministrator", Mode::Write, None, creation).await {
        Ok(None) => Ok(see_other(WIZARD)),
        Ok(Some(pass)) => {
            let access_pass = PassPage {
                text: words.page("setup_pass"),
                login: one(form, "loginName").unwrap_or_default().trim(),
                pass: &pass,
                next_label: words.page("pass_sign_in"),
                next: WIZARD,
            };
            let heading = words.page("pass_title");
            page(200, "pass.html", &plain(parts, words, None, heading, &access_pass.content(words)))
        }
        Err(problem) if problem.status() == 400 || problem.status() == 409 => {
            let problem = words.problem(problem);
            let errors = problem.errors.as_slice().iter().map(|error| {
                let wire = error.pointer.trim_start_matches('/');
                let wire = if wire == "newPassword" { "password" } else { wire };
                (wire.to_owned(), error.detail.clone())
            });
            let mut errors: Vec<(String, String)> = errors.collect();
            if errors.is_empty() {
                errors.push((String::new(), problem.detail));
            }
            show(&errors)
        }
        Err(problem) => Err(problem),
    }
}

fn show(
    app: &App,
    parts: &Parts,
    code: &str,
    typed: &Typed<'_>,
    words: &'static Words,
    can_choose: bool,
) -> Result<Response<AnswerBody>, Problem> {
    let Typed { form, wrong } = typed;
    let fields = FIELDS.iter().filter(|(name, ..)| can_choose || *name != WAY);
    let fields: Vec<Value> = fields
        .map(|(name, control, autocomplete, is_required)| {
            if *name == WAY {
                return Value::Object(way_field(words, one(form, WAY)));
            }
            let error: Vec<&str> =
                wrong.iter().filter(|(wire, _)| wire == name).map(|(_, text)| text.as_str()).collect();
            let value = one(form, name).filter(|_| *control != "secret").unwrap_or_default();
            let mut field = control_field(name, &words.field(name), control);
            field.extend([
                ("value".to_owned(), json!(value)),
                ("required".to_owned(), json!(is_required)),
                ("error".to_owned(), json!(error.join(" "))),
                ("autocomplete".to_owned(), json!(autocomplete)),
            ]);
            Value::Object(field)
        })
        .collect();
    let errors: Vec<Value> = wrong
        .iter()
        .map(|(wire, text)| match wire.as_str() {
            "" => json!({ "text": text, "href": null }),
            wire => json!({ "text": format!("{} {text}", words.field(wire)), "href": format!("#f-{wire}") }),
        })
        .collect();
    let status = if wrong.is_empty() { 200 } else { 400 };
    let content = json!({
        "step": "", "errors": errors, "fields": fields, "submit": words.page("setup_submit"),
        "about": words.page("setup_about"),
    });
    let mut page_data = plain(parts, words, None, words.page("setup_title"), &content);
    if let Some(members) = page_data.as_object_mut() {
        members.insert("csrf".to_owned(), json!(forgery::token(&app.context.master, code.as_bytes())));
    }
    page(status, "setup.html", &page_data)
}

/// Creates the administrator and uses the link up, in one transaction. The password is hashed within it: this happens
/// only once. Returns the access pass if a passkey is to be registered in place of a password.
fn create_administrator(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    code: &str,
    form: &[(String, String)],
    by_passkey: bool,
    now: Timestamp,
) -> Result<Option<String>, Problem> {
    if !spend_setup(tx, &app.master, code, now)? {
        return Err(Problem::not_found("page here"));
    }
    let store =
        load_store_context(tx, STORE)?.ok_or_else(|| Problem::not_found("user store named default"))?;
    let in_store = Scope::Store(store.scope.clone());
    let typed = |name: &str| one(form, name).map(str::trim).filter(|text| !text.is_empty());
    let mut body = Map::new();
    for (name, control, ..) in FIELDS {
        if let (Some(text), true) = (typed(name), control != "secret" && name != WAY) {
            body.insert(name.to_owned(), json!(text));
        }
    }
    let body = Value::Object(body);
    let user = call(app, tx, &in_store, now, operation!("CreateUser"), Vec::new(), &body)?;
    let id = user.get("id").map_or_else(String::new, fields::plain);
    let pass = if by_passkey {
        let request = json!({ "userId": id });
        let issued =
            call(app, tx, &in_store, now, operation!("IssueTemporaryAccessPass"), Vec::new(), &request)?;
        issued.get("value").map(fields::plain)
    } else {
        let password = json!({ "newPassword": one(form, "password").unwrap_or_default() });
        call(app, tx, &in_store, now, operation!("ResetPassword"), vec![id.clone()], &password)?;
        None
    };
    let user = uuid::Uuid::try_parse(&id).unwrap_or_default();
    let mut context = Context::of_server(app, in_store, now);
    let person = MIRROR.follow(&mut context, tx, store.subscription, user)?;
    let person = person.ok_or_else(|| StoreError::Internal("a new user became no platform user".into()))?;
    let role = json!({ "principalId": person, "principalType": "PlatformUser", "roleType": "SystemAdmin" });
    call(app, tx, &Scope::Everything, now, operation!("CreateRoleAssignment"), Vec::new(), &role)?;
    Ok(pass)
}

/// Runs an operation of the API as the server itself, and returns its response.
fn call(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    scope: &Scope,
    now: Timestamp,
    op: Option<&'static Op>,
    path: Vec<String>,
    body: &Value,
) -> Result<Value, Problem> {
    let op = op.ok_or_else(|| StoreError::Internal("there is no such operation".to_owned()))?;
    let body = read_json(body.to_string().as_bytes()).map_err(|error| Problem::invalid(error.0))?;
    let request = Request {
        op,
        path,
        address: String::new(),
        query: Vec::new(),
        preconditions: Preconditions { if_match: None, if_none_match: None },
        body: Some(body),
        bytes: None,
        merge_patch: false,
        dry_run: false,
        reads_later: false,
        minimal: false,
        unchanged: None,
    };
    let context = Context::of_server(app, scope.clone().to_be_changed(true), now);
    let mut call = Call { request, context, steps: Steps::default(), answer: Out::default() };
    while let Some(work) = run(&mut call, tx)?.work {
        let Task::Compute(compute) = work.into_task() else {
            return Err(StoreError::Internal(format!("{} waits for another server", op.name)).into());
        };
        call.steps.results.push(compute());
    }
    call.answer.finish();
    Ok(serde_json::from_slice(&call.answer.bytes).unwrap_or_default())
}
