//! Differences: of an audit trail entry by member, with the unchanged ones, and of multi-line values by line.

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

/// Maximum length of a value in the table, in characters: the full contents follow the table.
const MAX_VALUE: usize = 600;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 2;
/// Maximum number of lines of a difference.
const MAX_LINES: usize = 400;
/// How long lines are compared; after that, the rest counts as changed.
const LONGEST: Duration = Duration::from_millis(200);

/// The template context of a change: label, before and after; by line for JSON and multi-line values.
pub fn change(label: &str, before: &str, after: &str) -> Value {
    let (was, is) = (pretty(before), pretty(after));
    if !was.contains('\n') && !is.contains('\n') {
        return json!({ "label": label, "before": short(before), "after": short(after), "lines": null });
    }
    json!({ "label": label, "before": "", "after": "", "lines": lines(&was, &is) })
}

/// JSON with one member a line; other texts unchanged.
fn pretty(text: &str) -> Cow<'_, str> {
    let read = if text.starts_with(['{', '[']) { serde_json::from_str::<Value>(text).ok() } else { None };
    let formatted = read.and_then(|read| serde_json::to_string_pretty(&read).ok());
    formatted.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The removed lines, the added ones, and the lines around them.
fn lines(before: &str, after: &str) -> Vec<Value> {
    let diff = TextDiff::configure().timeout(LONGEST).diff_lines(before, after);
    let mut rendered = Vec::new();
    for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            rendered.push(json!({ "kind": "more", "text": "" }));
        }
        for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let kind = match line.tag() {
                ChangeTag::Delete => "went",
                ChangeTag::Insert => "came",
                ChangeTag::Equal => "same",
            };
            rendered.push(json!({ "kind": kind, "text": line.value().trim_end_matches(['\r', '\n']) }));
        }
    }
    if rendered.len() > MAX_LINES {
        rendered.truncate(MAX_LINES);
        rendered.push(json!({ "kind": "more", "text": "" }));
    }
    rendered
}

/// The changed and unchanged members, in the form that templates expect.
#[derive(Default)]
pub struct Difference {
    /// Label, before and after.
    pub changed: Vec<Value>,
    /// Label and value.
    pub unchanged: Vec<Value>,
}

/// The difference of two contents of an item.
pub async fn between(
    visit: &Visit<'_>,
    resource: Option<&'static Resource>,
    before: &Value,
    after: &Value,
) -> Result<Difference, Problem> {
    if let (Some(resource), Some((name, links))) = (resource, links(before, after)) {
        return relation_difference(visit, resource, name, links).await;
    }
    let fields: Vec<&'static Field> =
        resource.map_or_else(Vec::new, |resource| resource.shape.fields.iter().collect());
    let names = match resource {
        Some(resource) => {
            reference::names(visit, resource, &fields, &[before.clone(), after.clone()]).await?
        }
        None => Names::new(),
    };
    let mut difference = Difference::default();
    for wire in members(&fields, before, after) {
        let field = fields.iter().find(|field| field.wire() == wire).copied();
        // the token changes with every change
        if field.is_some_and(Field::is_token) {
            continue;
        }
        let (was, is) = (&before[wire.as_str()], &after[wire.as_str()]);
        let label = visit.words.field(&wire);
        let display = |row: &Value, value: &Value| display_value(visit, field, row, value, &names);
        if was != is {
            difference.changed.push(change(&label, &display(before, was), &display(after, is)));
        } else if !is.is_null() {
            difference.unchanged.push(json!({ "label": label, "value": short(&display(after, is)) }));
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

/// The ids that an entry adds to a relation or removes from it.
struct Links {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// The relation of an entry that changes nothing else.
fn links<'a>(before: &Value, after: &'a Value) -> Option<(&'a str, Links)> {
    let mut members = after.as_object().filter(|_| before.is_null())?.iter();
    let (name, ids_by_side) = members.next().filter(|_| members.next().is_none())?;
    let ids = |side: &str| -> Option<BTreeSet<String>> {
        Some(ids_by_side[side].as_array()?.iter().map(plain).collect())
    };
    Some((name, Links { added: ids("added")?, removed: ids("removed")? }))
}

async fn relation_difference(
    visit: &Visit<'_>,
    resource: &'static Resource,
    name: &str,
    links: Links,
) -> Result<Difference, Problem> {
    let mut names = Names::new();
    let relation = resource.shape.relations.iter().find(|relation| relation.audited_as == name);
    if let Some(other) = relation.and_then(|relation| directory::of_shape(relation.target)) {
        let all = links.added.union(&links.removed).take(MAX_VALUE).cloned().collect();
        reference::find(visit, other, &all, &mut names).await?;
    }
    let called = |id: &String| names.get(id).map_or_else(|| id.clone(), |(name, _)| name.clone());
    let title_list = |ids: &BTreeSet<String>| ids.iter().map(called).collect::<Vec<_>>().join(", ");
    let label = visit.words.field(relation.map_or(name, |relation| relation.name));
    let change = change(&label, &title_list(&links.removed), &title_list(&links.added));
    Ok(Difference { changed: vec![change], unchanged: Vec::new() })
}

/// A value for display.
fn display_value(
    visit: &Visit<'_>,
    field: Option<&Field>,
    row: &Value,
    value: &Value,
    names: &Names,
) -> String {
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

/// A text, truncated for the table.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{} …", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::change;

    fn diff_lines(before: &str, after: &str) -> Vec<(String, String)> {
        let change = change("x", before, after);
        let lines = change["lines"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        lines.map(|line| (text(&line["kind"]), text(&line["text"]))).collect()
    }

    #[test]
    fn changed_lines_are_shown_with_context() {
        let before: Vec<String> = (1..20).map(|number| number.to_string()).collect();
        let before = before.join("\n");
        let lines = diff_lines(&before, &before.replace("10\n", "ten\n"));
        let kinds: Vec<String> = lines.iter().map(|(kind, text)| format!("{kind}:{text}")).collect();
        assert_eq!(kinds, ["same:8", "same:9", "went:10", "came:ten", "same:11", "same:12"]);
    }

    #[test]
    fn json_is_compared_by_member() {
        let lines = diff_lines(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#);
        assert!(
            lines.contains(&("went".into(), "  \"b\": 2".into()))
                && lines.contains(&("came".into(), "  \"b\": 3".into()))
        );
        assert!(lines.contains(&("same".into(), "  \"a\": 1,".into())));
    }

    #[test]
    fn single_lines_are_compared_as_a_whole() {
        assert_eq!(
            change("x", "a", "b"),
            json!({ "label": "x", "before": "a", "after": "b", "lines": null })
        );
    }
}
