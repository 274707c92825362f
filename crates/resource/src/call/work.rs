//! Work between two transactions: hashing, decoding, whatever takes longer than a transaction may.
//!
//! An operation that needs it answers [`Answer::after`](crate::Answer::after). What it did so far
//! is committed, the work is done in a bounded pool, and the operation is called again in a new
//! transaction, where [`Call::result`](crate::Call::result) has what the work came to.
//!
//! A rule of the standard pattern that needs it says so with [`Call::need`](crate::Call::need).
//!
//! One that has too much to do for a single transaction does a piece, answers
//! [`Answer::again`](crate::Answer::again) and is called again at once: nothing waits for the pool.

use std::{any::Any, cell::Cell, fmt, pin::Pin, sync::Arc};

use crate::{Call, Problem};

/// What work came to, one a step. They stay with the call, since a transaction may run twice.
pub type Results = Vec<Arc<dyn Any + Send + Sync>>;

/// How far a call is that takes more than one transaction.
#[derive(Default)]
pub struct Steps {
    /// What work between transactions came to.
    pub results: Results,
    /// Work that a rule found it needs first: see [`Call::need`].
    pub needed: Cell<Option<Work>>,
    /// A batch failed on the database: find out which elements are wrong.
    pub diagnose: bool,
}

/// What work comes to.
type Outcome = Arc<dyn Any + Send + Sync>;

/// What work is for. Each has a line of its own, so that what one of them asks for holds up no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Hashing passwords: people wait for it to sign in.
    Password,
    /// Verifying passkeys and what is known of authenticators.
    Passkey,
    /// Opening files with certificates and keys.
    Certificate,
    /// Reading and running patterns.
    Pattern,
    /// Decoding images.
    Image,
    /// Waiting for other servers.
    Elsewhere,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Password, Self::Passkey, Self::Certificate, Self::Pattern, Self::Image, Self::Elsewhere];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Passkey => "passkey",
            Self::Certificate => "certificate",
            Self::Pattern => "pattern",
            Self::Image => "image",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Something to do outside of any transaction.
pub struct Work {
    purpose: Purpose,
    task: Task,
}

/// How work is done.
pub enum Task {
    /// By a processor of ours: in one of few places.
    Compute(Box<dyn FnOnce() -> Outcome + Send>),
    /// By somebody else, who is waited for: what is computed meanwhile must not wait, too.
    Wait(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Work")
    }
}

impl Work {
    /// This, when there is a place in the pool.
    pub fn new<T: Send + Sync + 'static>(
        purpose: Purpose,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        Self { purpose, task: Task::Compute(Box::new(move || Arc::new(work()))) }
    }

    /// Waiting for this, such as an answer from the network. It must have its bound of time.
    pub fn waiting<T: Send + Sync + 'static>(answer: impl Future<Output = T> + Send + 'static) -> Self {
        let task = Task::Wait(Box::pin(async move { Arc::new(answer.await) as Outcome }));
        Self { purpose: Purpose::Elsewhere, task }
    }

    /// What it is for.
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// What is to be done.
    pub fn into_task(self) -> Task {
        self.task
    }
}

/// Where an operation stands that does its work in pieces, each in a transaction of its own.
pub struct Piece {
    /// What the next call goes on from. It takes the place of all earlier results.
    pub state: Arc<dyn Any + Send + Sync>,
    /// Items that are done.
    pub done: u64,
    /// How many there were at the beginning.
    pub total: u64,
}

impl fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Piece({} of {})", self.done, self.total)
    }
}

impl Call {
    /// Says that a rule cannot decide before this is done, outside of any transaction. The problem
    /// that it returns ends the operation, which runs again with the result. A rule runs before
    /// anything is written, so nothing is lost.
    #[must_use]
    pub fn need(&self, work: Work) -> Problem {
        self.steps.needed.set(Some(work));
        chancery_store::Error::Internal(format!("{} left its work undone", self.request.op.name)).into()
    }

    /// What the work of a step came to; nothing while it was not done.
    ///
    /// # Errors
    /// The step made something else: a fault of ours.
    pub fn result<T: Send + Sync + 'static>(&self, step: usize) -> Result<Option<Arc<T>>, Problem> {
        let Some(result) = self.steps.results.get(step) else { return Ok(None) };
        Arc::clone(result).downcast().map(Some).map_err(|_| {
            chancery_store::Error::Internal(format!(
                "step {step} of {} made something else",
                self.request.op.name
            ))
            .into()
        })
    }
}
