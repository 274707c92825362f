//! What a caller may do: looked up in the database, remembered while the security epoch stands.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_record::{Timestamp, Value, fold, parse_id};
use chancery_resource::{RoleScope, RoleType, ScopeKind, Sql, StoreScope};
use chancery_settings::{Options, Owner};
use chancery_store::{Error, Mode, Store, Tx};
use uuid::Uuid;

use crate::{Bearer, Claims, bearer::Shown, client::serves};

/// Tokens and stores remembered.
const REMEMBERED: usize = 10_000;
/// How often a token is opened again when keys change between that and the look-up, which follows at
/// once.
const STALE: usize = 64;

/// A role and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRole {
    /// The role.
    pub role: RoleType,
    /// What it covers.
    pub scope: RoleScope,
}

/// A client app as a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client app whose rights these are.
    pub id: Uuid,
    /// The client app that holds the token.
    pub holder: Uuid,
    /// Whether its token may be used now.
    pub enabled: bool,
    /// Whether DPoP proofs of who holds the token need a nonce.
    pub needs_nonce: bool,
    /// The subscription of who holds the token.
    pub subscription: Uuid,
    /// Its roles.
    pub roles: Vec<HeldRole>,
}

impl Caller {
    /// The client app that acts for another, by a token exchanged for that one's.
    pub fn acting(&self) -> Option<Uuid> {
        (self.holder != self.id).then_some(self.holder)
    }
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

/// Remembers tokens and rights of one epoch.
#[derive(Default)]
pub struct Rights(RwLock<Remembered>);

#[derive(Default)]
struct Remembered {
    epoch: i64,
    tokens: HashMap<String, Seen>,
    places: HashMap<String, Option<Arc<Place>>>,
}

#[derive(Clone)]
struct Seen {
    claims: Arc<Claims>,
    caller: Arc<Caller>,
}

/// What is known of a request: the token, whose it is, the store it names, and since which epoch.
#[derive(Clone, Debug)]
pub struct Known {
    /// The epoch that all of this was true at.
    pub epoch: i64,
    /// The token, if one was shown and it was good. When it ends is for the caller to see.
    pub claims: Option<Arc<Claims>>,
    /// Whose rights it carries, if there is such a client app.
    pub caller: Option<Arc<Caller>>,
    /// The store, if the path names one and there is one.
    pub place: Option<Arc<Place>>,
}

impl Rights {
    /// What is remembered, if it is remembered whole.
    pub fn recall(&self, token: Option<&str>, store: Option<&str>) -> Option<Known> {
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let seen = match token {
            Some(token) => Some(remembered.tokens.get(token)?.clone()),
            None => None,
        };
        let place = match store {
            Some(name) => remembered.places.get(&fold(name))?.clone(),
            None => None,
        };
        let (claims, caller) = seen.map(|seen| (seen.claims, seen.caller)).unzip();
        Some(Known { epoch: remembered.epoch, claims, caller, place })
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
        bearer: &Bearer,
        token: Option<&str>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Known, Error> {
        for _ in 0..STALE {
            let opened = Opened::new(store, bearer, token, name, now).await?;
            let looked = store.run("LoadRights", Mode::Quick, None, move |tx| opened.look_up(tx)).await;
            match looked {
                Err(Error::Stale) => {}
                Err(error) => return Err(error),
                Ok(known) => {
                    self.remember(&known, token, name, now);
                    return Ok(known);
                }
            }
        }
        Err(Error::Retry)
    }

    fn remember(&self, known: &Known, token: Option<&str>, name: Option<&str>, now: Timestamp) {
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.tokens.len() + remembered.places.len() >= REMEMBERED {
            remembered.tokens.retain(|_, seen| seen.claims.is_current(now));
        }
        // all still good: to forget them costs a look-up each
        let full = remembered.tokens.len() + remembered.places.len() >= REMEMBERED;
        if remembered.epoch < known.epoch || full {
            *remembered = Remembered { epoch: known.epoch, ..Remembered::default() };
        }
        if remembered.epoch == known.epoch {
            // a token that is none is not remembered, nor a name: there are too many of them
            if let (Some(token), Some(claims), Some(caller)) = (token, &known.claims, &known.caller) {
                let seen = Seen { claims: Arc::clone(claims), caller: Arc::clone(caller) };
                remembered.tokens.insert(token.to_owned(), seen);
            }
            if let (Some(name), Some(place)) = (name, &known.place) {
                // however it is written, it is one
                remembered.places.insert(fold(name), Some(Arc::clone(place)));
            }
        }
    }
}

/// A token that was opened, and the name of a store: what rights are looked up by.
pub struct Opened {
    shown: Option<Shown>,
    name: Option<String>,
}

impl Opened {
    /// Opens a token, if there is one. A token that is none is nobody's.
    ///
    /// # Errors
    /// The store's.
    pub async fn new(
        store: &Store,
        bearer: &Bearer,
        token: Option<&str>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let shown = match token {
            Some(token) => bearer.open(store, token, now).await?,
            None => None,
        };
        Ok(Self { shown, name: name.map(str::to_owned) })
    }

    /// Looks up what is true of them.
    ///
    /// # Errors
    /// [`Error::Stale`]: the key that signed was known at another epoch than this.
    pub fn look_up(&self, tx: &mut Tx<'_>) -> Result<Known, Error> {
        let epoch = tx.epoch()?;
        if matches!(self.shown, Some(Shown::Signed(_, Some(since))) if since != epoch) {
            return Err(Error::Stale);
        }
        let claims = match &self.shown {
            Some(shown) => load_claims(tx, shown)?,
            None => None,
        };
        let caller = match &claims {
            Some(claims) => load_caller(tx, claims)?.map(Arc::new),
            None => None,
        };
        let place = match &self.name {
            Some(name) => load_place(tx, name)?.map(Arc::new),
            None => None,
        };
        Ok(Known { epoch, claims: claims.map(Arc::new), caller, place })
    }
}

/// What a token says, if it is kept or was not revoked.
fn load_claims(tx: &mut Tx<'_>, shown: &Shown) -> Result<Option<Claims>, Error> {
    let claims: Option<Claims> = match shown {
        Shown::Signed(claims, _) => Some((**claims).clone()),
        Shown::Reference(digest) => {
            let text = "SELECT claims FROM reference_token WHERE digest = ?1";
            tx.one(text, &[Value::Bytes(digest.clone())], |row| {
                serde_json::from_str(row.text(0)?)
                    .map_err(|_| Error::Internal("a kept token cannot be read".into()))
            })?
        }
    };
    let Some(claims) = claims else { return Ok(None) };
    let mut sql = Sql::new("SELECT 1 FROM revoked_token WHERE jti IN ");
    sql.add_list(std::iter::once(&claims.jti).chain(&claims.from_jti).map(|jti| jti.as_str().into()));
    let is_revoked = tx.one(&format!("{} LIMIT 1", sql.text), &sql.parameters, |_| Ok(()))?.is_some();
    Ok((!is_revoked).then_some(claims))
}

/// Whose rights a token carries. It counts while both who got it and whose rights it carries may use
/// tokens.
fn load_caller(tx: &mut Tx<'_>, claims: &Claims) -> Result<Option<Caller>, Error> {
    let client = claims.sub;
    let mut caller: Option<Caller> = None;
    let mut parameters = vec![Value::Id(client), Value::Id(claims.client_id)];
    parameters.extend(claims.tid.map(Value::Id));
    let tenant = claims.tid.map(|_| "?3");
    let text = format!(
        "SELECT a.enabled, a.allow_client_credential_login, a.subscription_id, s.customer_id, \
         r.role_type, r.apply_to_tenant_id, r.apply_to_idp_instance_id, \
         g.enabled, c.require_dpop_nonce, g.subscription_id, {} AND {} \
         FROM client_app a JOIN subscription s ON s.id = a.subscription_id \
         JOIN client_app g ON g.id = ?2 \
         LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = g.id \
         LEFT JOIN client_app_role r ON r.client_app_id = a.id WHERE a.id = ?1",
        serves("a", tenant),
        serves("g", tenant)
    );
    tx.query(&text, &parameters, |row| {
        let enabled = row.bool(0)? && row.bool(1)? && row.bool(7)? && row.bool(10)?;
        let needs_nonce = !row.is_null(8)? && row.bool(8)?;
        let (subscription, customer, holder) = (row.id(2)?, row.id(3)?, row.id(9)?);
        let caller = caller.get_or_insert_with(|| Caller {
            id: client,
            holder: claims.client_id,
            enabled,
            needs_nonce,
            subscription: holder,
            roles: Vec::new(),
        });
        if row.is_null(4)? {
            return Ok(());
        }
        let name = row.text(4)?;
        let unknown =
            |what: &str| Error::Internal(format!("a client app has a role {name:?}, which is {what}"));
        let role = RoleType::of(name).ok_or_else(|| unknown("none"))?;
        let (tenant, instance) = (row.optional_id(5)?, row.optional_id(6)?);
        let scope = role.scope(|kind| match kind {
            ScopeKind::Customer => Some(customer),
            ScopeKind::Subscription => Some(subscription),
            ScopeKind::Tenant => tenant,
            ScopeKind::IdpInstance | ScopeKind::UserStore => instance,
            ScopeKind::System | ScopeKind::Nothing => None,
        });
        let scope = scope.ok_or_else(|| unknown("given at nothing"))?;
        caller.roles.push(HeldRole { role, scope });
        Ok(())
    })?;
    Ok(caller)
}

/// A user store by its id or its name.
///
/// # Errors
/// The store's.
pub fn load_place(tx: &mut Tx<'_>, name: &str) -> Result<Option<Place>, Error> {
    let (condition, key) = match parse_id(name) {
        Some(id) => ("i.id = ?1", Value::Id(id)),
        None => ("i.store_name_key = ?1", Value::Text(fold(name))),
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
