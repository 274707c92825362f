//! The audit entry of an action of a person on the person's own data.

use chancery_application::APPLICATION_USER;
use chancery_resource::{Context, EventName, Problem, Tx, audit_state, load};
use uuid::Uuid;

use super::context::context_of_person;

/// Writes an audit entry for an action of a person on the person's own sign-in data.
pub fn audit_person(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    event: EventName,
) -> Result<(), Problem> {
    let context = context_of_person(&context.app, person, context.now);
    let row = load(&context, tx, &APPLICATION_USER, None, person.into())?;
    audit_state(&context, tx, &APPLICATION_USER, &row, &row.values, event)
}
