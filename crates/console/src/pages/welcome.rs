//! The setup wizard after the first start: steps that can be skipped. Progress is not stored, but derived from the data.

use chancery_management::role_assignment::ROLE_ASSIGNMENT;
use chancery_resource::{Permit, Problem};
use chancery_signin::{own_user, platform_user};
use chancery_store::{Mode, Tx};
use chancery_userstore::password::mail_state;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    first_sign_in::{BY_PASSKEY, PassPage, WAY, can_make_passkeys, way_field},
    form::{errors, is_of_form},
    steps::{SetupStep, steps},
};
use crate::shell::{
    components::{Card, FormPage, Line},
    directory::{self, OperationName, operation, operation_name},
    fields::{control_field, plain},
    visit::{Visit, not_found, one, redirect_with_notice},
};

/// Path of this page.
pub const PATH: &str = "/console/welcome";

/// The fields of the second administrator: name, control, and whether it is required.
const SECOND: [(&str, &str, bool); 6] = [
    ("firstName", "text", false),
    ("lastName", "text", false),
    ("emailAddress", "email", true),
    ("loginName", "text", true),
    (WAY, "choice", false),
    ("password", "secret", true),
];

/// Shows the step in the URL, or the first open one.
///
/// # Errors
/// The user is no system administrator.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    page(visit, None).await
}

/// Submits a step.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    require_system_admin(visit)?;
    match one(&visit.form, "step") {
        Some("mail") => {
            try_mail(visit).await?;
            Ok(redirect_with_notice(&format!("{PATH}?step=mail"), "mailed"))
        }
        _ => match create_second_administrator(visit).await {
            Ok(None) => Ok(redirect_with_notice(&format!("{PATH}?step=app"), "created")),
            Ok(Some(pass)) => {
                let words = visit.words;
                let access_pass = PassPage {
                    text: words.page("second_pass"),
                    login: one(&visit.form, "loginName").unwrap_or_default().trim(),
                    pass: &pass,
                    next_label: words.page("go_on"),
                    next: &format!("{PATH}?step=app"),
                };
                visit.page(200, "pass.html", words.page("pass_title"), &access_pass.content(words))
            }
            Err(problem) if is_of_form(&problem) => page(visit, Some(&problem)).await,
            Err(problem) => Err(problem),
        },
    }
}

fn require_system_admin(visit: &Visit<'_>) -> Result<(), Problem> {
    if visit.visitor.has(Permit::SystemAdmin) {
        return Ok(());
    }
    Err(visit.missing_role(Permit::SystemAdmin))
}

async fn page(visit: &Visit<'_>, problem: Option<&Problem>) -> Result<Response<AnswerBody>, Problem> {
    require_system_admin(visit)?;
    let all = steps(visit).await?;
    let name = if problem.is_some() { Some("second") } else { visit.parameter("step") };
    let named = |name: &str| all.iter().position(|step| step.name == name);
    let at = name.and_then(named).or_else(|| all.iter().position(|step| !step.is_done));
    let Some((at, step)) = at.and_then(|at| Some((at, all.get(at)?))) else {
        // all steps are done
        return Ok(crate::shell::render::see_other("/console"));
    };
    let words = visit.words;
    let next =
        all.get(at + 1).map_or_else(|| "/console".to_owned(), |next| format!("{PATH}?step={}", next.name));
    let skip = words.page(if step.is_done { "go_on" } else { "skip_step" });
    let act = |label: &str, href: &str, is_main: bool| json!({ "label": label, "icon": null, "href": href, "is_main": is_main, "is_dangerous": false });
    let has_form = step.name == "second" && !step.is_done;
    let mut acts = Vec::new();
    if !has_form && !step.href.starts_with(PATH) {
        acts.push(act(words.page(&format!("step_{}_act", step.name)), &step.href, !step.is_done));
    }
    if !has_form {
        acts.push(act(skip, &next, step.is_done || step.name == "address"));
    }
    let form = FormPage {
        back: json!({ "href": "/console", "label": words.page("overview") }),
        heading: words.page(&format!("step_{}", step.name)).into(),
        sub: words.page(&format!("step_{}_about", step.name)).into(),
        acts,
        errors: errors(visit, problem),
        sections: if has_form { vec![form_section(visit, problem)] } else { Vec::new() },
        hidden: vec![json!({ "name": "step", "value": step.name })],
        sidebar: vec![progress(visit, &all, step.name)],
        middle: about(visit, step).await?.into_iter().collect(),
        bar: has_form.then(|| {
            json!({ "save": words.page("create"), "cancel": { "href": next, "label": skip }, "review": false })
        }),
        is_new: has_form,
        ..FormPage::default()
    };
    form.show(visit, super::form::status_of(problem))
}

/// All steps, and which of them are done.
fn progress(visit: &Visit<'_>, all: &[SetupStep], current: &str) -> Card {
    let words = visit.words;
    let you = Line { tone: "good", text: words.page("step_you").into(), ..Line::default() };
    let lines = all.iter().map(|step| Line {
        tone: if step.is_done { "good" } else { "" },
        icon: (step.name == current && !step.is_done).then_some("arrow-right"),
        text: words.page(&format!("step_{}", step.name)).into(),
        href: Some(format!("{PATH}?step={}", step.name)),
        ..Line::default()
    });
    Card {
        title: words.page("next_steps").into(),
        kind: "checks",
        lines: std::iter::once(you).chain(lines).collect(),
        ..Card::default()
    }
}

/// The card of a step with its present state.
async fn about(visit: &Visit<'_>, step: &SetupStep) -> Result<Option<Card>, Problem> {
    let words = visit.words;
    match step.name {
        "address" => {
            let url = &visit.app.token_service.public_url;
            let explanation = words.page(if step.is_done { "address_good" } else { "address_plain" });
            let line = Line {
                tone: if step.is_done { "good" } else { "warn" },
                text: url.clone(),
                sub: explanation.into(),
                ..Line::default()
            };
            Ok(Some(Card {
                title: words.page("step_address").into(),
                kind: "checks",
                lines: vec![line],
                ..Card::default()
            }))
        }
        "mail" => mail(visit, step.is_done).await,
        // its form is shown until it is done
        "second" if !step.is_done => Ok(None),
        _ => Ok(Some(Card {
            title: words.page(&format!("step_{}", step.name)).into(),
            kind: "checks",
            lines: vec![step_line(visit, step)],
            ..Card::default()
        })),
    }
}

/// The link to a step, or that it is done.
fn step_line(visit: &Visit<'_>, step: &SetupStep) -> Line {
    let words = visit.words;
    if step.is_done {
        return Line { tone: "good", text: words.page("step_done").into(), ..Line::default() };
    }
    let text = words.page(&format!("step_{}_act", step.name)).into();
    Line { text, href: Some(step.href.clone()), ..Line::default() }
}

/// The state of the store's outgoing mail, with the last error of the mail server, and a test mail.
async fn mail(visit: &Visit<'_>, is_set: bool) -> Result<Option<Card>, Problem> {
    let (words, Some(store)) = (visit.words, &visit.visitor.store) else { return Ok(None) };
    let number = store.scope.number;
    let query = move |tx: &mut Tx<'_>| mail_state(tx, number);
    let state = visit.app.store.run("MailState", Mode::Quick, None, query).await?;
    let line = |tone: &'static str, key: &str, sub: String| Line {
        tone,
        text: words.page(key).into(),
        sub,
        ..Line::default()
    };
    let mut lines = Vec::new();
    match state.last_error {
        Some(error) => lines.push(line("bad", "mail_refused", error)),
        None if state.is_waiting => lines.push(line("warn", "mail_waiting", String::new())),
        None if !is_set => lines.push(line("warn", "mail_not_set", String::new())),
        None => lines.push(line("good", "mail_nothing_waits", String::new())),
    }
    if is_set && own_id(visit).await?.is_some() {
        let act = json!({
            "action": PATH, "label": words.page("mail_try"), "fields": [{ "name": "step", "value": "mail" }],
        });
        lines.push(Line { act: Some(act), ..line("", "mail_try_text", visit.visitor.login.clone()) });
    }
    let (title, about) = (words.page("mail_title").into(), words.page("mail_about").into());
    Ok(Some(Card { title, kind: "checks", about, lines, ..Card::default() }))
}

/// The user's id in the selected store, if the user belongs to it.
async fn own_id(visit: &Visit<'_>) -> Result<Option<String>, Problem> {
    let (person, instance) = (visit.visitor.session.person, visit.visitor.session.instance);
    let query = move |tx: &mut Tx<'_>| own_user(tx, person, instance);
    let user = visit.app.store.run("OwnUser", Mode::Quick, None, query).await?;
    let is_here = |store: &str| visit.store.as_deref() == Some(store);
    Ok(user.filter(|user| is_here(&user.store)).map(|user| user.id.to_string()))
}

/// Sends a test mail to the user: a password reset link, which need not be followed.
async fn try_mail(visit: &Visit<'_>) -> Result<(), Problem> {
    let op = visit.require(operation!("SendPasswordResetEmail"))?;
    let id = own_id(visit).await?.ok_or_else(|| Problem::not_found("user of yours in this store"))?;
    visit.perform(Input::of(op, vec![id])).await.map(|_| ())
}

fn form_section(visit: &Visit<'_>, problem: Option<&Problem>) -> Value {
    let words = visit.words;
    let fields: Vec<Map<String, Value>> = SECOND
        .iter()
        .filter(|(name, ..)| *name != WAY || can_choose(visit))
        .map(|(name, control, is_required)| {
            if *name == WAY {
                return way_field(words, one(&visit.form, WAY));
            }
            let mut field = control_field(name, &words.field(name), control);
            let typed = one(&visit.form, name).filter(|_| *control != "secret").unwrap_or_default();
            field.insert("value".to_owned(), json!(typed));
            field.insert("required".to_owned(), json!(is_required));
            field.insert("is_wide".to_owned(), json!(false));
            field.insert("error".to_owned(), json!(super::form::error_at(problem, name)));
            if *name == "password" {
                field.insert("hint".to_owned(), json!(words.page("second_password_hint")));
            }
            field
        })
        .collect();
    json!({ "title": "", "about": words.page("second_about"), "fields": fields, "is_readonly": false })
}

/// Whether a new user may start with an access pass and register a passkey with it.
fn can_choose(visit: &Visit<'_>) -> bool {
    let options = visit.visitor.store.as_ref().map(|store| &store.scope.options);
    visit.may(operation!("IssueTemporaryAccessPass")).is_some()
        && options.is_some_and(|options| can_make_passkeys(options, &visit.app.token_service.public_url))
}

/// Creates the second administrator: a user with an initial password or an access pass, which is returned, and the role
/// assignment. If a later step fails, the user exists, and the role can be assigned on the page of administrators.
async fn create_second_administrator(visit: &Visit<'_>) -> Result<Option<String>, Problem> {
    let op = |name: OperationName| visit.require(directory::of_name(name));
    let assign = directory::of_shape(&ROLE_ASSIGNMENT).and_then(|resource| resource.create);
    let by_passkey = can_choose(visit) && one(&visit.form, WAY) == Some(BY_PASSKEY);
    let begin = op(if by_passkey {
        operation_name!("IssueTemporaryAccessPass")
    } else {
        operation_name!("SetInitialPassword")
    })?;
    let create = op(operation_name!("CreateUser"))?;
    let (synchronize, assign) = (op(operation_name!("SynchronizeAllUsers"))?, visit.require(assign)?);
    visit.fresh()?;
    let typed = |name: &str| one(&visit.form, name).map(str::trim).filter(|text| !text.is_empty());
    let body: Map<String, Value> = SECOND
        .iter()
        .filter(|(name, control, _)| *control != "secret" && *name != WAY)
        .filter_map(|(name, ..)| Some(((*name).to_owned(), json!(typed(name)?))))
        .collect();
    let mut input = Input::of(create, Vec::new());
    input.body = Some(Value::Object(body));
    let user = visit.perform(input).await?.json();
    let user = user.get("id").map_or_else(String::new, plain);
    let mut input = Input::of(begin, if by_passkey { Vec::new() } else { vec![user.clone()] });
    input.body = Some(if by_passkey {
        json!({ "userId": user })
    } else {
        json!({ "password": one(&visit.form, "password").unwrap_or_default() })
    });
    let answer = match visit.perform(input).await {
        Ok(output) => output.json(),
        Err(problem) => {
            // a user who cannot sign in is erased, not quarantined, so that the login name is free again
            if let Some(erase) = visit.may(operation!("EraseUser")) {
                visit.perform(Input::of(erase, vec![user])).await?;
            }
            return Err(problem);
        }
    };
    visit.perform(Input::of(synchronize, Vec::new())).await?;
    let (store, id) = (visit.visitor.store.as_ref().map(|store| store.scope.id), Uuid::try_parse(&user));
    let (Some(store), Ok(id)) = (store, id) else { return Err(not_found()) };
    let query = move |tx: &mut Tx<'_>| platform_user(tx, store, id);
    let person = visit.app.store.run("PlatformUser", Mode::Quick, None, query).await?;
    let person = person.ok_or_else(|| Problem::not_found("platform user of this user"))?;
    let mut input = Input::of(assign, Vec::new());
    input.body =
        Some(json!({ "principalId": person, "principalType": "PlatformUser", "roleType": "SystemAdmin" }));
    visit.perform(input).await?;
    Ok(answer.get("value").filter(|_| by_passkey).map(plain))
}
