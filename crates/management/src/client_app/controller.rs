//! Who could act as a client app: who made it, or changed its secrets, key sets, roles or another means to
//! prove itself. Kept with every such change, for good: what somebody knew once they may know still.

use chancery_record::Value;
use chancery_resource::{Context, Problem, Sql, StateTable, Tx};
use uuid::Uuid;

use super::{ClientApp, ClientAppId};

/// Notes who calls as one who could act as the new client app.
pub fn note_maker(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    note(context, tx, ClientApp::ID.get(values)?)
}

/// Notes who calls as one who could act as this client app, which a row that changes belongs to.
pub fn note(context: &Context, tx: &mut Tx<'_>, ClientAppId(app): ClientAppId) -> Result<(), Problem> {
    let text = StateTable::ClientAppController
        .insert("(client_app_id, actor_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING");
    for actor in context.actor.into_iter().chain(context.acting).filter(|actor| *actor != app) {
        tx.queue(&text, vec![app.into(), actor.into()])?;
    }
    Ok(())
}

/// Whether somebody could act as one of the others, or one of them as they, or somebody else as both:
/// directly, or through client apps in between. Who is SystemAdmin may act as all and is trusted not to:
/// where it alone made both, they are two, while it is SystemAdmin.
///
/// # Errors
/// The store's.
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

/// Adds a table of those who could act as one of these client apps.
fn add_controllers(sql: &mut Sql, table: &str, apps: impl IntoIterator<Item = Value>) {
    sql.add(&format!("{table} (id) AS (SELECT actor_id FROM client_app_controller WHERE client_app_id IN "));
    sql.add_list(apps);
    sql.add(&format!(
        " UNION SELECT c.actor_id FROM client_app_controller c JOIN {table} k ON c.client_app_id = k.id)"
    ));
}
