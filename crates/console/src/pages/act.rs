//! Every other operation about one row: its summary as words, its body as a form.

use chancery_record::Field;
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
    directory::{Resource, encoded, title_of},
    fields::{filled, plain},
    parts::FormPage,
    proof::is_wanted,
    undo::Undo,
    visit::{Visit, done, one},
};

/// The operations that are offered for one row: those that write, take no more of the path, and have a form.
pub fn offered<'a>(visit: &'a Visit<'_>, resource: &'a Resource) -> impl Iterator<Item = &'static Op> + 'a {
    of_one(resource).filter(|op| visit.visitor.may(op))
}

/// The operations about one row that have a page of the pattern.
pub fn of_one(resource: &Resource) -> impl Iterator<Item = &'static Op> + '_ {
    let fits = move |op: &&Op| {
        has_form(op)
            && op.method != Method::Get
            && op.path.matches('{').count() == 1
            && !resource.presentation.is_apart(op)
    };
    resource.others.iter().copied().filter(fits)
}

/// Whether the body of an operation is a form of plain fields, or none.
pub const fn has_form(op: &Op) -> bool {
    match &op.action {
        Action::Custom(Custom { body, .. }) => matches!(body, Body::None | Body::Form(_)),
        Action::ReplaceMembers(_) => true,
        _ => false,
    }
}

/// The operations about all rows of a resource that are offered: each has a page.
pub fn of_all<'a>(visit: &'a Visit<'_>, resource: &'a Resource) -> impl Iterator<Item = &'static Op> + 'a {
    with_page(resource).filter(|op| visit.visitor.may(op))
}

/// The operations about all rows of a resource that have a page.
pub fn with_page(resource: &Resource) -> impl Iterator<Item = &'static Op> + '_ {
    let fits = move |op: &&Op| has_form(op) && !resource.presentation.is_apart(op);
    resource.of_all.iter().copied().filter(fits)
}

/// Shows what an operation about all rows does, and its form.
///
/// # Errors
/// It is not offered here.
pub fn ask_all(visit: &Visit<'_>, resource: &Resource, name: &str) -> Result<Response<AnswerBody>, Problem> {
    all_page(visit, resource, name, (&Value::Null, None))
}

fn all_page(
    visit: &Visit<'_>,
    resource: &Resource,
    name: &str,
    (values, problem): (&Value, Option<&Problem>),
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(with_page(resource).find(|op| op.name == name))?;
    if is_wanted(op) {
        visit.fresh()?;
    }
    let back = json!({ "href": visit.address(resource), "label": visit.words.resources(resource.name) });
    form_page(visit, (op, &[]), (back, values), problem)
}

/// Runs an operation about all rows, however long it takes.
///
/// # Errors
/// What has no place in its form.
pub async fn run_all(
    visit: &Visit<'_>,
    resource: &Resource,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(with_page(resource).find(|op| op.name == name))?;
    let body = Value::Object(filled(fields(op).into_iter(), &visit.form));
    let mut input = Input::of(op, Vec::new());
    input.body = op.takes_body().then(|| body.clone());
    input.key = one(&visit.form, "key").map(str::to_owned);
    let here = visit.address(resource);
    match visit.perform(input).await {
        Ok(output) => match answered(op, &output.json()) {
            Some(facts) => told(visit, op, (&here, facts)),
            None => Ok(done(&here, "done")),
        },
        Err(problem) if is_of_form(&problem) => all_page(visit, resource, name, (&body, Some(&problem))),
        Err(problem) => Err(problem),
    }
}

/// An operation in a few words: those of the texts, else its summary without the full stop.
pub fn label(visit: &Visit<'_>, op: &Op) -> String {
    if let Some(own) = visit.words.act(op.name) {
        return own.to_owned();
    }
    op.summary.trim_end_matches('.').split([',', ':', ';']).next().unwrap_or_default().to_owned()
}

fn find(visit: &Visit<'_>, resource: &Resource, name: &str) -> Result<&'static Op, Problem> {
    visit.need(of_one(resource).find(|op| op.name == name))
}

/// The fields of an operation's body.
pub fn fields(op: &'static Op) -> Vec<&'static Field> {
    match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().collect(),
        Action::ReplaceMembers(fields) => fields.to_vec(),
        _ => Vec::new(),
    }
}

/// The member that says which version of a row is replaced.
const VERSION: &str = "concurrencyToken";

/// Whether an operation replaces what is there, so that it asks which version that is.
const fn takes_version(op: &Op) -> bool {
    matches!(op.action, Action::ReplaceMembers(_))
}

/// Shows what an operation does, and its form.
///
/// # Errors
/// It is not offered here.
pub async fn ask(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, name): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    let op = find(visit, resource, name)?;
    if is_wanted(op) {
        visit.fresh()?;
    }
    visit.unbarred(resource, key, op).await?;
    if resource.presentation.is_for_good(op) {
        return confirm(visit, resource, (key, op), None).await;
    }
    // what is there is the beginning of what is to be only where the whole is replaced
    let row = if takes_version(op) { read(visit, resource, key).await? } else { Value::Null };
    shown(visit, resource, (key, op), &row, None)
}

/// Asks for the name of what is gone for good, typed by hand.
async fn confirm(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, op): (&str, &'static Op),
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

fn shown(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, op): (&str, &'static Op),
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let back = json!({ "href": here, "label": visit.words.page("back") });
    form_page(visit, (op, &[key]), (back, values), problem)
}

/// The page of an operation on what these keys name: what it does, and its form, with these values in it.
///
/// # Errors
/// As [`Visit::page`].
pub fn form_page(
    visit: &Visit<'_>,
    (op, keys): (&'static Op, &[&str]),
    (back, values): (Value, &Value),
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = label(visit, op);
    let fields = plain_fields(visit, &fields(op), values, problem);
    let mut hidden = vec![json!({ "name": "key", "value": fresh_key() })];
    if takes_version(op) {
        hidden.push(json!({ "name": VERSION, "value": plain(at(values, VERSION)) }));
    }
    let cancel = json!({ "href": back.get("href"), "label": words.page("cancel") });
    let section =
        json!({ "title": "", "about": words.explained(op.summary), "fields": fields, "is_readonly": false });
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

/// An operation as a call, with null where a value stands.
fn example(visit: &Visit<'_>, op: &'static Op, keys: &[&str]) -> String {
    let mut input = Input::of(op, keys.iter().map(|key| (*key).to_owned()).collect());
    let members = fields(op).into_iter().map(|field| (field.wire().to_owned(), Value::Null));
    input.body = op.takes_body().then(|| Value::Object(members.collect()));
    call(visit, &input)
}

/// Runs an operation.
///
/// # Errors
/// What has no place in its form.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, name): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    let op = find(visit, resource, name)?;
    visit.unbarred(resource, key, op).await?;
    if resource.presentation.is_for_good(op) {
        let title = title_of(resource, &read_any(visit, resource, key).await?);
        if one(&visit.form, "typed").map(str::trim) != Some(title.trim()) {
            let problem = Problem::new(ProblemKind::InvalidRequest, visit.words.page("not_the_name"));
            return confirm(visit, resource, (key, op), Some(&problem)).await;
        }
    }
    let mut body = filled(fields(op).into_iter(), &visit.form);
    if takes_version(op) {
        body.insert(VERSION.to_owned(), json!(one(&visit.form, VERSION).unwrap_or_default()));
    }
    let undo = way_back(visit, resource, (key, op), &body).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = op.takes_body().then(|| Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(_) if resource.presentation.is_for_good(op) => Ok(done(&visit.address(resource), "done")),
        Ok(output) => {
            let here = format!("{}/{}", visit.address(resource), encoded(key));
            let answer = output.json();
            if let Some(secret) = made_secret(visit, resource, (key, op), &answer).await? {
                let link = json!({ "href": here, "label": visit.words.page("back") });
                return secret_page(visit, &secret, &link);
            }
            match (answered(op, &answer), undo) {
                (Some(facts), _) => told(visit, op, (&here, facts)),
                (None, Some(undo)) => Ok(visit.done(&here, "done", &undo)),
                (None, None) => Ok(done(&here, "done")),
            }
        }
        Err(problem) if is_of_form(&problem) => {
            // whoever sends the form again has been told that somebody else came first
            if problem.kind == ProblemKind::ConcurrencyConflict && takes_version(op) {
                let now = read(visit, resource, key).await?;
                body.insert(VERSION.to_owned(), at(&now, VERSION).clone());
            }
            shown(visit, resource, (key, op), &Value::Object(body), Some(&problem))
        }
        Err(problem) => Err(problem),
    }
}

/// The same operation with what is there now, where that takes back what it does.
async fn way_back(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, op): (&str, &Op),
    body: &Map<String, Value>,
) -> Result<Option<Undo>, Problem> {
    if !resource.presentation.is_taken_back(op) {
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

/// The secret that an operation made: its answer tells it this once, or it is in an option of the row.
async fn made_secret(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, op): (&str, &Op),
    answer: &Value,
) -> Result<Option<String>, Problem> {
    let left = resource.presentation.leaves_secret.filter(|(name, _)| name.is_of(op));
    match left {
        Some((_, option)) => settings::value_of(visit, resource, key, option).await,
        None => Ok(secret_of(resource, answer).map(str::to_owned)),
    }
}

/// What an operation answers besides the row: it is shown this once.
fn answered(op: &Op, answer: &Value) -> Option<Vec<Value>> {
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

fn told(
    visit: &Visit<'_>,
    op: &Op,
    (here, facts): (&str, Vec<Value>),
) -> Result<Response<AnswerBody>, Problem> {
    let heading = label(visit, op);
    let content = json!({
        "heading": heading, "text": visit.words.page("answered"), "facts": facts, "trace": "",
        "link": { "href": here, "label": visit.words.page("back") },
    });
    visit.page(200, "message.html", &heading, &content)
}
