//! A list: a piece of it at a time, searched by how names begin.

use std::collections::HashMap;

use chancery_record::{Field, Kind};
use chancery_resource::{Op, Problem, RoleType};
use chancery_web::{AnswerBody, Input, Output};
use http::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{batch, deleted, form::created, item, reference};
use crate::shell::{
    call::call,
    carried::carrier_of,
    directory::{self, Resource, encoded, key_of, title_of},
    fields::{Cell, cell},
    navigation::list_label,
    presentation::Names,
    render::page,
    visit::{Visit, one},
};

/// Rows of a piece.
const PIECE: &str = "50";
/// Rows of a piece that a script appends: so few that browsers lay them out within two frames.
const PIECE_OF_PART: &str = "15";
/// The parameter that looks inside of names, too.
pub const INSIDE: &str = "inside";
/// The parameter that asks for the rows alone.
const PART: &str = "part";
/// The parameter that asks how many rows there are.
const COUNTED: &str = "counted";
/// Rows that a search finds at most: more of the name finds others.
pub const MOST_FOUND: usize = 100;
/// The longest text that is searched for, in characters.
const LONGEST: usize = 200;

/// Shows a list.
///
/// # Errors
/// The operation's own.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let Some(op) = resource.list else { return Err(Problem::not_found("list of this")) };
    let found = searching(visit, resource, &visit.query);
    let is_found = found.is_some();
    let mut input = found.unwrap_or_else(|| listing(visit, resource, op));
    let call = call(visit, &input);
    let is_counted = visit.parameter(COUNTED).is_some();
    if is_counted {
        input.query.push(owned(("includeTotal", "true")));
    }
    let output = visit.perform(input).await?;
    let mut rows = output.rows();
    if is_of_deleted(visit, resource) {
        // rows do not say that they are in quarantine
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.insert("isDeleted".to_owned(), json!(true));
        }
    }
    let mut names = reference::names(visit, resource, (&named(resource), &rows)).await?;
    if let Some(more) = resource.presentation.more_names {
        names.extend(more(visit, resource, &rows).await?);
    }
    let acts = batch::offered(visit, resource);
    let held = if acts.is_empty() { HashMap::new() } else { barred(visit, resource, &rows).await? };
    let rows = rows.iter().map(|row| {
        let mut told = row_of(visit, resource, (row, &names));
        let role = carrier_of(resource, &key_of(resource, row), row).and_then(|(_, id)| held.get(&id));
        if let (Some(told), Some(role)) = (told.as_object_mut(), role) {
            told.insert("held".to_owned(), json!(visit.carries(*role)));
        }
        told
    });
    let rows: Vec<Value> = rows.collect();
    let next = output.header("link").and_then(cursor_of).map(|cursor| with(visit, &[("cursor", &cursor)]));
    if visit.parameter(PART).is_some() {
        let columns = columns(visit, resource);
        let more = json!({ "rows": rows, "columns": columns, "selectable": !acts.is_empty(), "next": next });
        return page(200, "list-part.html", &visit.plain("", &more));
    }
    let words = visit.words;
    let heading = list_label(visit, resource);
    let filters = resource.presentation.filters;
    let is_filtered = filters.is_some_and(|filters| (filters.is_filtered)(visit));
    let is_searched =
        visit.parameter("q").is_some_and(|q| !q.is_empty()) || visit.parameter("view").is_some();
    let create = (resource.presentation.create)(visit, resource).or_else(|| {
        visit.may(resource.create).map(|_| {
            json!({ "href": format!("{}/new{}", visit.address(resource), preset(visit, resource)),
                    "label": format!("{} {}", words.page("new"), words.resource(resource.name)) })
        })
    });
    let empty = if is_filtered {
        json!({ "title": words.page("nothing_found"), "text": words.page("nothing_fits"), "act": null })
    } else if is_searched {
        let text = if visit.parameter(INSIDE).is_some() { "nothing_inside" } else { "nothing_found_text" };
        json!({ "title": words.page("nothing_found"), "text": words.page(text), "act": wider(visit) })
    } else {
        json!({ "title": words.page("nothing_yet"), "text": nothing_yet(visit, resource), "act": create })
    };
    let kept: Vec<Value> =
        batch::kept(&visit.query).map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let content = json!({
        "heading": heading, "about": about(visit, resource).await, "api_call": call, "create": create, "more_acts": more_acts(visit, resource),
        "search": search(visit, resource), "views": views(visit, resource), "filters": filters.map(|filters| (filters.form)(visit, resource, &names)), "columns": columns(visit, resource),
        "rows": rows, "selectable": !acts.is_empty(), "batch": acts, "kept": kept, "next": next, "count": counted(visit, &output, (is_counted, is_found)), "empty": empty,
    });
    visit.page(200, "list.html", &heading, &content)
}

/// The roles of rows that keep the person from acts on many of them.
async fn barred(
    visit: &Visit<'_>,
    resource: &Resource,
    rows: &[Value],
) -> Result<HashMap<Uuid, RoleType>, Problem> {
    let found = rows.iter().filter_map(|row| carrier_of(resource, &key_of(resource, row), row));
    let (shapes, ids): (Vec<_>, Vec<Uuid>) = found.unzip();
    match shapes.first().copied() {
        Some(shape) => visit.barred(shape, ids).await,
        None => Ok(HashMap::new()),
    }
}

/// The search that looks inside of names, where those that begin so were none. It reads all rows: about a second for a million.
fn wider(visit: &Visit<'_>) -> Value {
    let is_typed = visit.parameter("q").is_some_and(|text| !text.trim().is_empty());
    if !is_typed || visit.parameter(INSIDE).is_some() {
        return Value::Null;
    }
    json!({ "href": with(visit, &[(INSIDE, "true")]), "label": visit.words.page("search_inside") })
}

/// How many rows there are, where that was asked for, or the way to ask: it takes a second where there are a million.
fn counted(visit: &Visit<'_>, output: &Output, (is_counted, is_found): (bool, bool)) -> Value {
    if is_found {
        return json!({ "text": "", "href": null });
    }
    match output.header("x-total-count").filter(|_| is_counted) {
        Some(total) => {
            json!({ "text": format!("{} {}", visit.words.page("in_all"), grouped(total, visit.words.page("thousands"))), "href": null })
        }
        None => json!({ "text": visit.words.page("count_all"), "href": with(visit, &[(COUNTED, "true")]) }),
    }
}

/// A number with a mark between its thousands.
fn grouped(number: &str, mark: &str) -> String {
    let mut text = String::new();
    for (at, digit) in number.char_indices() {
        if at > 0 && (number.len() - at).is_multiple_of(3) {
            text.push_str(mark);
        }
        text.push(digit);
    }
    text
}

/// What an empty list says: its own text, or what one of its rows would be.
fn nothing_yet<'a>(visit: &Visit<'a>, resource: &Resource) -> &'a str {
    let about = visit.words.explained(resource.shape.about);
    resource.presentation.empty.map_or(about, |key| visit.words.page(key))
}

/// What a new one has in common with the rows that the address asks for: the one that they belong to.
fn preset(visit: &Visit<'_>, resource: &Resource) -> String {
    let of = visit.parameter("of").and_then(|of| of.split_once(':'));
    let known = of.filter(|(wire, _)| created(resource).any(|field| field.wire() == *wire));
    known.map_or_else(String::new, |(wire, id)| format!("?{wire}={}", encoded(id)))
}

/// What the rows are linked with, where the address asks for these alone.
async fn about(visit: &Visit<'_>, resource: &Resource) -> String {
    let of = visit.parameter("of").and_then(|of| of.split_once(':'));
    let Some((wire, id)) = of else { return String::new() };
    // a set of what is linked, or a field there that names what it is linked with
    let target = match wire.split_once('.') {
        Some((_, field)) => of_linked(resource, wire).and_then(|_| directory::referenced(field)),
        None => resource.shape.relation(wire).and_then(|linked| directory::of_shape(linked.target)),
    };
    let Some(other) = target else { return String::new() };
    match item::read(visit, other, id).await {
        Ok(row) => {
            let field = wire.rsplit('.').next().unwrap_or(wire);
            format!("{}: {}", visit.words.field(field), title_of(other, &row))
        }
        Err(_) => String::new(),
    }
}

/// The list, as the address asks for it.
fn listing(visit: &Visit<'_>, resource: &Resource, op: &'static Op) -> Input {
    let mut input = Input::of(op, Vec::new());
    input.is_brief = !resource.presentation.shows_sets;
    let piece = if visit.parameter(PART).is_some() { PIECE_OF_PART } else { PIECE };
    input.query.push(("count".to_owned(), piece.to_owned()));
    if is_of_deleted(visit, resource) {
        input.query.push(owned(("quarantined", "true")));
    }
    if let Some(filter) = filter(resource, &visit.query) {
        input.query.push(("filter".to_owned(), filter));
    }
    match sorted_by(visit, resource) {
        Some((field, direction)) => {
            input.query.extend([("sortBy", field), ("sortOrder", direction)].map(owned));
        }
        None => input.query.extend(resource.presentation.order.iter().copied().map(owned)),
    }
    input.query.extend(visit.parameter("cursor").map(|cursor| ("cursor".to_owned(), cursor.to_owned())));
    input
}

/// A search by an operation of its own, where names are all that is asked for.
pub fn searching(visit: &Visit<'_>, resource: &Resource, parameters: &[(String, String)]) -> Option<Input> {
    let text = one(parameters, "q").map(str::trim).filter(|text| !text.is_empty())?;
    if ["view", "of", INSIDE].into_iter().any(|name| one(parameters, name).is_some()) {
        return None;
    }
    let mut input = Input::of(visit.may(resource.search)?, Vec::new());
    let text: String = text.chars().take(LONGEST).collect();
    input.query.extend([("q".to_owned(), text), ("count".to_owned(), MOST_FOUND.to_string())]);
    Some(input)
}

/// Whether what is in quarantine is asked for.
fn is_of_deleted(visit: &Visit<'_>, resource: &Resource) -> bool {
    deleted::has_quarantine(resource) && visit.parameter("view") == Some(deleted::VIEW)
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// What a list leads to besides its rows.
fn more_acts(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let act = super::aside::form_act(visit, resource);
    let act =
        act.map(|(label, href)| json!({ "icon": "circle-question-mark", "label": label, "href": href }));
    let import = (resource.presentation.is_imported)(visit, resource).then(|| {
        json!({ "label": visit.words.page("import"), "href": format!("{}/import", visit.address(resource)), "icon": "upload" })
    });
    let of_all = super::act::of_all(visit, resource).map(|op| {
        let href = format!("{}/act/{}", visit.address(resource), op.name);
        json!({ "label": super::act::label(visit, op), "href": href, "icon": "repeat-2" })
    });
    act.into_iter().chain(import).chain(of_all).collect()
}

/// The fields by whose beginning rows are searched.
fn searched(resource: &Resource) -> Vec<&'static Field> {
    let named = resource.presentation.searched;
    let own = |wire: &str| resource.shown().find(|field| field.wire() == wire);
    if !named.is_empty() {
        return named.iter().filter_map(|wire| own(wire)).collect();
    }
    resource.title().filter(|field| matches!(field.kind, Kind::Text(_))).into_iter().collect()
}

/// The filter of what the address asks for.
pub fn filter(resource: &Resource, parameters: &[(String, String)]) -> Option<String> {
    let mut all = Vec::new();
    if let Some(text) = one(parameters, "q").map(str::trim).filter(|text| !text.is_empty()) {
        let text: String = text.chars().take(LONGEST).collect();
        let operator = if one(parameters, INSIDE).is_some() { "co" } else { "sw" };
        let fits = |field: &&Field| format!("{} {operator} {}", field.wire(), json!(text));
        let begins: Vec<String> = searched(resource).iter().map(fits).collect();
        if !begins.is_empty() {
            all.push(format!("({})", begins.join(" or ")));
        }
    }
    if let Some(view) = one(parameters, "view") {
        all.extend(resource.presentation.view(view));
    }
    if let Some((wire, id)) = one(parameters, "of").and_then(|of| of.split_once(':')) {
        let field = resource.shown().find(|field| field.wire() == wire);
        all.extend(field.map(|field| format!("{} eq {}", field.wire(), json!(id))));
        all.extend(
            resource.shape.relation(wire).map(|linked| format!("{}.id eq {}", linked.name, json!(id))),
        );
        all.extend(of_linked(resource, wire).map(|wire| format!("{wire} eq {}", json!(id))));
    }
    all.extend(resource.presentation.filters.iter().flat_map(|filters| (filters.conditions)(parameters)));
    if all.is_empty() { None } else { Some(all.join(" and ")) }
}

/// What names a field of linked rows, as `identities.idpInstanceId` does; nothing where there is no such field.
fn of_linked<'a>(resource: &Resource, wire: &'a str) -> Option<&'a str> {
    let (set, field) = wire.split_once('.')?;
    let linked = resource.shape.relation(set)?;
    let is_it = |one: &Field| one.access.shown && one.wire() == field;
    linked.target.fields.iter().any(is_it).then_some(wire)
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
    let known = resource.presentation.views.iter().map(|view| (view.name, view.label));
    let deleted = deleted::has_quarantine(resource).then_some((deleted::VIEW, "view_deleted"));
    let known: Vec<(&str, &str)> = known.chain(deleted).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let current = visit.parameter("view").unwrap_or_default();
    let all = std::iter::once(("", "view_all")).chain(known);
    let told = all.map(|(name, label)| {
        let href =
            if name.is_empty() { visit.path().to_owned() } else { format!("{}?view={name}", visit.path()) };
        json!({ "label": visit.words.page(label), "href": href, "is_current": name == current })
    });
    told.collect()
}

fn columns(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let arranged = resource.presentation.columns;
    let labels: Vec<(&str, String)> = if arranged.is_empty() {
        let own = resource.columns().into_iter();
        own.map(|field| (field.wire(), visit.words.field(field.wire()))).collect()
    } else {
        arranged.iter().map(|(key, _)| (*key, visit.words.page(key).to_owned())).collect()
    };
    let told = labels.into_iter();
    told.map(|(key, label)| json!({ "label": label, "sort": sort(visit, resource, key) })).collect()
}

/// The order that the address asks for: the field, and the direction.
fn sorted_by(visit: &Visit<'_>, resource: &Resource) -> Option<(&'static str, &'static str)> {
    let asked = visit.parameter("sort").filter(|_| !is_part(visit))?;
    let (wire, direction) = asked.strip_prefix('-').map_or((asked, "ascending"), |wire| (wire, "descending"));
    let (_, field) = resource.presentation.sorted.iter().find(|(_, field)| *field == wire)?;
    Some((field, direction))
}

/// Whether the address asks for some rows: no index has these in another order.
fn is_part(visit: &Visit<'_>) -> bool {
    ["q", "view", "of"].into_iter().any(|name| visit.parameter(name).is_some_and(|value| !value.is_empty()))
}

/// Where a column's head leads, if an index serves its order: first upwards, then downwards.
fn sort(visit: &Visit<'_>, resource: &Resource, column: &str) -> Value {
    let known = resource.presentation.sorted.iter().find(|(key, _)| *key == column);
    let Some((_, field)) = known.filter(|_| !is_part(visit)) else { return Value::Null };
    let direction = sorted_by(visit, resource).filter(|(by, _)| by == field).map(|(_, direction)| direction);
    let turned = if direction == Some("ascending") { "-" } else { "" };
    json!({ "href": format!("{}?sort={turned}{field}", visit.path()), "direction": direction })
}

/// The fields of a list that may name other rows.
fn named(resource: &Resource) -> Vec<&'static Field> {
    let presentation = resource.presentation;
    if presentation.columns.is_empty() {
        return resource.columns();
    }
    resource.shown().filter(|field| (presentation.shows_name)(field.wire())).collect()
}

/// A row as templates take it.
pub fn row_of(visit: &Visit<'_>, resource: &Resource, (row, names): (&Value, &Names)) -> Value {
    let key = key_of(resource, row);
    let arranged = resource.presentation.columns;
    let mut cells: Vec<Cell> = if arranged.is_empty() {
        resource.columns().iter().map(|field| cell_of(visit, field, (row, names))).collect()
    } else {
        arranged.iter().map(|(_, cell)| cell(row, (visit.words, names))).collect()
    };
    if let Some(first) = cells.first_mut() {
        if first.kind == "none" {
            first.text.clone_from(&key);
        }
        (first.kind, first.href) = ("title", None);
    }
    let href = resource.read.map(|_| format!("{}/{}", visit.address(resource), encoded(&key)));
    let href = href.or_else(|| (resource.presentation.leads_to)(row));
    json!({ "id": key, "href": href, "avatar": resource.presentation.picture(row), "cells": cells })
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

/// This page's address with these parameters in place of those of the same names.
pub fn with(visit: &Visit<'_>, changed: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| {
        !["done", "undo", PART].contains(&name) && !changed.iter().any(|(other, _)| *other == name)
    };
    let kept = visit.query.iter().filter(|(name, _)| is_kept(name));
    let all = kept.map(|(name, value)| (name.as_str(), value.as_str())).chain(changed.iter().copied());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(all).finish();
    format!("{}?{query}", visit.path())
}

/// The cursor of the next piece, as a `Link` header names it.
pub fn cursor_of(link: &str) -> Option<String> {
    let address = link.strip_prefix('<')?.split('>').next()?;
    let query = address.split_once('?')?.1;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "cursor")
        .map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{cursor_of, grouped};

    #[test]
    fn thousands_are_apart() {
        let told = ["7", "999", "1000", "1000014"].map(|number| grouped(number, ","));
        assert_eq!(told, ["7", "999", "1,000", "1,000,014"]);
    }

    #[test]
    fn the_next_piece_is_in_the_link() {
        assert_eq!(cursor_of("<?count=50&cursor=a%2Bb>; rel=\"next\"").as_deref(), Some("a+b"));
        assert_eq!(cursor_of("<?count=50>; rel=\"next\""), None);
        assert_eq!(cursor_of("nonsense"), None);
    }
}
