//! Controllers of a client app, who could act as it: actors who created it, or changed its secrets, key sets,
//! roles or authentication. Recorded with every such change and never removed: a controller may still know
//! the secret. `chancery_application` uses them to check the independence of actors.

use chancery_record::Value;
use chancery_resource::{Context, Problem, StateTable, Tx};

use super::{ClientApp, ClientAppId};

/// Records the caller as a controller of a new client app.
pub fn note_creator(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    note(context, tx, ClientApp::ID.get(values)?)
}

/// Records the caller as a controller of this client app.
pub fn note(context: &Context, tx: &mut Tx<'_>, ClientAppId(app): ClientAppId) -> Result<(), Problem> {
    let text = StateTable::ClientAppController.insert(
        "(client_app_id, actor_id, noted_on) VALUES (?1, ?2, ?3) \
         ON CONFLICT (client_app_id, actor_id) DO UPDATE SET noted_on = excluded.noted_on",
    );
    for actor in context.actor.into_iter().chain(context.acting).filter(|actor| *actor != app) {
        tx.queue(&text, vec![app.into(), actor.into(), context.now.0.into()])?;
    }
    Ok(())
}
