//! The rows of the first start: a customer, a subscription and a tenant named `Default`, a user store
//! named `default`, and the client app `root`.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_management::{
    client_app::{
        CLIENT_APP, ClientApp,
        role::{CLIENT_APP_ROLE, ClientAppRole},
        secret::{CLIENT_APP_SECRET, ClientAppSecret},
    },
    customer::{CUSTOMER, Customer},
    idp_instance::{IDP_INSTANCE, IdpInstance},
    idp_type,
    subscription::{SUBSCRIPTION, Subscription},
    tenant::{TENANT, Tenant},
};
use chancery_record::{Secret, Value, fold};
use chancery_resource::{Context, Problem, ROOT, RoleType, check_postconditions, link, load, random};
use chancery_store::{Error, Tx, selectable};
use uuid::Uuid;

use crate::rows::{add, remove};

/// The access of the root client: for the operator, after the first start or a recovery.
#[derive(Clone, Debug)]
pub struct RootAccess {
    /// The root client; `None` where no client app of that name is `SystemAdmin` any more.
    pub root: Option<RootClient>,
    /// The root client's secret, if it was generated just now. Only its digest is stored.
    pub new_secret: Option<Secret>,
    /// Whether this start was the installation's first.
    pub is_first: bool,
    /// The path of the link by which the first administrator signs in, if it was created just now.
    pub setup: Option<String>,
}

/// The root client.
#[derive(Clone, Debug)]
pub struct RootClient {
    /// The client app's id.
    pub id: Uuid,
    /// Whether it may identify itself by its name at the token endpoint.
    pub is_named: bool,
}

/// Creates missing rows, and gives the root client the configured secret.
pub fn ensure(
    context: &mut Context,
    tx: &mut Tx<'_>,
    configured: Option<&Secret>,
) -> Result<RootAccess, Problem> {
    idp_type::seed(context, tx)?;
    let mut root = find_root(tx)?;
    let (mut new_secret, mut is_first) = (None, false);
    if tx.one("SELECT 1 FROM client_app LIMIT 1", &[], |_| Ok(()))?.is_none() {
        let created = create_all(context, tx)?;
        is_first = true;
        if configured.is_none() {
            let secret = new_root_secret();
            add_secret(context, tx, created, "made at the first start", &secret)?;
            new_secret = Some(secret);
        }
        root = Some(created);
    }
    if let (Some(root), Some(secret)) = (root, configured) {
        configure_secret(context, tx, root, secret)?;
    }
    check_postconditions(context, tx)?;
    let root = root.map(|root| root_client_of(tx, root)).transpose()?;
    Ok(RootAccess { root, new_secret, is_first, setup: None })
}

/// The root client app's id: the name alone does not identify it, others may have it.
pub fn find_root(tx: &mut Tx<'_>) -> Result<Option<Uuid>, Error> {
    let text = "SELECT a.id FROM client_app a JOIN client_app_role r ON r.client_app_id = a.id \
        WHERE a.name_key = ?1 AND r.role_type = 'SystemAdmin' ORDER BY a.rid LIMIT 1";
    tx.one(text, &[ROOT.into()], |row| row.id(0))
}

/// The client app of this id, and whether its name identifies it, too.
pub fn root_client_of(tx: &mut Tx<'_>, id: Uuid) -> Result<RootClient, Error> {
    Ok(RootClient { id, is_named: find_root(tx)? == Some(id) })
}

/// A new secret for the root client: 32 random bytes.
pub fn new_root_secret() -> Secret {
    Secret::new(BASE64_URL_SAFE_NO_PAD.encode(random::<32>()))
}

fn create_all(context: &Context, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let [customer, subscription, tenant, store, root] = [(); 5].map(|()| context.new_id());
    let given = [(Customer::ID.field(), customer.into()), (Customer::NAME.field(), "Default".into())];
    add(context, tx, &CUSTOMER, &given)?;
    let given = [
        (Subscription::ID.field(), subscription.into()),
        (Subscription::CUSTOMER_ID.field(), customer.into()),
        (Subscription::NAME.field(), "Default".into()),
    ];
    add(context, tx, &SUBSCRIPTION, &given)?;
    let given = [
        (Tenant::ID.field(), tenant.into()),
        (Tenant::SUBSCRIPTION_ID.field(), subscription.into()),
        (Tenant::NAME.field(), "Default".into()),
    ];
    add(context, tx, &TENANT, &given)?;
    let given = [
        (IdpInstance::ID.field(), store.into()),
        (IdpInstance::SUBSCRIPTION_ID.field(), subscription.into()),
        (IdpInstance::NAME.field(), "default".into()),
        (IdpInstance::IDP_FACTORY_TYPE.field(), "UserStore".into()),
        (IdpInstance::IDP_TYPE_ID.field(), idp_type::id_of(idp_type::FactoryType::UserStore).into()),
        (IdpInstance::STORE_NAME_KEY.field(), fold("default").into()),
    ];
    add(context, tx, &IDP_INSTANCE, &given)?;
    let tenant = load(context, tx, &TENANT, None, Value::Id(tenant))?;
    link(context, tx, &TENANT, &Tenant::IDP_INSTANCES, &tenant, vec![store])?;
    let given = [
        (ClientApp::ID.field(), root.into()),
        (ClientApp::SUBSCRIPTION_ID.field(), subscription.into()),
        (ClientApp::NAME.field(), ROOT.into()),
        (ClientApp::ALLOW_CLIENT_CREDENTIAL_LOGIN.field(), Value::Bool(true)),
    ];
    add(context, tx, &CLIENT_APP, &given)?;
    let given = [
        (ClientAppRole::CLIENT_APP_ID.field(), root.into()),
        (ClientAppRole::ROLE_TYPE.field(), RoleType::SystemAdmin.name().into()),
    ];
    add(context, tx, &CLIENT_APP_ROLE, &given)?;
    Ok(root)
}

const CONFIGURED: &str = "configured";

selectable! {
    /// A secret of a client app.
    struct StoredSecret<'r> from "FROM client_app_secret WHERE client_app_id = ?1" {
        id: Uuid = "id",
        digest: Option<&'r [u8]> = "digest",
        name: &'r str = "name",
    }
}

/// Sets the configured secret; an earlier configured one is removed.
fn configure_secret(
    context: &mut Context,
    tx: &mut Tx<'_>,
    root: Uuid,
    secret: &Secret,
) -> Result<(), Problem> {
    let digest = context.app.master.secret_digest(secret.expose());
    let (mut is_known, mut earlier) = (false, Vec::new());
    tx.query(StoredSecret::SELECT, &[root.into()], |row| {
        let stored = StoredSecret::read(row)?;
        is_known |= stored.digest == Some(digest.as_slice());
        if stored.name == CONFIGURED {
            earlier.push(stored.id);
        }
        Ok(())
    })?;
    if is_known {
        return Ok(());
    }
    for id in earlier {
        remove(context, tx, &CLIENT_APP_SECRET, id)?;
    }
    add_secret(context, tx, root, CONFIGURED, secret)
}

fn add_secret(
    context: &Context,
    tx: &mut Tx<'_>,
    client: Uuid,
    name: &str,
    secret: &Secret,
) -> Result<(), Problem> {
    let digest = context.app.master.secret_digest(secret.expose());
    let given = [
        (ClientAppSecret::CLIENT_APP_ID.field(), client.into()),
        (ClientAppSecret::NAME.field(), name.into()),
        (ClientAppSecret::DIGEST.field(), digest.into()),
    ];
    add(context, tx, &CLIENT_APP_SECRET, &given)
}
