//! The functions by which a slice or the server itself changes a row: audited, and confined to the scope of
//! the actor's roles before and afterwards.

use chancery_record::Value;
use chancery_store::Tx;

use crate::{
    AuditAction, Context, OwnerRow, Problem, Shape,
    read::emit::Stored,
    write::{
        change,
        integrity::{Written, confine},
    },
};

/// Writes a new row.
///
/// # Errors
/// The store's; a row that is not within what the actor's roles cover.
pub fn insert(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    change::insert(context, tx, shape, owner, values)?;
    confine_one(context, tx, shape, true, values)
}

/// Writes the changed columns of a row and its new token, if the row is still as it was read.
///
/// # Errors
/// The store's; a row that would be out of what the actor's roles cover.
pub fn update(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
) -> Result<(), Problem> {
    change::update(context, tx, shape, was, values)?;
    confine_one(context, tx, shape, false, values)
}

/// Writes the changed columns of a row, whatever its token: a change of state. Nothing is written or audited
/// when nothing changed.
///
/// # Errors
/// The store's; a row that would be out of what the actor's roles cover.
pub fn update_unversioned(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
    action: AuditAction,
) -> Result<(), Problem> {
    change::update_unversioned(context, tx, shape, was, values, action)?;
    confine_one(context, tx, shape, false, values)
}

/// Writes the changed columns of a row and its new token, if the row is still as it was read, and audits the
/// change as given: a step of a workflow. Of two steps taken at once from the same state, one is done; the
/// other runs again and finds the new state.
///
/// # Errors
/// The store's; a row that would be out of what the actor's roles cover.
pub fn advance(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: Vec<Value>,
    action: (&'static str, &'static str),
) -> Result<(), Problem> {
    change::advance(context, tx, shape, was, values, action)?;
    confine_one(context, tx, shape, false, &was.values)
}

fn confine_one(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    is_new: bool,
    values: &[Value],
) -> Result<(), Problem> {
    confine(context, tx, shape, std::iter::once(Written { base: String::new(), is_new, values }))
}
