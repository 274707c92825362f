//! The rights of callers: looked up in the database, cached until the security epoch advances.

use std::sync::{Arc, PoisonError, RwLock};

use chancery_record::{Timestamp, fold};
use chancery_store::{Error, Mode, Store, Tx};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::{
    Caller, Claims, RightsLookup, SecurityContext, StoreContext, TokenService,
    rights_lookup::IntrospectionAccess, token_service::OpenedToken,
};

/// The number of tokens, and of stores, that are cached. Of more, the least used are evicted one by one.
const CACHED: usize = 10_000;
/// How often a token is opened again because keys changed before the look-up, which follows at once.
const STALE: usize = 64;

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
    /// `None` for a person's token: the person is looked up each time, since the end of a grant does not advance the epoch.
    caller: Option<Arc<Caller>>,
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
        let (claims, caller) = match cached {
            Some(cached) => (Some(cached.claims), Some(cached.caller?)),
            None => (None, None),
        };
        Some(SecurityContext { epoch: cache.epoch, claims, caller, store })
    }

    /// The claims of a cached token, with the epoch at which its signature was verified.
    fn verified_claims(&self, token: &str) -> Option<OpenedToken> {
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(OpenedToken::Signed(cache.tokens.get(token)?.claims, Some(cache.epoch)))
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
        Ok(self.load_for(store, token_service, token, name, None, now).await?.0)
    }

    /// The same, of a token that a client app introspects, and whether that client app owns a resource that the token is for,
    /// or administers everything.
    pub async fn load_introspected(
        &self,
        store: &Store,
        token_service: &TokenService,
        token: &str,
        client: Uuid,
        now: Timestamp,
    ) -> Result<(SecurityContext, IntrospectionAccess), Error> {
        self.load_for(store, token_service, Some(token), None, Some(client), now).await
    }

    async fn load_for(
        &self,
        store: &Store,
        token_service: &TokenService,
        token: Option<&str>,
        name: Option<&str>,
        introspecting: Option<Uuid>,
        now: Timestamp,
    ) -> Result<(SecurityContext, IntrospectionAccess), Error> {
        for attempt in 0..STALE {
            let verified = token.filter(|_| attempt == 0).and_then(|token| self.verified_claims(token));
            let opened = match (token, verified) {
                (_, Some(verified)) => Some(verified),
                // the epoch of cached certificates is checked with the rights
                (Some(token), None) => token_service.open(store, token, attempt > 0, now).await?,
                (None, None) => None,
            };
            let lookup = RightsLookup { token: opened, name: name.map(str::to_owned), now };
            let looking = move |tx: &mut Tx<'_>| lookup.look_up_for(tx, introspecting);
            match store.run("LoadRights", Mode::Quick, None, looking).await {
                Err(Error::Stale) => {}
                Err(error) => return Err(error),
                Ok((context, access)) => {
                    self.remember(&context, token, name);
                    return Ok((context, access));
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
        // an invalid token or an unknown name is not cached: their number is unlimited. Nor is a person's reference token:
        // whether it is stored is looked up each time
        if let (Some(token), Some(claims), Some(caller)) = (token, &context.claims, &context.caller)
            && (!caller.is_person || is_signed(token))
        {
            let caller = (!caller.is_person).then(|| Arc::clone(caller));
            cache.tokens.insert(token.to_owned(), CachedToken { claims: Arc::clone(claims), caller });
        }
        if let (Some(name), Some(store)) = (name, &context.store) {
            // one entry for the store, in whichever case its name is written
            cache.stores.insert(fold(name), Arc::clone(store));
        }
    }
}

/// Whether a token is a JWT; else it is a reference.
fn is_signed(token: &str) -> bool {
    token.contains('.')
}

impl EpochCache {
    /// Clears the cache for a new epoch.
    fn begin(&mut self, epoch: i64) {
        self.epoch = epoch;
        self.tokens.clear();
        self.stores.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_resource::settings::{Options, UserStoreOption};
    use chancery_resource::{Lineage, StoreScope};
    use uuid::Uuid;

    use super::{CACHED, Rights};
    use crate::{SecurityContext, StoreContext};

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
