//! What providers publish: discovery documents and keys, kept for a while, since each sign-in needs them.

use std::sync::Arc;

use chancery_record::Timestamp;
use chancery_resource::{AskElsewhere, ElsewhereRequest};
use quick_cache::sync::Cache;

/// The number of documents that are kept: two for each provider, of 256 KiB at most.
const KEPT: usize = 200;
/// How long a document is kept, in ms.
const KEPT_MS: i64 = 5 * 60_000;

/// A document, and when it was read.
#[derive(Clone)]
struct Kept {
    body: Arc<Vec<u8>>,
    read_on: Timestamp,
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
    /// The time.
    pub now: Timestamp,
}

impl Asking {
    /// The document at this address, and whether it was kept: then it may have changed since.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn document(&self, url: &str) -> Result<(Arc<Vec<u8>>, bool), String> {
        let kept = self.documents.as_ref().and_then(|documents| documents.0.get(url));
        let age = |kept: &Kept| self.now.0.saturating_sub(kept.read_on.0);
        if let Some(kept) = kept.filter(|kept| (0..KEPT_MS).contains(&age(kept))) {
            return Ok((kept.body, true));
        }
        Ok((self.read(url).await?, false))
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
            documents.0.insert(url.to_owned(), Kept { body: Arc::clone(body), read_on: self.now });
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
