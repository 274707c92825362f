//! Cache of the documents of providers: discovery documents and keys, which each sign-in needs.

use std::{sync::Arc, time::Instant};

use chancery_record::Timestamp;
use chancery_resource::{OutboundRequest, SendOutbound};
use quick_cache::sync::{Cache, EntryAction, EntryResult};

/// The capacity in addresses: two for each provider, each with the last good document and the last attempt, of 256 KiB at most.
const CAPACITY: usize = 200;
/// The time to live of a good document, in ms.
pub const DOCUMENT_TTL_MS: i64 = 5 * 60_000;
/// The maximum age of the discovery document for a redirect to a provider, in ms: from a provider that is down the browser has
/// no way back.
pub const REDIRECT_MAX_AGE_MS: i64 = 30_000;
/// The same for a browser that was redirected there before and did not come back, in ms.
pub const RETRY_MAX_AGE_MS: i64 = 1_000;
/// The time to live of a failed fetch or an invalid document, in ms.
const FAILED_MS: i64 = 10_000;

/// A document, or the reason why there is none.
type FetchedDocument = Result<Arc<Vec<u8>>, String>;

/// The last attempt to read a document.
#[derive(Clone)]
struct Attempt {
    result: FetchedDocument,
    /// Whether it returned a valid document.
    is_good: bool,
    /// When it ended.
    on: Timestamp,
}

/// The cached documents of all providers.
pub struct Documents {
    /// The last valid document of each address. It outlives failed attempts.
    good: Cache<String, (Arc<Vec<u8>>, Timestamp)>,
    /// The last attempt at each address. A running attempt locks its entry, and other requests wait for it.
    attempts: Cache<String, Attempt>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { good: Cache::new(CAPACITY), attempts: Cache::new(CAPACITY) }
    }
}

impl Documents {
    fn store_if_good(&self, url: &str, attempt: &Attempt) {
        if let (true, Ok(document)) = (attempt.is_good, &attempt.result) {
            self.good.insert(url.to_owned(), (Arc::clone(document), attempt.on));
        }
    }
}

/// The HTTP client of one provider.
#[derive(Clone)]
pub struct ProviderClient {
    /// Sends requests.
    pub send: SendOutbound,
    /// The cache; `None` reads each document anew, as a trial does.
    pub documents: Option<Arc<Documents>>,
    /// The maximum age of a cached good document in ms, at most [`DOCUMENT_TTL_MS`].
    pub max_age_ms: i64,
    /// The time.
    pub now: Timestamp,
}

impl ProviderClient {
    /// The document at this address, and whether it came from the cache, where it can be stale. Simultaneous requests share one
    /// attempt to read it. A document that `is_good` rejects has the time to live of a failed fetch.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn document(
        &self,
        url: &str,
        is_good: impl Fn(&[u8]) -> bool + Send,
    ) -> Result<(Arc<Vec<u8>>, bool), String> {
        let Some(documents) = &self.documents else { return Ok((self.read(url).await?, false)) };
        // the browser returned from the provider, which was up then: later failures do not count, and no attempt is awaited
        if self.max_age_ms == DOCUMENT_TTL_MS
            && let Some((document, on)) = documents.good.get(url)
            && self.is_fresh(on, DOCUMENT_TTL_MS)
        {
            return Ok((document, true));
        }
        let entry = documents.attempts.entry_async(url, |_, attempt| {
            let max_age_ms = if attempt.is_good { self.max_age_ms } else { FAILED_MS };
            if self.is_fresh(attempt.on, max_age_ms) {
                EntryAction::Retain(attempt.result.clone())
            } else {
                EntryAction::ReplaceWithGuard
            }
        });
        let guard = match entry.await {
            EntryResult::Retained(result) => return Ok((result?, true)),
            EntryResult::Replaced(guard, _) | EntryResult::Vacant(guard) => guard,
            EntryResult::Removed(..) | EntryResult::Timeout => {
                return Err("the cache of provider documents is unavailable".to_owned());
            }
        };
        let began = Instant::now();
        let result = self.read(url).await;
        let on = self.now.plus(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let is_good = result.as_ref().is_ok_and(|document| is_good(document));
        let attempt = Attempt { result: result.clone(), is_good, on };
        documents.store_if_good(url, &attempt);
        // an entry that was cached meanwhile stays
        let _ = guard.insert(attempt);
        Ok((result?, false))
    }

    /// Whether a result of this time is younger than `max_age_ms`. It may be a little newer than this request.
    fn is_fresh(&self, on: Timestamp, max_age_ms: i64) -> bool {
        (-DOCUMENT_TTL_MS..max_age_ms).contains(&self.now.0.saturating_sub(on.0))
    }

    /// Reads the document at this address, bypassing the cache.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn read(&self, url: &str) -> Result<Arc<Vec<u8>>, String> {
        self.get(url, None).await.map(Arc::new)
    }

    /// Caches a valid document.
    pub(super) fn cache(&self, url: &str, body: &Arc<Vec<u8>>) {
        if let Some(documents) = &self.documents {
            let attempt = Attempt { result: Ok(Arc::clone(body)), is_good: true, on: self.now };
            documents.store_if_good(url, &attempt);
            documents.attempts.insert(url.to_owned(), attempt);
        }
    }

    /// The body at this address, without the cache.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(super) async fn get(&self, url: &str, authorization: Option<String>) -> Result<Vec<u8>, String> {
        let request = OutboundRequest { url: url.to_owned(), form: None, authorization };
        match (self.send)(request).await? {
            (200, body) => Ok(body),
            (status, _) => Err(format!("the host answered {status} instead of 200")),
        }
    }
}
