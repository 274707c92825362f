//! A closure on its way to the thread that owns a connection.

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

/// An operation with its types erased, so that one queue holds them all.
pub struct Job {
    /// The operation's name.
    pub name: &'static str,
    /// The security epoch that the caller's rights were read at.
    pub epoch: Option<i64>,
    /// When the operation was queued.
    pub since: Instant,
    ticket: Ticket,
    /// The caller's tracing span: it goes along to the thread that runs the operation.
    span: Span,
    run: Box<dyn FnMut(&mut Tx<'_>) -> bool + Send>,
    finish: Box<dyn FnOnce(Result<(), Error>) + Send>,
}

/// Whether an operation waits, runs, or was given up by its caller. Of the last two only one ever happens.
#[derive(Clone, Default)]
pub struct Ticket(Arc<AtomicU8>);

const WAITS: u8 = 0;
const RUNS: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Ticket {
    fn leave_queue(&self, into: u8) -> bool {
        self.0.compare_exchange(WAITS, into, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNS
    }

    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN_UP
    }

    /// Gives the operation up; `false` when it already runs.
    pub fn give_up(&self) -> bool {
        self.leave_queue(GIVEN_UP)
    }
}

impl Job {
    /// Wraps an operation; the receiver gets its result.
    pub fn new<T, E, F>(
        name: &'static str,
        epoch: Option<i64>,
        mut operation: F,
    ) -> (Self, oneshot::Receiver<Result<T, E>>)
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (answer, receiver) = oneshot::channel();
        let kept = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&kept);
        let run = move |tx: &mut Tx<'_>| {
            let result = operation(tx);
            let good = result.is_ok();
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            good
        };
        let finish = move |outcome: Result<(), Error>| {
            let result = match outcome {
                Ok(()) => kept.lock().unwrap_or_else(PoisonError::into_inner).take(),
                Err(error) => Some(Err(error.into())),
            };
            if let Some(result) = result {
                // the caller may be gone; its write is done all the same
                let _ = answer.send(result);
            }
        };
        let (since, ticket) = (Instant::now(), Ticket::default());
        let span = Span::current();
        (Self { name, epoch, since, ticket, span, run: Box::new(run), finish: Box::new(finish) }, receiver)
    }

    /// The caller's tracing span.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// An operation for several callers, who are answered by `finish`. No caller can give it up.
    pub fn shared(
        name: &'static str,
        run: impl FnMut(&mut Tx<'_>) -> bool + Send + 'static,
        finish: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Self {
        let (since, ticket) = (Instant::now(), Ticket::default());
        Self {
            name,
            epoch: None,
            since,
            ticket,
            span: Span::current(),
            run: Box::new(run),
            finish: Box::new(finish),
        }
    }

    /// The ticket by which its caller can give it up.
    pub fn ticket(&self) -> Ticket {
        self.ticket.clone()
    }

    /// Whether its caller gave it up.
    pub fn is_given_up(&self) -> bool {
        self.ticket.is_given_up()
    }

    /// Marks the operation as running; `false` when its caller gave it up.
    pub fn begin(&self) -> bool {
        self.ticket.leave_queue(RUNS)
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

    /// Sends the result, or the reason why there is none.
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
    let Ok(good) = outcome else {
        return Err(Error::Internal(format!("operation {name} panicked")));
    };
    if good && tx.failure().is_none() {
        // a dry run sends its queued statements too, so that their errors show
        if tx.is_dry_run() {
            tx.flush()?;
        }
    }
    // a refusal that rests on cached rights must be confirmed against the current epoch
    if !good && tx.failure().is_none() {
        let _ = tx.check_epoch();
    }
    match tx.failure() {
        Some(error) => Err(error),
        None => Ok(good && !tx.is_dry_run()),
    }
}
