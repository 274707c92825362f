//! What a caller may do: looked up in the database, remembered while the security epoch stands.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_record::{Value, fold};
use chancery_resource::StoreScope;
use chancery_settings::{Options, Owner};
use chancery_store::{Error, Mode, Store, Tx};
use uuid::Uuid;

/// Callers and stores remembered.
const REMEMBERED: usize = 10_000;

/// A role and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    SystemAdmin,
    /// A customer and all below it.
    CustomerAdmin(Uuid),
    /// A subscription and all below it.
    SubscriptionAdmin(Uuid),
    /// A tenant.
    TenantAdmin(Uuid),
    /// A user store and what is in it.
    UserStoreAdmin(Uuid),
    /// Users of a user store.
    UserAdmin,
    /// Reading application users and groups: of a tenant, of an instance, or of all.
    ApplicationDataReader(Option<Uuid>, Option<Uuid>),
    /// Reading audit trails.
    AuditTrailReader,
}

/// A client app as a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client app.
    pub id: Uuid,
    /// Whether it may get and use tokens now.
    pub enabled: bool,
    /// Its roles.
    pub roles: Vec<Role>,
}

/// A user store and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The store.
    pub scope: StoreScope,
    /// Its subscription.
    pub subscription: Uuid,
    /// Its customer.
    pub customer: Uuid,
    /// Whether it is active.
    pub is_active: bool,
}

/// Remembers rights of one epoch.
#[derive(Default)]
pub struct Rights(RwLock<Remembered>);

#[derive(Default)]
struct Remembered {
    epoch: i64,
    callers: HashMap<Uuid, Option<Arc<Caller>>>,
    places: HashMap<String, Option<Arc<Place>>>,
}

/// What is known of a request: the caller, the store it names, and since which epoch.
#[derive(Clone, Debug)]
pub struct Known {
    /// The epoch that all of this was true at.
    pub epoch: i64,
    /// The caller, if there is such a client app.
    pub caller: Option<Arc<Caller>>,
    /// The store, if the path names one and there is one.
    pub place: Option<Arc<Place>>,
}

impl Rights {
    /// What is remembered, if it is remembered whole.
    pub fn recall(&self, client: Option<Uuid>, store: Option<&str>) -> Option<Known> {
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let caller = match client {
            Some(client) => remembered.callers.get(&client)?.clone(),
            None => None,
        };
        let place = match store {
            Some(name) => remembered.places.get(name)?.clone(),
            None => None,
        };
        Some(Known { epoch: remembered.epoch, caller, place })
    }

    /// Forgets what was true at an epoch that is over.
    pub fn forget(&self, epoch: i64) {
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.epoch == epoch {
            *remembered = Remembered::default();
        }
    }

    /// Looks it up, and remembers it.
    ///
    /// # Errors
    /// The store's.
    pub async fn load(
        &self,
        store: &Store,
        client: Option<Uuid>,
        name: Option<&str>,
    ) -> Result<Known, Error> {
        let wanted = name.map(str::to_owned);
        let known = store
            .run("LoadRights", Mode::Quick, None, move |tx| {
                let epoch = tx.epoch()?;
                let caller = match client {
                    Some(client) => load_caller(tx, client)?.map(Arc::new),
                    None => None,
                };
                let place = match &wanted {
                    Some(name) => load_place(tx, name)?.map(Arc::new),
                    None => None,
                };
                Ok::<_, Error>(Known { epoch, caller, place })
            })
            .await?;
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let full = remembered.callers.len() + remembered.places.len() >= REMEMBERED;
        if remembered.epoch < known.epoch || full {
            *remembered = Remembered { epoch: known.epoch, ..Remembered::default() };
        }
        if remembered.epoch == known.epoch {
            if let Some(client) = client {
                remembered.callers.insert(client, known.caller.clone());
            }
            // a name that is none is not remembered: there are too many of them
            if let (Some(name), Some(place)) = (name, &known.place) {
                remembered.places.insert(name.to_owned(), Some(Arc::clone(place)));
            }
        }
        Ok(known)
    }
}

fn load_caller(tx: &mut Tx<'_>, client: Uuid) -> Result<Option<Caller>, Error> {
    let mut caller: Option<Caller> = None;
    let text = "SELECT a.enabled, a.allow_client_credential_login, a.subscription_id, s.customer_id, \
        r.role_type, r.apply_to_tenant_id, r.apply_to_idp_instance_id \
        FROM client_app a JOIN subscription s ON s.id = a.subscription_id \
        LEFT JOIN client_app_role r ON r.client_app_id = a.id WHERE a.id = ?1";
    tx.query(text, &[Value::Id(client)], |row| {
        let enabled = row.bool(0)? && row.bool(1)?;
        let caller = caller.get_or_insert_with(|| Caller { id: client, enabled, roles: Vec::new() });
        if row.is_null(4)? {
            return Ok(());
        }
        let (subscription, customer) = (row.id(2)?, row.id(3)?);
        let role = match row.text(4)? {
            "SystemAdmin" => Some(Role::SystemAdmin),
            "CustomerAdmin" => Some(Role::CustomerAdmin(customer)),
            "SubscriptionAdmin" => Some(Role::SubscriptionAdmin(subscription)),
            "TenantAdmin" => row.optional_id(5)?.map(Role::TenantAdmin),
            "UserStoreAdmin" => row.optional_id(6)?.map(Role::UserStoreAdmin),
            "UserAdmin" => Some(Role::UserAdmin),
            "ApplicationDataReader" => {
                Some(Role::ApplicationDataReader(row.optional_id(5)?, row.optional_id(6)?))
            }
            "AuditTrailReader" => Some(Role::AuditTrailReader),
            _ => None,
        };
        caller.roles.extend(role);
        Ok(())
    })?;
    Ok(caller)
}

/// A user store by its id or its name.
///
/// # Errors
/// The store's.
pub fn load_place(tx: &mut Tx<'_>, name: &str) -> Result<Option<Place>, Error> {
    let (condition, key) = match Uuid::try_parse(name) {
        Ok(id) => ("i.id = ?1", Value::Id(id)),
        Err(_) => ("i.store_name_key = ?1", Value::Text(fold(name))),
    };
    let text = format!(
        "SELECT i.rid, i.id, i.name, i.subscription_id, s.customer_id, i.is_active, \
         (SELECT snapshot_number FROM passkey_trust WHERE source = 'mds') \
         FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id \
         WHERE {condition} AND i.store_name_key IS NOT NULL"
    );
    let found = tx.one(&text, &[key], |row| {
        let options = Arc::new(Options::new(Owner::UserStore, HashMap::new()));
        Ok(Place {
            scope: StoreScope {
                number: row.int(0)?,
                id: row.id(1)?,
                name: row.text(2)?.to_owned(),
                options,
                metadata: if row.is_null(6)? { None } else { Some(row.int(6)?) },
            },
            subscription: row.id(3)?,
            customer: row.id(4)?,
            is_active: row.bool(5)?,
        })
    })?;
    let Some(mut place) = found else { return Ok(None) };
    place.scope.options = Arc::new(load_options(tx, place.scope.id)?);
    Ok(Some(place))
}

/// The options of a user store as they take effect. A secret one is known to be there, no more.
fn load_options(tx: &mut Tx<'_>, instance: Uuid) -> Result<Options, Error> {
    let mut values = HashMap::new();
    let text = "SELECT name, value FROM option_value WHERE apply_to_idp_instance_id = ?1";
    tx.query(text, &[Value::Id(instance)], |row| {
        values.insert(row.text(0)?.to_owned(), row.text(1)?.to_owned());
        Ok(())
    })?;
    Ok(Options::new(Owner::UserStore, values))
}
