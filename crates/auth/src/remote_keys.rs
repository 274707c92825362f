//! Keys that clients publish at an address of their own (`jwksUri`): fetched with bounds, kept for a
//! while.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_fetch::{Limits, Policy, get};
use chancery_oauth::{Jwk, JwkSet, MAX_LENGTH};
use chancery_record::Timestamp;
use tokio::sync::Semaphore;

/// How long keys are kept, in milliseconds.
const KEPT: i64 = 5 * 60 * 1000;
/// How long it is kept that there are none, and how soon keys are asked for again when an assertion
/// does not fit those that are kept, in milliseconds.
const SOON: i64 = 30 * 1000;
/// Addresses that are remembered.
const MOST: usize = 1000;
/// Fetches at once.
const AT_ONCE: usize = 8;
/// Seconds that a fetch may take.
const SECONDS: u64 = 5;

/// Keys by their address.
pub struct RemoteKeys {
    policy: Policy,
    known: RwLock<HashMap<String, Kept>>,
    places: Semaphore,
}

#[derive(Clone)]
struct Kept {
    /// When they were fetched.
    since: Timestamp,
    /// When they were last asked for.
    asked: Timestamp,
    keys: Arc<[Jwk]>,
}

const fn is_within(now: Timestamp, since: Timestamp, span: i64) -> bool {
    now.0 < since.0.saturating_add(span)
}

impl RemoteKeys {
    /// With what may be fetched.
    pub fn new(policy: Policy) -> Self {
        Self { policy, known: RwLock::default(), places: Semaphore::new(AT_ONCE) }
    }

    /// The keys at an address. `again`: those that were kept did not fit, so newer ones are wanted.
    pub async fn at(&self, url: &str, again: bool, now: Timestamp) -> Arc<[Jwk]> {
        let recall = || {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let kept = known.get(url)?;
            let is_good = !again && !kept.keys.is_empty() && is_within(now, kept.since, KEPT);
            (is_good || is_within(now, kept.asked, SOON)).then(|| Arc::clone(&kept.keys))
        };
        if let Some(keys) = recall() {
            return keys;
        }
        let Ok(_place) = self.places.acquire().await else { return Arc::from([]) };
        // somebody else may have fetched them while this one waited
        if let Some(keys) = recall() {
            return keys;
        }
        let fetched = get(url, Limits { bytes: MAX_LENGTH, seconds: SECONDS }, &self.policy).await;
        if let Err(failure) = &fetched {
            tracing::warn!(url, %failure, "the keys of a client app cannot be fetched");
        }
        let keys = fetched.ok().and_then(|bytes| JwkSet::parse(&bytes).ok()).map(|set| set.keys);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // an address that fails for a moment does not take away what is still good
        let still = known.get(url).filter(|kept| is_within(now, kept.since, KEPT)).cloned();
        let kept = match (keys, still) {
            (None, Some(kept)) => Kept { asked: now, ..kept },
            (keys, _) => Kept { since: now, asked: now, keys: keys.unwrap_or_default().into() },
        };
        if known.len() >= MOST {
            known.retain(|_, kept| is_within(now, kept.since, KEPT));
        }
        if known.len() >= MOST {
            known.clear();
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

    use super::{KEPT, RemoteKeys, SOON};

    const SET: &str =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    /// Serves one answer a connection, then is gone.
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
        let keys = RemoteKeys::new(Policy { plain_loopback: true, ..Policy::default() });
        let url = serve(vec![SET, "{}", SET]);
        assert_eq!(keys.at(&url, false, Timestamp(0)).await.len(), 1);
        assert_eq!(keys.at(&url, true, Timestamp(SOON - 1)).await.len(), 1, "not asked for so soon");
        assert_eq!(keys.at(&url, false, Timestamp(KEPT - 1)).await.len(), 1);
        assert_eq!(keys.at(&url, false, Timestamp(KEPT)).await.len(), 0, "what is no set has no keys");
        assert_eq!(keys.at(&url, false, Timestamp(KEPT + 1)).await.len(), 0, "not asked for so soon");
        assert_eq!(keys.at(&url, false, Timestamp(KEPT + SOON)).await.len(), 1);
        assert_eq!(keys.at(&url, true, Timestamp(KEPT + 2 * SOON)).await.len(), 1, "nobody answers");
    }

    #[tokio::test]
    async fn nothing_is_fetched_from_the_servers_own_network() {
        let keys = RemoteKeys::new(Policy::default());
        let url = serve(vec![SET]);
        assert!(keys.at(&url, false, Timestamp(0)).await.is_empty());
        assert!(keys.at(&url.replace("http:", "https:"), false, Timestamp(SOON)).await.is_empty());
    }
}
