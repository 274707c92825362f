//! Operations that wait for a connection, in the order of service.

mod class_queues;
mod idle;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{Thread, park_timeout},
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, time::timeout};

pub use class_queues::{Bounds, QueuedJob, WorkerKind};

use self::class_queues::ClassQueues;
use crate::{
    Class, Error, Mode, PATIENCE, RECHECK_INTERVAL,
    job::{Job, Ticket},
};

/// The result of waiting for an operation.
pub enum Next {
    /// The operation to run.
    Run(QueuedJob),
    /// None for the given time.
    Idle,
    /// The queue is closed.
    Closed,
}

pub struct Queue {
    queues: Mutex<ClassQueues>,
    bounds: Bounds,
    /// Whether background work has its own threads.
    has_background_threads: bool,
    shed: AtomicU64,
    began: Instant,
    /// The time of the last finished operation of each kind, in milliseconds since the queue's start.
    progress: [AtomicU64; 3],
}

/// Kinds of operations with separate progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    Read,
    Write,
    Heavy,
}

impl JobKind {
    pub const fn of(class: Class, mode: Mode) -> Self {
        match (class, mode) {
            (Class::Heavy, _) => Self::Heavy,
            (_, mode) if mode.is_write() => Self::Write,
            _ => Self::Read,
        }
    }

    /// How long a waiting operation is not refused while none of its kind finishes.
    const fn patience(self) -> Duration {
        match self {
            // a single heavy operation takes long
            Self::Heavy => Duration::from_secs(30),
            Self::Read | Self::Write => PATIENCE,
        }
    }
}

/// The most operations that may wait longer than the patience as long as they are served: the number of
/// concurrent clients that a store is sized for.
const MAX_PATIENT: usize = 64;

impl Queue {
    pub fn new(bounds: Bounds, has_background_threads: bool) -> Self {
        Self {
            queues: Mutex::default(),
            bounds,
            has_background_threads,
            shed: AtomicU64::new(0),
            began: Instant::now(),
            progress: Default::default(),
        }
    }

    fn queues(&self) -> MutexGuard<'_, ClassQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an operation. Background work is never refused for load.
    pub fn push(&self, job: Job, mode: Mode, class: Class) -> Result<(), Error> {
        self.push_or_return(job, mode, class).map_err(|(error, _)| error)
    }

    /// Like [`Queue::push`]; returns a refused operation.
    pub fn push_or_return(&self, job: Job, mode: Mode, class: Class) -> Result<(), (Error, Job)> {
        let mut queues = self.queues();
        if queues.closing {
            let why =
                if queues.is_aborted { aborted() } else { Error::Unavailable("the store is closing".into()) };
            return Err((why, job));
        }
        if class != Class::Background && queues.requests() >= self.bounds.waiting {
            self.note_shed();
            return Err((Error::Busy, job));
        }
        queues.queue(class).push_back(QueuedJob { job, mode, class });
        let is_background = class == Class::Background && self.has_background_threads;
        let woken =
            queues.idle(if is_background { WorkerKind::Background } else { WorkerKind::Requests }).pop();
        drop(queues);
        wake(woken);
        Ok(())
    }

    /// Waits for the next operation for a thread of this kind whose caller still waits.
    pub fn take(&self, worker: WorkerKind, patience: Duration) -> Next {
        let mut queues = self.queues();
        loop {
            if let Some(waiting) = queues.next(worker, self.bounds) {
                return Next::Run(waiting);
            }
            if queues.closing {
                return Next::Closed;
            }
            queues.idle(worker).enter();
            drop(queues);
            let began = Instant::now();
            park_timeout(patience);
            queues = self.queues();
            queues.idle(worker).leave();
            if began.elapsed() >= patience && queues.requests() + queues.background.len() == 0 {
                return if queues.closing { Next::Closed } else { Next::Idle };
            }
        }
    }

    /// The next operation, if there is one.
    pub fn take_now(&self, worker: WorkerKind) -> Option<QueuedJob> {
        self.queues().next(worker, self.bounds)
    }

    /// Records the end of an operation, so that the next of its kind may begin.
    pub fn done(&self, class: Class, mode: Mode) {
        if class == Class::Background {
            return;
        }
        self.note_progress(JobKind::of(class, mode));
        if class == Class::Heavy || mode.is_write() {
            let mut queues = self.queues();
            queues.note_done(class, mode);
            let woken = if queues.requests() > 0 { queues.idle(WorkerKind::Requests).pop() } else { None };
            drop(queues);
            wake(woken);
        }
    }

    /// Records that the single thread ended a heavy operation: operations that waited meanwhile precede the
    /// next heavy one.
    pub fn note_heavy_end(&self) {
        self.queues().heavy_ended = Some(Instant::now());
    }

    /// Records that an operation of this kind finished now.
    pub fn note_progress(&self, kind: JobKind) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last(kind).store(elapsed, Ordering::Relaxed);
    }

    const fn last(&self, kind: JobKind) -> &AtomicU64 {
        let [reads, writes, heavy] = &self.progress;
        match kind {
            JobKind::Read => reads,
            JobKind::Write => writes,
            JobKind::Heavy => heavy,
        }
    }

    /// Whether an operation that has waited this long is to be refused: many wait, or none of its kind finished
    /// meanwhile.
    pub fn is_stuck(&self, kind: JobKind, waited: Duration) -> bool {
        let last = Duration::from_millis(self.last(kind).load(Ordering::Relaxed));
        let idle = self.began.elapsed().saturating_sub(last).min(waited);
        self.queues().requests() > MAX_PATIENT || idle >= kind.patience()
    }

    /// Waits for the answer of an operation, or until the operation has waited in the queue for too long.
    ///
    /// # Errors
    /// [`Error::Busy`]: it did not run, and will not.
    pub async fn await_answer<A>(
        &self,
        kind: JobKind,
        ticket: &Ticket,
        mut answer: oneshot::Receiver<A>,
    ) -> Result<Result<A, oneshot::error::RecvError>, Error> {
        let (mut patience, began, mut was_suspended) = (PATIENCE, Instant::now(), false);
        loop {
            let checked = Instant::now();
            match timeout(patience, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_) if ticket.is_running() => return Ok(answer.await),
                // the whole process was suspended: once, its threads get time, too, before an operation is refused
                Err(_) if !was_suspended && checked.elapsed() > patience + RECHECK_INTERVAL => {
                    (patience, was_suspended) = (RECHECK_INTERVAL, true);
                }
                Err(_) if self.is_stuck(kind, began.elapsed()) && ticket.cancel() => {
                    self.note_shed();
                    return Err(Error::Busy);
                }
                Err(_) => patience = RECHECK_INTERVAL,
            }
        }
    }

    /// Removes cancelled operations: they would still be counted, and hold memory.
    pub fn sweep(&self) {
        let mut queues = self.queues();
        let cancelled = queues.take_cancelled();
        drop(queues);
        drop(cancelled);
    }

    pub fn close(&self) {
        let mut queues = self.queues();
        queues.closing = true;
        for worker in [WorkerKind::Requests, WorkerKind::Background] {
            queues.idle(worker).wake_all();
        }
    }

    /// Refuses waiting and future operations: no thread is left to serve them.
    pub fn abort(&self) {
        let mut queues = self.queues();
        let ClassQueues { heavy_running, writes_running, is_changing_rights, .. } = *queues;
        let empty = ClassQueues {
            closing: true,
            is_aborted: true,
            heavy_running,
            writes_running,
            is_changing_rights,
            ..ClassQueues::default()
        };
        let mut cancelled = std::mem::replace(&mut *queues, empty);
        drop(queues);
        for worker in [WorkerKind::Requests, WorkerKind::Background] {
            cancelled.idle(worker).wake_all();
        }
        let ClassQueues { urgent, ordinary, heavy, background, .. } = cancelled;
        for waiting in [urgent, ordinary, heavy, background].into_iter().flatten() {
            waiting.job.finish(Err(aborted()));
        }
    }

    pub fn is_closed(&self) -> bool {
        self.queues().closing
    }

    pub fn waiting(&self) -> usize {
        let queues = self.queues();
        queues.requests() + queues.background.len()
    }

    /// How many heavy operations may run at once.
    pub const fn heavy_limit(&self) -> usize {
        self.bounds.heavy
    }

    /// Operations refused for load.
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    pub fn note_shed(&self) {
        self.shed.fetch_add(1, Ordering::Relaxed);
    }
}

fn wake(thread: Option<Thread>) {
    if let Some(thread) = thread {
        thread.unpark();
    }
}

fn aborted() -> Error {
    Error::Unavailable("a thread of the store broke down, and the process ends by it".into())
}

/// A caller that waits for a result. When it is dropped, an operation that has not begun is cancelled.
pub struct Waiter<'a> {
    /// Cancels the operation.
    pub ticket: Ticket,
    /// Where it waits.
    pub queue: &'a Queue,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.ticket.cancel();
        if self.ticket.is_cancelled() {
            self.queue.sweep();
        }
    }
}
