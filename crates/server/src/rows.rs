//! Rows that the server itself creates and deletes, by the columns that matter.

use chancery_record::Value;
use chancery_resource::{Context, Problem, Shape, delete, insert, load, new_row, purged};
use chancery_store::Tx;
use uuid::Uuid;

/// Deletes a row, if it exists.
pub fn remove(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    id: Uuid,
) -> Result<(), Problem> {
    let was = match load(context, tx, shape, None, Value::Id(id)) {
        Err(problem) if problem.status() == 404 => return Ok(()),
        loaded => loaded?,
    };
    delete(context, tx, shape, &was)?;
    purged(context, tx, shape, &[was])
}

/// Creates a row with these columns; the others get their defaults.
pub fn add(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    given: &[(&str, Value)],
) -> Result<(), Problem> {
    let values = new_row(context, shape, None, with(shape, vec![Value::Null; shape.fields.len()], given))?;
    insert(context, tx, shape, None, &values)
}

/// The row's values, with these columns replaced.
pub fn with(shape: &Shape, mut values: Vec<Value>, given: &[(&str, Value)]) -> Vec<Value> {
    for (column, value) in given {
        if let Some(slot) = shape.field_index(column).and_then(|place| values.get_mut(place)) {
            slot.clone_from(value);
        }
    }
    values
}
