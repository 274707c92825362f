//! Directories as callers, by their SCIM tokens: those of a user store, and the one of an identity provider instance.

use std::collections::HashMap;

use chancery_fetch::Networks;
use chancery_record::{Timestamp, Value, list_of};
use chancery_resource::settings::{Options, Owner, ProviderOption, UserStoreOption};
use chancery_resource::{MasterKey, Provisioner, Scope, open_secret};
use chancery_scim::digest_of;
use chancery_store::{EPOCH, Error, Tx, selectable};
use uuid::Uuid;

use crate::rights_lookup::load_store_context;

/// The caller of a token, valid or not.
#[derive(Clone, Debug)]
pub struct ScimCaller {
    /// The epoch at which it was read.
    pub epoch: i64,
    /// The reach of the directory.
    pub provisioner: Provisioner,
    /// The instance whose users and groups it provisions.
    pub instance: Uuid,
    /// The instance's name.
    pub name: String,
    /// The names of its rights.
    pub rights: Vec<String>,
    /// Whether its instance is active and provisioned.
    pub is_enabled: bool,
    /// The networks that it is valid in; `None` for all.
    pub networks: Option<Networks>,
    /// The expiry, if there is one.
    pub expires_on: Option<Timestamp>,
    /// When it was stopped from writing, if it was.
    pub stopped_on: Option<Timestamp>,
    /// The allowed requests per second.
    pub rate: i64,
    /// The user store, or the instance as a part of the configuration.
    pub scope: Scope,
}

/// The caller with this token, if it is active.
pub fn find_scim_token(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    token: &str,
) -> Result<Option<ScimCaller>, Error> {
    let digest = &digest_of(master, token);
    // the epoch is read first, so that what follows is no older
    let epoch = tx.one(EPOCH, &[], |row| row.int(0))?.unwrap_or(0);
    match find_store_token(tx, digest)? {
        Some(token_row) => caller_in_store(tx, &token_row, epoch),
        None => caller_of_instance(tx, master, digest, epoch),
    }
}

selectable! {
    /// A token of a user store.
    struct StoreToken from "FROM scim_token s JOIN idp_instance i ON i.rid = s.store WHERE s.digest = ?1 AND s.is_active = ?2" {
        id: Uuid = "s.id",
        lineage: Uuid = "s.lineage",
        instance: Uuid = "i.id",
        rights: String = "s.rights",
        reach: String = "s.reach",
        confirms_email: bool = "s.confirms_email",
        networks: String = "s.networks",
        expires_on: Timestamp = "s.expires_on",
        stopped_on: Option<Timestamp> = "s.stopped_on",
    }
}

fn find_store_token(tx: &mut Tx<'_>, digest: &[u8]) -> Result<Option<StoreToken>, Error> {
    let key = [Value::Bytes(digest.to_vec()), Value::Bool(true)];
    tx.one(StoreToken::SELECT, &key, StoreToken::read)
}

fn list(stored: &str) -> Result<Vec<String>, Error> {
    list_of(stored).ok_or_else(|| Error::Internal("a SCIM token cannot be read".into()))
}

fn networks(stored: &str) -> Result<Option<Networks>, Error> {
    let listed = list(stored)?;
    let networks = (!listed.is_empty()).then(|| listed.join(",").parse());
    networks.transpose().map_err(Error::Internal)
}

fn caller_in_store(tx: &mut Tx<'_>, token_row: &StoreToken, epoch: i64) -> Result<Option<ScimCaller>, Error> {
    let (rights, networks) = (list(&token_row.rights)?, networks(&token_row.networks)?);
    let store = load_store_context(tx, &token_row.instance.to_string())?;
    Ok(store.map(|store| ScimCaller {
        epoch,
        provisioner: Provisioner {
            token: Some(token_row.id),
            owner: Some(token_row.lineage),
            reaches_all: token_row.reach == "All",
            confirms_email: token_row.confirms_email,
            mass_limit: store.scope.options.get(UserStoreOption::SCIM_MASS_CHANGE_LIMIT),
            deletes_cascade: false,
        },
        instance: token_row.instance,
        name: store.scope.name.clone(),
        rights,
        is_enabled: store.is_active,
        networks,
        expires_on: Some(token_row.expires_on),
        stopped_on: token_row.stopped_on,
        rate: store.scope.options.get(UserStoreOption::SCIM_RATE_LIMIT),
        scope: Scope::Store(store.scope),
    }))
}

selectable! {
    /// The token of an external identity provider.
    struct InstanceToken from "FROM scim_instance_token s JOIN idp_instance i ON i.id = s.idp_instance_id \
        WHERE s.digest = ?1 AND i.idp_type = 'OpenIdConnect'" {
        instance: Uuid = "i.id",
        name: String = "i.name",
        stopped_on: Option<Timestamp> = "s.stopped_on",
        is_active: bool = "i.is_active",
        token: Option<Uuid> = "s.token_id",
    }
}

selectable! {
    /// An option of its instance.
    struct InstanceOption<'r> from "FROM option_value WHERE apply_to_idp_instance_id = ?1 AND name IN \
        ('ScimEnabled', 'ScimToken', 'ScimDeleteCascades', 'ScimMassChangeLimit', 'ScimRateLimit')" {
        name: &'r str = "name",
        value: &'r str = "value",
        id: Uuid = "id",
    }
}

fn caller_of_instance(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    digest: &[u8],
    epoch: i64,
) -> Result<Option<ScimCaller>, Error> {
    let row = tx.one(InstanceToken::SELECT, &[Value::Bytes(digest.to_vec())], InstanceToken::read)?;
    let Some(InstanceToken { instance, name, stopped_on, is_active, token }) = row else { return Ok(None) };
    // a token of before the column has no id
    let token = token.unwrap_or(instance);
    let mut values = HashMap::new();
    let mut current_token = None;
    tx.query(InstanceOption::SELECT, &[Value::Id(instance)], |row| {
        let InstanceOption { name, value, id } = InstanceOption::read(row)?;
        if name == ProviderOption::SCIM_TOKEN.name() {
            current_token = open_secret(master, "option_value", "value", &Value::Id(id), value);
        } else {
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    })?;
    // a token whose option was cleared or set by hand is no longer valid
    let is_current = current_token.is_some_and(|current_token| digest_of(master, &current_token) == digest);
    let options = Options::<ProviderOption>::of(Owner::OpenIdConnect, values);
    if !is_current {
        return Ok(None);
    }
    let none = Vec::new;
    Ok(Some(ScimCaller {
        epoch,
        provisioner: Provisioner {
            token: Some(token),
            owner: Some(instance),
            reaches_all: false,
            confirms_email: false,
            mass_limit: options.get(ProviderOption::SCIM_MASS_CHANGE_LIMIT),
            deletes_cascade: options.get(ProviderOption::SCIM_DELETE_CASCADES),
        },
        instance,
        name,
        is_enabled: is_active && options.get(ProviderOption::SCIM_ENABLED),
        rights: ["Read", "WriteUsers", "WriteGroups", "Delete"].map(str::to_owned).to_vec(),
        networks: None,
        expires_on: None,
        stopped_on,
        rate: options.get(ProviderOption::SCIM_RATE_LIMIT),
        scope: Scope::Parts {
            customers: none(),
            subscriptions: none(),
            tenants: none(),
            instances: vec![instance],
            assigned: none(),
            writes: false,
        },
    }))
}
