//! Configuration documents: download, comparison with the server, and import in one transaction. The documents are not
//! stored, nothing is deleted, and secrets are neither imported nor exported.

mod run;
mod state;

use chancery_configuration::{Change, ChangeKind};
use chancery_record::FieldError;
use chancery_resource::{Problem, ProblemKind, etag};
use chancery_web::AnswerBody;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use self::state::Compared;
use super::{difference, form::is_of_form};
use crate::shell::{
    configuration_kinds::{KINDS, PATH, is_offered},
    fields::plain,
    render::data,
    visit::{Visit, not_found, one, redirect_with_notice},
    words::raised,
};

/// Maximum number of changes that are shown; all of them are applied.
const MAX_SHOWN: usize = 200;

/// Shows the form.
///
/// # Errors
/// The user may not see the configuration.
pub fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    offered(visit)?;
    page(visit, None, None)
}

/// Downloads the documents of everything that the user may read.
///
/// # Errors
/// Names that documents cannot distinguish.
pub async fn export(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    visit.fresh()?;
    offered(visit)?;
    let (state, _) = state::read(visit).await?;
    let documents = chancery_configuration::export(&state).map_err(|problems| {
        let field_errors =
            problems.into_iter().map(|problem| FieldError::new("", visit.words.error_text(&problem.detail)));
        let errors: Vec<FieldError> = field_errors.collect();
        let mut problem = Problem::conflict(visit.words.page("configuration_names"));
        problem.errors = errors.into();
        problem
    })?;
    let mut response = data(&documents.iter().map(chancery_configuration::Document::to_json).collect());
    let name = HeaderValue::from_static("attachment; filename=\"configuration.json\"");
    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// Compares the entered documents, and applies them once the shown changes are confirmed.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    offered(visit)?;
    let compared = match state::compare(visit).await {
        Ok(compared) => compared,
        Err(problem) if is_of_form(&problem) => return page(visit, None, Some(&problem)),
        Err(problem) => return Err(problem),
    };
    if compared.problem.is_some() || compared.plan.is_empty() {
        return page(visit, Some(&compared), compared.problem.as_ref());
    }
    let is_confirmed = one(&visit.form, "sure") == Some(digest(&compared).as_str());
    match run::apply(visit, &compared.plan, !is_confirmed).await {
        Ok(()) if is_confirmed => Ok(redirect_with_notice(PATH, "applied")),
        Ok(()) => page(visit, Some(&compared), None),
        Err(problem) if is_shown(&problem) => page(visit, Some(&compared), Some(&problem)),
        Err(problem) => Err(problem),
    }
}

/// Whether a problem is shown next to the differences that it is about.
fn is_shown(problem: &Problem) -> bool {
    is_of_form(problem) || matches!(problem.kind, ProblemKind::NotFound | ProblemKind::Forbidden)
}

fn offered(visit: &Visit<'_>) -> Result<(), Problem> {
    if is_offered(visit) { Ok(()) } else { Err(not_found()) }
}

/// All changes, each with its kind.
fn changes(compared: &Compared) -> impl Iterator<Item = (&'static str, &Change)> {
    let kinds = KINDS.iter().zip(&compared.plan.changes);
    kinds.flat_map(|(kind, changes)| changes.iter().map(|change| (kind.name, change)))
}

/// The digest of the shown changes, which the user confirms.
fn digest(compared: &Compared) -> String {
    let shown = changes(compared).map(|(kind, change)| {
        let differences = change.differences.iter();
        let differences = differences.map(|one| json!([one.member, one.before, one.after]));
        json!([kind, change.name, change.kind == ChangeKind::Create, differences.collect::<Value>()])
    });
    etag(shown.collect::<Value>().to_string().as_bytes())
}

fn page(
    visit: &Visit<'_>,
    compared: Option<&Compared>,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = words.page("configuration");
    let wrong = problem.map_or(&[][..], |problem| problem.errors.as_slice());
    let documents = compared.map_or(&[][..], |compared| &compared.documents);
    let wrong: Vec<Value> = wrong.iter().map(|error| error_location(error, documents)).collect();
    let more = problem.map_or(0, |problem| problem.errors.more());
    let errors: Vec<Value> =
        problem.iter().map(|problem| json!({ "text": problem.detail, "href": "#f-text" })).collect();
    let content = json!({
        "heading": heading, "errors": errors, "wrong": wrong, "more": more,
        "text": one(&visit.form, "text").unwrap_or_default(), "export": format!("{PATH}/export"), "here": PATH,
        "url": visit.app.token_service.public_url,
        "result": compared.filter(|compared| compared.problem.is_none()).map(|compared| result(visit, compared, problem.is_none())),
    });
    visit.page(problem.map_or(200, Problem::status), "configuration.html", heading, &content)
}

/// The template context of the comparison.
fn result(visit: &Visit<'_>, compared: &Compared, is_good: bool) -> Value {
    let words = visit.words;
    let [new, changed, _] = compared.plan.counts();
    let same = compared.documents.len().saturating_sub(new + changed);
    let counts =
        [("import_new", "good", new), ("import_changed", "warn", changed), ("import_same", "off", same)];
    let counts = counts.map(|(key, tone, count)| {
        json!({ "label": words.page(key), "tone": if count == 0 { "off" } else { tone }, "count": count })
    });
    let shown: Vec<Value> =
        changes(compared).take(MAX_SHOWN).map(|(kind, change)| shown(visit, kind, change)).collect();
    let more = (new + changed).saturating_sub(shown.len());
    let names =
        |kinds: &[&str]| kinds.iter().map(|kind| words.resources(kind)).collect::<Vec<_>>().join(", ");
    let confirm = (is_good && new + changed > 0).then(
        || json!({ "label": format!("{}: {}", words.page("configuration_apply"), new + changed), "value": digest(compared) }),
    );
    json!({
        "counts": counts, "changes": shown, "more": more, "secrets": compared.secrets.join(", "),
        "unread": names(&compared.unread), "confirm": confirm, "is_nothing": new + changed == 0,
    })
}

/// The template context of a change.
fn shown(visit: &Visit<'_>, kind: &str, change: &Change) -> Value {
    let words = visit.words;
    let is_new = change.kind == ChangeKind::Create;
    let differences = change.differences.iter().filter(|one| !is_new || !one.after.is_null()).map(|one| {
        let display = |value: &Value| if one.is_secret { hidden(value) } else { plain(value) };
        difference::change(&words.field(&one.member), &display(&one.before), &display(&one.after))
    });
    json!({
        "kind": raised(&words.resource(kind)), "name": change.name, "changes": differences.collect::<Value>(),
        "badge": words.page(if is_new { "import_new" } else { "import_changed" }), "tone": if is_new { "good" } else { "warn" },
    })
}

fn hidden(value: &Value) -> String {
    if value.is_null() { String::new() } else { "•••••".to_owned() }
}

/// The location of an error and its message: `/3/members/name` belongs to the fourth document.
fn error_location(error: &FieldError, documents: &[chancery_configuration::Document]) -> Value {
    let mut parts = error.pointer.split('/').skip(1);
    let number: Option<usize> = parts.next().and_then(|part| part.parse().ok());
    let member = parts.find(|part| *part != "members").unwrap_or_default();
    let document = number.and_then(|number| documents.get(number));
    let name = document.and_then(|document| {
        let name = ["name", "location"].into_iter().find_map(|wire| document.members.get(wire));
        name.map(plain)
    });
    json!({
        "number": number.map(|number| number + 1), "kind": document.map_or("", |document| document.kind.as_str()),
        "name": name.unwrap_or_default(), "member": member, "what": error.detail,
    })
}
