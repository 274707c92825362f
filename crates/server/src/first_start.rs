//! What the first start makes: a customer, a subscription and a tenant named `Default`, a user
//! store named `default`, and the client app `root`.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_management::{
    customer::{CUSTOMER, Customer, CustomerId},
    idp_type,
};
use chancery_record::{Name, Record as _, Secret, Token, Value, fold};
use chancery_resource::{Context, MasterKey, Problem, ROOT, insert, random};
use chancery_store::{Error, Tx};
use uuid::Uuid;

/// What a newcomer must know.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// The root client; none where none of that name is `SystemAdmin` any more.
    pub root: Option<Root>,
    /// Its secret, if it was made just now. It is not kept.
    pub new_secret: Option<Secret>,
}

/// The root client.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its id.
    pub id: Uuid,
    /// Whether it may call itself by its name at the token endpoint.
    pub is_named: bool,
}

/// Makes what is missing, and gives the root client the configured secret.
pub fn ensure(
    context: &Context,
    tx: &mut Tx<'_>,
    master: &MasterKey,
    configured: Option<&Secret>,
) -> Result<Welcome, Problem> {
    idp_type::seed(context, tx)?;
    let mut root = find_root(tx)?;
    let mut new_secret = None;
    if tx.one("SELECT 1 FROM client_app LIMIT 1", &[], |_| Ok(()))?.is_none() {
        let made = make_all(context, tx)?;
        if configured.is_none() {
            let secret = new_root_secret();
            add_secret(context, tx, master, made, "made at the first start", &secret)?;
            new_secret = Some(secret);
        }
        tx.advance_epoch()?;
        root = Some(made);
    }
    if let (Some(root), Some(secret)) = (root, configured) {
        configure_secret(context, tx, master, root, secret)?;
    }
    let root = root.map(|root| introduce(tx, root)).transpose()?;
    Ok(Welcome { root, new_secret })
}

/// The root client app's id. The name alone says nothing: others may have it.
pub fn find_root(tx: &mut Tx<'_>) -> Result<Option<Uuid>, Error> {
    let text = "SELECT a.id FROM client_app a JOIN client_app_role r ON r.client_app_id = a.id \
        WHERE a.name_key = ?1 AND r.role_type = 'SystemAdmin' ORDER BY a.rid LIMIT 1";
    tx.one(text, &[ROOT.into()], |row| row.id(0))
}

/// The client app of this id, and whether its name is as good.
pub fn introduce(tx: &mut Tx<'_>, id: Uuid) -> Result<Root, Error> {
    Ok(Root { id, is_named: find_root(tx)? == Some(id) })
}

/// A secret for it: 32 random bytes.
pub fn new_root_secret() -> Secret {
    Secret::new(BASE64_URL_SAFE_NO_PAD.encode(random::<32>()))
}

fn make_all(context: &Context, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let internal = |_| Problem::from(Error::Internal("the first start's own names are not valid".into()));
    let (customer, subscription, tenant) = (context.new_id(), context.new_id(), context.new_id());
    let (store, root) = (context.new_id(), context.new_id());
    let token = || context.new_token();
    let Value::Text(customer_token) = token() else { return Err(internal(String::new())) };
    let record = Customer {
        id: CustomerId(customer),
        name: Name::new("Default").map_err(internal)?,
        address: None,
        concurrency_token: Token::new(customer_token).map_err(internal)?,
    };
    insert(context, tx, &CUSTOMER, None, &record.into_values())?;
    tx.queue(
        "INSERT INTO subscription (id, customer_id, name, name_key, status, concurrency_token) \
         VALUES (?1, ?2, 'Default', 'default', 'Active', ?3)",
        vec![subscription.into(), customer.into(), token()],
    )?;
    tx.queue(
        "INSERT INTO tenant (id, subscription_id, name, name_key, is_active, concurrency_token) \
         VALUES (?1, ?2, 'Default', 'default', TRUE, ?3)",
        vec![tenant.into(), subscription.into(), token()],
    )?;
    tx.queue(
        "INSERT INTO idp_instance (id, subscription_id, idp_type, idp_type_id, name, name_key, store_name_key, is_active, concurrency_token) \
         VALUES (?1, ?2, 'UserStore', ?5, 'default', ?3, ?3, TRUE, ?4)",
        vec![
            store.into(),
            subscription.into(),
            fold("default").into(),
            token(),
            idp_type::id_of(idp_type::FactoryType::UserStore).into(),
        ],
    )?;
    tx.queue(
        "INSERT INTO tenant_idp_instance (tenant_rid, idp_instance_rid) \
         SELECT t.rid, i.rid FROM tenant t CROSS JOIN idp_instance i WHERE t.id = ?1 AND i.id = ?2",
        vec![tenant.into(), store.into()],
    )?;
    tx.queue(
        "INSERT INTO client_app (id, subscription_id, name, name_key, enabled, allow_client_credential_login, concurrency_token) \
         VALUES (?1, ?2, ?3, ?3, TRUE, TRUE, ?4)",
        vec![root.into(), subscription.into(), ROOT.into(), token()],
    )?;
    tx.queue(
        "INSERT INTO client_app_role (id, client_app_id, role_type, concurrency_token) VALUES (?1, ?2, 'SystemAdmin', ?3)",
        vec![context.new_id().into(), root.into(), token()],
    )?;
    Ok(root)
}

const CONFIGURED: &str = "configured";

/// The configured secret is the one that counts: an earlier configured one goes.
fn configure_secret(
    context: &Context,
    tx: &mut Tx<'_>,
    master: &MasterKey,
    root: Uuid,
    secret: &Secret,
) -> Result<(), Problem> {
    let digest = master.secret_digest(secret.expose());
    let mut known = false;
    let text = "SELECT digest FROM client_app_secret WHERE client_app_id = ?1";
    tx.query(text, &[root.into()], |row| {
        known |= row.bytes(0)? == digest;
        Ok(())
    })?;
    if !known {
        tx.queue(
            "DELETE FROM client_app_secret WHERE client_app_id = ?1 AND name = ?2",
            vec![root.into(), CONFIGURED.into()],
        )?;
        add_secret(context, tx, master, root, CONFIGURED, secret)?;
        tx.advance_epoch()?;
    }
    Ok(())
}

fn add_secret(
    context: &Context,
    tx: &mut Tx<'_>,
    master: &MasterKey,
    client: Uuid,
    name: &str,
    secret: &Secret,
) -> Result<(), Problem> {
    let parameters = vec![
        context.new_id().into(),
        client.into(),
        name.into(),
        master.secret_digest(secret.expose()).into(),
        context.new_token(),
    ];
    let text = "INSERT INTO client_app_secret (id, client_app_id, name, digest, concurrency_token) VALUES (?1, ?2, ?3, ?4, ?5)";
    Ok(tx.queue(text, parameters)?)
}
