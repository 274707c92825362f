//! What a caller may do: looked up in the database, remembered while the security epoch stands.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_record::{Timestamp, Value, fold, parse_id};
use chancery_resource::settings::{Options, Owner};
use chancery_resource::{RoleScope, RoleType, ScopeKind, Sql, StoreScope};
use chancery_store::{EPOCH, Error, Mode, Row, Store, Tx};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::{Bearer, Claims, bearer::Shown, client::serves};

/// Tokens remembered, and stores. Where there are more, those that are asked for least give way one by one.
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

/// Whoever changes the epoch forgets all, and is alone then. What adds to one epoch is beside others.
struct Remembered {
    epoch: i64,
    tokens: Cache<String, Seen>,
    places: Cache<String, Arc<Place>>,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { epoch: 0, tokens: Cache::new(REMEMBERED), places: Cache::new(REMEMBERED) }
    }
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
            Some(token) => Some(remembered.tokens.get(token)?),
            None => None,
        };
        let place = match store {
            Some(name) => Some(remembered.places.get(&fold(name))?),
            None => None,
        };
        let (claims, caller) = seen.map(|seen| (seen.claims, seen.caller)).unzip();
        Some(Known { epoch: remembered.epoch, claims, caller, place })
    }

    /// Forgets what was true at an epoch that is over.
    pub fn forget(&self, epoch: i64) {
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.epoch == epoch {
            remembered.begin(0);
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
                    self.remember(&known, token, name);
                    return Ok(known);
                }
            }
        }
        Err(Error::Retry)
    }

    fn remember(&self, known: &Known, token: Option<&str>, name: Option<&str>) {
        if self.0.read().unwrap_or_else(PoisonError::into_inner).epoch < known.epoch {
            let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if remembered.epoch < known.epoch {
                remembered.begin(known.epoch);
            }
        }
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if remembered.epoch != known.epoch {
            return;
        }
        // a token that is none is not remembered, nor a name: there are too many of them
        if let (Some(token), Some(claims), Some(caller)) = (token, &known.claims, &known.caller) {
            let seen = Seen { claims: Arc::clone(claims), caller: Arc::clone(caller) };
            remembered.tokens.insert(token.to_owned(), seen);
        }
        if let (Some(name), Some(place)) = (name, &known.place) {
            // however it is written, it is one
            remembered.places.insert(fold(name), Arc::clone(place));
        }
    }
}

impl Remembered {
    /// Forgets all, and begins an epoch.
    fn begin(&mut self, epoch: i64) {
        self.epoch = epoch;
        self.tokens.clear();
        self.places.clear();
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

    /// Looks up what is true of them: in one exchange, or two for a token that is a reference, whose it is
    /// having to be found first.
    ///
    /// # Errors
    /// [`Error::Stale`]: the key that signed was known at another epoch than this.
    pub fn look_up(&self, tx: &mut Tx<'_>) -> Result<Known, Error> {
        let signed = match &self.shown {
            Some(Shown::Signed(claims, _)) => Some((**claims).clone()),
            _ => None,
        };
        let mut looked = Looked::default();
        self.look_up_at_once(tx, signed.as_ref(), &mut looked)?;
        if matches!(self.shown, Some(Shown::Signed(_, Some(since))) if since != looked.epoch) {
            return Err(Error::Stale);
        }
        if let (None, Some(claims)) = (&signed, looked.claims.take()) {
            look_up_claims(tx, &claims, &mut looked)?;
            looked.claims = Some(claims);
        }
        let claims = signed.or(looked.claims).filter(|_| !looked.is_revoked).map(Arc::new);
        let caller = looked.caller.filter(|_| claims.is_some()).map(Arc::new);
        let place = looked.place.map(|mut place| {
            place.scope.options = Arc::new(Options::new(Owner::UserStore, looked.options));
            Arc::new(place)
        });
        Ok(Known { epoch: looked.epoch, claims, caller, place })
    }

    /// Looks up all that can be asked for without an answer to anything else.
    fn look_up_at_once(
        &self,
        tx: &mut Tx<'_>,
        signed: Option<&Claims>,
        looked: &mut Looked,
    ) -> Result<(), Error> {
        // the epoch first: what is read after it is no older
        let mut asking = Asking::default();
        asking.push(EPOCH.to_owned(), Vec::new(), |looked, row| {
            looked.epoch = row.int(0)?;
            Ok(())
        });
        if let Some(Shown::Reference(digest)) = &self.shown {
            let text = "SELECT claims FROM reference_token WHERE digest = ?1".to_owned();
            asking.push(text, vec![Value::Bytes(digest.clone())], |looked, row| {
                let broken = |_| Error::Internal("a kept token cannot be read".into());
                looked.claims = Some(serde_json::from_str(row.text(0)?).map_err(broken)?);
                Ok(())
            });
        }
        if let Some(claims) = signed {
            ask_of_claims(&mut asking, claims);
        }
        if let Some(name) = &self.name {
            ask_of_place(&mut asking, name);
        }
        asking.ask(tx, looked)
    }
}

/// What a look found.
#[derive(Default)]
struct Looked {
    epoch: i64,
    claims: Option<Claims>,
    is_revoked: bool,
    caller: Option<Caller>,
    place: Option<Place>,
    options: HashMap<String, String>,
}

/// What is done with a row.
type Take<'a> = Box<dyn Fn(&mut Looked, &Row<'_>) -> Result<(), Error> + 'a>;

/// Questions that are asked together.
#[derive(Default)]
struct Asking<'a>(Vec<(String, Vec<Value>, Take<'a>)>);

impl<'a> Asking<'a> {
    fn push(
        &mut self,
        text: String,
        parameters: Vec<Value>,
        take: impl Fn(&mut Looked, &Row<'_>) -> Result<(), Error> + 'a,
    ) {
        self.0.push((text, parameters, Box::new(take)));
    }

    fn ask(&self, tx: &mut Tx<'_>, looked: &mut Looked) -> Result<(), Error> {
        let statements: Vec<_> =
            self.0.iter().map(|(text, parameters, _)| (text.as_str(), parameters.as_slice())).collect();
        tx.query_all(&statements, &mut |place, row| match self.0.get(place) {
            Some((.., take)) => take(looked, row),
            None => Ok(()),
        })
    }
}

/// Looks up what is true of a token that was kept.
fn look_up_claims(tx: &mut Tx<'_>, claims: &Claims, looked: &mut Looked) -> Result<(), Error> {
    let mut asking = Asking::default();
    ask_of_claims(&mut asking, claims);
    asking.ask(tx, looked)
}

/// Whether a token was revoked, and whose rights it carries.
fn ask_of_claims<'a>(asking: &mut Asking<'a>, claims: &'a Claims) {
    let mut sql = Sql::new("SELECT 1 FROM revoked_token WHERE jti IN ");
    sql.add_list(std::iter::once(&claims.jti).chain(&claims.from_jti).map(|jti| jti.as_str().into()));
    asking.push(format!("{} LIMIT 1", sql.text), sql.parameters, |looked, _| {
        looked.is_revoked = true;
        Ok(())
    });
    ask_of_caller(asking, claims);
}

/// Whose rights a token carries. It counts while both who got it and whose rights it carries may use
/// tokens.
fn ask_of_caller<'a>(asking: &mut Asking<'a>, claims: &'a Claims) {
    let client = claims.sub;
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
    asking.push(text, parameters, move |looked, row| {
        let enabled = row.bool(0)? && row.bool(1)? && row.bool(7)? && row.bool(10)?;
        let needs_nonce = !row.is_null(8)? && row.bool(8)?;
        let (subscription, customer, holder) = (row.id(2)?, row.id(3)?, row.id(9)?);
        let caller = looked.caller.get_or_insert_with(|| Caller {
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
    });
}

/// A user store by its id or its name, with its options. A secret one is known to be there, no more.
///
/// # Errors
/// The store's.
pub fn load_store_context(tx: &mut Tx<'_>, name: &str) -> Result<Option<Place>, Error> {
    let opened = Opened { shown: None, name: Some(name.to_owned()) };
    Ok(opened.look_up(tx)?.place.map(Arc::unwrap_or_clone))
}

/// A user store by its id or its name, and its options.
fn ask_of_place(asking: &mut Asking<'_>, name: &str) {
    let (condition, key) = match parse_id(name) {
        Some(id) => ("i.id = ?1 AND i.store_name_key IS NOT NULL", Value::Id(id)),
        None => ("i.store_name_key = ?1", Value::Text(fold(name))),
    };
    let text = format!(
        "SELECT i.rid, i.id, i.name, i.subscription_id, s.customer_id, i.is_active, \
         (SELECT snapshot_number FROM passkey_trust WHERE source = 'mds') \
         FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id WHERE {condition}"
    );
    asking.push(text, vec![key.clone()], |looked, row| {
        looked.place = Some(Place {
            scope: StoreScope {
                number: row.int(0)?,
                id: row.id(1)?,
                name: row.text(2)?.to_owned(),
                options: Arc::new(Options::new(Owner::UserStore, HashMap::new())),
                metadata: if row.is_null(6)? { None } else { Some(row.int(6)?) },
            },
            subscription: row.id(3)?,
            customer: row.id(4)?,
            is_active: row.bool(5)?,
        });
        Ok(())
    });
    let text = format!(
        "SELECT o.name, o.value FROM idp_instance i JOIN option_value o ON o.apply_to_idp_instance_id = i.id \
         WHERE {condition}"
    );
    asking.push(text, vec![key], |looked, row| {
        looked.options.insert(row.text(0)?.to_owned(), row.text(1)?.to_owned());
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_resource::StoreScope;
    use chancery_resource::settings::{Options, Owner};
    use uuid::Uuid;

    use super::{Known, Place, REMEMBERED, Rights};

    fn at(epoch: i64) -> Known {
        let options = Arc::new(Options::new(Owner::UserStore, std::collections::HashMap::new()));
        let scope = StoreScope { number: 1, id: Uuid::nil(), name: "s".into(), options, metadata: None };
        let place = Place { scope, subscription: Uuid::nil(), customer: Uuid::nil(), is_active: true };
        Known { epoch, claims: None, caller: None, place: Some(Arc::new(place)) }
    }

    #[test]
    fn what_is_remembered_is_of_one_epoch() {
        let rights = Rights::default();
        let epoch = |name: &str| rights.recall(None, Some(name)).map(|known| known.epoch);
        rights.remember(&at(3), None, Some("A"));
        assert_eq!((epoch("a"), epoch("b")), (Some(3), None));
        rights.remember(&at(2), None, Some("b"));
        assert_eq!((epoch("a"), epoch("b")), (Some(3), None), "what was read before is not remembered");
        rights.remember(&at(4), None, Some("b"));
        assert_eq!((epoch("a"), epoch("b")), (None, Some(4)));
        rights.forget(3);
        assert_eq!(epoch("b"), Some(4), "that one was over already");
        rights.forget(4);
        assert_eq!(epoch("b"), None);
        // a server that lost its last commits goes on from an epoch that was
        rights.remember(&at(3), None, Some("b"));
        assert_eq!((epoch("a"), epoch("b")), (None, Some(3)));
    }

    /// Whoever is served all the time stays, however many others come and go.
    #[test]
    fn one_too_many_costs_no_other() {
        let rights = Rights::default();
        rights.remember(&at(1), None, Some("always"));
        for number in 0..3 * REMEMBERED {
            rights.remember(&at(1), None, Some(&format!("once-{number}")));
            assert!(rights.recall(None, Some("always")).is_some(), "after {number} others");
        }
        let kept = rights.0.read().unwrap().places.len();
        // each part of the cache is full for itself
        assert!(kept <= REMEMBERED + REMEMBERED / 20 && kept > REMEMBERED / 2, "{kept} are kept");
    }
}
