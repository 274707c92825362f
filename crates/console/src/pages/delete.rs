//! Deleting one, after it was asked.

use chancery_record::Field;
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Deletion, Op, Problem, ProblemKind};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    aside::is_read_apart,
    form::{errors, shown},
    item::read,
    reference, relate,
};
use crate::shell::{
    call::call,
    directory::{self, Resource, encoded, key_of, title_of},
    fields::{cell, readable, written},
    navigation::position,
    parts::{Card, Line},
    proof::is_wanted,
    undo::Undo,
    visit::{Visit, done, one},
};

/// Asks whether one is to be deleted, after the interface has judged it.
///
/// # Errors
/// The operation's own: what is in the way is said before anybody is asked.
pub async fn ask(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    question(visit, resource, key, None).await
}

/// The same, with what was wrong with the answer.
async fn question(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(resource.delete)?;
    let is_for_good = is_for_good(visit, resource);
    if is_wanted(op) || is_for_good {
        visit.fresh()?;
    }
    let row = read(visit, resource, key).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.dry_run = true;
    let api_call = call(visit, &input);
    let judged = visit.perform(input).await;
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let title = name_of(visit, resource, &row).await?;
    let own = &resource.presentation.deleting;
    let act = words.page(own.act);
    let heading = format!("{act}: {title}");
    if let Err(problem) = judged {
        return held(visit, resource, (key, &heading), &problem).await;
    }
    let kept = keeping(visit, resource);
    let text = own.text.unwrap_or(if kept.is_some() { "delete_kept_text" } else { "delete_text" });
    let until = kept.map(|span| {
        format!("{} {}", words.page("restorable_until"), readable(&written(visit.now.plus(span))))
    });
    let facts: Vec<String> = hanging(visit, resource, (key, &row)).await?.into_iter().chain(until).collect();
    let asks = is_for_good.then(|| json!({ "label": words.page("type_name"), "expected": title }));
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page(text),
        "facts": facts, "asks": asks, "errors": errors(visit, problem), "action": format!("{here}/delete"), "hidden": [],
        "confirm": { "label": act, "is_dangerous": true },
        "cancel": { "href": here, "label": words.page("cancel") }, "api_call": api_call,
    });
    visit.page(problem.map_or(200, Problem::status), "confirm.html", &heading, &content)
}

/// The most of one kind that are counted.
const MOST_COUNTED: usize = 100;

/// What hangs on a row, in numbers: what it is linked with, and what it owns.
async fn hanging(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
) -> Result<Vec<String>, Problem> {
    let words = visit.words;
    let mut counts = Vec::new();
    for relation in resource.shape.relations {
        let piece = (MOST_COUNTED + 1, None);
        let linked = if is_read_apart(resource) {
            relate::linked(visit, (resource, relation), key, piece).await?.map(|(rows, _)| rows)
        } else {
            None
        };
        let count = linked.unwrap_or_else(|| relate::nested(row, relation)).len();
        counts.push((words.field(relation.name), count));
    }
    for owned in &resource.owned {
        let Some(op) = visit.may(owned.list) else { continue };
        let mut input = Input::of(op, vec![key.to_owned()]);
        input.query.push(("count".to_owned(), (MOST_COUNTED + 1).to_string()));
        counts.push((words.resources(owned.shape.name), visit.perform(input).await?.rows().len()));
    }
    for child in directory::resources() {
        let field = child.shape.parents.iter().find(|parent| std::ptr::eq(parent.shape, resource.shape));
        let Some((field, op)) = field.map(|parent| parent.field).zip(visit.may(child.list)) else { continue };
        let mut input = Input::of(op, Vec::new());
        input.is_brief = true;
        input.query = vec![
            ("filter".to_owned(), format!("{} eq {}", field.wire(), json!(key))),
            ("count".to_owned(), (MOST_COUNTED + 1).to_string()),
        ];
        counts.push((words.resources(child.name), visit.perform(input).await?.rows().len()));
    }
    let told = counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| {
        let more = if count > MOST_COUNTED { "+" } else { "" };
        format!("{name}: {}{more}", count.min(MOST_COUNTED))
    });
    Ok(told.collect())
}

/// What a row is called, where its own name may be that of another row.
async fn name_of(visit: &Visit<'_>, resource: &'static Resource, row: &Value) -> Result<String, Problem> {
    let names = reference::names(visit, resource, (&shown(resource), std::slice::from_ref(row))).await?;
    let heading = (resource.presentation.heading)(row, (visit.words, &names));
    Ok(heading.unwrap_or_else(|| title_of(resource, row)))
}

/// How long what is deleted waits in a quarantine, in ms; `None` where it is gone at once.
fn keeping(visit: &Visit<'_>, resource: &Resource) -> Option<i64> {
    let Deletion::Quarantine { option, .. } = resource.shape.deletes.deletion else { return None };
    let options = &visit.visitor.store.as_ref()?.scope.options;
    options.get(option).then(|| options.get(UserStoreOption::USER_DELETION_QUARANTINE_DURATION))
}

/// Whether nobody can bring back what people look for: then its name is typed, by who has just proven who they are.
fn is_for_good(visit: &Visit<'_>, resource: &Resource) -> bool {
    position(resource.name) != usize::MAX
        && resource.presentation.deleting.text.is_none()
        && keeping(visit, resource).is_none()
}

/// The most rows that are named of each resource that is in the way.
const MOST_NAMED: usize = 12;

/// Says what is in the way, and names it.
async fn held(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, heading): (&str, &str),
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
        input.query.push(("count".to_owned(), (MOST_NAMED + 1).to_string()));
        let rows = visit.perform(input).await?.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        if !rows.is_empty() {
            let name = other.shown().find(|field| field.column == child.name);
            cards.push(in_the_way(visit, (other, field, name), (key, rows)));
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

/// The rows of one resource that keep another from being deleted, by what people tell them apart.
fn in_the_way(
    visit: &Visit<'_>,
    (other, of, name): (&'static Resource, &Field, Option<&Field>),
    (key, rows): (&str, &[Value]),
) -> Card {
    let address = visit.address(other);
    let lines = rows.iter().take(MOST_NAMED).map(|row| {
        let href = other.read.map(|_| format!("{address}/{}", encoded(&key_of(other, row))));
        let named = name.map_or_else(String::new, |field| cell(field, &row[field.wire()], visit.words).text);
        let text = if named.is_empty() { title_of(other, row) } else { named };
        Line { icon: Some(other.presentation.icon), text, href, ..Line::default() }
    });
    let lines: Vec<Line> = lines.collect();
    let count = if rows.len() > MOST_NAMED { format!("{MOST_NAMED}+") } else { rows.len().to_string() };
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

/// Deletes one.
///
/// # Errors
/// The operation's own.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(resource.delete)?;
    if is_for_good(visit, resource) {
        visit.fresh()?;
        let title = name_of(visit, resource, &read(visit, resource, key).await?).await?;
        if one(&visit.form, "typed").map(str::trim) != Some(title.trim()) {
            let problem = Problem::new(ProblemKind::InvalidRequest, visit.words.page("not_the_name"));
            return question(visit, resource, key, Some(&problem)).await;
        }
    }
    visit.perform(Input::of(op, vec![key.to_owned()])).await?;
    let address = visit.address(resource);
    let Some(back) = restoring(visit, resource, key).await else {
        return Ok(done(&address, resource.presentation.deleting.note));
    };
    let action = format!("{address}/{}/{}", encoded(key), back.name);
    Ok(visit.done(&address, "deleted", &Undo::of(visit, action, Vec::new())))
}

/// The operation that brings back what is in quarantine, if this is.
async fn restoring(visit: &Visit<'_>, resource: &Resource, key: &str) -> Option<&'static Op> {
    let back = super::act::offered(visit, resource).find(|op| resource.presentation.is_restoring(op))?;
    let mut input = Input::of(back, vec![key.to_owned()]);
    input.dry_run = true;
    visit.perform(input).await.ok().map(|_| back)
}
