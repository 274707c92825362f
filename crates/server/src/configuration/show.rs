//! A plan for people.

use std::{
    fmt::Write as _,
    io::{Write as _, stdout},
};

use chancery_configuration::{Change, ChangeKind, Kind, Plan};
use serde_json::Value;

use crate::login::plain;

/// The most letters of a value.
const LONGEST: usize = 80;

/// Prints a plan. A closed standard output is no error.
pub fn plan(plan: &Plan, kinds: &[Kind]) {
    let mut text = String::new();
    for (kind, changes) in kinds.iter().zip(&plan.changes) {
        for change in changes {
            text.push_str(&lines(kind, change));
        }
    }
    if plan.is_empty() {
        text.push_str("Nothing to do.\n");
    } else {
        let [created, changed, deleted] = plan.counts();
        let _ = writeln!(text, "{created} to create, {changed} to change, {deleted} to delete.");
    }
    let _ = stdout().write_all(text.as_bytes());
    let _ = stdout().flush();
}

fn lines(kind: &Kind, change: &Change) -> String {
    let (sign, word) = match change.kind {
        ChangeKind::Create => ('+', "create"),
        ChangeKind::Change => ('~', "change"),
        ChangeKind::Delete => ('-', "delete"),
    };
    let mut text = format!("{sign} {word} {} {}\n", kind.name, plain(&change.name));
    for difference in &change.differences {
        let before = if difference.is_secret { "(secret)".to_owned() } else { value(&difference.before) };
        let after = value(&difference.after);
        let shown = match change.kind {
            ChangeKind::Create => after,
            _ => format!("{before} -> {after}"),
        };
        let _ = writeln!(text, "    {}: {shown}", plain(&difference.member));
    }
    text
}

fn value(value: &Value) -> String {
    let text = plain(&value.to_string());
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(" ...".chars()).collect()
}
