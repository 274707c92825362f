//! Pages of the other operations on a row, or on a whole resource: the summary, and the body as a form.

use chancery_resource::{Action, Body, Custom, Method, Op, Problem, ProblemKind, Reply};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    form::{at, errors, fresh_key, is_of_form, plain_fields},
    item::{read, read_any},
    new::{secret_of, secret_page},
    settings,
};
use crate::shell::{
    call::call,
    components::FormPage,
    directory::{Resource, body_fields, encoded, title_of},
    fields::{filled, plain, rfc3339},
    reauthentication::is_required,
    undo::Undo,
    visit::{Visit, one, redirect_with_notice},
};

/// The operations on one row that the user may call and that have a standard page.
pub fn offered<'a>(visit: &'a Visit<'_>, resource: &'a Resource) -> impl Iterator<Item = &'static Op> + 'a {
    of_one(resource).filter(|op| visit.visitor.may(op))
}

/// The operations on one row that have a standard page: they write, take no further path parameter, and have a form.
pub fn of_one(resource: &Resource) -> impl Iterator<Item = &'static Op> + '_ {
    let fits = move |op: &&Op| {
        has_form(op)
            && op.method != Method::Get
            && op.path.matches('{').count() == 1
            && !resource.presentation.is_excluded(op)
    };
    resource.others.iter().copied().filter(fits)
}

/// Whether the body of an operation is a form of plain fields, or empty.
pub const fn has_form(op: &Op) -> bool {
    match &op.action {
        Action::Custom(Custom { body, .. }) => matches!(body, Body::None | Body::Form(_)),
        Action::ReplaceMembers(_) => true,
        _ => false,
    }
}

/// The operations on the whole resource that the user may call and that have a standard page.
pub fn of_all<'a>(visit: &'a Visit<'_>, resource: &'a Resource) -> impl Iterator<Item = &'static Op> + 'a {
    with_page(resource).filter(|op| visit.visitor.may(op))
}

/// The operations on the whole resource that have a standard page.
pub fn with_page(resource: &Resource) -> impl Iterator<Item = &'static Op> + '_ {
    let fits = move |op: &&Op| has_form(op) && !resource.presentation.is_excluded(op);
    resource.of_all.iter().copied().filter(fits)
}

/// Shows the form of an operation on the whole resource.
///
/// # Errors
/// The operation is unknown, or the user may not call it.
pub fn show_all(visit: &Visit<'_>, resource: &Resource, name: &str) -> Result<Response<AnswerBody>, Problem> {
    all_page(visit, resource, name, &Value::Null, None)
}

fn all_page(
    visit: &Visit<'_>,
    resource: &Resource,
    name: &str,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(with_page(resource).find(|op| op.name == name))?;
    if is_required(op) {
        visit.fresh()?;
    }
    let back = json!({ "href": visit.address(resource), "label": visit.words.resources(resource.name) });
    form_page(visit, op, &[], back, values, problem)
}

/// Runs an operation on the whole resource, however long it takes.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run_all(
    visit: &Visit<'_>,
    resource: &Resource,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(with_page(resource).find(|op| op.name == name))?;
    let body = Value::Object(filled(body_fields(op).into_iter(), &visit.form));
    let mut input = Input::of(op, Vec::new());
    input.body = op.takes_body().then(|| body.clone());
    input.key = one(&visit.form, "key").map(str::to_owned);
    let here = visit.address(resource);
    match visit.perform(input).await {
        Ok(output) => match answer_facts(op, &output.json()) {
            Some(facts) => answer_page(visit, op, &here, &facts),
            None => Ok(redirect_with_notice(&here, "done")),
        },
        Err(problem) if is_of_form(&problem) => all_page(visit, resource, name, &body, Some(&problem)),
        Err(problem) => Err(problem),
    }
}

/// The short name of an operation: from the texts, else its summary without the full stop.
pub fn label(visit: &Visit<'_>, op: &Op) -> String {
    if let Some(own) = visit.words.act(op.name) {
        return own.to_owned();
    }
    op.summary.trim_end_matches('.').split([',', ':', ';']).next().unwrap_or_default().to_owned()
}

fn find(visit: &Visit<'_>, resource: &Resource, name: &str) -> Result<&'static Op, Problem> {
    visit.require(of_one(resource).find(|op| op.name == name))
}

/// The member with the version that is replaced.
const VERSION: &str = "concurrencyToken";

/// The member of a confirmation with the time at which the page was rendered: later changes were not seen.
const REVIEWED: &str = "reviewedOn";

/// Whether an operation replaces stored values, so that it needs their version.
const fn takes_version(op: &Op) -> bool {
    matches!(op.action, Action::ReplaceMembers(_))
}

/// Shows the form of an operation.
///
/// # Errors
/// The operation is unknown, or the user may not call it.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = find(visit, resource, name)?;
    if is_required(op) {
        visit.fresh()?;
    }
    visit.unbarred(resource, key, op).await?;
    if resource.presentation.is_irreversible(op) {
        return confirm(visit, resource, key, op, None).await;
    }
    // the form starts with the stored values only if the operation replaces all of them
    let row = if takes_version(op) { read(visit, resource, key).await? } else { Value::Null };
    act_page(visit, resource, key, op, &row, None)
}

/// Asks to type the name, before an irreversible operation.
async fn confirm(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    op: &'static Op,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let row = read_any(visit, resource, key).await?;
    let title = title_of(resource, &row);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let label = label(visit, op);
    let heading = format!("{label}: {title}");
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page("for_good_text"),
        "errors": errors(visit, problem), "facts": [words.page("for_good_stays")], "asks": { "label": words.page("type_name"), "expected": title },
        "action": format!("{here}/{}", op.name), "hidden": [{ "name": "key", "value": fresh_key() }],
        "confirm": { "label": label, "is_dangerous": true }, "cancel": { "href": here, "label": words.page("cancel") },
        "api_call": example(visit, op, &[key]),
    });
    visit.page(problem.map_or(200, Problem::status), "confirm.html", &heading, &content)
}

fn act_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    op: &'static Op,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let back = json!({ "href": here, "label": visit.words.page("back") });
    form_page(visit, op, &[key], back, values, problem)
}

/// The page of an operation on the row of these keys, with these values in its form.
pub fn form_page(
    visit: &Visit<'_>,
    op: &'static Op,
    keys: &[&str],
    back: Value,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = label(visit, op);
    let (reviewed, fields): (Vec<_>, Vec<_>) =
        body_fields(op).into_iter().partition(|field| field.wire() == REVIEWED);
    let fields = plain_fields(visit, &fields, values, problem);
    let mut hidden = vec![json!({ "name": "key", "value": fresh_key() })];
    if !reviewed.is_empty() {
        let reviewed_on = at(values, REVIEWED).as_str().map_or_else(|| rfc3339(visit.now), str::to_owned);
        hidden.push(json!({ "name": REVIEWED, "value": reviewed_on }));
    }
    if takes_version(op) {
        hidden.push(json!({ "name": VERSION, "value": plain(at(values, VERSION)) }));
    }
    let cancel = json!({ "href": back.get("href"), "label": words.page("cancel") });
    let section = json!({ "title": "", "about": words.explanation(op.summary), "fields": fields, "is_readonly": false });
    let page = FormPage {
        back,
        heading: heading.clone(),
        errors: errors(visit, problem),
        sections: vec![section],
        hidden,
        bar: Some(json!({ "save": heading, "cancel": cancel, "review": false })),
        api_call: example(visit, op, keys),
        ..FormPage::default()
    };
    page.show(visit, problem.map_or(200, Problem::status))
}

/// An operation as a curl command, with null for each value.
fn example(visit: &Visit<'_>, op: &'static Op, keys: &[&str]) -> String {
    let mut input = Input::of(op, keys.iter().map(|key| (*key).to_owned()).collect());
    let members = body_fields(op).into_iter().map(|field| (field.wire().to_owned(), Value::Null));
    input.body = op.takes_body().then(|| Value::Object(members.collect()));
    call(visit, &input)
}

/// Runs an operation.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = find(visit, resource, name)?;
    visit.unbarred(resource, key, op).await?;
    if resource.presentation.is_irreversible(op) {
        let title = title_of(resource, &read_any(visit, resource, key).await?);
        if one(&visit.form, "typed").map(str::trim) != Some(title.trim()) {
            let problem = Problem::new(ProblemKind::InvalidRequest, visit.words.page("not_the_name"));
            return confirm(visit, resource, key, op, Some(&problem)).await;
        }
    }
    let mut body = filled(body_fields(op).into_iter(), &visit.form);
    if takes_version(op) {
        body.insert(VERSION.to_owned(), json!(one(&visit.form, VERSION).unwrap_or_default()));
    }
    let undo = undo_of(visit, resource, key, op, &body).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = op.takes_body().then(|| Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(_) if resource.presentation.is_irreversible(op) => {
            Ok(redirect_with_notice(&visit.address(resource), "done"))
        }
        Ok(output) => {
            let here = format!("{}/{}", visit.address(resource), encoded(key));
            let answer = output.json();
            if let Some(secret) = created_secret(visit, resource, key, op, &answer).await? {
                let link = json!({ "href": here, "label": visit.words.page("back") });
                return secret_page(visit, &secret, &link);
            }
            match (answer_facts(op, &answer), undo) {
                (Some(facts), _) => answer_page(visit, op, &here, &facts),
                (None, Some(undo)) => Ok(visit.redirect_with_undo(&here, "done", &undo)),
                (None, None) => Ok(redirect_with_notice(&here, "done")),
            }
        }
        Err(problem) if is_of_form(&problem) => {
            // the error message mentions the concurrent change, so sending the form again is deliberate
            if problem.kind == ProblemKind::ConcurrencyConflict && takes_version(op) {
                let now = read(visit, resource, key).await?;
                body.insert(VERSION.to_owned(), at(&now, VERSION).clone());
            }
            act_page(visit, resource, key, op, &Value::Object(body), Some(&problem))
        }
        Err(problem) => Err(problem),
    }
}

/// The operation that undoes this one: the same with the present values.
async fn undo_of(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    op: &Op,
    body: &Map<String, Value>,
) -> Result<Option<Undo>, Problem> {
    if !resource.presentation.is_undoable(op) {
        return Ok(None);
    }
    let row = read(visit, resource, key).await?;
    let were = body
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(wire, _)| (wire.clone(), plain(row.get(wire).unwrap_or(&Value::Null))));
    let action = format!("{}/{}/{}", visit.address(resource), encoded(key), op.name);
    Ok(Some(Undo::of(visit, action, were.collect())))
}

/// The generated secret: from the response, which contains it once, or from an option of the row.
async fn created_secret(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    op: &Op,
    answer: &Value,
) -> Result<Option<String>, Problem> {
    let left = resource.presentation.stores_secret.filter(|(name, _)| name.is_of(op));
    match left {
        Some((_, option)) => settings::value_of(visit, resource, key, option).await,
        None => Ok(secret_of(resource, answer).map(str::to_owned)),
    }
}

/// The members of a response that is no row: they are shown once.
fn answer_facts(op: &Op, answer: &Value) -> Option<Vec<Value>> {
    if !matches!(op.reply, Reply::Form(_)) {
        return None;
    }
    let members = answer.as_object()?.iter().filter(|(_, value)| !value.is_null());
    Some(
        members
            .map(|(name, value)| json!(format!("{name}: {}", crate::shell::fields::plain(value))))
            .collect(),
    )
}

fn answer_page(
    visit: &Visit<'_>,
    op: &Op,
    here: &str,
    facts: &[Value],
) -> Result<Response<AnswerBody>, Problem> {
    let heading = label(visit, op);
    let content = json!({
        "heading": heading, "text": visit.words.page("answered"), "facts": facts, "trace": "",
        "link": { "href": here, "label": visit.words.page("back") },
    });
    visit.page(200, "message.html", &heading, &content)
}
