//! Before and after: of an entry of the trail member by member, with what stayed as it was, and of any change line by line where
//! it has lines.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use chancery_record::{Field, Kind};
use chancery_resource::Problem;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::reference;
use crate::shell::{
    directory::{self, Resource},
    fields::{cell, is_secret, plain},
    presentation::Names,
    visit::Visit,
};

/// The most characters of a value that stand in the table: the whole stands below it.
const MOST: usize = 600;

/// The unchanged lines that stand around what changed.
const CONTEXT: usize = 2;
/// The most lines of a difference.
const MOST_LINES: usize = 400;
/// How long a difference is looked for, before what is left counts as changed.
const LONGEST: Duration = Duration::from_millis(200);

/// A change as templates take it: label, before and after; of several lines, and of JSON, line by line.
pub fn change(label: &str, before: &str, after: &str) -> Value {
    let (was, is) = (laid_out(before), laid_out(after));
    if !was.contains('\n') && !is.contains('\n') {
        return json!({ "label": label, "before": short(before), "after": short(after), "lines": null });
    }
    json!({ "label": label, "before": "", "after": "", "lines": lines(&was, &is) })
}

/// JSON with a member a line; other texts as they are.
fn laid_out(text: &str) -> Cow<'_, str> {
    let read = if text.starts_with(['{', '[']) { serde_json::from_str::<Value>(text).ok() } else { None };
    let told = read.and_then(|read| serde_json::to_string_pretty(&read).ok());
    told.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The lines that went, those that came, and some around them.
fn lines(before: &str, after: &str) -> Vec<Value> {
    let found = TextDiff::configure().timeout(LONGEST).diff_lines(before, after);
    let mut told = Vec::new();
    for (number, group) in found.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            told.push(json!({ "kind": "more", "text": "" }));
        }
        for line in group.iter().flat_map(|op| found.iter_changes(op)) {
            let kind = match line.tag() {
                ChangeTag::Delete => "went",
                ChangeTag::Insert => "came",
                ChangeTag::Equal => "same",
            };
            told.push(json!({ "kind": kind, "text": line.value().trim_end_matches(['\r', '\n']) }));
        }
    }
    if told.len() > MOST_LINES {
        told.truncate(MOST_LINES);
        told.push(json!({ "kind": "more", "text": "" }));
    }
    told
}

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
            difference.changed.push(change(&label, &told(before, was), &told(after, is)));
        } else if !is.is_null() {
            difference.unchanged.push(json!({ "label": label, "value": short(&told(after, is)) }));
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
    let told = |ids: &BTreeSet<String>| ids.iter().map(called).collect::<Vec<_>>().join(", ");
    let label = visit.words.field(relation.map_or(name, |relation| relation.name));
    let change = change(&label, &told(&links.removed), &told(&links.added));
    Ok(Difference { changed: vec![change], unchanged: Vec::new() })
}

/// A value for people.
fn told(visit: &Visit<'_>, field: Option<&Field>, (row, value): (&Value, &Value), names: &Names) -> String {
    match (field, value) {
        (_, Value::Null) => String::new(),
        (None, value) => plain(value),
        (Some(field), _) if is_secret(field, row) => "•••••".to_owned(),
        (Some(Field { kind: Kind::Id, .. }), Value::String(id)) => {
            names.get(id).map_or_else(|| id.clone(), |(name, _)| name.clone())
        }
        (Some(field), value) => cell(field, value, visit.words).text,
    }
}

/// A text as far as it stands in the table.
fn short(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::change;

    fn told(before: &str, after: &str) -> Vec<(String, String)> {
        let change = change("x", before, after);
        let lines = change["lines"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        lines.map(|line| (text(&line["kind"]), text(&line["text"]))).collect()
    }

    #[test]
    fn lines_are_told_with_what_is_around_them() {
        let before: Vec<String> = (1..20).map(|number| number.to_string()).collect();
        let before = before.join("\n");
        let lines = told(&before, &before.replace("10\n", "ten\n"));
        let kinds: Vec<String> = lines.iter().map(|(kind, text)| format!("{kind}:{text}")).collect();
        assert_eq!(kinds, ["same:8", "same:9", "went:10", "came:ten", "same:11", "same:12"]);
    }

    #[test]
    fn json_is_told_by_member() {
        let lines = told(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#);
        assert!(
            lines.contains(&("went".into(), "  \"b\": 2".into()))
                && lines.contains(&("came".into(), "  \"b\": 3".into()))
        );
        assert!(lines.contains(&("same".into(), "  \"a\": 1,".into())));
    }

    #[test]
    fn one_line_stands_beside_the_other() {
        assert_eq!(
            change("x", "a", "b"),
            json!({ "label": "x", "before": "a", "after": "b", "lines": null })
        );
    }
}
