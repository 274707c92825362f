//! Every other operation about one row: its summary as words, its body as a form.

use chancery_record::Field;
use chancery_resource::{Action, Body, Custom, Method, Op, Problem, ProblemKind, Reply};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    item::{errors, fresh_key, is_of_form, may_not, read},
    list::title_of,
};
use crate::{
    arranged,
    directory::{Resource, encoded},
    fields::{FormField, filled},
    proof::is_wanted,
    visit::{Visit, done, one},
};

/// The operations that are offered for one row: those that write, take no more of the path, and have a form.
pub fn offered<'a>(visit: &'a Visit<'_>, resource: &'a Resource) -> impl Iterator<Item = &'static Op> + 'a {
    let fits = |op: &&'static Op| {
        let is_form = |body: &Body| matches!(body, Body::None | Body::Form(_));
        let has_form = match &op.action {
            Action::Custom(Custom { body, .. }) => is_form(body),
            Action::ReplaceMembers(_) => true,
            _ => false,
        };
        has_form && op.method != Method::Get && op.path.matches('{').count() == 1 && visit.visitor.may(op)
    };
    resource.others.iter().copied().filter(fits)
}

/// An operation in a few words: those of the texts, else its summary without the full stop.
pub fn label(visit: &Visit<'_>, op: &Op) -> String {
    if let Some(own) = visit.words.act(op.name) {
        return own.to_owned();
    }
    op.summary.trim_end_matches('.').split([',', ':', ';']).next().unwrap_or_default().to_owned()
}

fn find<'a>(visit: &'a Visit<'_>, resource: &'a Resource, name: &str) -> Result<&'static Op, Problem> {
    offered(visit, resource).find(|op| op.name == name).ok_or_else(may_not)
}

/// The fields of an operation's body.
fn fields(op: &'static Op) -> Vec<&'static Field> {
    match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().collect(),
        Action::ReplaceMembers(fields) => fields.to_vec(),
        _ => Vec::new(),
    }
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
    if arranged::is_for_good(op.name) {
        return confirm(visit, resource, (key, op), None).await;
    }
    // what is there is the beginning of what is to be only where the whole is replaced
    let is_replaced = matches!(op.action, Action::ReplaceMembers(_));
    let row = if is_replaced { read(visit, resource, key).await? } else { Value::Null };
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
    let row = read(visit, resource, key).await?;
    let title = title_of(resource, &row);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let label = label(visit, op);
    let heading = format!("{label}: {title}");
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page("for_good_text"),
        "errors": errors(visit, problem), "facts": [], "asks": { "label": words.page("type_name"), "expected": title },
        "action": format!("{here}/{}", op.name), "hidden": [{ "name": "key", "value": fresh_key() }],
        "confirm": { "label": label, "is_dangerous": true }, "cancel": { "href": here, "label": words.page("cancel") },
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
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let heading = label(visit, op);
    let told: Vec<Value> = fields(op)
        .into_iter()
        .map(|field| {
            let error = problem.into_iter().flat_map(|problem| problem.errors.as_slice());
            let error = error.filter(|error| error.pointer.trim_start_matches('/') == field.wire());
            let error: String = error.map(|error| error.detail.as_str()).collect();
            let is_required =
                !field.nullable && matches!(field.access.default, chancery_record::DefaultValue::None);
            FormField {
                field,
                row: values,
                is_fixed: false,
                is_required,
                error: &error,
                href: None,
                search: None,
            }
            .told(words)
        })
        .collect();
    let section = json!({ "title": "", "about": if words.tag == "en" { op.summary } else { "" }, "fields": told, "is_readonly": false });
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "sub": "", "icon": null, "avatar": null,
        "badge": null, "acts": [], "errors": errors(visit, problem), "sections": [section],
        "hidden": [{ "name": "key", "value": fresh_key() }], "aside": [],
        "bar": { "save": heading, "cancel": { "href": here, "label": words.page("cancel") }, "review": false },
        "read_only_note": "", "is_new": false,
    });
    visit.page(problem.map_or(200, Problem::status), "item.html", &heading, &content)
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
    if arranged::is_for_good(op.name) {
        let title = title_of(resource, &read(visit, resource, key).await?);
        if one(&visit.form, "typed").map(str::trim) != Some(title.trim()) {
            let problem = Problem::new(ProblemKind::InvalidRequest, visit.words.page("not_the_name"));
            return confirm(visit, resource, (key, op), Some(&problem)).await;
        }
    }
    let body = filled(fields(op).into_iter(), &visit.form);
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = op.takes_body().then(|| Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(_) if arranged::is_for_good(op.name) => Ok(done(&visit.address(resource), "done")),
        Ok(output) => {
            let here = format!("{}/{}", visit.address(resource), encoded(key));
            match answered(op, &output.json()) {
                Some(facts) => told(visit, op, (&here, facts)),
                None => Ok(done(&here, "done")),
            }
        }
        Err(problem) if is_of_form(&problem) => {
            shown(visit, resource, (key, op), &Value::Object(body), Some(&problem))
        }
        Err(problem) => Err(problem),
    }
}

/// What an operation answers besides the row: it is shown this once.
fn answered(op: &Op, answer: &Value) -> Option<Vec<Value>> {
    if !matches!(op.reply, Reply::Form(_)) {
        return None;
    }
    let members = answer.as_object()?.iter().filter(|(_, value)| !value.is_null());
    Some(members.map(|(name, value)| json!(format!("{name}: {}", crate::fields::plain(value)))).collect())
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
