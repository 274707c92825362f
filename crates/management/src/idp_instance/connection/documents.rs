//! What providers publish: discovery documents and keys, kept for a while, since each sign-in needs them.

use std::{sync::Arc, time::Instant};

use chancery_record::Timestamp;
use chancery_resource::{AskElsewhere, ElsewhereRequest};
use quick_cache::sync::{Cache, EntryAction, EntryResult};

/// The number of addresses: two for each provider, each with the last good document and the last attempt, of 256 KiB at most.
const KEPT: usize = 200;
/// How long a good document is kept, in ms.
pub const KEPT_MS: i64 = 5 * 60_000;
/// How old a discovery document may be by which a browser is sent to a provider, in ms: from a provider that is down the browser finds
/// no way back.
pub const REDIRECT_MAX_AGE_MS: i64 = 30_000;
/// The same for a browser that was sent there before and did not come back, in ms.
pub const RETRY_MAX_AGE_MS: i64 = 1_000;
/// How long a failed fetch or an invalid document is cached, in ms.
const FAILED_MS: i64 = 10_000;

/// A document, or why there is none.
type Found = Result<Arc<Vec<u8>>, String>;

/// The last attempt to read a document.
#[derive(Clone)]
struct Attempt {
    found: Found,
    /// Whether it brought a document of use.
    is_good: bool,
    /// When it ended.
    on: Timestamp,
}

/// The documents of all providers that people sign in by.
pub struct Documents {
    /// The last document of each address that was judged to be good. It outlives attempts that fail.
    good: Cache<String, (Arc<Vec<u8>>, Timestamp)>,
    /// The last attempt at each address. Whoever makes one holds its entry, and others wait for it.
    attempts: Cache<String, Attempt>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { good: Cache::new(KEPT), attempts: Cache::new(KEPT) }
    }
}

impl Documents {
    fn note(&self, url: &str, attempt: &Attempt) {
        if let (true, Ok(document)) = (attempt.is_good, &attempt.found) {
            self.good.insert(url.to_owned(), (Arc::clone(document), attempt.on));
        }
    }
}

/// Asks one provider.
#[derive(Clone)]
pub struct Asking {
    /// What sends requests.
    pub ask: AskElsewhere,
    /// Where documents are kept; `None` reads each anew, as a trial does.
    pub documents: Option<Arc<Documents>>,
    /// The age in ms up to which a good document that is kept counts, [`KEPT_MS`] at most.
    pub max_age_ms: i64,
    /// The time.
    pub now: Timestamp,
}

impl Asking {
    /// The document at this address, and whether it was kept: then it may have changed since. All who ask for it at the same time
    /// share one attempt to read it. One that `is_good` denies is kept as short as it is that there was none.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn document(
        &self,
        url: &str,
        is_good: impl Fn(&[u8]) -> bool + Send,
    ) -> Result<(Arc<Vec<u8>>, bool), String> {
        let Some(documents) = &self.documents else { return Ok((self.read(url).await?, false)) };
        // whoever comes back from a provider was there: what fails since does not count, and nobody waits for it
        if self.max_age_ms == KEPT_MS
            && let Some((document, on)) = documents.good.get(url)
            && self.counts(on, KEPT_MS)
        {
            return Ok((document, true));
        }
        let entry = documents.attempts.entry_async(url, |_, attempt| {
            let most = if attempt.is_good { self.max_age_ms } else { FAILED_MS };
            if self.counts(attempt.on, most) {
                EntryAction::Retain(attempt.found.clone())
            } else {
                EntryAction::ReplaceWithGuard
            }
        });
        let place = match entry.await {
            EntryResult::Retained(found) => return Ok((found?, true)),
            EntryResult::Replaced(place, _) | EntryResult::Vacant(place) => place,
            EntryResult::Removed(..) | EntryResult::Timeout => {
                return Err("the cache of provider documents is unavailable".to_owned());
            }
        };
        let began = Instant::now();
        let found = self.read(url).await;
        let on = self.now.plus(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let is_good = found.as_ref().is_ok_and(|document| is_good(document));
        let attempt = Attempt { found: found.clone(), is_good, on };
        documents.note(url, &attempt);
        // where another one was kept meanwhile, that stays
        let _ = place.insert(attempt);
        Ok((found?, false))
    }

    /// Whether what was found then counts now, for this long. It may be a little newer than this request.
    fn counts(&self, on: Timestamp, most: i64) -> bool {
        (-KEPT_MS..most).contains(&self.now.0.saturating_sub(on.0))
    }

    /// Reads the document at this address, whether it is kept or not.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn read(&self, url: &str) -> Result<Arc<Vec<u8>>, String> {
        self.get(url, None).await.map(Arc::new)
    }

    /// Keeps a document that was judged to be good.
    pub(super) fn keep(&self, url: &str, body: &Arc<Vec<u8>>) {
        if let Some(documents) = &self.documents {
            let attempt = Attempt { found: Ok(Arc::clone(body)), is_good: true, on: self.now };
            documents.note(url, &attempt);
            documents.attempts.insert(url.to_owned(), attempt);
        }
    }

    /// What is at this address; it is not kept.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(super) async fn get(&self, url: &str, authorization: Option<String>) -> Result<Vec<u8>, String> {
        let request = ElsewhereRequest { url: url.to_owned(), form: None, authorization };
        match (self.ask)(request).await? {
            (200, body) => Ok(body),
            (status, _) => Err(format!("the host answered {status} instead of 200")),
        }
    }
}
