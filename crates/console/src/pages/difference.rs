//! What an entry of the trail changed, member by member: before and after, and what stayed as it was.

use std::collections::BTreeSet;

use chancery_record::{Field, Kind};
use chancery_resource::Problem;
use serde_json::{Value, json};

use super::reference::{self, Names};
use crate::{
    directory::{self, Resource},
    fields::{cell, is_secret, plain},
    visit::Visit,
};

/// The most characters of a value that stand in the table: the whole stands below it.
const MOST: usize = 600;

/// The members that changed, and those that did not, as templates take them.
#[derive(Default)]
pub struct Difference {
    /// Label, before and after.
    pub changed: Vec<Value>,
    /// Label and value.
    pub unchanged: Vec<Value>,
}

/// What lies between two contents of an item.
///
/// # Errors
/// The operations' own, by which others are named.
pub async fn between(
    visit: &Visit<'_>,
    resource: Option<&'static Resource>,
    (before, after): (&Value, &Value),
) -> Result<Difference, Problem> {
    if let (Some(resource), Some((name, links))) = (resource, links(before, after)) {
        return linked(visit, resource, name, links).await;
    }
    let fields: Vec<&'static Field> =
        resource.map_or_else(Vec::new, |resource| resource.shape.fields.iter().collect());
    let names = match resource {
        Some(resource) => {
            reference::names(visit, resource, (&fields, &[before.clone(), after.clone()])).await?
        }
        None => Names::new(),
    };
    let mut difference = Difference::default();
    for wire in members(&fields, before, after) {
        let field = fields.iter().find(|field| field.wire() == wire).copied();
        // it changes with every change
        if field.is_some_and(Field::is_token) {
            continue;
        }
        let (was, is) = (&before[wire.as_str()], &after[wire.as_str()]);
        let label = visit.words.field(&wire);
        let told = |row: &Value, value: &Value| told(visit, field, (row, value), &names);
        if was != is {
            let change = json!({ "label": label, "before": told(before, was), "after": told(after, is) });
            difference.changed.push(change);
        } else if !is.is_null() {
            difference.unchanged.push(json!({ "label": label, "value": told(after, is) }));
        }
    }
    Ok(difference)
}

/// The names of all members, in the order of the fields.
fn members(fields: &[&Field], before: &Value, after: &Value) -> Vec<String> {
    let all = [before, after].into_iter().filter_map(Value::as_object).flat_map(|one| one.keys());
    let all: BTreeSet<&String> = all.collect();
    let known = fields.iter().map(|field| field.wire().to_owned()).filter(|wire| all.contains(wire));
    let known: Vec<String> = known.collect();
    let others: Vec<String> = all.into_iter().filter(|wire| !known.contains(wire)).cloned().collect();
    known.into_iter().chain(others).collect()
}

/// Ids that an entry tells of one relation: those that were added, and those that were removed.
struct Links {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// The relation that an entry is about, where it is about no more than that.
fn links<'a>(before: &Value, after: &'a Value) -> Option<(&'a str, Links)> {
    let mut members = after.as_object().filter(|_| before.is_null())?.iter();
    let (name, told) = members.next().filter(|_| members.next().is_none())?;
    let ids =
        |side: &str| -> Option<BTreeSet<String>> { Some(told[side].as_array()?.iter().map(plain).collect()) };
    Some((name, Links { added: ids("added")?, removed: ids("removed")? }))
}

async fn linked(
    visit: &Visit<'_>,
    resource: &'static Resource,
    name: &str,
    links: Links,
) -> Result<Difference, Problem> {
    let mut names = Names::new();
    let relation = resource.shape.relations.iter().find(|relation| relation.audited_as == name);
    if let Some(other) = relation.and_then(|relation| directory::of_shape(relation.target)) {
        let all = links.added.union(&links.removed).take(MOST).cloned().collect();
        reference::find(visit, other, &all, &mut names).await?;
    }
    let called = |id: &String| names.get(id).map_or_else(|| id.clone(), |(name, _)| name.clone());
    let told = |ids: &BTreeSet<String>| short(&ids.iter().map(called).collect::<Vec<_>>().join(", "));
    let label = visit.words.field(relation.map_or(name, |relation| relation.name));
    let change = json!({ "label": label, "before": told(&links.removed), "after": told(&links.added) });
    Ok(Difference { changed: vec![change], unchanged: Vec::new() })
}

/// A value for people.
fn told(visit: &Visit<'_>, field: Option<&Field>, (row, value): (&Value, &Value), names: &Names) -> String {
    let text = match (field, value) {
        (_, Value::Null) => String::new(),
        (None, value) => plain(value),
        (Some(field), _) if is_secret(field, row) => "•••••".to_owned(),
        (Some(Field { kind: Kind::Id, .. }), Value::String(id)) => {
            names.get(id).map_or_else(|| id.clone(), |(name, _)| name.clone())
        }
        (Some(field), value) => cell(field, value, visit.words).text,
    };
    short(&text)
}

/// A text as far as it stands in the table.
pub fn short(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
