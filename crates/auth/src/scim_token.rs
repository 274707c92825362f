//! Directories as callers, by their SCIM tokens: those of a user store, and the one of an identity provider instance.

use std::collections::HashMap;

use chancery_fetch::Networks;
use chancery_record::{Timestamp, Value, list_of};
use chancery_resource::settings::{Options, Owner, ProviderOption, UserStoreOption};
use chancery_resource::{MasterKey, Provisioner, Scope, open_secret};
use chancery_scim::digest_of;
use chancery_store::{EPOCH, Error, Row, Tx};
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
        Some(token_row) => caller_in_store(tx, token_row, epoch),
        None => caller_of_instance(tx, master, digest, epoch),
    }
}

/// The row of a store's token.
struct StoreToken {
    id: Uuid,
    lineage: Uuid,
    instance: Uuid,
    rights: Vec<String>,
    reaches_all: bool,
    confirms_email: bool,
    networks: Option<Networks>,
    expires_on: i64,
    stopped_on: Option<Timestamp>,
}

fn find_store_token(tx: &mut Tx<'_>, digest: &[u8]) -> Result<Option<StoreToken>, Error> {
    let text = "SELECT s.id, s.lineage, i.id, s.rights, s.reach, s.confirms_email, s.networks, s.expires_on, s.stopped_on \
        FROM scim_token s JOIN idp_instance i ON i.rid = s.store WHERE s.digest = ?1 AND s.is_active = ?2";
    tx.one(text, &[Value::Bytes(digest.to_vec()), Value::Bool(true)], |row| {
        Ok(StoreToken {
            id: row.id(0)?,
            lineage: row.id(1)?,
            instance: row.id(2)?,
            rights: list(row, 3)?,
            reaches_all: row.text(4)? == "All",
            confirms_email: row.bool(5)?,
            networks: networks(row, 6)?,
            expires_on: row.int(7)?,
            stopped_on: time(row, 8)?,
        })
    })
}

fn list(row: &Row<'_>, column: usize) -> Result<Vec<String>, Error> {
    list_of(row.text(column)?).ok_or_else(|| Error::Internal("a SCIM token cannot be read".into()))
}

fn networks(row: &Row<'_>, column: usize) -> Result<Option<Networks>, Error> {
    let listed = list(row, column)?;
    let networks = (!listed.is_empty()).then(|| listed.join(",").parse());
    networks.transpose().map_err(Error::Internal)
}

fn time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Error> {
    if row.is_null(column)? { Ok(None) } else { row.int(column).map(|time| Some(Timestamp(time))) }
}

fn caller_in_store(tx: &mut Tx<'_>, token_row: StoreToken, epoch: i64) -> Result<Option<ScimCaller>, Error> {
    let store = load_store_context(tx, &token_row.instance.to_string())?;
    Ok(store.map(|store| ScimCaller {
        epoch,
        provisioner: Provisioner {
            token: Some(token_row.id),
            owner: Some(token_row.lineage),
            reaches_all: token_row.reaches_all,
            confirms_email: token_row.confirms_email,
            mass_limit: store.scope.options.get(UserStoreOption::SCIM_MASS_CHANGE_LIMIT),
            deletes_cascade: false,
        },
        instance: token_row.instance,
        name: store.scope.name.clone(),
        rights: token_row.rights,
        is_enabled: store.is_active,
        networks: token_row.networks,
        expires_on: Some(Timestamp(token_row.expires_on)),
        stopped_on: token_row.stopped_on,
        rate: store.scope.options.get(UserStoreOption::SCIM_RATE_LIMIT),
        scope: Scope::Store(store.scope),
    }))
}

fn caller_of_instance(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    digest: &[u8],
    epoch: i64,
) -> Result<Option<ScimCaller>, Error> {
    let text = "SELECT i.id, i.name, s.stopped_on, i.is_active, s.token_id FROM scim_instance_token s \
        JOIN idp_instance i ON i.id = s.idp_instance_id WHERE s.digest = ?1 AND i.idp_type = 'OpenIdConnect'";
    let row = tx.one(text, &[Value::Bytes(digest.to_vec())], |row| {
        // a token of before the column has no id
        let token = row.optional_id(4)?.map_or_else(|| row.id(0), Ok)?;
        Ok((row.id(0)?, row.text(1)?.to_owned(), time(row, 2)?, row.bool(3)?, token))
    })?;
    let Some((instance, name, stopped_on, is_active, token)) = row else { return Ok(None) };
    let mut values = HashMap::new();
    let mut current_token = None;
    let text = "SELECT name, value, id FROM option_value WHERE apply_to_idp_instance_id = ?1 AND name IN \
        ('ScimEnabled', 'ScimToken', 'ScimDeleteCascades', 'ScimMassChangeLimit', 'ScimRateLimit')";
    tx.query(text, &[Value::Id(instance)], |row| {
        let (name, value) = (row.text(0)?, row.text(1)?);
        if name == ProviderOption::SCIM_TOKEN.name() {
            current_token = open_secret(master, "option_value", "value", &Value::Id(row.id(2)?), value);
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
