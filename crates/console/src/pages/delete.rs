//! Deletion of a row, after a confirmation.

use chancery_record::Field;
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Deletion, Op, Problem, ProblemKind};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    form::{errors, shown},
    item::read,
    reference, relate,
    sidebar::is_read_apart,
};
use crate::shell::{
    call::call,
    components::{Card, Line},
    directory::{self, Resource, encoded, key_of, title_of},
    fields::{cell, readable, rfc3339},
    navigation::position,
    presentation::CellContext,
    reauthentication::is_required,
    undo::Undo,
    visit::{Visit, one, redirect_with_notice},
};

/// Shows the confirmation, after a dry run.
///
/// # Errors
/// The deletion is refused: the reasons are shown before the confirmation.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    confirmation(visit, resource, key, None).await
}

/// The confirmation, with the error of its form.
async fn confirmation(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.delete)?;
    let is_irreversible = is_irreversible(visit, resource);
    if is_required(op) || is_irreversible {
        visit.fresh()?;
    }
    let row = read(visit, resource, key).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.dry_run = true;
    let api_call = call(visit, &input);
    let dry_run = visit.perform(input).await;
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let title = name_of(visit, resource, &row).await?;
    let own = &resource.presentation.deleting;
    let act = words.page(own.act);
    let heading = format!("{act}: {title}");
    if let Err(problem) = dry_run {
        return blocked(visit, resource, key, &heading, &problem).await;
    }
    let quarantine = quarantine_duration(visit, resource);
    let text = own.text.unwrap_or(if quarantine.is_some() { "delete_kept_text" } else { "delete_text" });
    let until = quarantine.map(|span| {
        format!("{} {}", words.page("restorable_until"), readable(&rfc3339(visit.now.plus(span))))
    });
    let facts: Vec<String> =
        dependent_counts(visit, resource, key, &row).await?.into_iter().chain(until).collect();
    let asks = is_irreversible.then(|| json!({ "label": words.page("type_name"), "expected": title }));
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page(text),
        "facts": facts, "asks": asks, "errors": errors(visit, problem), "action": format!("{here}/delete"), "hidden": [],
        "confirm": { "label": act, "is_dangerous": true },
        "cancel": { "href": here, "label": words.page("cancel") }, "api_call": api_call,
    });
    visit.page(problem.map_or(200, Problem::status), "confirm.html", &heading, &content)
}

/// Maximum number of counted rows of one kind.
const MAX_COUNTED: usize = 100;

/// The numbers of related rows and subresources.
async fn dependent_counts(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
) -> Result<Vec<String>, Problem> {
    let words = visit.words;
    let mut counts = Vec::new();
    for relation in resource.shape.relations {
        let linked = if is_read_apart(resource) {
            let related = relate::linked(visit, resource, relation, key, MAX_COUNTED + 1, None).await?;
            related.map(|(rows, _)| rows)
        } else {
            None
        };
        let count = linked.unwrap_or_else(|| relate::nested(row, relation)).len();
        counts.push((words.field(relation.name), count));
    }
    for owned in &resource.owned {
        let Some(op) = visit.may(owned.list) else { continue };
        let mut input = Input::of(op, vec![key.to_owned()]);
        input.query.push(("count".to_owned(), (MAX_COUNTED + 1).to_string()));
        counts.push((words.resources(owned.shape.name), visit.perform(input).await?.rows().len()));
    }
    for child in directory::resources() {
        let field = child.shape.parents.iter().find(|parent| std::ptr::eq(parent.shape, resource.shape));
        let Some((field, op)) = field.map(|parent| parent.field).zip(visit.may(child.list)) else { continue };
        let mut input = Input::of(op, Vec::new());
        input.is_minimal = true;
        input.query = vec![
            ("filter".to_owned(), format!("{} eq {}", field.wire(), json!(key))),
            ("count".to_owned(), (MAX_COUNTED + 1).to_string()),
        ];
        counts.push((words.resources(child.name), visit.perform(input).await?.rows().len()));
    }
    let counted = counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| {
        let more = if count > MAX_COUNTED { "+" } else { "" };
        format!("{name}: {}{more}", count.min(MAX_COUNTED))
    });
    Ok(counted.collect())
}

/// The display name of a row; with names of related rows if its own name is not unique.
async fn name_of(visit: &Visit<'_>, resource: &'static Resource, row: &Value) -> Result<String, Problem> {
    let names = reference::names(visit, resource, &shown(resource), std::slice::from_ref(row)).await?;
    let heading = (resource.presentation.heading)(row, CellContext { words: visit.words, names: &names });
    Ok(heading.unwrap_or_else(|| title_of(resource, row)))
}

/// How long deleted rows stay in quarantine, in ms; `None` without a quarantine.
fn quarantine_duration(visit: &Visit<'_>, resource: &Resource) -> Option<i64> {
    let Deletion::Quarantine { option, .. } = resource.shape.deletes.deletion else { return None };
    let options = &visit.visitor.store.as_ref()?.scope.options;
    options.get(option).then(|| options.get(UserStoreOption::USER_DELETION_QUARANTINE_DURATION))
}

/// Whether the deletion of a row of the navigation cannot be undone: then the user types its name and reauthenticates.
fn is_irreversible(visit: &Visit<'_>, resource: &Resource) -> bool {
    position(resource.name) != usize::MAX
        && resource.presentation.deleting.text.is_none()
        && quarantine_duration(visit, resource).is_none()
}

/// Maximum number of named rows of each resource that prevents the deletion.
const MAX_NAMED: usize = 12;

/// Shows the rows that prevent the deletion.
async fn blocked(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    heading: &str,
    problem: &Problem,
) -> Result<Response<AnswerBody>, Problem> {
    let mut cards = Vec::new();
    for child in resource.shape.deletes.children {
        let holds = |other: &&Resource| other.shape.table == child.table && !other.is_of_store;
        let Some(other) = directory::resources().iter().find(holds) else { continue };
        let field = other.shown().find(|field| field.column == child.column);
        let (Some(op), Some(field)) = (visit.may(other.list), field) else { continue };
        let mut input = Input::of(op, Vec::new());
        input.query.push(("filter".to_owned(), format!("{} eq {}", field.wire(), json!(key))));
        input.query.push(("count".to_owned(), (MAX_NAMED + 1).to_string()));
        let rows = visit.perform(input).await?.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        if !rows.is_empty() {
            let name = other.shown().find(|field| field.column == child.name);
            cards.push(blocking_rows(visit, other, field, name, key, rows));
        }
    }
    if cards.is_empty() {
        return visit.message(problem.status(), heading, &problem.detail);
    }
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let content = json!({
        "back": { "href": here, "label": visit.words.page("back") }, "heading": heading, "text": problem.detail, "cards": cards,
    });
    visit.page(problem.status(), "held.html", heading, &content)
}

/// The rows of one resource that prevent the deletion.
fn blocking_rows(
    visit: &Visit<'_>,
    other: &'static Resource,
    of: &Field,
    name: Option<&Field>,
    key: &str,
    rows: &[Value],
) -> Card {
    let address = visit.address(other);
    let lines = rows.iter().take(MAX_NAMED).map(|row| {
        let href = other.read.map(|_| format!("{address}/{}", encoded(&key_of(other, row))));
        let named = name.map_or_else(String::new, |field| cell(field, &row[field.wire()], visit.words).text);
        let text = if named.is_empty() { title_of(other, row) } else { named };
        Line { icon: Some(other.presentation.icon), text, href, ..Line::default() }
    });
    let lines: Vec<Line> = lines.collect();
    let count = if rows.len() > MAX_NAMED { format!("{MAX_NAMED}+") } else { rows.len().to_string() };
    let all = format!("{address}?of={}:{}", of.wire(), encoded(key));
    Card {
        title: visit.words.resources(other.name),
        kind: "lines",
        count: Some(count),
        lines,
        more: Some(json!({ "href": all, "label": visit.words.page("all") })),
        ..Card::default()
    }
}

/// Deletes a row.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.delete)?;
    if is_irreversible(visit, resource) {
        visit.fresh()?;
        let title = name_of(visit, resource, &read(visit, resource, key).await?).await?;
        if one(&visit.form, "typed").map(str::trim) != Some(title.trim()) {
            let problem = Problem::new(ProblemKind::InvalidRequest, visit.words.page("not_the_name"));
            return confirmation(visit, resource, key, Some(&problem)).await;
        }
    }
    visit.perform(Input::of(op, vec![key.to_owned()])).await?;
    let address = visit.address(resource);
    let Some(back) = restore_operation(visit, resource, key).await else {
        return Ok(redirect_with_notice(&address, resource.presentation.deleting.note));
    };
    let action = format!("{address}/{}/{}", encoded(key), back.name);
    Ok(visit.redirect_with_undo(&address, "deleted", &Undo::of(visit, action, Vec::new())))
}

/// The operation that restores the row, if it is in quarantine.
async fn restore_operation(visit: &Visit<'_>, resource: &Resource, key: &str) -> Option<&'static Op> {
    let back = super::act::offered(visit, resource).find(|op| resource.presentation.is_restoring(op))?;
    let mut input = Input::of(back, vec![key.to_owned()]);
    input.dry_run = true;
    visit.perform(input).await.ok().map(|_| back)
}
