//! The words by which a slice or the server itself changes a row: audited, and confined to what the actor's
//! roles cover before and afterwards.

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

/// Writes the changed columns of a row and its new token, if it is still the row that was read.
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

/// Writes the changed columns of a row, whatever its token: a change of state. Nothing is done and nothing
/// audited when nothing changed.
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

/// Writes the changed columns of a row and its new token, if it is still the row that was read, and audits it
/// as this: a step of a workflow. Of two that were taken at once from the same state, one is done and the other
/// is run again, to find the new one.
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
