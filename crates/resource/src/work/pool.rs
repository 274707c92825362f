//! Bounded queues for work that would block others: hashing passwords, opening certificates, decoding images,
//! calling other servers. Each purpose has its own queue, shared fairly between callers.

use std::{sync::Arc, time::Instant};

use chancery_store::Error;
use tokio::sync::Semaphore;
use tracing::Span;
use uuid::Uuid;

use super::{
    Purpose, Task, Work,
    fair_shares::{BoundedCounter, FairShares, WAITING_OF_ONE},
    hash_threads::HashThreads,
};

/// Most entries of a queue; further work is refused.
const WAITING: usize = 512;
/// Requests to other servers at once: each answer may be large.
const OUTBOUND_SLOTS: usize = 4;

/// The queues.
pub struct Pool {
    queues: [WorkQueue; Purpose::ALL.len()],
    /// For administrators, whose work runs one after another.
    serial: FairShares<(Purpose, Uuid)>,
    /// For tenants, whose claim rules run one after another.
    tenants: FairShares<Uuid>,
    /// For all other callers: none fills a queue.
    shares: FairShares<(Purpose, Uuid)>,
    hash_threads: HashThreads,
}

/// The queue of a purpose.
struct WorkQueue {
    slots: Arc<Semaphore>,
    waiting: BoundedCounter,
}

impl Default for Pool {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let queues = Purpose::ALL.map(|purpose| {
            let slots = match purpose {
                // its threads yield to all others
                Purpose::Password => processors,
                // fewer slots than processors, so that other requests can run
                Purpose::Claims => processors.saturating_sub(1).max(1),
                Purpose::Outbound => OUTBOUND_SLOTS,
                // waiting for an event takes no processor
                Purpose::Event => WAITING,
                _ => 1,
            };
            WorkQueue { slots: Arc::new(Semaphore::new(slots)), waiting: BoundedCounter::default() }
        });
        let tenants = FairShares::of(1).with_waiting(WAITING / 2);
        Self {
            queues,
            serial: FairShares::of(1),
            tenants,
            shares: FairShares::of(WAITING_OF_ONE),
            hash_threads: HashThreads::new(processors),
        }
    }
}

impl Pool {
    #[expect(clippy::indexing_slicing, reason = "there is a line for each purpose")]
    const fn queue(&self, purpose: Purpose) -> &WorkQueue {
        &self.queues[purpose as usize]
    }

    /// Whether further work would be refused.
    pub fn is_full(&self, purpose: Purpose) -> bool {
        self.waiting(purpose) >= WAITING
    }

    /// The number of entries that wait or run.
    pub fn waiting(&self, purpose: Purpose) -> usize {
        self.queue(purpose).waiting.count()
    }

    /// Runs the work when there is a slot. An administrator's work runs one after another, so that it never
    /// blocks other callers for long. So do the claim rules of a tenant, which is the caller of these.
    ///
    /// # Errors
    /// Too much waits already, or the work panicked.
    pub async fn run<T: Send + 'static>(&self, caller: Option<Uuid>, work: Work<T>) -> Result<T, Error> {
        let purpose = work.purpose();
        let queue = self.queue(purpose);
        let counted = queue.waiting.take(WAITING).ok_or(Error::Busy)?;
        let share = match caller {
            Some(tenant) if purpose == Purpose::Claims => Some(self.tenants.take(tenant).await?),
            Some(caller) => {
                let shares = if is_serial(purpose) { &self.serial } else { &self.shares };
                Some(shares.take((purpose, caller)).await?)
            }
            None => None,
        };
        let compute = match work.into_task() {
            Task::Compute(compute) => compute,
            Task::Wait(answer) => {
                let _slot = queue.slots.acquire().await.map_err(|_| Error::Busy)?;
                return Ok(answer.await);
            }
        };
        let slot = Arc::clone(&queue.slots).acquire_owned().await.map_err(|_| Error::Busy)?;
        // the work keeps its slot even when its caller is gone
        let span = Span::current();
        let working = move || {
            let _logging = span.enter();
            let began = Instant::now();
            let result = compute();
            let seconds = began.elapsed().as_secs_f64();
            tracing::debug!(purpose = purpose.name(), seconds, "worked between transactions");
            drop((counted, share, slot));
            result
        };
        if purpose == Purpose::Password {
            return self.hash_threads.run(working).await;
        }
        let done = tokio::task::spawn_blocking(working).await;
        done.map_err(|_| Error::Internal("work between two transactions broke".into()))
    }
}

/// Whether the work of one caller runs one after another: where one call can cause seconds of work.
const fn is_serial(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Certificate | Purpose::Pattern | Purpose::Image | Purpose::Page)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use chancery_store::Error;
    use uuid::Uuid;

    use super::{Pool, WAITING};
    use crate::{Purpose, Work, work::fair_shares::WAITING_OF_ONE};

    /// Work that blocks until it is released.
    fn held(purpose: Purpose) -> (Work<()>, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (start, began) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let work = Work::new(purpose, move || {
            let _ = start.send(());
            let _ = ended.recv();
        });
        (work, began, end)
    }

    /// A8: the work of one purpose does not hold up that of another.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_password_does_not_wait_for_certificates() {
        let pool = Arc::new(Pool::default());
        let (work, began, end) = held(Purpose::Certificate);
        let opening = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(Some(Uuid::nil()), work).await.map(drop) }
        });
        began.recv().unwrap();
        pool.run(None, Work::new(Purpose::Password, || ())).await.unwrap();
        assert_eq!(pool.waiting(Purpose::Certificate), 1);
        end.send(()).unwrap();
        opening.await.unwrap().unwrap();
        assert_eq!(pool.waiting(Purpose::Certificate), 0);
    }

    /// A8: a caller with much work alternates with one that has little; so does a tenant with slow claim rules.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn callers_alternate() {
        assert_alternation(Purpose::Certificate).await;
        assert_alternation(Purpose::Claims).await;
    }

    async fn assert_alternation(purpose: Purpose) {
        let pool = Arc::new(Pool::default());
        // other slots are taken, so that one is left, as on a small machine
        let others = pool.queue(purpose).slots.available_permits() - 1;
        let _others = pool.queue(purpose).slots.try_acquire_many(others.try_into().unwrap()).unwrap();
        let (much, little) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let done = Arc::new(Mutex::new(Vec::new()));
        let (work, began, end) = held(purpose);
        let mut running = vec![tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(Some(much), work).await.map(drop) }
        })];
        began.recv().unwrap();
        for caller in [much, much, much, little] {
            let (pool, done) = (Arc::clone(&pool), Arc::clone(&done));
            let before = pool.waiting(purpose);
            let counted = Arc::clone(&pool);
            running.push(tokio::spawn(async move {
                let work = Work::new(purpose, move || done.lock().unwrap().push(caller));
                pool.run(Some(caller), work).await.map(drop)
            }));
            while counted.waiting(purpose) == before {
                tokio::task::yield_now().await;
            }
        }
        end.send(()).unwrap();
        for work in running {
            work.await.unwrap().unwrap();
        }
        assert_eq!(done.lock().unwrap().iter().position(|caller| *caller == little), Some(0));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_caller_does_not_fill_a_queue() {
        let pool = Arc::new(Pool::default());
        let caller = Some(Uuid::nil());
        let (work, began, end) = held(Purpose::Certificate);
        let mut running = vec![tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(caller, work).await.map(drop) }
        })];
        began.recv().unwrap();
        for _ in 1..WAITING_OF_ONE {
            let (work, counted) = (Work::new(Purpose::Certificate, || ()), Arc::clone(&pool));
            let (before, pool) = (pool.waiting(Purpose::Certificate), Arc::clone(&pool));
            running.push(tokio::spawn(async move { pool.run(caller, work).await.map(drop) }));
            while counted.waiting(Purpose::Certificate) == before {
                tokio::task::yield_now().await;
            }
        }
        // the last of them counts in the queue, and may not have its slot yet
        let refused = loop {
            let outcome = tokio::time::timeout(
                std::time::Duration::from_millis(100),
                pool.run(caller, Work::new(Purpose::Certificate, || ())),
            );
            if let Ok(outcome) = outcome.await {
                break outcome.map(drop);
            }
        };
        assert_eq!(refused, Err(Error::Busy));
        end.send(()).unwrap();
        for work in running {
            work.await.unwrap().unwrap();
        }
    }

    /// Also where the work of a caller is not serial: one caller leaves most of a queue to others.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_caller_does_not_fill_the_queue_for_passwords() {
        let pool = Arc::new(Pool::default());
        let open = Arc::new(AtomicBool::new(false));
        let mut running = tokio::task::JoinSet::new();
        let mut run = |caller: u128| {
            let (pool, open) = (Arc::clone(&pool), Arc::clone(&open));
            let work = Work::new(Purpose::Password, move || {
                while !open.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
            running.spawn(async move { pool.run(Some(Uuid::from_u128(caller)), work).await.map(drop) });
        };
        let most = 2 * WAITING_OF_ONE - 1;
        (0..WAITING).for_each(|_| run(1));
        run(2);
        for _ in most..WAITING {
            let refused = tokio::time::timeout(std::time::Duration::from_mins(1), running.join_next()).await;
            assert_eq!(refused.unwrap().unwrap().unwrap(), Err(Error::Busy));
        }
        open.store(true, Ordering::Relaxed);
        let done = running.join_all().await;
        assert!(done.len() == most + 1 && done.iter().all(Result::is_ok));
    }
}
