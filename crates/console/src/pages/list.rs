//! Lists: paged, and searched by prefix.

use std::collections::HashMap;

use chancery_record::{Field, Kind};
use chancery_resource::{Op, Problem, RoleType};
use chancery_web::{AnswerBody, Input, Output};
use http::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{batch, deleted, form::creation_fields, item, reference};
use crate::shell::{
    call::call,
    directory::{self, Resource, encoded, key_of, title_of},
    fields::{Cell, cell},
    navigation::list_label,
    presentation::{CellContext, Names},
    render::page,
    role_protection::carrier_of,
    visit::{Visit, one},
};

/// Page size.
const PAGE_SIZE: &str = "50";
/// Page size of rows that a script appends: so few that browsers lay them out within two frames.
const APPENDED_PAGE_SIZE: &str = "15";
/// The parameter for a substring search.
pub const INSIDE: &str = "inside";
/// The parameter for the rows only.
const PART: &str = "part";
/// The parameter for the total number of rows.
const COUNTED: &str = "counted";
/// Maximum number of search results: a longer text finds others.
pub const MAX_FOUND: usize = 100;
/// The maximum length of a search text, in characters.
const LONGEST: usize = 200;

/// Shows a list.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let Some(op) = resource.list else { return Err(Problem::not_found("list of this")) };
    let search_request = search_input(visit, resource, &visit.query);
    let is_search = search_request.is_some();
    let mut input = search_request.unwrap_or_else(|| list_input(visit, resource, op));
    let call = call(visit, &input);
    let is_counted = visit.parameter(COUNTED).is_some();
    if is_counted {
        input.query.push(pair("includeTotal", "true"));
    }
    let output = visit.perform(input).await?;
    let mut rows = output.rows();
    if is_of_deleted(visit, resource) {
        // rows have no member for the quarantine
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.insert("isDeleted".to_owned(), json!(true));
        }
    }
    let mut names = reference::names(visit, resource, &reference_fields(resource), &rows).await?;
    if let Some(more) = resource.presentation.more_names {
        names.extend(more(visit, resource, &rows).await?);
    }
    let acts = batch::offered(visit, resource);
    let held = if acts.is_empty() { HashMap::new() } else { barred(visit, resource, &rows).await? };
    let rows = rows.iter().map(|row| {
        let mut rendered = row_of(visit, resource, row, &names);
        let role = carrier_of(resource, &key_of(resource, row), row).and_then(|(_, id)| held.get(&id));
        if let (Some(rendered), Some(role)) = (rendered.as_object_mut(), role) {
            rendered.insert("held".to_owned(), json!(visit.carries(*role)));
        }
        rendered
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
        json!({ "title": words.page("nothing_found"), "text": words.page(text), "act": substring_search(visit) })
    } else {
        json!({ "title": words.page("nothing_yet"), "text": empty_text(visit, resource), "act": create })
    };
    let hidden: Vec<Value> = batch::list_parameters(&visit.query)
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let content = json!({
        "heading": heading, "about": filter_description(visit, resource).await, "api_call": call, "create": create, "more_acts": more_acts(visit, resource),
        "search": search(visit, resource), "views": views(visit, resource), "filters": filters.map(|filters| (filters.form)(visit, resource, &names)), "columns": columns(visit, resource),
        "rows": rows, "selectable": !acts.is_empty(), "batch": acts, "kept": hidden, "next": next, "count": total(visit, &output, is_counted, is_search), "empty": empty,
    });
    visit.page(200, "list.html", &heading, &content)
}

/// The roles of rows that prevent the user from batch actions on them.
async fn barred(
    visit: &Visit<'_>,
    resource: &Resource,
    rows: &[Value],
) -> Result<HashMap<Uuid, RoleType>, Problem> {
    let carriers = rows.iter().filter_map(|row| carrier_of(resource, &key_of(resource, row), row));
    let (shapes, ids): (Vec<_>, Vec<Uuid>) = carriers.unzip();
    match shapes.first().copied() {
        Some(shape) => visit.barred(shape, ids).await,
        None => Ok(HashMap::new()),
    }
}

/// The link to a substring search, after a prefix search without results. It reads all rows: about a second for a
/// million.
fn substring_search(visit: &Visit<'_>) -> Value {
    let is_typed = visit.parameter("q").is_some_and(|text| !text.trim().is_empty());
    if !is_typed || visit.parameter(INSIDE).is_some() {
        return Value::Null;
    }
    json!({ "href": with(visit, &[(INSIDE, "true")]), "label": visit.words.page("search_inside") })
}

/// The total number of rows if it was requested, else the link that requests it: counting a million rows takes a second.
fn total(visit: &Visit<'_>, output: &Output, is_counted: bool, is_search: bool) -> Value {
    if is_search {
        return json!({ "text": "", "href": null });
    }
    match output.header("x-total-count").filter(|_| is_counted) {
        Some(total) => {
            json!({ "text": format!("{} {}", visit.words.page("in_all"), grouped(total, visit.words.page("thousands"))), "href": null })
        }
        None => json!({ "text": visit.words.page("count_all"), "href": with(visit, &[(COUNTED, "true")]) }),
    }
}

/// A number with thousands separators.
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

/// The text of an empty list: its own, or the description of the resource.
fn empty_text<'a>(visit: &Visit<'a>, resource: &Resource) -> &'a str {
    let about = visit.words.explanation(resource.shape.about);
    resource.presentation.empty.map_or(about, |key| visit.words.page(key))
}

/// The query that presets the form of a new row: the row that the list is filtered by.
fn preset(visit: &Visit<'_>, resource: &Resource) -> String {
    let of = visit.parameter("of").and_then(|of| of.split_once(':'));
    let known = of.filter(|(wire, _)| creation_fields(resource).any(|field| field.wire() == *wire));
    known.map_or_else(String::new, |(wire, id)| format!("?{wire}={}", encoded(id)))
}

/// The description of a filter by a related row.
async fn filter_description(visit: &Visit<'_>, resource: &Resource) -> String {
    let of = visit.parameter("of").and_then(|of| of.split_once(':'));
    let Some((wire, id)) = of else { return String::new() };
    // a relation, or a reference field of the related rows
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

/// The input of the list operation for these query parameters.
fn list_input(visit: &Visit<'_>, resource: &Resource, op: &'static Op) -> Input {
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = !resource.presentation.shows_sets;
    let count = if visit.parameter(PART).is_some() { APPENDED_PAGE_SIZE } else { PAGE_SIZE };
    input.query.push(("count".to_owned(), count.to_owned()));
    if is_of_deleted(visit, resource) {
        input.query.push(pair("quarantined", "true"));
    }
    if let Some(filter) = filter(resource, &visit.query) {
        input.query.push(("filter".to_owned(), filter));
    }
    match sorted_by(visit, resource) {
        Some((field, direction)) => {
            input.query.extend([pair("sortBy", field), pair("sortOrder", direction)]);
        }
        None => input.query.extend(resource.presentation.order.iter().map(|(name, value)| pair(name, value))),
    }
    input.query.extend(visit.parameter("cursor").map(|cursor| ("cursor".to_owned(), cursor.to_owned())));
    input
}

/// The input of the search operation, if the query contains only a search text.
pub fn search_input(
    visit: &Visit<'_>,
    resource: &Resource,
    parameters: &[(String, String)],
) -> Option<Input> {
    let text = one(parameters, "q").map(str::trim).filter(|text| !text.is_empty())?;
    if ["view", "of", INSIDE].into_iter().any(|name| one(parameters, name).is_some()) {
        return None;
    }
    let mut input = Input::of(visit.may(resource.search)?, Vec::new());
    let text: String = text.chars().take(LONGEST).collect();
    input.query.extend([("q".to_owned(), text), ("count".to_owned(), MAX_FOUND.to_string())]);
    Some(input)
}

/// Whether quarantined rows are requested.
fn is_of_deleted(visit: &Visit<'_>, resource: &Resource) -> bool {
    deleted::has_quarantine(resource) && visit.parameter("view") == Some(deleted::VIEW)
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Further actions of a list.
fn more_acts(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let act = super::sidebar::form_act(visit, resource);
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

/// The fields whose prefix is searched.
fn searched_fields(resource: &Resource) -> Vec<&'static Field> {
    let named = resource.presentation.searched;
    let own = |wire: &str| resource.shown().find(|field| field.wire() == wire);
    if !named.is_empty() {
        return named.iter().filter_map(|wire| own(wire)).collect();
    }
    resource.title().filter(|field| matches!(field.kind, Kind::Text(_))).into_iter().collect()
}

/// The filter for these query parameters.
pub fn filter(resource: &Resource, parameters: &[(String, String)]) -> Option<String> {
    let mut all = Vec::new();
    if let Some(text) = one(parameters, "q").map(str::trim).filter(|text| !text.is_empty()) {
        let text: String = text.chars().take(LONGEST).collect();
        let operator = if one(parameters, INSIDE).is_some() { "co" } else { "sw" };
        let fits = |field: &&Field| format!("{} {operator} {}", field.wire(), json!(text));
        let begins: Vec<String> = searched_fields(resource).iter().map(fits).collect();
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

/// A filter on a field of related rows, such as `identities.idpInstanceId`; `None` if there is no such field.
fn of_linked<'a>(resource: &Resource, wire: &'a str) -> Option<&'a str> {
    let (set, field) = wire.split_once('.')?;
    let linked = resource.shape.relation(set)?;
    let is_it = |one: &Field| one.access.shown && one.wire() == field;
    linked.target.fields.iter().any(is_it).then_some(wire)
}

fn search(visit: &Visit<'_>, resource: &Resource) -> Value {
    if searched_fields(resource).is_empty() {
        return Value::Null;
    }
    let named: Vec<String> =
        searched_fields(resource).iter().map(|field| visit.words.field(field.wire())).collect();
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
    let rendered = all.map(|(name, label)| {
        let href =
            if name.is_empty() { visit.path().to_owned() } else { format!("{}?view={name}", visit.path()) };
        json!({ "label": visit.words.page(label), "href": href, "is_current": name == current })
    });
    rendered.collect()
}

fn columns(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    let declared = resource.presentation.columns;
    let labels: Vec<(&str, String)> = if declared.is_empty() {
        let own = resource.columns().into_iter();
        own.map(|field| (field.wire(), visit.words.field(field.wire()))).collect()
    } else {
        declared.iter().map(|(key, _)| (*key, visit.words.page(key).to_owned())).collect()
    };
    let rendered = labels.into_iter();
    rendered.map(|(key, label)| json!({ "label": label, "sort": sort(visit, resource, key) })).collect()
}

/// The requested order: field and direction.
fn sorted_by(visit: &Visit<'_>, resource: &Resource) -> Option<(&'static str, &'static str)> {
    let requested = visit.parameter("sort").filter(|_| !is_part(visit))?;
    let (wire, direction) =
        requested.strip_prefix('-').map_or((requested, "ascending"), |wire| (wire, "descending"));
    let (_, field) = resource.presentation.sorted.iter().find(|(_, field)| *field == wire)?;
    Some((field, direction))
}

/// Whether the query filters the rows: no index supports another order of these.
fn is_part(visit: &Visit<'_>) -> bool {
    ["q", "view", "of"].into_iter().any(|name| visit.parameter(name).is_some_and(|value| !value.is_empty()))
}

/// The link of a column heading, if an index supports its order: ascending at first, then descending.
fn sort(visit: &Visit<'_>, resource: &Resource, column: &str) -> Value {
    let known = resource.presentation.sorted.iter().find(|(key, _)| *key == column);
    let Some((_, field)) = known.filter(|_| !is_part(visit)) else { return Value::Null };
    let direction = sorted_by(visit, resource).filter(|(by, _)| by == field).map(|(_, direction)| direction);
    let prefix = if direction == Some("ascending") { "-" } else { "" };
    json!({ "href": format!("{}?sort={prefix}{field}", visit.path()), "direction": direction })
}

/// The fields of a list that may refer to other rows.
fn reference_fields(resource: &Resource) -> Vec<&'static Field> {
    let presentation = resource.presentation;
    if presentation.columns.is_empty() {
        return resource.columns();
    }
    resource.shown().filter(|field| (presentation.shows_name)(field.wire())).collect()
}

/// The template context of a row.
pub fn row_of(visit: &Visit<'_>, resource: &Resource, row: &Value, names: &Names) -> Value {
    let key = key_of(resource, row);
    let declared = resource.presentation.columns;
    let mut cells: Vec<Cell> = if declared.is_empty() {
        resource.columns().iter().map(|field| cell_of(visit, field, row, names)).collect()
    } else {
        declared.iter().map(|(_, cell)| cell(row, CellContext { words: visit.words, names })).collect()
    };
    if let Some(first) = cells.first_mut() {
        if first.kind == "none" {
            first.text.clone_from(&key);
        }
        (first.kind, first.href) = ("title", None);
    }
    let href = resource.read.map(|_| format!("{}/{}", visit.address(resource), encoded(&key)));
    let href = href.or_else(|| (resource.presentation.row_href)(row));
    json!({ "id": key, "href": href, "avatar": resource.presentation.picture(row), "cells": cells })
}

/// A member as a cell; a reference with the name of its row.
fn cell_of(visit: &Visit<'_>, field: &Field, row: &Value, names: &Names) -> Cell {
    let value = row.get(field.wire()).unwrap_or(&Value::Null);
    let other = value.as_str().and_then(|id| names.get(id)).filter(|(name, _)| !name.is_empty());
    match other {
        Some((name, href)) => Cell { href: href.clone(), ..Cell::of("reference", name) },
        None => cell(field, value, visit.words),
    }
}

/// The URL of this page with these parameters replaced.
pub fn with(visit: &Visit<'_>, changed: &[(&str, &str)]) -> String {
    let is_retained = |name: &str| {
        !["done", "undo", PART].contains(&name) && !changed.iter().any(|(other, _)| *other == name)
    };
    let retained = visit.query.iter().filter(|(name, _)| is_retained(name));
    let all = retained.map(|(name, value)| (name.as_str(), value.as_str())).chain(changed.iter().copied());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(all).finish();
    format!("{}?{query}", visit.path())
}

/// The cursor of the next page, from a `Link` header.
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
    fn thousands_are_separated() {
        let texts = ["7", "999", "1000", "1000014"].map(|number| grouped(number, ","));
        assert_eq!(texts, ["7", "999", "1,000", "1,000,014"]);
    }

    #[test]
    fn the_next_cursor_is_read_from_the_link_header() {
        assert_eq!(cursor_of("<?count=50&cursor=a%2Bb>; rel=\"next\"").as_deref(), Some("a+b"));
        assert_eq!(cursor_of("<?count=50>; rel=\"next\""), None);
        assert_eq!(cursor_of("nonsense"), None);
    }
}
