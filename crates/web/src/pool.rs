//! A bounded pool for work that would hold others up: hashing passwords, decoding images, asking
//! other servers.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use chancery_resource::{Task, Work};
use chancery_store::Error;
use tokio::sync::Semaphore;

/// How many may wait; one more is told to come back.
const WAITING: usize = 512;
/// Answers of others that are waited for at once: each may be large.
const ASKING: usize = 4;

/// Fewer places than processors, so that something is left for other requests.
pub struct Pool {
    places: Arc<Semaphore>,
    asking: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Default for Pool {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            places: Arc::new(Semaphore::new(processors.saturating_sub(1).max(1))),
            asking: Arc::new(Semaphore::new(ASKING)),
            waiting: Arc::default(),
        }
    }
}

impl Pool {
    /// Whether one more would be told to come back.
    pub fn is_full(&self) -> bool {
        self.waiting() >= WAITING
    }

    /// How much work is waiting or being done.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Does the work when there is a place.
    ///
    /// # Errors
    /// Too much waits already, or the work broke.
    pub async fn run(&self, work: Work) -> Result<Arc<dyn Any + Send + Sync>, Error> {
        let turn = Turn::take(&self.waiting).ok_or(Error::Busy)?;
        let compute = match work.into_task() {
            Task::Compute(compute) => compute,
            Task::Wait(answer) => {
                let _place = self.asking.acquire().await.map_err(|_| Error::Busy)?;
                return Ok(answer.await);
            }
        };
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Error::Busy)?;
        // the work keeps its place even when nobody waits for it any more
        let working = tokio::task::spawn_blocking(move || {
            let result = compute();
            drop((turn, place));
            result
        });
        working.await.map_err(|_| Error::Internal("work between two transactions broke".into()))
    }
}

/// One that waits; a request that is given up before its work began gives its turn back.
struct Turn(Arc<AtomicUsize>);

impl Turn {
    fn take(waiting: &Arc<AtomicUsize>) -> Option<Self> {
        if waiting.fetch_add(1, Ordering::Relaxed) < WAITING {
            return Some(Self(Arc::clone(waiting)));
        }
        waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
