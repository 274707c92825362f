//! The rows of a server, as its interface shows them.

use chancery_record::{Field, Kind as Shown, TextRule, fold, parse_timestamp};
use serde_json::{Map, Value};

use crate::Kind;

/// A row, as the interface shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its key in the interface: an id, or a location.
    pub key: String,
    /// Its concurrency token.
    pub token: String,
    /// Its members.
    pub members: Map<String, Value>,
}

/// The rows of a server, of each kind.
pub struct State<'a> {
    /// The kinds.
    pub kinds: &'a [Kind],
    rows: Vec<Option<Vec<Row>>>,
}

impl<'a> State<'a> {
    /// A state without known rows.
    pub fn new(kinds: &'a [Kind]) -> Self {
        Self { kinds, rows: kinds.iter().map(|_| None).collect() }
    }

    /// Sets the list that the interface answered with for the kind at this index.
    ///
    /// # Errors
    /// It is no list of rows.
    pub fn set(&mut self, index: usize, list: Value) -> Result<(), String> {
        let Some(kind) = self.kinds.get(index) else { return Ok(()) };
        let rows = read_rows(kind, list)?;
        if let Some(slot) = self.rows.get_mut(index) {
            *slot = Some(rows);
        }
        Ok(())
    }

    /// The rows of a kind; empty where they are not known.
    pub fn rows(&self, index: usize) -> &[Row] {
        self.rows.get(index).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Whether the rows of a kind are known: a caller without the right to read them does not know them.
    pub fn is_known(&self, index: usize) -> bool {
        self.rows.get(index).is_some_and(Option::is_some)
    }
}

/// Reads the rows of a list of the interface.
pub fn read_rows(kind: &Kind, list: Value) -> Result<Vec<Row>, String> {
    let wrong = || format!("the list of {} is not what the interface answers", kind.name);
    let id = kind.id().ok_or_else(wrong)?.wire();
    let Value::Array(items) = list else { return Err(wrong()) };
    let row = |item| {
        let Value::Object(members) = item else { return Err(wrong()) };
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        let (key, token) = (text(id).ok_or_else(wrong)?, text("concurrencyToken").ok_or_else(wrong)?);
        Ok(Row { key, token, members })
    };
    items.into_iter().map(row).collect()
}

/// Whether two values of a member are the same to the interface.
pub fn is_same_value(field: &Field, one: &Value, other: &Value) -> bool {
    let (Value::String(one), Value::String(other)) = (one, other) else { return one == other };
    match field.kind {
        Shown::Id | Shown::Choice(_) => one.eq_ignore_ascii_case(other),
        Shown::Time => {
            one == other || parse_timestamp(one).is_some_and(|one| parse_timestamp(other) == Some(one))
        }
        // the order of members in an object is irrelevant
        Shown::Text(TextRule { takes_object: true, .. }) => one == other || is_same_object(one, other),
        _ if field.access.folded => fold(one) == fold(other),
        _ => one == other,
    }
}

fn is_same_object(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    read(one).is_some_and(|one| read(other) == Some(one))
}
