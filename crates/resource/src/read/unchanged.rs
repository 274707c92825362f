//! Rows that must be unchanged since they were read: an optimistic lock on a selection.

use std::collections::HashMap;

use chancery_record::{Cell, FieldError, FieldErrors, Value};
use chancery_store::{FromCell, Tx, selectable};
use uuid::Uuid;

use crate::{Call, LIST, Problem, ProblemKind, Unchanged, read::load::key_name};

/// The key of a row as in a path.
struct Key(String);

impl<'r> FromCell<'r> for Key {
    const EXPECTED: &'static str = "a key";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        Uuid::from_cell(cell).map(|id| id.to_string()).or_else(|| String::from_cell(cell)).map(Self)
    }
}

selectable! {
    /// A row as it is now.
    struct Version(key) {
        key: Key = "t.{key}",
        token: String = "t.concurrency_token",
    }
}

/// Refuses an operation if rows were changed since they were read, and reports each of them.
///
/// # Errors
/// A conflict that points at the rows by their indexes.
pub fn check_unchanged(call: &Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let Some(Unchanged { shape, tokens }) = &call.request.unchanged else { return Ok(()) };
    let keys: Vec<Option<Value>> = tokens.iter().map(|(key, _)| shape.read_key(key).ok()).collect();
    let mut now = HashMap::with_capacity(tokens.len());
    let column = shape.key().map_or("id", |key| key.column);
    for chunk in keys.chunks(LIST) {
        let select = format!("SELECT {} FROM {} t WHERE ", Version::columns(column), shape.table);
        let mut sql = shape.begin(&call.context, &select);
        shape.add_reach(&mut sql, &call.context.scope, None);
        sql = sql.push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().flatten().cloned());
        tx.query(&sql.text, &sql.parameters, |row| {
            let Version { key: Key(key), token } = Version::read(row)?;
            now.insert(key, token);
            Ok(())
        })?;
    }
    let mut errors = FieldErrors::default();
    for (at, ((_, was), key)) in tokens.iter().zip(&keys).enumerate() {
        let detail = match key.as_ref().and_then(|key| now.get(&key_name(key))) {
            Some(token) if token == was => continue,
            Some(_) => "was changed meanwhile",
            None => "is not there any more",
        };
        errors.note(|| FieldError::new(format!("/{at}"), detail));
    }
    if errors.all() == 0 {
        return Ok(());
    }
    let detail =
        format!("{} of the rows are not as they were seen, so nothing was done. See errors.", errors.all());
    Err(Problem { errors, ..Problem::new(ProblemKind::ConcurrencyConflict, detail) })
}
