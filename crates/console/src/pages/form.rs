//! The form of a row: fields in sections, submitted values, and validation errors.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Column, DefaultValue, Field, Kind};
use chancery_resource::{Action, Body, Custom, Op, Problem, ProblemKind};
use serde_json::{Map, Value, json};

use crate::shell::{
    directory::{Resource, encoded},
    fields::{Cell, FormField, is_write_only, plain},
    presentation::Names,
    role_protection,
    visit::Visit,
};

/// Adds the names of referenced rows to the sections of a form.
pub fn named(mut sections: Vec<Value>, names: &Names) -> Vec<Value> {
    let fields =
        sections.iter_mut().filter_map(|section| section.get_mut("fields")?.as_array_mut()).flatten();
    for field in fields.filter_map(Value::as_object_mut) {
        let named_row = field.get("value").and_then(Value::as_str).and_then(|id| names.get(id));
        let Some((name, href)) = named_row.filter(|(name, _)| !name.is_empty()) else { continue };
        field.insert("shown".to_owned(), json!(name));
        if field.get("control") == Some(&json!("shown")) {
            field
                .insert("cell".to_owned(), json!(Cell { href: href.clone(), ..Cell::of("reference", name) }));
        }
    }
    sections
}

/// The hidden fields of a form: the original values of its fields, and the concurrency token.
pub fn hidden<'a>(fields: impl Iterator<Item = &'a Field>, row: &Value) -> Vec<Value> {
    // secrets and files are not included: if the form leaves them empty, they do not change
    let base: Map<String, Value> = fields
        .filter(|field| !is_write_only(field, row))
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
pub fn creation_fields(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    // a custom creation has a body of its own
    if let Some(Op { action: Action::Custom(Custom { body: Body::Form(form), .. }), .. }) = resource.create {
        return form.fields.iter().collect::<Vec<_>>().into_iter();
    }
    // the server generates ids, except those of other rows; the scope is part of the URL
    let is_generated = |field: &Field| {
        field.access.key && matches!(field.kind, Kind::Id) && resource.referenced(field).is_none()
    };
    let is_placed = |field: &Field| field.access.column == Column::Scope;
    let is_open = move |field: &&Field| {
        field.access.create && !field.is_token() && !is_generated(field) && !is_placed(field)
    };
    resource.shape.fields.iter().filter(is_open).collect::<Vec<_>>().into_iter()
}

/// The fields that the form of an existing row changes.
pub fn editable_fields(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    let is_open = |field: &&Field| field.access.patch && !field.is_token() && !field.access.key;
    resource.shape.fields.iter().filter(is_open)
}

/// The mode of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FormMode {
    /// A new row.
    Created,
    /// A change.
    Changed,
    /// A change of unprotected fields only.
    Open,
    /// Read-only.
    Shown,
}

/// The fields of an item page.
pub fn shown(resource: &Resource) -> Vec<&'static Field> {
    resource.shown().filter(|field| !field.is_token()).collect()
}

/// The sections of a read-only page.
pub fn sections_shown(visit: &Visit<'_>, resource: &'static Resource, row: &Value) -> Vec<Value> {
    sections(visit, resource, &shown(resource), row, None, FormMode::Shown)
}

/// The sections of a form: texts, switches, and fields that the server sets.
pub fn sections(
    visit: &Visit<'_>,
    resource: &'static Resource,
    fields: &[&Field],
    values: &Value,
    problem: Option<&Problem>,
    used: FormMode,
) -> Vec<Value> {
    let is_new = used == FormMode::Created;
    let is_change = matches!(used, FormMode::Changed | FormMode::Open);
    let can_change = is_new || (is_change && visit.may(resource.patch).is_some());
    let is_open = |field: &Field| {
        let is_free = used != FormMode::Open || role_protection::is_open(resource.shape, field);
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
            .render(visit.words)
    };
    let of = |condition: &dyn Fn(&Field) -> bool| -> Vec<Value> {
        fields
            .iter()
            .filter(|field| field.access.column != Column::Owner || is_new)
            .filter(|field| condition(field))
            .map(|field| shown(field))
            .collect()
    };
    let is_switch = |field: &Field| matches!(field.kind, Kind::Bool);
    let words = visit.words;
    let layout = resource.presentation.sections;
    let is_in_layout = |field: &Field| layout.iter().any(|(_, wires)| wires.contains(&field.wire()));
    let mut all: Vec<(&str, Vec<Value>, bool)> = Vec::new();
    for (title, wires) in layout {
        let own = wires
            .iter()
            .filter_map(|wire| fields.iter().find(|field| field.wire() == *wire && is_open(field)));
        all.push((words.page(title), own.map(|field| shown(field)).collect(), false));
    }
    let rest = if layout.is_empty() { "section_general" } else { "section_more" };
    all.push((
        words.page(rest),
        of(&|field| is_open(field) && !is_switch(field) && !is_in_layout(field)),
        false,
    ));
    all.push(("", of(&|field| is_open(field) && is_switch(field) && !is_in_layout(field)), false));
    all.push((words.page("section_server"), of(&|field| !is_open(field)), true));
    let some = all.into_iter().filter(|(_, fields, _)| !fields.is_empty());
    let sections = some.map(|(title, fields, is_readonly)| json!({ "title": title, "about": "", "fields": fields, "is_readonly": is_readonly }));
    if is_new { folded(visit, sections.collect()) } else { sections.collect() }
}

/// Maximum number of fields of a form without collapsed sections.
const MAX_OPEN: usize = 6;

/// Collapses optional sections of a form for a new row after the first one, unless they contain an error.
fn folded(visit: &Visit<'_>, mut sections: Vec<Value>) -> Vec<Value> {
    let count = |section: &Value| section.get("fields").and_then(Value::as_array).map_or(0, Vec::len);
    if sections.iter().map(count).sum::<usize>() <= MAX_OPEN {
        return sections;
    }
    let is = |section: &Value, predicate: fn(&Value) -> bool| {
        section.get("fields").and_then(Value::as_array).is_some_and(|fields| fields.iter().any(predicate))
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

/// The fields of an operation's body, with submitted or stored values and validation errors.
pub fn plain_fields(
    visit: &Visit<'_>,
    fields: &[&Field],
    row: &Value,
    problem: Option<&Problem>,
) -> Vec<Value> {
    let rendered = fields.iter().map(|field| {
        let error = error_at(problem, field.wire());
        let has_default = !matches!(field.access.default, DefaultValue::None);
        let is_required = !field.nullable && !has_default && !matches!(field.kind, Kind::Bool);
        FormField { field, row, is_fixed: false, is_required, error: &error, href: None, search: None }
            .render(visit.words)
    });
    rendered.collect()
}

/// The validation error of a field.
pub fn error_at(problem: Option<&Problem>, wire: &str) -> String {
    let errors = problem.into_iter().flat_map(|problem| problem.errors.as_slice());
    let own = errors.filter(|error| error.pointer.trim_start_matches('/').split('/').next() == Some(wire));
    own.map(|error| error.detail.clone()).collect::<Vec<_>>().join(" ")
}

/// The validation errors of a form, with links to the fields.
pub fn errors(visit: &Visit<'_>, problem: Option<&Problem>) -> Vec<Value> {
    let Some(problem) = problem else { return Vec::new() };
    let placed = problem.errors.as_slice().iter().map(|error| {
        let wire = error.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
        // an error of the whole body belongs to no field
        if wire.is_empty() {
            return json!({ "text": error.detail, "href": null });
        }
        json!({ "text": format!("{} {}", visit.words.field(wire), error.detail), "href": format!("#f-{wire}") })
    });
    let placed: Vec<Value> = placed.collect();
    if placed.is_empty() { vec![json!({ "text": problem.detail, "href": null })] } else { placed }
}

/// Whether a problem is about the submitted values, so that the form is shown again.
pub fn is_of_form(problem: &Problem) -> bool {
    matches!(
        problem.kind,
        ProblemKind::InvalidRequest | ProblemKind::Conflict | ProblemKind::ConcurrencyConflict
    )
}

pub fn status_of(problem: Option<&Problem>) -> u16 {
    problem.map_or(200, Problem::status)
}

/// An idempotency key, by which the server recognizes a repeated submission.
pub fn fresh_key() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(chancery_resource::random::<16>())
}

/// An id that a form provides: the new row can be linked in the same transaction, and a repeated submission creates no
/// second row. It starts with the time, as ids of the server do.
pub fn fresh_id() -> String {
    let milliseconds = u64::try_from(chancery_web::now().0).unwrap_or(0);
    let random = chancery_resource::random::<10>();
    uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid().to_string()
}
