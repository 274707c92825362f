//! The page of a relation: lists, adds and removes related rows.

use std::collections::HashMap;

use chancery_record::parse_id;
use chancery_resource::{Action, Op, Problem, Relation, RelationChange, RoleType, Shape};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    form::{errors, is_of_form},
    group_cycle,
    item::read,
    list::cursor_of,
};
use crate::shell::{
    call::call,
    directory::{self, Resource, encoded, key_of, title_of},
    fields::control_field,
    presentation::Item,
    undo::Undo,
    visit::{Visit, one},
};

/// Maximum number of related rows if they cannot be paged.
const MAX_RELATED: usize = 500;
/// Page size.
const PAGE_SIZE: usize = 100;

/// The operation that adds or removes related rows.
pub fn operation(resource: &Resource, name: &str, change: RelationChange) -> Option<&'static Op> {
    let is_it = |op: &&&'static Op| match op.action {
        Action::Relate(relation, what) => relation.name == name && what == change,
        _ => false,
    };
    resource.others.iter().find(is_it).copied()
}

/// Whether the page of a relation is offered: the user may add or remove related rows.
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

/// Shows the related rows.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    page(visit, resource, key, name, None).await
}

/// The page, with the submitted value and its error.
async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
    refused: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let (relation, other) = relation(resource, name)?;
    let row = read(visit, resource, key).await?;
    let cursor = visit.parameter("cursor");
    let (linked, next) = match linked(visit, resource, relation, key, PAGE_SIZE, cursor).await? {
        Some(linked_rows) => linked_rows,
        None => (nested(&row, relation), None),
    };
    let next = next.map(|cursor| format!("?cursor={}", encoded(&cursor)));
    let words = visit.words;
    let label = words.field(relation.name);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let page = format!("{here}/relation/{name}");
    let barred = barred(visit, resource, relation, key, other, &linked).await?;
    let held = barred.get(key);
    let item = Item { resource, key, here: &here, row: &row, protecting_role: held.copied() };
    let can_give_roles = gives_roles(resource.shape, relation) || gives_roles(relation.target, relation);
    let cards =
        if can_give_roles { (resource.presentation.cards_of_links)(visit, item).await? } else { Vec::new() };
    let can = |change| held.is_none() && visit.may(operation(resource, name, change)).is_some();
    let mut field = search_field(visit, "id", other);
    if let Some(members) = field.as_object_mut().filter(|_| refused.is_some()) {
        let typed = one(&visit.form, "id").unwrap_or_default();
        members.extend(
            [("value", json!(typed)), ("shown", json!(typed))].map(|(name, value)| (name.to_owned(), value)),
        );
    }
    let add = can(RelationChange::Add).then(|| json!({ "action": format!("{page}/add"), "fields": [field] }));
    let input = |op: &'static Op| {
        let mut input = Input::of(op, vec![key.to_owned()]);
        input.body = Some(json!({ "relatedIds": ["…"] }));
        input
    };
    let api_call =
        visit.may(operation(resource, name, RelationChange::Add)).map(|op| call(visit, &input(op)));
    let remove = can(RelationChange::Remove)
        .then(|| json!({ "action": format!("{page}/remove"), "label": words.page("take_out") }));
    let rows = linked.iter().take(MAX_RELATED).map(|row| linked_row(visit, other, row, &barred));
    let rows: Vec<Value> = rows.collect();
    let heading = format!("{}: {label}", title_of(resource, &row));
    let content = json!({
        "back": { "href": here, "label": title_of(resource, &row) }, "heading": heading, "add": add, "api_call": api_call, "errors": errors(visit, refused),
        "columns": [{ "label": words.page("col_name"), "sort": null }], "rows": rows, "next": next,
        "empty": { "title": words.page("none"), "text": words.explanation(relation.about) },
        "remove": remove, "cards": cards, "held": held.map(|role| visit.carries(*role)),
    });
    visit.page(refused.map_or(200, Problem::status), "relation.html", &heading, &content)
}

/// Whether links of this relation can give the rows of a shape roles.
fn gives_roles(shape: &Shape, relation: &'static Relation) -> bool {
    shape.writes.protection.is_some_and(|protection| protection.links.protect(relation))
}

/// The roles that prevent the user from changing the relation of this row, or of the related rows, by id.
async fn barred(
    visit: &Visit<'_>,
    resource: &Resource,
    relation: &'static Relation,
    key: &str,
    other: Option<&Resource>,
    linked: &[Value],
) -> Result<HashMap<String, RoleType>, Problem> {
    let gives = |shape: &Shape| gives_roles(shape, relation);
    let own = gives(resource.shape).then(|| key.to_owned());
    let others = other.filter(|other| gives(other.shape));
    let others = others.into_iter().flat_map(|other| linked.iter().map(|row| key_of(other, row)));
    let Some(shape) = [resource.shape, relation.target].into_iter().find(|shape| gives(shape)) else {
        return Ok(HashMap::new());
    };
    let ids = own.into_iter().chain(others).filter_map(|id| parse_id(&id)).collect();
    let roles = visit.barred(shape, ids).await?;
    Ok(roles.into_iter().map(|(id, role)| (id.to_string(), role)).collect())
}

/// The related rows that a row contains.
pub fn nested(row: &Value, relation: &Relation) -> Vec<Value> {
    match row.get(relation.name) {
        Some(Value::Array(rows)) => rows.clone(),
        Some(Value::Object(one)) => vec![Value::Object(one.clone())],
        _ => Vec::new(),
    }
}

/// The relation in the opposite direction.
pub fn reverse(resource: &Resource, relation: &Relation) -> Option<&'static Relation> {
    let is_same = |back: &&'static Relation| {
        back.table == relation.table
            && back.own == relation.other
            && std::ptr::eq(back.target, resource.shape)
    };
    relation.target.relations.iter().find(is_same)
}

/// A page of related rows, read by the list of the related resource, and the cursor of the next page; `None` if that list
/// is not available.
pub async fn linked(
    visit: &Visit<'_>,
    resource: &Resource,
    relation: &Relation,
    key: &str,
    count: usize,
    cursor: Option<&str>,
) -> Result<Option<(Vec<Value>, Option<String>)>, Problem> {
    let list = directory::of_shape(relation.target).and_then(|other| visit.may(other.list));
    let Some((op, back)) = list.zip(reverse(resource, relation)) else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
    let filter = format!("{}.id eq {}", back.name, json!(key));
    input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), count.to_string())];
    input.query.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.to_owned())));
    let output = visit.perform(input).await?;
    let next = output.header("link").and_then(cursor_of);
    let Value::Array(rows) = output.json() else { return Ok(None) };
    Ok(Some((rows, next)))
}

/// The reference field for a row to add.
pub fn search_field(visit: &Visit<'_>, name: &str, other: Option<&Resource>) -> Value {
    let search = other.map(|other| format!("/console/find?in={}", other.name));
    let label =
        other.map_or_else(|| visit.words.page("add").to_owned(), |other| visit.words.resource(other.name));
    let mut field = control_field(name, &crate::shell::words::raised(&label), "reference");
    field.extend([("required".to_owned(), json!(true)), ("search".to_owned(), json!(search))]);
    Value::Object(field)
}

fn linked_row(
    visit: &Visit<'_>,
    other: Option<&'static Resource>,
    row: &Value,
    barred: &HashMap<String, RoleType>,
) -> Value {
    let id = other.map_or_else(String::new, |other| key_of(other, row));
    let name = other.map_or_else(String::new, |other| title_of(other, row));
    let href = other.filter(|other| other.read.is_some());
    let href = href.map(|other| format!("{}/{}", visit.address(other), encoded(&id)));
    let text = if name.is_empty() { id.clone() } else { name };
    json!({ "id": id, "href": href, "avatar": null, "cells": [crate::shell::fields::Cell::of("title", text)],
            "held": barred.get(&id).map(|role| visit.carries(*role)) })
}

/// Adds a related row, or removes the selected ones.
pub async fn change(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
    act: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let (what, field) =
        if act == "add" { (RelationChange::Add, "id") } else { (RelationChange::Remove, "selected") };
    let ids: Vec<&str> =
        visit.form.iter().filter(|(name, _)| name == field).map(|(_, id)| id.trim()).collect();
    let op = visit.require(operation(resource, name, what))?;
    visit.unbarred(resource, key, op).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    (input.body, input.is_minimal) = (Some(json!({ "relatedIds": ids })), true);
    if let Err(problem) = visit.perform(input).await {
        let around = group_cycle::find(visit, resource, key, name, &ids, &problem).await?;
        return match around {
            Some(path) => group_cycle::show(visit, resource, key, name, &path),
            None if is_of_form(&problem) => page(visit, resource, key, name, Some(&problem)).await,
            None => Err(problem),
        };
    }
    let here = format!("{}/{}/relation/{name}", visit.address(resource), encoded(key));
    let (back, field) = if act == "add" { ("remove", "selected") } else { ("add", "id") };
    let fields = ids.iter().map(|id| (field.to_owned(), (*id).to_owned())).collect();
    Ok(visit.redirect_with_undo(&here, "saved", &Undo::of(visit, format!("{here}/{back}"), fields)))
}
