//! Work between two transactions: hashing, decoding, whatever takes longer than a transaction may.
//!
//! An operation that needs it answers [`Answer::after`](crate::Answer::after). What it did so far is
//! committed, the work is done in a bounded pool, and the operation is called again in a new transaction,
//! where [`Call::result`](crate::Call::result) returns the result of the work.
//!
//! A rule of the standard pattern that needs work requests it with [`Writer::need`](crate::Writer::need).
//!
//! An operation that has too much to do for a single transaction does a piece, answers
//! [`Answer::again`](crate::Answer::again) and is called again at once: nothing waits for the pool.

use std::{any::Any, cell::Cell, fmt, pin::Pin, sync::Arc};

use crate::{Call, Problem};

/// The results of work, one for each step. They stay with the call, because a transaction may run twice.
pub type Results = Vec<Arc<dyn Any + Send + Sync>>;

/// The progress of a call that takes more than one transaction.
#[derive(Default)]
pub struct Steps {
    /// The results of work between transactions.
    pub results: Results,
    /// Work that a rule requests: see [`Writer::need`](crate::Writer::need).
    pub needed: Cell<Option<Work>>,
    /// Whether a unique index refused what was written, so that what is there must be looked at before writing.
    pub diagnose: bool,
}

/// The result of work.
type Outcome = Arc<dyn Any + Send + Sync>;

/// The purpose of work. Each purpose has a queue of its own, so that none holds up another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Hashing passwords: sign-ins wait for it.
    Password,
    /// Verifying passkeys and the metadata of authenticators.
    Passkey,
    /// Opening files with certificates and keys.
    Certificate,
    /// Compiling and running regular expressions: for administrators, and on answers of people who sign in.
    Pattern,
    /// Running claim rules for tokens that are issued.
    Claims,
    /// Decoding images.
    Image,
    /// Parsing and filling views.
    Page,
    /// Waiting for other servers.
    Elsewhere,
    /// Waiting for an event.
    Event,
}

impl Purpose {
    /// All purposes.
    pub const ALL: [Self; 9] = [
        Self::Password,
        Self::Passkey,
        Self::Certificate,
        Self::Pattern,
        Self::Claims,
        Self::Image,
        Self::Page,
        Self::Elsewhere,
        Self::Event,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Passkey => "passkey",
            Self::Certificate => "certificate",
            Self::Pattern => "pattern",
            Self::Claims => "claims",
            Self::Image => "image",
            Self::Page => "page",
            Self::Elsewhere => "elsewhere",
            Self::Event => "event",
        }
    }
}

/// Work to be done outside of any transaction.
pub struct Work {
    purpose: Purpose,
    task: Task,
}

/// The way in which work is done.
pub enum Task {
    /// On a processor of this machine: in one of the few slots of the pool.
    Compute(Box<dyn FnOnce() -> Outcome + Send>),
    /// By waiting for another server, which must not hold up what is computed meanwhile.
    Wait(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Work")
    }
}

impl Work {
    /// Work that runs when the pool has a free slot.
    pub fn new<T: Send + Sync + 'static>(
        purpose: Purpose,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        Self { purpose, task: Task::Compute(Box::new(move || Arc::new(work()))) }
    }

    /// Work that waits, such as for an answer from the network. The future must have its own timeout.
    pub fn waiting<T: Send + Sync + 'static>(
        purpose: Purpose,
        answer: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        let task = Task::Wait(Box::pin(async move { Arc::new(answer.await) as Outcome }));
        Self { purpose, task }
    }

    /// The work's purpose.
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The task to run.
    pub fn into_task(self) -> Task {
        self.task
    }
}

/// The progress of an operation that does its work in pieces, each in a transaction of its own.
pub struct Piece {
    /// The state that the next call continues from. It replaces all earlier results.
    pub state: Arc<dyn Any + Send + Sync>,
    /// How many items are done.
    pub done: u64,
    /// How many items there were at the beginning.
    pub total: u64,
}

impl fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Piece({} of {})", self.done, self.total)
    }
}

impl Steps {
    /// The result of a step's work; `None` while it is not done.
    ///
    /// # Errors
    /// The step's result is of another type: a fault of the server.
    pub fn result<T: Send + Sync + 'static>(&self, step: usize) -> Result<Option<Arc<T>>, Problem> {
        let Some(result) = self.results.get(step) else { return Ok(None) };
        Arc::clone(result)
            .downcast()
            .map(Some)
            .map_err(|_| chancery_store::Error::Internal(format!("step {step} made something else")).into())
    }
}

impl Call {
    /// The result of a step's work: see [`Steps::result`].
    ///
    /// # Errors
    /// The step's result is of another type: a fault of the server.
    pub fn result<T: Send + Sync + 'static>(&self, step: usize) -> Result<Option<Arc<T>>, Problem> {
        self.steps.result(step)
    }
}
