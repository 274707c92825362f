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
const KEPT: i64 = 5 * 60 * 1000;
/// The shortest time between two fetches of one address, in milliseconds, whether the first failed or an
/// assertion does not fit the cached keys.
const SOON: i64 = 30 * 1000;
/// The most addresses that are cached.
const MOST: usize = 1000;
/// The most concurrent fetches, of all and of one subscription: addresses that never answer hold up their own
/// subscription alone.
const AT_ONCE: (usize, usize) = (8, 2);
/// The seconds that a fetch may take.
const SECONDS: u64 = 5;

/// The published keys, cached by address.
pub struct RemoteKeys {
    pub policy: Policy,
    known: RwLock<HashMap<String, Kept>>,
    slots: Semaphore,
    shares: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

#[derive(Clone)]
struct Kept {
    /// When the keys were fetched.
    since: Timestamp,
    /// When the address was last fetched from, in vain or not.
    asked: Timestamp,
    keys: Arc<[Jwk]>,
}

const fn is_within(now: Timestamp, since: Timestamp, span: i64) -> bool {
    now.0 < since.0.saturating_add(span)
}

impl RemoteKeys {
    /// Fetches within this policy.
    pub fn new(policy: Policy) -> Self {
        Self { policy, known: RwLock::default(), slots: Semaphore::new(AT_ONCE.0), shares: Mutex::default() }
    }

    fn share_of(&self, subscription: Uuid) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        let kept = shares.entry(subscription).or_default();
        kept.upgrade().unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(AT_ONCE.1));
            *kept = Arc::downgrade(&share);
            share
        })
    }

    /// The keys that a client app of this subscription publishes at an address. `again`: the cached ones did
    /// not fit, so fetch anew. The caller bounds how long it waits.
    pub async fn at(&self, subscription: Uuid, url: &str, again: bool, now: Timestamp) -> Arc<[Jwk]> {
        let recall = || {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let kept = known.get(url)?;
            let is_good = !again && !kept.keys.is_empty() && is_within(now, kept.since, KEPT);
            (is_good || is_within(now, kept.asked, SOON)).then(|| Arc::clone(&kept.keys))
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
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // a fetch that fails must not drop keys that are still fresh
        let still = known.get(url).filter(|kept| is_within(now, kept.since, KEPT)).cloned();
        let kept = match (keys, still) {
            (None, Some(kept)) => Kept { asked: now, ..kept },
            (keys, _) => Kept { since: now, asked: now, keys: keys.unwrap_or_default().into() },
        };
        if known.len() >= MOST {
            known.retain(|_, kept| is_within(now, kept.since, KEPT));
        }
        if known.len() >= MOST && !known.contains_key(url) {
            let oldest = known.iter().min_by_key(|(_, kept)| kept.since).map(|(url, _)| url.clone());
            known.remove(&oldest.unwrap_or_default());
        }
        let keys = Arc::clone(&kept.keys);
        known.insert(url.to_owned(), kept);
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

    use super::{AT_ONCE, KEPT, MOST, RemoteKeys, SOON};

    const HOME: Uuid = Uuid::nil();

    const SET: &str =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    /// Serves one answer a connection, then closes the port.
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
    async fn keys_are_kept_for_a_while() {
        let keys = RemoteKeys::new(Policy {
            networks: "127.0.0.0/8".parse().unwrap(),
            plain_loopback: true,
            ..Policy::default()
        });
        let url = serve(vec![SET, "{}", SET]);
        assert_eq!(keys.at(HOME, &url, false, Timestamp(0)).await.len(), 1);
        assert_eq!(keys.at(HOME, &url, true, Timestamp(SOON - 1)).await.len(), 1, "not asked for so soon");
        assert_eq!(keys.at(HOME, &url, false, Timestamp(KEPT - 1)).await.len(), 1);
        assert_eq!(keys.at(HOME, &url, false, Timestamp(KEPT)).await.len(), 0, "what is no set has no keys");
        assert_eq!(keys.at(HOME, &url, false, Timestamp(KEPT + 1)).await.len(), 0, "not asked for so soon");
        assert_eq!(keys.at(HOME, &url, false, Timestamp(KEPT + SOON)).await.len(), 1);
        assert_eq!(keys.at(HOME, &url, true, Timestamp(KEPT + 2 * SOON)).await.len(), 1, "nobody answers");
    }

    /// Addresses that accept a connection and never answer do not keep others from being fetched.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn silence_holds_up_its_own_subscription_alone() {
        let keys = std::sync::Arc::new(RemoteKeys::new(Policy {
            networks: "127.0.0.0/8".parse().unwrap(),
            plain_loopback: true,
            ..Policy::default()
        }));
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", silent.local_addr().unwrap());
        let mut asked = Vec::new();
        for number in 0..2 * AT_ONCE.0 {
            let (keys, url) = (std::sync::Arc::clone(&keys), format!("{base}/{number}"));
            asked.push(tokio::spawn(async move { keys.at(HOME, &url, false, Timestamp(0)).await.len() }));
        }
        // as many fetches as may be concurrent have connected
        let _held = [silent.accept().unwrap(), silent.accept().unwrap()];
        let url = serve(vec![SET]);
        assert_eq!(keys.at(Uuid::from_u128(1), &url, false, Timestamp(0)).await.len(), 1);
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        asked.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn the_oldest_is_forgotten_first() {
        let keys = RemoteKeys::new(Policy::default());
        for number in 0..=i64::try_from(MOST).unwrap() {
            let url = format!("https://127.0.0.1/{number}");
            assert!(keys.at(HOME, &url, false, Timestamp(number)).await.is_empty());
        }
        let known = keys.known.read().unwrap();
        assert!(known.len() == MOST && !known.contains_key("https://127.0.0.1/0"));
    }

    #[tokio::test]
    async fn nothing_is_fetched_from_the_servers_own_network() {
        let keys = RemoteKeys::new(Policy::default());
        let url = serve(vec![SET]);
        assert!(keys.at(HOME, &url, false, Timestamp(0)).await.is_empty());
        assert!(keys.at(HOME, &url.replace("http:", "https:"), false, Timestamp(SOON)).await.is_empty());
    }
}
