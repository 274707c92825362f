//! Controllers of a client app, who could act as it: whoever created it, or changed its secrets, key sets,
//! roles or authentication. Recorded with every such change and never removed: a controller may still know
//! the secret.

use chancery_record::Value;
use chancery_resource::{Context, Problem, Sql, StateTable, Tx};
use uuid::Uuid;

use super::{ClientApp, ClientAppId};

/// Records the caller as a controller of a new client app.
pub fn note_maker(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    note(context, tx, ClientApp::ID.get(values)?)
}

/// Records the caller as a controller of this client app.
pub fn note(context: &Context, tx: &mut Tx<'_>, ClientAppId(app): ClientAppId) -> Result<(), Problem> {
    let text = StateTable::ClientAppController
        .insert("(client_app_id, actor_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING");
    for actor in context.actor.into_iter().chain(context.acting).filter(|actor| *actor != app) {
        tx.queue(&text, vec![app.into(), actor.into()])?;
    }
    Ok(())
}

/// Whether the actor controls one of the others, one of them controls the actor, or a third controls both:
/// directly, or through client apps in between. A third that is SystemAdmin does not count: it may act as
/// any client app, and is trusted not to.
///
/// # Errors
/// Errors of the store.
pub fn are_one(tx: &mut Tx<'_>, actor: Uuid, others: &[Uuid]) -> Result<bool, Problem> {
    let others = || others.iter().copied().map(Value::Id);
    let mut sql = Sql::new("WITH RECURSIVE ");
    add_controllers(&mut sql, "mine", [Value::Id(actor)]);
    sql.add(", ");
    add_controllers(&mut sql, "theirs", others());
    sql.add(" SELECT 1 WHERE EXISTS (SELECT 1 FROM mine WHERE id IN ");
    sql.add_list(others());
    sql.add(") OR EXISTS (SELECT 1 FROM theirs WHERE id = ");
    sql.add_bound(actor);
    sql.add(
        ") OR EXISTS (SELECT 1 FROM mine m JOIN theirs t ON t.id = m.id WHERE NOT EXISTS ( \
         SELECT 1 FROM client_app_role r WHERE r.client_app_id = m.id AND r.role_type = 'SystemAdmin'))",
    );
    Ok(tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some())
}

/// Adds a recursive table of the controllers of these client apps.
fn add_controllers(sql: &mut Sql, table: &str, apps: impl IntoIterator<Item = Value>) {
    sql.add(&format!("{table} (id) AS (SELECT actor_id FROM client_app_controller WHERE client_app_id IN "));
    sql.add_list(apps);
    sql.add(&format!(
        " UNION SELECT c.actor_id FROM client_app_controller c JOIN {table} k ON c.client_app_id = k.id)"
    ));
}
