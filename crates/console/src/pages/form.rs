//! The form of one: its fields in their sections, what was typed, and what is wrong with it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Column, DefaultValue, Field, Kind};
use chancery_resource::{Action, Body, Custom, Op, Problem, ProblemKind};
use serde_json::{Map, Value, json};

use crate::shell::{
    carried,
    directory::{Resource, encoded},
    fields::{Cell, FormField, is_kept, plain},
    presentation::Names,
    visit::Visit,
};

/// The sections of a form with the names of the rows that fields name.
pub fn named(mut sections: Vec<Value>, names: &Names) -> Vec<Value> {
    let fields =
        sections.iter_mut().filter_map(|section| section.get_mut("fields")?.as_array_mut()).flatten();
    for field in fields.filter_map(Value::as_object_mut) {
        let found = field.get("value").and_then(Value::as_str).and_then(|id| names.get(id));
        let Some((name, href)) = found.filter(|(name, _)| !name.is_empty()) else { continue };
        field.insert("shown".to_owned(), json!(name));
        if field.get("control") == Some(&json!("shown")) {
            field
                .insert("cell".to_owned(), json!(Cell { href: href.clone(), ..Cell::of("reference", name) }));
        }
    }
    sections
}

/// The members of a row that its form can change, and the token that it was read with.
pub fn hidden<'a>(fields: impl Iterator<Item = &'a Field>, row: &Value) -> Vec<Value> {
    // what is secret, or long, is not told twice: a form that leaves it empty changes nothing
    let base: Map<String, Value> = fields
        .filter(|field| !is_kept(field, row))
        .map(|field| (field.wire().to_owned(), at(row, field.wire()).clone()))
        .collect();
    vec![
        json!({ "name": "base", "value": Value::Object(base).to_string() }),
        json!({ "name": "concurrencyToken", "value": plain(at(row, "concurrencyToken")) }),
    ]
}

/// A member of a row.
pub fn at<'a>(row: &'a Value, wire: &str) -> &'a Value {
    row.get(wire).unwrap_or(&Value::Null)
}

/// The fields of a creation.
pub fn created(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    // a creation of its own kind has a body of its own
    if let Some(Op { action: Action::Custom(Custom { body: Body::Form(form), .. }), .. }) = resource.create {
        return form.fields.iter().collect::<Vec<_>>().into_iter();
    }
    // an id is made by the server, unless it is another row's, and where a row is the address says
    let is_made = |field: &Field| {
        field.access.key && matches!(field.kind, Kind::Id) && resource.referenced(field).is_none()
    };
    let is_placed = |field: &Field| field.access.column == Column::Scope;
    let is_open = move |field: &&Field| {
        field.access.create && !field.is_token() && !is_made(field) && !is_placed(field)
    };
    resource.shape.fields.iter().filter(is_open).collect::<Vec<_>>().into_iter()
}

/// The fields that a form of what is there changes.
pub fn changed_by_form(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    let is_open = |field: &&Field| field.access.patch && !field.is_token() && !field.access.key;
    resource.shape.fields.iter().filter(is_open)
}

/// What a page does with its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A new one is made.
    Created,
    /// One is changed.
    Changed,
    /// One is changed, but for what is protected of it.
    Open,
    /// One is shown.
    Shown,
}

/// The fields that a page of one shows.
pub fn shown(resource: &Resource) -> Vec<&'static Field> {
    resource.shown().filter(|field| !field.is_token()).collect()
}

/// The sections of what nobody changes.
pub fn sections_shown(visit: &Visit<'_>, resource: &'static Resource, row: &Value) -> Vec<Value> {
    sections(visit, resource, (&shown(resource), row), None, Use::Shown)
}

/// The sections of a form: texts, switches, and what the server sets.
pub fn sections(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (fields, values): (&[&Field], &Value),
    problem: Option<&Problem>,
    used: Use,
) -> Vec<Value> {
    let is_new = used == Use::Created;
    let is_change = matches!(used, Use::Changed | Use::Open);
    let can_change = is_new || (is_change && visit.may(resource.patch).is_some());
    let is_open = |field: &Field| {
        let is_free = used != Use::Open || carried::is_open(resource.shape, field);
        can_change
            && is_free
            && if is_new { field.access.create } else { field.access.patch && !field.access.key }
    };
    let shown = |field: &Field| {
        let other = resource.referenced(field);
        let id = at(values, field.wire()).as_str().unwrap_or_default();
        let href = other.filter(|other| other.read.is_some() && !id.is_empty());
        let href = href.map(|other| format!("{}/{}", visit.address(other), encoded(id)));
        let error = error_at(problem, field.wire());
        let is_required = is_new
            && !field.nullable
            && matches!(field.access.default, DefaultValue::None)
            && !matches!(field.kind, Kind::Bool);
        let search = other.map(|other| format!("/console/find?in={}", other.name));
        FormField { field, row: values, is_fixed: !is_open(field), is_required, error: &error, href, search }
            .told(visit.words)
    };
    let of = |wanted: &dyn Fn(&Field) -> bool| -> Vec<Value> {
        fields
            .iter()
            .filter(|field| field.access.column != Column::Owner || is_new)
            .filter(|field| wanted(field))
            .map(|field| shown(field))
            .collect()
    };
    let is_switch = |field: &Field| matches!(field.kind, Kind::Bool);
    let words = visit.words;
    let arranged = resource.presentation.sections;
    let is_arranged = |field: &Field| arranged.iter().any(|(_, wires)| wires.contains(&field.wire()));
    let mut all: Vec<(&str, Vec<Value>, bool)> = Vec::new();
    for (title, wires) in arranged {
        let own = wires
            .iter()
            .filter_map(|wire| fields.iter().find(|field| field.wire() == *wire && is_open(field)));
        all.push((words.page(title), own.map(|field| shown(field)).collect(), false));
    }
    let rest = if arranged.is_empty() { "section_general" } else { "section_more" };
    all.push((
        words.page(rest),
        of(&|field| is_open(field) && !is_switch(field) && !is_arranged(field)),
        false,
    ));
    all.push(("", of(&|field| is_open(field) && is_switch(field) && !is_arranged(field)), false));
    all.push((words.page("section_server"), of(&|field| !is_open(field)), true));
    let some = all.into_iter().filter(|(_, fields, _)| !fields.is_empty());
    let sections = some.map(|(title, fields, is_readonly)| json!({ "title": title, "about": "", "fields": fields, "is_readonly": is_readonly }));
    if is_new { folded(visit, sections.collect()) } else { sections.collect() }
}

/// The most fields of a form that is not folded.
const MOST_OPEN: usize = 6;

/// The same for what is new: after the first section, what need not be filled is folded away, unless it is wrong.
fn folded(visit: &Visit<'_>, mut sections: Vec<Value>) -> Vec<Value> {
    let count = |section: &Value| section.get("fields").and_then(Value::as_array).map_or(0, Vec::len);
    if sections.iter().map(count).sum::<usize>() <= MOST_OPEN {
        return sections;
    }
    let is = |section: &Value, told: fn(&Value) -> bool| {
        section.get("fields").and_then(Value::as_array).is_some_and(|fields| fields.iter().any(told))
    };
    let is_required = |field: &Value| field.get("required") == Some(&json!(true));
    let is_wrong = |field: &Value| field.get("error") != Some(&json!(""));
    for section in sections.iter_mut().skip(1).filter(|section| !is(section, is_required)) {
        let is_open = is(section, is_wrong);
        let Some(members) = section.as_object_mut() else { continue };
        members.insert("fold".to_owned(), json!(if is_open { "open" } else { "closed" }));
        if members.get("title") == Some(&json!("")) {
            members.insert("title".to_owned(), json!(visit.words.page("section_more")));
        }
    }
    sections
}

/// The fields of a body of its own, with what was typed or is there, and what is wrong with it.
pub fn plain_fields(
    visit: &Visit<'_>,
    fields: &[&Field],
    row: &Value,
    problem: Option<&Problem>,
) -> Vec<Value> {
    let told = fields.iter().map(|field| {
        let error = error_at(problem, field.wire());
        let has_default = !matches!(field.access.default, DefaultValue::None);
        let is_required = !field.nullable && !has_default && !matches!(field.kind, Kind::Bool);
        FormField { field, row, is_fixed: false, is_required, error: &error, href: None, search: None }
            .told(visit.words)
    });
    told.collect()
}

/// What is wrong with a field.
pub fn error_at(problem: Option<&Problem>, wire: &str) -> String {
    let errors = problem.into_iter().flat_map(|problem| problem.errors.as_slice());
    let own = errors.filter(|error| error.pointer.trim_start_matches('/').split('/').next() == Some(wire));
    own.map(|error| error.detail.clone()).collect::<Vec<_>>().join(" ")
}

/// What is wrong with the form, with the way to each place.
pub fn errors(visit: &Visit<'_>, problem: Option<&Problem>) -> Vec<Value> {
    let Some(problem) = problem else { return Vec::new() };
    let placed = problem.errors.as_slice().iter().map(|error| {
        let wire = error.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
        // what is wrong with the whole has no place in it
        if wire.is_empty() {
            return json!({ "text": error.detail, "href": null });
        }
        json!({ "text": format!("{} {}", visit.words.field(wire), error.detail), "href": format!("#f-{wire}") })
    });
    let placed: Vec<Value> = placed.collect();
    if placed.is_empty() { vec![json!({ "text": problem.detail, "href": null })] } else { placed }
}

/// Whether a problem is about what was typed, so that the form is shown again.
pub fn is_of_form(problem: &Problem) -> bool {
    matches!(
        problem.kind,
        ProblemKind::InvalidRequest | ProblemKind::Conflict | ProblemKind::ConcurrencyConflict
    )
}

pub fn status_of(problem: Option<&Problem>) -> u16 {
    problem.map_or(200, Problem::status)
}

/// By what the server knows that a form was sent twice.
pub fn fresh_key() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(chancery_resource::random::<16>())
}

/// An id that a form brings: what is made can be linked at once, and a form that is sent twice makes one. It begins with the
/// time, as those of the server do.
pub fn fresh_id() -> String {
    let milliseconds = u64::try_from(chancery_web::now().0).unwrap_or(0);
    let random = chancery_resource::random::<10>();
    uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid().to_string()
}
