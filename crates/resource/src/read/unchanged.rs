//! Rows that must be unchanged since they were read: an optimistic lock on a selection.

use std::collections::HashMap;

use chancery_record::{FieldError, FieldErrors, Value};
use chancery_store::Tx;

use crate::{Call, LIST, Problem, ProblemKind, Unchanged, read::load::key_name};

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
        let select = format!("SELECT t.{column}, t.concurrency_token FROM {} t WHERE ", shape.table);
        let mut sql = shape.begin(&call.context, &select);
        shape.add_reach(&mut sql, &call.context.scope, None);
        sql = sql.push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().flatten().cloned());
        let is_id = matches!(chunk.iter().flatten().next(), Some(Value::Id(_)));
        tx.query(&sql.text, &sql.parameters, |row| {
            let key = if is_id { row.id(0)?.to_string() } else { row.text(0)?.to_owned() };
            now.insert(key, row.text(1)?.to_owned());
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
