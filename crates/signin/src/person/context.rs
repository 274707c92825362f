//! The contexts of operations in a sign-in: of a person, and of a user store.

use std::sync::Arc;

use chancery_auth::load_store_context;
use chancery_flow::Identified;
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use uuid::Uuid;

use super::Admitted;

/// The context in which a person who signs in by this instance acts: that of the user store, or the person's own.
///
/// # Errors
/// Fails when the database does; not found if the store is not active.
pub fn context_of(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    admitted: &Admitted,
    identified: &Identified,
    now: Timestamp,
) -> Result<Context, Problem> {
    let Some(user) = &admitted.user else { return Ok(context_of_person(app, identified.person, now)) };
    let mut context = context_of_store(app, tx, identified.instance, now)?;
    context.actor = Some(user.user_id);
    Ok(context)
}

/// The context of a person's actions on the person's own data.
pub fn context_of_person(app: &Arc<AppContext>, person: Uuid, now: Timestamp) -> Context {
    let mut context = Context::of_server(app, Scope::Everything, now);
    context.actor = Some(person);
    context
}

/// The context of a user store itself.
///
/// # Errors
/// Fails when the database does; not found if the store is not active.
pub fn context_of_store(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    store: Uuid,
    now: Timestamp,
) -> Result<Context, Problem> {
    let store_context =
        load_store_context(tx, &store.to_string())?.filter(|store_context| store_context.is_active);
    let store_context = store_context.ok_or_else(|| Problem::not_found("user store"))?;
    Ok(Context::of_server(app, Scope::Store(store_context.scope), now))
}
