//! A bounded pool for work that would hold others up: hashing passwords, decoding images.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use chancery_resource::Work;
use chancery_store::Error;
use tokio::sync::Semaphore;

/// How many may wait; one more is told to come back.
const WAITING: usize = 512;

/// Fewer places than processors, so that something is left for other requests.
pub struct Pool {
    places: Semaphore,
    waiting: AtomicUsize,
}

impl Default for Pool {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { places: Semaphore::new(processors.saturating_sub(1).max(1)), waiting: AtomicUsize::new(0) }
    }
}

impl Pool {
    /// How much work is waiting or being done.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Does the work when there is a place.
    ///
    /// # Errors
    /// Too much waits already, or the work broke.
    pub async fn run(&self, work: Work) -> Result<Arc<dyn Any + Send + Sync>, Error> {
        let _turn = Turn::take(&self.waiting).ok_or(Error::Busy)?;
        let _place = self.places.acquire().await.map_err(|_| Error::Busy)?;
        tokio::task::spawn_blocking(|| work.run())
            .await
            .map_err(|_| Error::Internal("work between two transactions broke".into()))
    }
}

/// One that waits; a request that is given up gives its turn back.
struct Turn<'a>(&'a AtomicUsize);

impl<'a> Turn<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        if waiting.fetch_add(1, Ordering::Relaxed) < WAITING {
            return Some(Self(waiting));
        }
        waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
