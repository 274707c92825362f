//! `chancery recover`: restores access when no administrator can get a token as `SystemAdmin` any more.

use chancery_management::client_app::{
    CLIENT_APP, ClientApp, SecurityProfile,
    configuration::CLIENT_APP_AUTHENTICATION_CONFIGURATION as CONFIGURATION,
    role::{CLIENT_APP_ROLE, ClientAppRole},
    secret::{CLIENT_APP_SECRET, ClientAppSecret},
};
use chancery_record::Value;
use chancery_resource::{Context, Problem, ROOT, RoleType, check_postconditions, load, update};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    RootAccess,
    first_start::{find_root, new_root_secret, root_client_of},
    rows::{add, remove, with},
};

/// Gives the root client app a new secret, and removes settings that prevent it from getting tokens by it, including its
/// other secrets. Where no client app named root is `SystemAdmin` one is created: a name grants no role. Each
/// change is audited.
pub fn recover(context: &mut Context, tx: &mut Tx<'_>) -> Result<RootAccess, Problem> {
    let root = match find_root(tx)? {
        Some(root) => {
            open_root(context, tx, root)?;
            root
        }
        None => create_root(context, tx)?,
    };
    let secret = new_root_secret();
    let digest = context.app.master.secret_digest(secret.expose());
    let given = [
        (ClientAppSecret::CLIENT_APP_ID.field(), root.into()),
        (ClientAppSecret::NAME.field(), "made by recover".into()),
        (ClientAppSecret::DIGEST.field(), digest.into()),
    ];
    add(context, tx, &CLIENT_APP_SECRET, &given)?;
    check_postconditions(context, tx)?;
    let root = Some(root_client_of(tx, root)?);
    Ok(RootAccess { root, new_secret: Some(secret), is_first: false, setup: None })
}

/// Creates a root client app: in the oldest subscription, under the first name that is free.
fn create_root(context: &Context, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let subscription = tx.one("SELECT id FROM subscription ORDER BY rid LIMIT 1", &[], |row| row.id(0))?;
    let subscription = subscription.ok_or_else(|| {
        Problem::conflict(
            "There is nothing in this database: the first start of a server makes its root client app.",
        )
    })?;
    let id = context.new_id();
    let names =
        std::iter::once(ROOT.to_owned()).chain((2..=MAX_ROOTS).map(|number| format!("{ROOT} {number}")));
    for name in names {
        let text = "SELECT 1 FROM client_app WHERE subscription_id = ?1 AND name_key = ?2";
        if tx.one(text, &[subscription.into(), name.as_str().into()], |_| Ok(()))?.is_none() {
            let given = [
                (ClientApp::ID.field(), id.into()),
                (ClientApp::NAME.field(), name.into()),
                (ClientApp::SUBSCRIPTION_ID.field(), subscription.into()),
                (ClientApp::ALLOW_CLIENT_CREDENTIAL_LOGIN.field(), Value::Bool(true)),
            ];
            add(context, tx, &CLIENT_APP, &given)?;
            let role = [
                (ClientAppRole::CLIENT_APP_ID.field(), id.into()),
                (ClientAppRole::ROLE_TYPE.field(), RoleType::SystemAdmin.name().into()),
            ];
            add(context, tx, &CLIENT_APP_ROLE, &role)?;
            return Ok(id);
        }
    }
    Err(Problem::conflict("There are too many client apps named root."))
}

const MAX_ROOTS: usize = 100;

/// Lets the root client app get tokens by a secret, and removes its secrets and authentication configuration.
fn open_root(context: &mut Context, tx: &mut Tx<'_>, root: Uuid) -> Result<(), Problem> {
    let was = load(context, tx, &CLIENT_APP, None, Value::Id(root))?;
    let needed = [
        (ClientApp::ENABLED.field(), Value::Bool(true)),
        (ClientApp::ALLOW_CLIENT_CREDENTIAL_LOGIN.field(), Value::Bool(true)),
        (ClientApp::IS_PUBLIC.field(), Value::Bool(false)),
        (ClientApp::SECURITY_PROFILE.field(), SecurityProfile::None.name().into()),
    ];
    let mut values = with(was.values.clone(), &needed);
    if values != was.values {
        ClientApp::CONCURRENCY_TOKEN.field().set(&mut values, context.new_token());
        update(context, tx, &CLIENT_APP, &was, &values)?;
    }
    let mut secrets = Vec::new();
    let text = "SELECT id FROM client_app_secret WHERE client_app_id = ?1";
    tx.query(text, &[root.into()], |row| {
        secrets.push(row.id(0)?);
        Ok(())
    })?;
    for secret in secrets {
        remove(context, tx, &CLIENT_APP_SECRET, secret)?;
    }
    remove(context, tx, &CONFIGURATION, root)
}
