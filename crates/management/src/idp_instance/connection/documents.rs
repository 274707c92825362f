//! What providers publish: discovery documents and keys, kept for a while, since each sign-in needs them.

use std::{sync::Arc, time::Instant};

use chancery_record::Timestamp;
use chancery_resource::{AskElsewhere, ElsewhereRequest};
use quick_cache::sync::{Cache, EntryAction, EntryResult};

/// The number of documents that are kept: two for each provider, of 256 KiB at most.
const KEPT: usize = 200;
/// How long a good document is kept, in ms.
pub const KEPT_MS: i64 = 5 * 60_000;
/// How old a discovery document may be by which a browser is sent to a provider, in ms: from a provider that is down the browser finds
/// no way back.
pub const ALIVE_MS: i64 = 30_000;
/// The same for a browser that was sent there before and did not come back, in ms.
pub const ANEW_MS: i64 = 1_000;
/// How long it is remembered that there was no document, or one that is of no use, in ms.
const FAILED_MS: i64 = 10_000;

/// A document, or why there is none.
type Found = Result<Arc<Vec<u8>>, String>;

/// What came of attempts to read a document, each with the time when it ended.
#[derive(Clone, Default)]
struct Kept {
    /// The last document that was judged to be good.
    good: Option<(Arc<Vec<u8>>, Timestamp)>,
    /// An attempt since that brought none, or one that is of no use.
    failed: Option<(Found, Timestamp)>,
}

/// The documents of all providers that people sign in by.
pub struct Documents(Cache<String, Kept>);

impl Default for Documents {
    fn default() -> Self {
        Self(Cache::new(KEPT))
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
        let entry = documents.0.entry_async(url, |_, kept| {
            self.of(kept).map_or(EntryAction::ReplaceWithGuard, EntryAction::Retain)
        });
        let (place, before) = match entry.await {
            EntryResult::Retained(found) => return Ok((found?, true)),
            EntryResult::Replaced(place, before) => (place, before.good),
            EntryResult::Vacant(place) => (place, None),
            EntryResult::Removed(..) | EntryResult::Timeout => {
                return Err("the documents that are kept cannot be used".to_owned());
            }
        };
        let began = Instant::now();
        let found = self.read(url).await;
        let ended = self.now.plus(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let kept = match &found {
            Ok(document) if is_good(document) => {
                Kept { good: Some((Arc::clone(document), ended)), failed: None }
            }
            _ => Kept { good: before, failed: Some((found.clone(), ended)) },
        };
        // where another one was kept meanwhile, that stays
        let _ = place.insert(kept);
        Ok((found?, false))
    }

    /// What of what is kept counts now. It may be a little newer than this request.
    fn of(&self, kept: &Kept) -> Option<Found> {
        let counts = |on: Timestamp, most: i64| (-KEPT_MS..most).contains(&self.now.0.saturating_sub(on.0));
        let good = kept.good.as_ref().filter(|(_, on)| counts(*on, self.max_age_ms));
        let good = good.map(|(document, _)| Ok(Arc::clone(document)));
        let failed = kept.failed.as_ref().filter(|(_, on)| counts(*on, FAILED_MS));
        let failed = failed.map(|(found, _)| found.clone());
        // whoever comes back from a provider was there: what fails since does not count
        if self.max_age_ms < KEPT_MS { failed.or(good) } else { good.or(failed) }
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
            let kept = Kept { good: Some((Arc::clone(body), self.now)), failed: None };
            documents.0.insert(url.to_owned(), kept);
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
