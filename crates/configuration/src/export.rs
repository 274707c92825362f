//! Rows as documents.

use serde_json::Value;

use crate::{
    Document, Problem, State,
    left_out::{NOT_EXPORTED, uploaded},
    names::Names,
    resolve::is_secret,
};

/// The documents of all known rows, in the order of their kinds and names. They hold no secret and nothing that the
/// server generates.
///
/// # Errors
/// Names that more than one row of a kind has: documents would be ambiguous.
pub fn export(state: &State<'_>) -> Result<Vec<Document>, Vec<Problem>> {
    let names = Names::of(state);
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for (index, kind) in state.kinds.iter().enumerate() {
        if NOT_EXPORTED.contains(&kind.name) {
            continue;
        }
        for name in names.ambiguous(index) {
            let detail =
                format!("more than one {} is called {name:?}: give them names of their own", kind.name);
            problems.push(Problem::general(detail));
        }
        let mut rows: Vec<_> =
            state.rows(index).iter().map(|row| (names.name(kind.name, &row.key), row)).collect();
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, row) in rows {
            let mut members = serde_json::Map::new();
            for field in kind.stored_fields().filter(|field| !is_secret(field, &row.members)) {
                let value = row.members.get(field.wire()).unwrap_or(&Value::Null);
                let value = match (kind.reference(field), value) {
                    (_, Value::String(_)) if uploaded(kind.name, field.wire()).is_some() => {
                        Value::from(uploaded(kind.name, field.wire()))
                    }
                    (Some(reference), Value::String(key)) => {
                        Value::String(names.name(reference.target.name, key).unwrap_or_else(|| key.clone()))
                    }
                    (None, Value::String(location)) if field.access.key && kind.shape.is_located() => {
                        Value::String(names.location(location))
                    }
                    (_, value) => value.clone(),
                };
                members.insert(field.wire().to_owned(), value);
            }
            for set in &kind.sets {
                let own = keys_in(row.members.get(set.relation.name));
                let mut linked: Vec<String> = own
                    .into_iter()
                    .map(|key| names.name(set.relation.target.name, &key).unwrap_or(key))
                    .collect();
                linked.sort_unstable();
                members.insert(set.relation.name.to_owned(), Value::from(linked));
            }
            documents.push(Document { kind: kind.name.to_owned(), members });
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// The keys of the rows that a set shows.
pub fn keys_in(set: Option<&Value>) -> Vec<String> {
    let items = set.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get("id").and_then(Value::as_str).map(str::to_owned)).collect()
}
