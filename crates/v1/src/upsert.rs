//! createorupdate: a row with the key in the body is replaced, and created if there is none.

use chancery_record::Form;
use chancery_resource::{Answer, Call, Problem, Rows, Tx, Writing, write_rows};

/// Creates or replaces one row.
///
/// # Errors
/// An invalid body.
pub fn upsert(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    write_rows(call, tx, Writing::one(Rows::Upsert, Form::Put))
}

/// Creates or replaces many rows, all or none.
///
/// # Errors
/// Invalid elements.
pub fn upsert_many(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    write_rows(call, tx, Writing::many(Rows::Upsert, Form::Put))
}
