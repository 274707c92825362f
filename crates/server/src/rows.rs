//! Rows that the server itself creates and deletes, by the columns that matter.

use chancery_record::{Field, Value};
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
    given: &[(&Field, Value)],
) -> Result<(), Problem> {
    let values = new_row(context, shape, None, with(vec![Value::Null; shape.fields.len()], given))?;
    insert(context, tx, shape, None, &values)
}

/// The row's values, with those of these fields replaced.
pub fn with(mut values: Vec<Value>, given: &[(&Field, Value)]) -> Vec<Value> {
    for (field, value) in given {
        field.set(&mut values, value.clone());
    }
    values
}
