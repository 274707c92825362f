//! The rights of callers: looked up in the database, cached until the security epoch advances.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_record::{Timestamp, Value, fold, parse_id};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{HeldRole, Lineage, RoleType, ScopeKind, Sql, StoreScope};
use chancery_store::{EPOCH, Error, Mode, Row, Store, Tx};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::{Claims, TokenService, client::serves, person, token_service::OpenedToken};

/// The number of tokens, and of stores, that are cached. Of more, the least used are evicted one by one.
const CACHED: usize = 10_000;
/// How often a token is opened again because keys changed before the look-up, which follows at once.
const STALE: usize = 64;

/// A client app, or a person who signed in to one, as a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client app, or the platform user, whose rights the token carries.
    pub id: Uuid,
    /// The client app that the token was issued to.
    pub holder: Uuid,
    /// Whether it is a platform user.
    pub is_person: bool,
    /// Whether both client apps may use tokens now.
    pub enabled: bool,
    /// Whether DPoP proofs of the holder need a nonce.
    pub needs_nonce: bool,
    /// The holder's subscription.
    pub subscription: Uuid,
    /// The roles of the client app or person whose rights these are.
    pub roles: Vec<HeldRole>,
}

impl Caller {
    /// The client app that acts for another, with a token exchanged for the other's. A person acts through a client app.
    pub fn acting(&self) -> Option<Uuid> {
        (!self.is_person && self.holder != self.id).then_some(self.holder)
    }
}

/// A user store with its subscription and customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreContext {
    /// The store.
    pub scope: StoreScope,
    /// The store's subscription.
    pub subscription: Uuid,
    /// The store's customer.
    pub customer: Uuid,
    /// Whether the store is active.
    pub is_active: bool,
}

/// Caches tokens and rights of one epoch.
#[derive(Default)]
pub struct Rights(RwLock<EpochCache>);

/// The cache of one epoch. Changing the epoch clears it and takes the lock exclusively; adding to it does
/// not.
struct EpochCache {
    epoch: i64,
    tokens: Cache<String, CachedToken>,
    stores: Cache<String, Arc<StoreContext>>,
}

impl Default for EpochCache {
    fn default() -> Self {
        Self { epoch: 0, tokens: Cache::new(CACHED), stores: Cache::new(CACHED) }
    }
}

#[derive(Clone)]
struct CachedToken {
    claims: Arc<Claims>,
    caller: Arc<Caller>,
}

/// The security context of a request: the token, its caller, the store that the path names, and the epoch.
#[derive(Clone, Debug)]
pub struct SecurityContext {
    /// The epoch at which all of this was read.
    pub epoch: i64,
    /// The claims of the token, if one was presented and is valid. The caller checks when it expires.
    pub claims: Option<Arc<Claims>>,
    /// The caller whose rights the token carries, if that client app or person exists and the person's grant is active.
    pub caller: Option<Arc<Caller>>,
    /// The store, if the path names one that exists.
    pub store: Option<Arc<StoreContext>>,
}

impl Rights {
    /// The cached rights, if both token and store are cached.
    pub fn recall(&self, token: Option<&str>, store: Option<&str>) -> Option<SecurityContext> {
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let cached = match token {
            Some(token) => Some(cache.tokens.get(token)?),
            None => None,
        };
        let store = match store {
            Some(name) => Some(cache.stores.get(&fold(name))?),
            None => None,
        };
        let (claims, caller) = cached.map(|cached| (cached.claims, cached.caller)).unzip();
        Some(SecurityContext { epoch: cache.epoch, claims, caller, store })
    }

    /// Clears the cache, if it is of this epoch, which is over.
    pub fn forget(&self, epoch: i64) {
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cache.epoch == epoch {
            cache.begin(0);
        }
    }

    /// Looks up the rights of a token and the store of this name, and caches them.
    pub async fn load(
        &self,
        store: &Store,
        token_service: &TokenService,
        token: Option<&str>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<SecurityContext, Error> {
        for _ in 0..STALE {
            let lookup = RightsLookup::new(store, token_service, token, name, now).await?;
            let context = store.run("LoadRights", Mode::Quick, None, move |tx| lookup.look_up(tx)).await;
            match context {
                Err(Error::Stale) => {}
                Err(error) => return Err(error),
                Ok(context) => {
                    self.remember(&context, token, name);
                    return Ok(context);
                }
            }
        }
        Err(Error::Retry)
    }

    fn remember(&self, context: &SecurityContext, token: Option<&str>, name: Option<&str>) {
        if self.0.read().unwrap_or_else(PoisonError::into_inner).epoch < context.epoch {
            let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if cache.epoch < context.epoch {
                cache.begin(context.epoch);
            }
        }
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if cache.epoch != context.epoch {
            return;
        }
        // an invalid token or an unknown name is not cached: their number is unlimited. Nor is a person's token: ending a
        // grant advances no epoch
        if let (Some(token), Some(claims), Some(caller)) = (token, &context.claims, &context.caller)
            && !caller.is_person
        {
            let cached = CachedToken { claims: Arc::clone(claims), caller: Arc::clone(caller) };
            cache.tokens.insert(token.to_owned(), cached);
        }
        if let (Some(name), Some(store)) = (name, &context.store) {
            // one entry for the store, in whichever case its name is written
            cache.stores.insert(fold(name), Arc::clone(store));
        }
    }
}

impl EpochCache {
    /// Clears the cache for a new epoch.
    fn begin(&mut self, epoch: i64) {
        self.epoch = epoch;
        self.tokens.clear();
        self.stores.clear();
    }
}

/// An opened token and the name of a store, by which rights are looked up.
pub struct RightsLookup {
    token: Option<OpenedToken>,
    name: Option<String>,
    now: Timestamp,
}

impl RightsLookup {
    /// Opens a token, if there is one. An invalid one has no caller.
    pub async fn new(
        store: &Store,
        token_service: &TokenService,
        token: Option<&str>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let token = match token {
            Some(token) => token_service.open(store, token, now).await?,
            None => None,
        };
        Ok(Self { token, name: name.map(str::to_owned), now })
    }

    /// Looks up the rights in one exchange with the database, or in two for a reference token, whose claims
    /// must be found first.
    ///
    /// # Errors
    /// [`Error::Stale`]: the signature was verified with a key of another epoch. Errors of the store.
    pub fn look_up(&self, tx: &mut Tx<'_>) -> Result<SecurityContext, Error> {
        let signed = match &self.token {
            Some(OpenedToken::Signed(claims, _)) => Some((**claims).clone()),
            _ => None,
        };
        let mut result = LookupResult::default();
        self.look_up_independent(tx, signed.as_ref(), &mut result)?;
        if matches!(self.token, Some(OpenedToken::Signed(_, Some(since))) if since != result.epoch) {
            return Err(Error::Stale);
        }
        if let (None, Some(claims)) = (&signed, result.claims.take()) {
            look_up_claims(tx, &claims, &mut result)?;
            result.claims = Some(claims);
        }
        let claims = signed.or(result.claims).filter(|_| !result.is_revoked).map(Arc::new);
        if let Some(claims) = claims.as_ref().filter(|claims| claims.gid.is_some()) {
            result.caller = person::look_up(tx, claims, self.now)?;
        }
        let caller = result.caller.filter(|_| claims.is_some()).map(Arc::new);
        let store = result.store.map(|mut store| {
            store.scope.options = Arc::new(Options::<UserStoreOption>::new(result.options));
            Arc::new(store)
        });
        Ok(SecurityContext { epoch: result.epoch, claims, caller, store })
    }

    /// Runs the statements that do not depend on each other.
    fn look_up_independent(
        &self,
        tx: &mut Tx<'_>,
        signed: Option<&Claims>,
        result: &mut LookupResult,
    ) -> Result<(), Error> {
        // the epoch is read first, so that what follows is no older
        let mut queries = Queries::default();
        queries.push(EPOCH.to_owned(), Vec::new(), |result, row| {
            result.epoch = row.int(0)?;
            Ok(())
        });
        if let Some(OpenedToken::Reference(digest)) = &self.token {
            let text = "SELECT claims FROM reference_token WHERE digest = ?1".to_owned();
            queries.push(text, vec![Value::Bytes(digest.clone())], |result, row| {
                let broken = |_| Error::Internal("a kept token cannot be read".into());
                result.claims = Some(serde_json::from_str(row.text(0)?).map_err(broken)?);
                Ok(())
            });
        }
        if let Some(claims) = signed {
            query_token(&mut queries, claims);
        }
        if let Some(name) = &self.name {
            query_store(&mut queries, name);
        }
        queries.run(tx, result)
    }
}

/// The result of the statements.
#[derive(Default)]
struct LookupResult {
    epoch: i64,
    claims: Option<Claims>,
    is_revoked: bool,
    caller: Option<Caller>,
    store: Option<StoreContext>,
    options: HashMap<String, String>,
}

/// Handles a row of a statement.
type RowHandler<'a> = Box<dyn Fn(&mut LookupResult, &Row<'_>) -> Result<(), Error> + 'a>;

/// Statements for one round trip, each with its row handler.
#[derive(Default)]
struct Queries<'a>(Vec<(String, Vec<Value>, RowHandler<'a>)>);

impl<'a> Queries<'a> {
    fn push(
        &mut self,
        text: String,
        parameters: Vec<Value>,
        on_row: impl Fn(&mut LookupResult, &Row<'_>) -> Result<(), Error> + 'a,
    ) {
        self.0.push((text, parameters, Box::new(on_row)));
    }

    fn run(&self, tx: &mut Tx<'_>, result: &mut LookupResult) -> Result<(), Error> {
        let statements: Vec<_> =
            self.0.iter().map(|(text, parameters, _)| (text.as_str(), parameters.as_slice())).collect();
        tx.query_all(&statements, &mut |index, row| match self.0.get(index) {
            Some((.., on_row)) => on_row(result, row),
            None => Ok(()),
        })
    }
}

/// Looks up the rights of a reference token by its stored claims.
fn look_up_claims(tx: &mut Tx<'_>, claims: &Claims, result: &mut LookupResult) -> Result<(), Error> {
    let mut queries = Queries::default();
    query_token(&mut queries, claims);
    queries.run(tx, result)
}

/// Adds the statements that find whether a token was revoked, and its caller.
fn query_token<'a>(queries: &mut Queries<'a>, claims: &'a Claims) {
    let mut sql = Sql::new("SELECT 1 FROM revoked_token WHERE jti IN ");
    sql.add_list(std::iter::once(&claims.jti).chain(&claims.from_jti).map(|jti| jti.as_str().into()));
    queries.push(format!("{} LIMIT 1", sql.text), sql.parameters, |result, _| {
        result.is_revoked = true;
        Ok(())
    });
    // a person may have the id of a client app: the person's token must not carry its rights
    if claims.gid.is_none() {
        query_caller(queries, claims);
    }
}

/// Adds the statement that finds a token's caller, enabled while both the client app that the token was
/// issued to and the one whose rights it carries may use tokens.
fn query_caller<'a>(queries: &mut Queries<'a>, claims: &'a Claims) {
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
    queries.push(text, parameters, move |result, row| {
        let enabled = row.bool(0)? && row.bool(1)? && row.bool(7)? && row.bool(10)?;
        let needs_nonce = !row.is_null(8)? && row.bool(8)?;
        let (subscription, customer, holder) = (row.id(2)?, row.id(3)?, row.id(9)?);
        let caller = result.caller.get_or_insert_with(|| Caller {
            id: client,
            holder: claims.client_id,
            is_person: false,
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

/// A user store by its id or its name, with its options. The value of a secret option stays encrypted.
pub fn load_store_context(tx: &mut Tx<'_>, name: &str) -> Result<Option<StoreContext>, Error> {
    // only persons' tokens need the time
    let lookup = RightsLookup { token: None, name: Some(name.to_owned()), now: Timestamp(0) };
    Ok(lookup.look_up(tx)?.store.map(Arc::unwrap_or_clone))
}

/// Adds the statements that find a user store by its id or its name, and its options.
fn query_store(queries: &mut Queries<'_>, name: &str) {
    let (condition, key) = match parse_id(name) {
        Some(id) => ("i.id = ?1 AND i.store_name_key IS NOT NULL", Value::Id(id)),
        None => ("i.store_name_key = ?1", Value::Text(fold(name))),
    };
    let text = format!(
        "SELECT i.rid, i.id, i.name, i.subscription_id, s.customer_id, i.is_active, \
         (SELECT snapshot_number FROM passkey_trust WHERE source = 'mds'), \
         (SELECT t.id FROM tenant_idp_instance l JOIN tenant t ON t.rid = l.tenant_rid WHERE l.idp_instance_rid = i.rid \
         AND NOT EXISTS (SELECT 1 FROM tenant_idp_instance o WHERE o.idp_instance_rid = i.rid \
         AND o.tenant_rid <> l.tenant_rid)) FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id WHERE {condition}"
    );
    queries.push(text, vec![key.clone()], |result, row| {
        let (id, subscription, customer) = (row.id(1)?, row.id(3)?, row.id(4)?);
        let lineage = Lineage {
            customer: Some(customer),
            subscription: Some(subscription),
            tenant: row.optional_id(7)?,
            instance: Some(id),
        };
        result.store = Some(StoreContext {
            scope: StoreScope {
                number: row.int(0)?,
                id,
                lineage,
                name: row.text(2)?.to_owned(),
                options: Arc::new(Options::<UserStoreOption>::new(HashMap::new())),
                metadata: if row.is_null(6)? { None } else { Some(row.int(6)?) },
            },
            subscription,
            customer,
            is_active: row.bool(5)?,
        });
        Ok(())
    });
    let text = format!(
        "SELECT o.name, o.value FROM idp_instance i JOIN option_value o ON o.apply_to_idp_instance_id = i.id \
         WHERE {condition}"
    );
    queries.push(text, vec![key], |result, row| {
        result.options.insert(row.text(0)?.to_owned(), row.text(1)?.to_owned());
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_resource::settings::{Options, UserStoreOption};
    use chancery_resource::{Lineage, StoreScope};
    use uuid::Uuid;

    use super::{CACHED, Rights, SecurityContext, StoreContext};

    fn at(epoch: i64) -> SecurityContext {
        let options = Arc::new(Options::<UserStoreOption>::new(std::collections::HashMap::new()));
        let (id, lineage) = (Uuid::nil(), Lineage::default());
        let scope = StoreScope { number: 1, id, name: "s".into(), lineage, options, metadata: None };
        let store = StoreContext { scope, subscription: Uuid::nil(), customer: Uuid::nil(), is_active: true };
        SecurityContext { epoch, claims: None, caller: None, store: Some(Arc::new(store)) }
    }

    #[test]
    fn the_cache_is_of_one_epoch() {
        let rights = Rights::default();
        let epoch = |name: &str| rights.recall(None, Some(name)).map(|context| context.epoch);
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
        // a database that lost its last commits continues from an earlier epoch
        rights.remember(&at(3), None, Some("b"));
        assert_eq!((epoch("a"), epoch("b")), (None, Some(3)));
    }

    /// An entry in constant use stays cached, however many others come and go.
    #[test]
    fn an_entry_in_use_is_not_evicted() {
        let rights = Rights::default();
        rights.remember(&at(1), None, Some("always"));
        for number in 0..3 * CACHED {
            rights.remember(&at(1), None, Some(&format!("once-{number}")));
            assert!(rights.recall(None, Some("always")).is_some(), "after {number} others");
        }
        let cached = rights.0.read().unwrap().stores.len();
        // the cache has shards, each with a capacity of its own
        assert!(cached <= CACHED + CACHED / 20 && cached > CACHED / 2, "{cached} are kept");
    }
}
