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

/// An operation whose types are forgotten, so that one queue carries them all.
pub struct Job {
    /// The operation's name.
    pub name: &'static str,
    /// The security epoch that the caller knows.
    pub epoch: Option<i64>,
    /// Since when it waits.
    pub since: Instant,
    ticket: Ticket,
    /// What its caller logs within: it goes along to the thread that runs it.
    span: Span,
    run: Box<dyn FnMut(&mut Tx<'_>) -> bool + Send>,
    finish: Box<dyn FnOnce(Result<(), Error>) + Send>,
}

/// Whether an operation waits, runs, or was given up by its caller: only one of the last two.
#[derive(Clone, Default)]
pub struct Ticket(Arc<AtomicU8>);

const WAITS: u8 = 0;
const RUNS: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Ticket {
    fn turn(&self, into: u8) -> bool {
        self.0.compare_exchange(WAITS, into, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNS
    }

    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN_UP
    }

    /// Gives the operation up; `false` when it runs already.
    pub fn give_up(&self) -> bool {
        self.turn(GIVEN_UP)
    }
}

impl Job {
    /// Wraps an operation; the receiver gets its answer.
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
                // the caller may have gone away; its write is done all the same
                let _ = answer.send(result);
            }
        };
        let (since, ticket) = (Instant::now(), Ticket::default());
        let span = Span::current();
        (Self { name, epoch, since, ticket, span, run: Box::new(run), finish: Box::new(finish) }, receiver)
    }

    /// What its caller logs within.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// One for several callers, who are answered by `finish`. No caller can give it up.
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

    /// What its caller can give it up by.
    pub fn ticket(&self) -> Ticket {
        self.ticket.clone()
    }

    /// Whether its caller gave it up.
    pub fn is_given_up(&self) -> bool {
        self.ticket.is_given_up()
    }

    /// Begins, unless its caller gave it up.
    pub fn begin(&self) -> bool {
        self.ticket.turn(RUNS)
    }

    /// Runs the operation once. `Ok(true)`: it wants its changes kept; `Ok(false)`: it refused,
    /// or only tried.
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

    /// Hands the answer over, or the reason why there is none.
    pub fn finish(self, outcome: Result<(), Error>) {
        (self.finish)(outcome);
    }
}

/// Runs an operation between the check of the epoch and the sending of what is queued.
pub fn attempt(
    name: &'static str,
    epoch: Option<i64>,
    tx: &mut Tx<'_>,
    run: &mut dyn FnMut(&mut Tx<'_>) -> bool,
) -> Result<bool, Error> {
    if let Some(epoch) = epoch {
        tx.expect_epoch(epoch)?;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut *tx)));
    let Ok(good) = outcome else {
        return Err(Error::Internal(format!("operation {name} panicked")));
    };
    if good && tx.doom().is_none() {
        // what a rolled back try queued must be sent too, to be found wrong
        if tx.is_only_tried() {
            tx.flush()?;
        }
    }
    // what is refused by what was remembered must be known to hold now
    if !good && tx.doom().is_none() {
        let _ = tx.prove_epoch();
    }
    match tx.doom() {
        Some(error) => Err(error),
        None => Ok(good && !tx.is_only_tried()),
    }
}
