//! Fair shares between callers: each may run a fixed number at once, its others wait.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chancery_store::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Waiting requests of one caller, at most.
pub const WAITING_OF_ONE: usize = 64;

/// Longest wait of a caller for a long read while its own reads take its share.
const PATIENCE: Duration = Duration::from_secs(3);

/// The callers that run or wait.
pub struct FairShares<K> {
    at_once: usize,
    waiting: usize,
    callers: Mutex<HashMap<K, Weak<Caller>>>,
}

struct Caller {
    free: Arc<Semaphore>,
    waiting: BoundedCounter,
}

/// A caller's permit to run, released on drop.
pub struct Share {
    _caller: Arc<Caller>,
    _counted: CountGuard,
    _free: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> FairShares<K> {
    /// Each caller may hold `at_once` slots.
    pub fn of(at_once: usize) -> Self {
        Self { at_once, waiting: WAITING_OF_ONE, callers: Mutex::default() }
    }

    /// The same, with this many waiting requests of one caller.
    #[must_use]
    pub fn with_waiting(mut self, waiting: usize) -> Self {
        self.waiting = waiting;
        self
    }

    /// Waits until the caller has a free slot.
    ///
    /// # Errors
    /// Too many of the caller wait already.
    pub async fn take(&self, caller: K) -> Result<Share, Error> {
        self.take_many(caller, 1).await
    }

    /// Waits until the caller has this many free slots, and takes them as one.
    ///
    /// # Errors
    /// Too many of the caller wait already.
    pub async fn take_many(&self, caller: K, shares: u32) -> Result<Share, Error> {
        let caller = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            callers.retain(|_, caller| caller.strong_count() > 0);
            let entry = callers.entry(caller).or_default();
            entry.upgrade().unwrap_or_else(|| {
                let free = Arc::new(Semaphore::new(self.at_once));
                let caller = Arc::new(Caller { free, waiting: BoundedCounter::default() });
                *entry = Arc::downgrade(&caller);
                caller
            })
        };
        let counted = caller.waiting.take(self.at_once + self.waiting - 1).ok_or(Error::Busy)?;
        let free = Arc::clone(&caller.free).acquire_many_owned(shares).await.map_err(|_| Error::Busy)?;
        Ok(Share { _caller: caller, _counted: counted, _free: free })
    }
}

/// Long reads: a client app gets at most a quarter of the store's slots, the client apps of a subscription
/// together half.
pub struct LongReads {
    of_caller: FairShares<Uuid>,
    of_subscription: FairShares<Uuid>,
}

impl LongReads {
    /// Shares out the store's slots.
    pub fn of(slots: usize) -> Self {
        let part = |part: usize| FairShares::of((slots / part).max(1));
        Self { of_caller: part(4), of_subscription: part(2) }
    }

    /// Waits until a client app of a subscription may run another long read.
    ///
    /// # Errors
    /// The wait took too long, or too many wait.
    pub async fn take(&self, caller: Option<(Uuid, Uuid)>) -> Result<Option<(Share, Share)>, Error> {
        let Some((caller, subscription)) = caller else { return Ok(None) };
        let shares = async {
            let share = self.of_caller.take(caller).await?;
            Ok(Some((share, self.of_subscription.take(subscription).await?)))
        };
        tokio::time::timeout(PATIENCE, shares).await.unwrap_or(Err(Error::Busy))
    }
}

/// A bounded counter of waiting requests; one that is dropped before it begins no longer counts.
#[derive(Default)]
pub struct BoundedCounter(Arc<AtomicUsize>);

impl BoundedCounter {
    /// Counts one more, unless there are `most` already.
    pub fn take(&self, most: usize) -> Option<CountGuard> {
        let one = CountGuard(Arc::clone(&self.0));
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        (before < most).then_some(one)
    }

    /// The count.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One counted request, until it is dropped.
pub struct CountGuard(Arc<AtomicUsize>);

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_store::Error;
    use uuid::Uuid;

    use super::{FairShares, LongReads, WAITING_OF_ONE};

    /// Findings, section A: slots for long reads are shared, and no caller takes them all.
    #[tokio::test(start_paused = true)]
    async fn no_caller_takes_all_slots_for_long_reads() {
        let reads = LongReads::of(16);
        let (one, other, third) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let mut held = Vec::new();
        for caller in [one, other] {
            for _ in 0..4 {
                held.push(reads.take(Some((caller, one))).await.unwrap());
            }
            assert!(matches!(reads.take(Some((caller, one))).await, Err(Error::Busy)), "a quarter");
        }
        assert!(matches!(reads.take(Some((third, one))).await, Err(Error::Busy)), "half");
        held.push(reads.take(Some((third, third))).await.unwrap());
        held.truncate(7);
        assert!(reads.take(Some((other, one))).await.is_ok(), "one is free again");
    }

    #[tokio::test]
    async fn the_waiting_requests_of_one_caller_are_bounded() {
        let shares = Arc::new(FairShares::of(1));
        let held = shares.take(()).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 1..WAITING_OF_ONE {
            let shares = Arc::clone(&shares);
            waiting.push(tokio::spawn(async move { shares.take(()).await.map(drop) }));
        }
        let caller =
            shares.callers.lock().unwrap().values().next().and_then(std::sync::Weak::upgrade).unwrap();
        while caller.waiting.count() < WAITING_OF_ONE {
            tokio::task::yield_now().await;
        }
        assert!(matches!(shares.take(()).await, Err(Error::Busy)));
        drop(held);
        for share in waiting {
            assert_eq!(share.await.unwrap(), Ok(()));
        }
    }
}
