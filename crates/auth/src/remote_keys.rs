//! Keys that clients publish at an address of their own (`jwksUri`): fetched within bounds, and cached.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use chancery_fetch::{Limits, Policy, get};
use chancery_oauth::{Jwk, JwkSet, MAX_LENGTH};
use chancery_record::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// How long keys are cached, in milliseconds.
const FRESH_FOR: i64 = 5 * 60 * 1000;
/// The shortest time between two fetches of one address, in milliseconds, after a failure or for an assertion that the
/// cached keys do not verify.
const RETRY_AFTER: i64 = 30 * 1000;
/// The most addresses that are cached.
const MAX_CACHED: usize = 1000;
/// The most concurrent fetches, in all and of one subscription: unresponsive addresses delay only their own subscription.
const CONCURRENCY: (usize, usize) = (8, 2);
/// The seconds that a fetch may take.
const SECONDS: u64 = 5;

/// The published keys, cached by address.
pub struct RemoteKeys {
    pub policy: Policy,
    cache: RwLock<HashMap<String, CachedKeys>>,
    slots: Semaphore,
    shares: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

#[derive(Clone)]
struct CachedKeys {
    /// When the keys were fetched.
    since: Timestamp,
    /// When the last fetch from the address was attempted.
    attempted: Timestamp,
    keys: Arc<[Jwk]>,
}

const fn is_within(now: Timestamp, since: Timestamp, span: i64) -> bool {
    now.0 < since.0.saturating_add(span)
}

impl RemoteKeys {
    /// Fetches within this policy.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            cache: RwLock::default(),
            slots: Semaphore::new(CONCURRENCY.0),
            shares: Mutex::default(),
        }
    }

    fn share_of(&self, subscription: Uuid) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        let weak = shares.entry(subscription).or_default();
        weak.upgrade().unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(CONCURRENCY.1));
            *weak = Arc::downgrade(&share);
            share
        })
    }

    /// The keys that a client app of this subscription publishes at an address; `refetch`: the cached ones did not
    /// verify. The caller limits how long it waits.
    pub async fn at(&self, subscription: Uuid, url: &str, refetch: bool, now: Timestamp) -> Arc<[Jwk]> {
        let recall = || {
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            let cached = cache.get(url)?;
            let is_fresh = !refetch && !cached.keys.is_empty() && is_within(now, cached.since, FRESH_FOR);
            (is_fresh || is_within(now, cached.attempted, RETRY_AFTER)).then(|| Arc::clone(&cached.keys))
        };
        if let Some(keys) = recall() {
            return keys;
        }
        let share = self.share_of(subscription);
        let Ok(_share) = share.acquire().await else { return Arc::from([]) };
        let Ok(_slot) = self.slots.acquire().await else { return Arc::from([]) };
        // another request may have fetched them while this one waited
        if let Some(keys) = recall() {
            return keys;
        }
        let fetched = get(url, Limits { bytes: MAX_LENGTH, seconds: SECONDS }, &self.policy).await;
        if let Err(failure) = &fetched {
            tracing::warn!(url, %failure, "the keys of a client app cannot be fetched");
        }
        let keys = fetched.ok().and_then(|bytes| JwkSet::parse(&bytes).ok()).map(|set| set.keys);
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        // a fetch that fails must not drop keys that are still fresh
        let still = cache.get(url).filter(|cached| is_within(now, cached.since, FRESH_FOR)).cloned();
        let cached = match (keys, still) {
            (None, Some(cached)) => CachedKeys { attempted: now, ..cached },
            (keys, _) => CachedKeys { since: now, attempted: now, keys: keys.unwrap_or_default().into() },
        };
        if cache.len() >= MAX_CACHED {
            cache.retain(|_, cached| is_within(now, cached.since, FRESH_FOR));
        }
        if cache.len() >= MAX_CACHED && !cache.contains_key(url) {
            let oldest = cache.iter().min_by_key(|(_, cached)| cached.since).map(|(url, _)| url.clone());
            cache.remove(&oldest.unwrap_or_default());
        }
        let keys = Arc::clone(&cached.keys);
        cache.insert(url.to_owned(), cached);
        keys
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    use chancery_fetch::Policy;
    use chancery_record::Timestamp;

    use uuid::Uuid;

    use super::{CONCURRENCY, FRESH_FOR, MAX_CACHED, RETRY_AFTER, RemoteKeys};

    const SUBSCRIPTION: Uuid = Uuid::nil();

    const SET: &str =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    /// Serves one response per connection, then closes the port.
    fn serve(answers: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for body in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        url
    }

    #[tokio::test]
    async fn keys_are_cached_for_a_while() {
        let keys = RemoteKeys::new(Policy {
            networks: "127.0.0.0/8".parse().unwrap(),
            plain_loopback: true,
            ..Policy::default()
        });
        let url = serve(vec![SET, "{}", SET]);
        assert_eq!(keys.at(SUBSCRIPTION, &url, false, Timestamp(0)).await.len(), 1);
        assert_eq!(
            keys.at(SUBSCRIPTION, &url, true, Timestamp(RETRY_AFTER - 1)).await.len(),
            1,
            "not asked for so soon"
        );
        assert_eq!(keys.at(SUBSCRIPTION, &url, false, Timestamp(FRESH_FOR - 1)).await.len(), 1);
        assert_eq!(
            keys.at(SUBSCRIPTION, &url, false, Timestamp(FRESH_FOR)).await.len(),
            0,
            "what is no set has no keys"
        );
        assert_eq!(
            keys.at(SUBSCRIPTION, &url, false, Timestamp(FRESH_FOR + 1)).await.len(),
            0,
            "not asked for so soon"
        );
        assert_eq!(keys.at(SUBSCRIPTION, &url, false, Timestamp(FRESH_FOR + RETRY_AFTER)).await.len(), 1);
        assert_eq!(
            keys.at(SUBSCRIPTION, &url, true, Timestamp(FRESH_FOR + 2 * RETRY_AFTER)).await.len(),
            1,
            "nobody answers"
        );
    }

    /// Addresses that accept a connection and never respond do not block others.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn unresponsive_addresses_delay_only_their_own_subscription() {
        let keys = std::sync::Arc::new(RemoteKeys::new(Policy {
            networks: "127.0.0.0/8".parse().unwrap(),
            plain_loopback: true,
            ..Policy::default()
        }));
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", silent.local_addr().unwrap());
        let mut fetches = Vec::new();
        for number in 0..2 * CONCURRENCY.0 {
            let (keys, url) = (std::sync::Arc::clone(&keys), format!("{base}/{number}"));
            fetches.push(tokio::spawn(async move {
                keys.at(SUBSCRIPTION, &url, false, Timestamp(0)).await.len()
            }));
        }
        // as many fetches as may be concurrent have connected
        let _held = [silent.accept().unwrap(), silent.accept().unwrap()];
        let url = serve(vec![SET]);
        assert_eq!(keys.at(Uuid::from_u128(1), &url, false, Timestamp(0)).await.len(), 1);
        assert!(fetches.iter().all(|fetch| !fetch.is_finished()));
        fetches.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn the_oldest_entry_is_evicted_first() {
        let keys = RemoteKeys::new(Policy::default());
        for number in 0..=i64::try_from(MAX_CACHED).unwrap() {
            let url = format!("https://127.0.0.1/{number}");
            assert!(keys.at(SUBSCRIPTION, &url, false, Timestamp(number)).await.is_empty());
        }
        let cache = keys.cache.read().unwrap();
        assert!(cache.len() == MAX_CACHED && !cache.contains_key("https://127.0.0.1/0"));
    }

    #[tokio::test]
    async fn nothing_is_fetched_from_the_servers_own_network() {
        let keys = RemoteKeys::new(Policy::default());
        let url = serve(vec![SET]);
        assert!(keys.at(SUBSCRIPTION, &url, false, Timestamp(0)).await.is_empty());
        assert!(
            keys.at(SUBSCRIPTION, &url.replace("http:", "https:"), false, Timestamp(RETRY_AFTER))
                .await
                .is_empty()
        );
    }
}
