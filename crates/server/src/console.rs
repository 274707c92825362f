//! The console's own client app, and the link by which the first administrator signs in.

use chancery_management::{
    client_app::{CLIENT_APP, ClientApp},
    idp_instance::{IDP_INSTANCE, IdpInstance},
    tenant::{TENANT, Tenant},
};
use chancery_record::Value;
use chancery_resource::{CONSOLE, Context, Problem, Relation, Shape, link, load};
use chancery_signin::open_setup;
use chancery_store::{Error, Tx, selectable};
use uuid::Uuid;

use crate::{first_start::find_root, rows::add};

selectable! {
    /// The oldest user store of the oldest tenant.
    struct StoreOfTenant from "FROM tenant t JOIN tenant_idp_instance n ON n.tenant_rid = t.rid \
        JOIN idp_instance i ON i.rid = n.idp_instance_rid AND i.store_name_key IS NOT NULL \
        WHERE t.subscription_id = ?1 ORDER BY t.rid, i.rid LIMIT 1" {
        tenant: Uuid = "t.id",
        store: Uuid = "i.id",
    }
}

/// Creates the client app of the console where it is missing: beside the root client app, for the people of the oldest
/// user store of the oldest tenant there.
pub fn ensure(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    if tx.one("SELECT 1 FROM client_app WHERE id = ?1", &[CONSOLE.into()], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    let Some(root) = find_root(tx)? else { return Ok(()) };
    let text = "SELECT subscription_id FROM client_app WHERE id = ?1";
    let Some(subscription) = tx.one(text, &[root.into()], |row| row.id(0))? else { return Ok(()) };
    let given = [
        (ClientApp::ID.field(), CONSOLE.into()),
        (ClientApp::SUBSCRIPTION_ID.field(), subscription.into()),
        (ClientApp::NAME.field(), free_name(tx, subscription)?.into()),
    ];
    add(context, tx, &CLIENT_APP, &given)?;
    let Some(StoreOfTenant { tenant, store }) =
        tx.one(StoreOfTenant::SELECT, &[subscription.into()], StoreOfTenant::read)?
    else {
        return Ok(());
    };
    assign(context, tx, &TENANT, &Tenant::CLIENT_APPS, tenant)?;
    assign(context, tx, &IDP_INSTANCE, &IdpInstance::CLIENT_APPS, store)
}

fn assign(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    relation: &Relation,
    id: Uuid,
) -> Result<(), Problem> {
    let row = load(context, tx, shape, None, Value::Id(id))?;
    link(context, tx, shape, relation, &row, vec![CONSOLE])
}

/// The most names that are tried.
const MAX_NAMES: usize = 100;

/// The first name that no client app of the subscription has.
fn free_name(tx: &mut Tx<'_>, subscription: Uuid) -> Result<String, Problem> {
    let names = std::iter::once("console".to_owned());
    for name in names.chain((2..=MAX_NAMES).map(|number| format!("console {number}"))) {
        let text = "SELECT 1 FROM client_app WHERE subscription_id = ?1 AND name_key = ?2";
        if tx.one(text, &[subscription.into(), name.as_str().into()], |_| Ok(()))?.is_none() {
            return Ok(name);
        }
    }
    Err(Problem::conflict("The client app of the console finds no name that is free."))
}

/// Whether a person is `SystemAdmin`, in person or by a group.
pub fn has_administrator(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let text = "SELECT 1 FROM role_assignment WHERE role_type = 'SystemAdmin' LIMIT 1";
    Ok(tx.one(text, &[], |_| Ok(()))?.is_some())
}

/// The path of a link by which the first administrator signs in; `None` where there is an administrator already.
pub fn setup_link(context: &Context, tx: &mut Tx<'_>) -> Result<Option<String>, Problem> {
    if has_administrator(tx)? {
        return Ok(None);
    }
    let code = open_setup(tx, &context.app.master, context.now)?;
    Ok(Some(chancery_console::setup_path(&code)))
}
