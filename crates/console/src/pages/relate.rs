//! What a row is linked with: seen, added to, and taken out of.

use chancery_resource::{Action, Op, Problem, Relation, RelationChange};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    item::{may_not, read},
    list::{key_of, title_of},
};
use crate::{
    directory::{self, Resource, encoded},
    undo::Undo,
    visit::Visit,
};

/// The most links that are shown.
const MOST: usize = 500;

/// The operation that adds links of a relation, or takes them out.
fn operation(resource: &Resource, name: &str, change: RelationChange) -> Option<&'static Op> {
    let is_it = |op: &&&'static Op| match op.action {
        Action::Relate(relation, what) => relation == name && what == change,
        _ => false,
    };
    resource.others.iter().find(is_it).copied()
}

/// Whether a page of the relation is offered: links can be added here, or taken out.
pub fn is_offered(visit: &Visit<'_>, resource: &Resource, relation: &Relation) -> bool {
    let changes = [RelationChange::Add, RelationChange::Remove];
    changes.into_iter().any(|change| visit.may(operation(resource, relation.name, change)).is_some())
}

fn relation(
    resource: &Resource,
    name: &str,
) -> Result<(&'static Relation, Option<&'static Resource>), Problem> {
    let relation =
        resource.shape.relation(name).ok_or_else(|| Problem::not_found("relation of this name"))?;
    Ok((relation, directory::of_shape(relation.target)))
}

/// Shows what a row is linked with.
///
/// # Errors
/// The operations' own.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, name): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    let (relation, other) = relation(resource, name)?;
    let row = read(visit, resource, key).await?;
    let linked = match row.get(relation.name) {
        Some(Value::Array(rows)) => rows.clone(),
        Some(Value::Object(one)) => vec![Value::Object(one.clone())],
        _ => Vec::new(),
    };
    let words = visit.words;
    let label = words.field(relation.name);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let page = format!("{here}/relation/{name}");
    let can = |change| visit.may(operation(resource, name, change)).is_some();
    let add = can(RelationChange::Add)
        .then(|| json!({ "action": format!("{page}/add"), "field": added(visit, other) }));
    let remove = can(RelationChange::Remove)
        .then(|| json!({ "action": format!("{page}/remove"), "label": words.page("take_out") }));
    let rows: Vec<Value> = linked.iter().take(MOST).map(|row| linked_row(visit, other, row)).collect();
    let heading = format!("{}: {label}", title_of(resource, &row));
    let content = json!({
        "back": { "href": here, "label": title_of(resource, &row) }, "heading": heading, "add": add,
        "columns": [{ "label": words.page("col_name"), "sort": null }], "rows": rows, "next": null,
        "empty": { "title": words.page("none"), "text": if words.tag == "en" { relation.about } else { "" } },
        "remove": remove,
    });
    visit.page(200, "relation.html", &heading, &content)
}

/// The field by which a row is found that is to be linked.
fn added(visit: &Visit<'_>, other: Option<&Resource>) -> Value {
    let search = other.map(|other| format!("/console/find?in={}", other.name));
    let label =
        other.map_or_else(|| visit.words.page("add").to_owned(), |other| visit.words.resource(other.name));
    json!({
        "name": "id", "id": "f-id", "label": crate::words::raised(&label), "hint": "", "control": "reference", "value": "",
        "shown": "", "choices": [], "required": true, "disabled": false, "error": "", "max_length": null, "min": null,
        "max": null, "href": null, "search": search, "autocomplete": "off", "is_wide": true,
    })
}

fn linked_row(visit: &Visit<'_>, other: Option<&'static Resource>, row: &Value) -> Value {
    let id = other.map_or_else(String::new, |other| key_of(other, row));
    let name = other.map_or_else(String::new, |other| title_of(other, row));
    let href = other.filter(|other| other.read.is_some());
    let href = href.map(|other| format!("{}/{}", visit.address(other), encoded(&id)));
    let text = if name.is_empty() { id.clone() } else { name };
    json!({ "id": id, "href": href, "avatar": null, "cells": [crate::fields::Cell::of("title", text)] })
}

/// Adds a link, or takes those out that were chosen.
///
/// # Errors
/// The operation's own.
pub async fn change(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, name, act): (&str, &str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    let (what, field) =
        if act == "add" { (RelationChange::Add, "id") } else { (RelationChange::Remove, "selected") };
    let ids: Vec<&str> =
        visit.form.iter().filter(|(name, _)| name == field).map(|(_, id)| id.trim()).collect();
    let op = visit.may(operation(resource, name, what)).ok_or_else(may_not)?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(json!({ "relatedIds": ids }));
    visit.perform(input).await?;
    let page = format!("{}/{}/relation/{name}", visit.address(resource), encoded(key));
    let (back, field) = if act == "add" { ("remove", "selected") } else { ("add", "id") };
    let fields = ids.iter().map(|id| (field.to_owned(), (*id).to_owned())).collect();
    Ok(visit.done(&page, "saved", &Undo::of(visit, format!("{page}/{back}"), fields)))
}
