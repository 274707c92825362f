//! A list: a piece of it at a time, searched by how names begin.

use chancery_record::{Field, Kind};
use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    navigation::label,
    reference::{self, Names},
};
use crate::{
    arranged,
    directory::{Resource, encoded},
    fields::{Cell, cell, plain},
    visit::Visit,
};

/// Rows of a piece.
const PIECE: &str = "50";
/// Rows that a search finds at most: more of the name finds others.
const MOST_FOUND: &str = "100";
/// The longest text that is searched for, in characters.
const LONGEST: usize = 200;

/// Shows a list.
///
/// # Errors
/// The operation's own.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let Some(op) = resource.list else { return Err(Problem::not_found("list of this")) };
    let input = match searching(visit, resource) {
        Some(input) => input,
        None => listing(visit, resource, op),
    };
    let call = call(visit, resource, &input);
    let output = visit.perform(input).await?;
    let rows = output.json();
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let names = reference::names(visit, resource, (&named(resource), rows)).await?;
    let rows: Vec<Value> = rows.iter().map(|row| row_of(visit, resource, (row, &names))).collect();
    let next = output.header("link").and_then(cursor_of).map(|cursor| with(visit, &[("cursor", &cursor)]));
    let words = visit.words;
    let heading = label(visit, resource.name);
    let is_searched =
        visit.parameter("q").is_some_and(|q| !q.is_empty()) || visit.parameter("view").is_some();
    let create = visit.may(resource.create).map(|_| {
        json!({ "href": format!("{}/new", visit.address(resource)),
                "label": format!("{} {}", words.page("new"), words.resource(resource.name)) })
    });
    let empty = if is_searched {
        json!({ "title": words.page("nothing_found"), "text": words.page("nothing_found_text"), "act": null })
    } else {
        json!({ "title": words.page("nothing_yet"), "text": if words.tag == "en" { resource.shape.about } else { "" }, "act": create })
    };
    let content = json!({
        "heading": heading, "about": "", "api_call": call, "create": create, "more_acts": [],
        "search": search(visit, resource), "views": views(visit, resource), "columns": columns(visit, resource),
        "rows": rows, "selectable": visit.may(resource.delete).is_some() && !batch(visit, resource).is_empty(),
        "batch": batch(visit, resource), "next": next, "count": { "text": "", "href": null }, "empty": empty,
    });
    visit.page(200, "list.html", &heading, &content)
}

/// The list, as the address asks for it.
fn listing(visit: &Visit<'_>, resource: &Resource, op: &'static Op) -> Input {
    let mut input = Input::of(op, Vec::new());
    input.query.push(("count".to_owned(), PIECE.to_owned()));
    if let Some(filter) = filter(visit, resource) {
        input.query.push(("filter".to_owned(), filter));
    }
    if resource.name == "CustomAuditTrail" {
        input.query.extend([("sortBy", "timestamp"), ("sortOrder", "descending")].map(owned));
    }
    input.query.extend(visit.parameter("cursor").map(|cursor| ("cursor".to_owned(), cursor.to_owned())));
    input
}

/// A search by an operation of its own, where names are all that is asked for.
fn searching(visit: &Visit<'_>, resource: &Resource) -> Option<Input> {
    let text = visit.parameter("q").map(str::trim).filter(|text| !text.is_empty())?;
    if visit.parameter("view").is_some() || visit.parameter("of").is_some() {
        return None;
    }
    let mut input = Input::of(visit.may(resource.search)?, Vec::new());
    let text: String = text.chars().take(LONGEST).collect();
    input.query.extend([("q".to_owned(), text), ("count".to_owned(), MOST_FOUND.to_owned())]);
    Some(input)
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The acts that are offered for rows that are chosen.
fn batch(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let delete = visit.may(resource.delete).filter(|_| resource.key().is_some());
    delete
        .map(|_| json!({ "name": "delete", "label": visit.words.page("delete"), "is_dangerous": true }))
        .into_iter()
        .collect()
}

/// The fields by whose beginning rows are searched.
fn searched(resource: &Resource) -> Vec<&'static Field> {
    let named = arranged::searched(resource.name);
    let own = |wire: &str| resource.shown().find(|field| field.wire() == wire);
    if !named.is_empty() {
        return named.iter().filter_map(|wire| own(wire)).collect();
    }
    resource.title().filter(|field| matches!(field.kind, Kind::Text(_))).into_iter().collect()
}

/// The filter of what the address asks for.
fn filter(visit: &Visit<'_>, resource: &Resource) -> Option<String> {
    let mut all = Vec::new();
    if let Some(text) = visit.parameter("q").map(str::trim).filter(|text| !text.is_empty()) {
        let text: String = text.chars().take(LONGEST).collect();
        let begins: Vec<String> =
            searched(resource).iter().map(|field| format!("{} sw {}", field.wire(), json!(text))).collect();
        if !begins.is_empty() {
            all.push(format!("({})", begins.join(" or ")));
        }
    }
    if let Some(view) = visit.parameter("view") {
        let known = arranged::views(resource.name).iter().find(|(name, _)| *name == view);
        all.extend(known.map(|(_, filter)| (*filter).to_owned()));
    }
    if let Some((wire, id)) = visit.parameter("of").and_then(|of| of.split_once(':')) {
        let field = resource.shown().find(|field| field.wire() == wire);
        all.extend(field.map(|field| format!("{} eq {}", field.wire(), json!(id))));
    }
    if all.is_empty() { None } else { Some(all.join(" and ")) }
}

fn search(visit: &Visit<'_>, resource: &Resource) -> Value {
    if searched(resource).is_empty() {
        return Value::Null;
    }
    let named: Vec<String> = searched(resource).iter().map(|field| visit.words.field(field.wire())).collect();
    let hidden: Vec<Value> = ["view", "of"]
        .into_iter()
        .filter_map(|name| Some(json!({ "name": name, "value": visit.parameter(name)? })))
        .collect();
    json!({ "value": visit.parameter("q").unwrap_or_default(), "placeholder": named.join(", "), "hidden": hidden })
}

fn views(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let known = arranged::views(resource.name);
    if known.is_empty() {
        return Vec::new();
    }
    let current = visit.parameter("view").unwrap_or_default();
    let names = std::iter::once("").chain(known.iter().map(|(name, _)| *name));
    let told = names.map(|name| {
        let label =
            if name.is_empty() { visit.words.page("view_all") } else { visit.words.page(view_key(name)) };
        let href =
            if name.is_empty() { visit.path().to_owned() } else { format!("{}?view={name}", visit.path()) };
        json!({ "label": label, "href": href, "is_current": name == current })
    });
    told.collect()
}

fn view_key(name: &str) -> &str {
    match name {
        "locked" => "view_locked",
        "inactive" => "view_inactive",
        other => other,
    }
}

fn columns(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    if let Some(columns) = arranged::columns(resource.name) {
        return columns
            .iter()
            .map(|(key, _)| json!({ "label": visit.words.page(key), "sort": null }))
            .collect();
    }
    let own = resource.columns();
    own.iter().map(|field| json!({ "label": visit.words.field(field.wire()), "sort": null })).collect()
}

/// The fields of a list that may name other rows.
fn named(resource: &Resource) -> Vec<&'static Field> {
    match arranged::columns(resource.name) {
        Some(_) => {
            resource.shown().filter(|field| arranged::shows_name(resource.name, field.wire())).collect()
        }
        None => resource.columns(),
    }
}

/// A row as templates take it.
pub fn row_of(visit: &Visit<'_>, resource: &Resource, (row, names): (&Value, &Names)) -> Value {
    let key = key_of(resource, row);
    let mut cells: Vec<Cell> = match arranged::columns(resource.name) {
        Some(columns) => columns.iter().map(|(_, cell)| cell(row, (visit.words, names))).collect(),
        None => resource.columns().iter().map(|field| cell_of(visit, field, (row, names))).collect(),
    };
    if let Some(first) = cells.first_mut() {
        if first.kind == "none" {
            first.text.clone_from(&key);
        }
        (first.kind, first.href) = ("title", None);
    }
    let href = resource.read.map(|_| format!("{}/{}", visit.address(resource), encoded(&key)));
    json!({ "id": key, "href": href, "avatar": arranged::avatar(resource.name, row), "cells": cells })
}

/// A member as a cell: a row that it names by its name.
fn cell_of(visit: &Visit<'_>, field: &Field, (row, names): (&Value, &Names)) -> Cell {
    let value = row.get(field.wire()).unwrap_or(&Value::Null);
    let other = value.as_str().and_then(|id| names.get(id)).filter(|(name, _)| !name.is_empty());
    match other {
        Some((name, href)) => Cell { href: href.clone(), ..Cell::of("reference", name) },
        None => cell(field, value, visit.words),
    }
}

/// A row's key.
pub fn key_of(resource: &Resource, row: &Value) -> String {
    resource.key().map_or_else(String::new, |field| plain(row.get(field.wire()).unwrap_or(&Value::Null)))
}

/// What one row is called.
pub fn title_of(resource: &Resource, row: &Value) -> String {
    let own = arranged::title(resource.name, row);
    own.unwrap_or_else(|| {
        resource
            .title()
            .map_or_else(String::new, |field| plain(row.get(field.wire()).unwrap_or(&Value::Null)))
    })
}

/// This page's address with these parameters in place of those of the same names.
fn with(visit: &Visit<'_>, changed: &[(&str, &str)]) -> String {
    let kept = visit.query.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
    let all = kept.map(|(name, value)| (name.as_str(), value.as_str())).chain(changed.iter().copied());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(all).finish();
    format!("{}?{query}", visit.path())
}

/// The cursor of the next piece, as a `Link` header names it.
fn cursor_of(link: &str) -> Option<String> {
    let address = link.strip_prefix('<')?.split('>').next()?;
    let query = address.split_once('?')?.1;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "cursor")
        .map(|(_, value)| value.into_owned())
}

/// The same as a call of the interface.
fn call(visit: &Visit<'_>, resource: &Resource, input: &Input) -> String {
    let base = match (&visit.store, resource.is_of_store) {
        (Some(store), true) => format!("/api/userstore/v2/{}/administration", encoded(store)),
        _ => "/api/management/v2".to_owned(),
    };
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&input.query).finish();
    let rest = if input.op.path.ends_with("/search") { "/search" } else { "" };
    let url = &visit.app.token_service.public_url;
    format!("curl -H \"Authorization: Bearer $TOKEN\" \\\n  '{url}{base}/{}{rest}?{query}'", resource.name)
}

#[cfg(test)]
mod tests {
    use super::cursor_of;

    #[test]
    fn the_next_piece_is_in_the_link() {
        assert_eq!(cursor_of("<?count=50&cursor=a%2Bb>; rel=\"next\"").as_deref(), Some("a+b"));
        assert_eq!(cursor_of("<?count=50>; rel=\"next\""), None);
        assert_eq!(cursor_of("nonsense"), None);
    }
}
