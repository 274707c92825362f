//! Who could act as a client app: who made it, or changed its secrets, key sets, roles or another means to
//! prove itself. Kept with every such change, for good: what somebody knew once they may know still.

use chancery_record::Value;
use chancery_resource::{Call, Problem, Shape, Sql};
use chancery_store::Tx;
use uuid::Uuid;

use super::CLIENT_APP;
use crate::place::id_in;

/// Notes who calls as one who could act as the new client app.
pub fn note_maker(call: &Call, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    id_in(&CLIENT_APP, values, "id").map_or(Ok(()), |app| note(call, tx, app))
}

/// Notes who calls as one who could act as the client app that a row belongs to.
pub fn note_change(call: &Call, tx: &mut Tx<'_>, shape: &Shape, values: &[Value]) -> Result<(), Problem> {
    id_in(shape, values, "client_app_id").map_or(Ok(()), |app| note(call, tx, app))
}

fn note(call: &Call, tx: &mut Tx<'_>, app: Uuid) -> Result<(), Problem> {
    let text =
        "INSERT INTO client_app_controller (client_app_id, actor_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    for actor in call.actor.into_iter().chain(call.acting).filter(|actor| *actor != app) {
        tx.queue(text, vec![app.into(), actor.into()])?;
    }
    Ok(())
}

/// Whether somebody could act as one of the others, or one of them as they: directly, or through client apps
/// in between.
///
/// # Errors
/// The store's.
pub fn are_one(tx: &mut Tx<'_>, actor: Uuid, others: &[Uuid]) -> Result<bool, Problem> {
    let others: Vec<Value> = others.iter().copied().map(Value::Id).collect();
    let (one, all) = (vec![Value::Id(actor)], others);
    Ok(is_controlled(tx, &one, &all)? || is_controlled(tx, &all, &one)?)
}

/// Whether one of these actors could act as one of these client apps.
fn is_controlled(tx: &mut Tx<'_>, apps: &[Value], actors: &[Value]) -> Result<bool, Problem> {
    let mut sql = Sql::new(
        "WITH RECURSIVE controller (id) AS (SELECT actor_id FROM client_app_controller WHERE client_app_id IN ",
    );
    sql.add_list(apps.iter().cloned());
    sql.add(
        " UNION SELECT c.actor_id FROM client_app_controller c JOIN controller k ON c.client_app_id = k.id) \
         SELECT 1 FROM controller WHERE id IN ",
    );
    sql.add_list(actors.iter().cloned());
    sql.add(" LIMIT 1");
    Ok(tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some())
}
