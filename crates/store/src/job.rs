//! An operation in transit to the thread that owns a connection.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

use tokio::sync::oneshot;
use tracing::Span;

use crate::{Error, Tx};

/// An operation with its types erased, so that one queue holds all.
pub struct Job {
    /// The operation's name.
    pub name: &'static str,
    /// The security epoch of the caller's rights.
    pub epoch: Option<i64>,
    /// When the operation was queued.
    pub since: Instant,
    ticket: Ticket,
    /// The caller's tracing span, entered by the thread that runs the operation.
    span: Span,
    run: Run,
    finish: Finish,
}

/// What a caller wants to be run. It is boxed before anything else is done with it: all that follows is compiled once for each
/// type of results, and not for each operation.
pub type Operation<T, E> = Box<dyn FnMut(&mut Tx<'_>) -> Result<T, E> + Send>;

type Run = Box<dyn FnMut(&mut Tx<'_>) -> bool + Send>;
type Finish = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// The result of an operation, once it is there.
pub struct Slot<T, E>(Arc<Mutex<Option<Result<T, E>>>>);

impl<T, E> Slot<T, E> {
    fn put(&self, result: Result<T, E>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Takes what the operation returned, or why it failed; `None` until the job has finished.
    pub fn take(&self) -> Option<Result<T, E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether an operation waits, runs, or was cancelled by its caller. The last two exclude each other.
#[derive(Clone, Default)]
pub struct Ticket(Arc<AtomicU8>);

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const CANCELLED: u8 = 2;

impl Ticket {
    fn leave_queue(&self, into: u8) -> bool {
        self.0.compare_exchange(WAITING, into, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks the operation as running; `false` when its caller cancelled it.
    pub fn begin(&self) -> bool {
        self.leave_queue(RUNNING)
    }

    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNNING
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }

    /// Cancels the operation; `false` when it already runs.
    pub fn cancel(&self) -> bool {
        self.leave_queue(CANCELLED)
    }
}

impl Job {
    /// Wraps an operation. The receiver hears when it has finished, and the slot has its result then.
    pub fn new<T, E>(
        name: &'static str,
        epoch: Option<i64>,
        mut operation: Operation<T, E>,
    ) -> (Self, oneshot::Receiver<()>, Slot<T, E>)
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (done, receiver) = oneshot::channel();
        let slot = Arc::default();
        let (returned, failed) = (Slot(Arc::clone(&slot)), Slot(Arc::clone(&slot)));
        let run = move |tx: &mut Tx<'_>| {
            let result = operation(tx);
            let succeeded = result.is_ok();
            returned.put(result);
            succeeded
        };
        let finish = move |outcome: Result<(), Error>| {
            if let Err(error) = outcome {
                failed.put(Err(error.into()));
            }
            // the caller may be gone; its write is done anyway
            let _ = done.send(());
        };
        (Self::of(name, epoch, Box::new(run), Box::new(finish)), receiver, Slot(slot))
    }

    /// An operation for several callers, who are answered by `finish`. No caller can cancel it.
    pub fn shared(
        name: &'static str,
        run: impl FnMut(&mut Tx<'_>) -> bool + Send + 'static,
        finish: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Self {
        Self::of(name, None, Box::new(run), Box::new(finish))
    }

    fn of(name: &'static str, epoch: Option<i64>, run: Run, finish: Finish) -> Self {
        let (since, ticket, span) = (Instant::now(), Ticket::default(), Span::current());
        Self { name, epoch, since, ticket, span, run, finish }
    }

    /// The caller's tracing span.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// The ticket by which its caller can cancel it.
    pub fn ticket(&self) -> Ticket {
        self.ticket.clone()
    }

    /// Whether its caller cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.ticket.is_cancelled()
    }

    /// Marks the operation as running; `false` when its caller cancelled it.
    pub fn begin(&self) -> bool {
        self.ticket.begin()
    }

    /// Runs the operation once. `Ok(true)`: commit its changes; `Ok(false)`: it failed or was a dry run.
    pub fn run(&mut self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        let _logging = self.span.enter();
        let began = Instant::now();
        let outcome = attempt(self.name, self.epoch, tx, &mut self.run);
        let waited = began.duration_since(self.since).as_secs_f64();
        let seconds = began.elapsed().as_secs_f64();
        let is_kept = matches!(outcome, Ok(true));
        tracing::debug!(transaction = self.name, waited, seconds, is_kept, "ran in the store");
        outcome
    }

    /// Sends the result, or the reason of the failure.
    pub fn finish(self, outcome: Result<(), Error>) {
        (self.finish)(outcome);
    }
}

/// Runs an operation between the check of the epoch and the sending of queued statements.
pub fn attempt(
    name: &'static str,
    epoch: Option<i64>,
    tx: &mut Tx<'_>,
    run: &mut dyn FnMut(&mut Tx<'_>) -> bool,
) -> Result<bool, Error> {
    tx.operation = name;
    if let Some(epoch) = epoch {
        tx.expect_epoch(epoch)?;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut *tx)));
    let Ok(succeeded) = outcome else {
        return Err(Error::Internal(format!("operation {name} panicked")));
    };
    if succeeded && tx.failure().is_none() {
        // a dry run sends its queued statements too, so that their errors are reported
        if tx.is_dry_run() {
            tx.flush()?;
        }
    }
    // a refusal by cached rights must be confirmed against the current epoch
    if !succeeded && tx.failure().is_none() {
        let _ = tx.check_epoch();
    }
    match tx.failure() {
        Some(error) => Err(error),
        None => Ok(succeeded && !tx.is_dry_run()),
    }
}
