//! Rows by their keys, to find those of a document.

use std::collections::HashMap;

use chancery_record::{Field, fold};
use serde_json::{Map, Value};

use crate::{Kind, Row, state::is_same_value};

/// Rows by the values of their keys.
pub struct Index<'a> {
    rows: &'a [Row],
    by_key: HashMap<Vec<String>, Vec<usize>>,
}

impl<'a> Index<'a> {
    /// The index of these rows.
    pub fn of(kind: &Kind, rows: &'a [Row]) -> Self {
        let mut by_key: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            by_key.entry(identity(kind, &row.members)).or_default().push(at);
        }
        Self { rows, by_key }
    }

    /// The rows of these members: those of the same key, as far as the members contain it.
    pub fn rows(&self, kind: &Kind, members: &Map<String, Value>) -> Vec<&'a Row> {
        if kind.key.iter().all(|field| members.contains_key(field.wire())) {
            let matches = self.by_key.get(&identity(kind, members)).into_iter().flatten();
            return matches.filter_map(|at| self.rows.get(*at)).collect();
        }
        self.rows.iter().filter(|row| is_meant(kind, members, &row.members)).collect()
    }
}

/// Whether members identify a row with these others: those of its key that they have are the same.
pub fn is_meant(kind: &Kind, members: &Map<String, Value>, row: &Map<String, Value>) -> bool {
    kind.key.iter().all(|field| {
        let own = row.get(field.wire()).unwrap_or(&Value::Null);
        members.get(field.wire()).is_none_or(|given| is_same_value(field, given, own))
    })
}

/// The values of a key in one normalized form.
fn identity(kind: &Kind, members: &Map<String, Value>) -> Vec<String> {
    let value = |field: &&'static Field| match members.get(field.wire()) {
        Some(Value::String(text)) if field.access.folded => fold(text),
        Some(Value::String(text)) if kind.reference(field).is_some() => text.to_ascii_lowercase(),
        Some(Value::String(text)) if matches!(field.kind, chancery_record::Kind::Choice(_)) => {
            text.to_ascii_lowercase()
        }
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    kind.key.iter().map(value).collect()
}
