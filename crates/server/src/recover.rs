//! `chancery recover`: the way back in, for when nobody can get a token as `SystemAdmin` any more.

use chancery_management::client_app::{
    CLIENT_APP, configuration::CLIENT_APP_AUTHENTICATION_CONFIGURATION as CONFIGURATION,
    role::CLIENT_APP_ROLE, secret::CLIENT_APP_SECRET,
};
use chancery_record::Value;
use chancery_resource::{Call, Problem, Shape, Stored, delete, gone, insert, load, new_row, update};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    Welcome,
    first_start::{ROOT, find_root, new_root_secret},
};

/// Makes the root client able to get tokens as SystemAdmin, whatever was done to it, and gives it a new
/// secret. Each change is in the audit trail.
pub fn recover(call: &mut Call, tx: &mut Tx<'_>) -> Result<Welcome, Problem> {
    let root = match find_root(tx)? {
        Some(root) => root,
        None => make_root(call, tx)?,
    };
    open_root(call, tx, root)?;
    if let Some(was) = found(load(call, tx, &CONFIGURATION, None, Value::Id(root)))? {
        delete(call, tx, &CONFIGURATION, &was)?;
        gone(call, tx, &CONFIGURATION, &[was])?;
    }
    let text = "SELECT 1 FROM client_app_role WHERE client_app_id = ?1 AND role_type = 'SystemAdmin'";
    if tx.one(text, &[Value::Id(root)], |_| Ok(()))?.is_none() {
        let given = [("client_app_id", root.into()), ("role_type", "SystemAdmin".into())];
        add(call, tx, &CLIENT_APP_ROLE, &given)?;
    }
    let secret = new_root_secret();
    let digest = call.desk.master.secret_digest(secret.expose());
    let given =
        [("client_app_id", root.into()), ("name", "made by recover".into()), ("digest", digest.into())];
    add(call, tx, &CLIENT_APP_SECRET, &given)?;
    tx.advance_epoch()?;
    Ok(Welcome { root_client_id: Some(root), new_secret: Some(secret) })
}

fn found(loaded: Result<Stored, Problem>) -> Result<Option<Stored>, Problem> {
    match loaded {
        Err(problem) if problem.status() == 404 => Ok(None),
        loaded => loaded.map(Some),
    }
}

/// A root client app where there is none: in the oldest subscription.
fn make_root(call: &Call, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let subscription = tx.one("SELECT id FROM subscription ORDER BY rid LIMIT 1", &[], |row| row.id(0))?;
    let subscription = subscription.ok_or_else(|| Problem::not_found("subscription"))?;
    add(call, tx, &CLIENT_APP, &[("name", ROOT.into()), ("subscription_id", subscription.into())])?;
    find_root(tx)?.ok_or_else(|| Problem::not_found("client app"))
}

/// Lets the root client app get tokens by a secret.
fn open_root(call: &Call, tx: &mut Tx<'_>, root: Uuid) -> Result<(), Problem> {
    let was = load(call, tx, &CLIENT_APP, None, Value::Id(root))?;
    let needed = [
        ("enabled", Value::Bool(true)),
        ("allow_client_credential_login", Value::Bool(true)),
        ("is_public", Value::Bool(false)),
        ("security_profile", "None".into()),
    ];
    let values = with(&CLIENT_APP, was.values.clone(), &needed);
    if values != was.values {
        let values = with(&CLIENT_APP, values, &[("concurrency_token", call.new_token())]);
        update(call, tx, &CLIENT_APP, &was, &values)?;
    }
    Ok(())
}

fn add(call: &Call, tx: &mut Tx<'_>, shape: &Shape, given: &[(&str, Value)]) -> Result<(), Problem> {
    let values = new_row(call, shape, None, with(shape, vec![Value::Null; shape.fields.len()], given))?;
    insert(call, tx, shape, None, &values)
}

fn with(shape: &Shape, mut values: Vec<Value>, given: &[(&str, Value)]) -> Vec<Value> {
    for (column, value) in given {
        if let Some(slot) = shape.place(column).and_then(|place| values.get_mut(place)) {
            slot.clone_from(value);
        }
    }
    values
}
