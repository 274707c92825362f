//! Work between two transactions: hashing, decoding, anything that takes longer than a transaction may.
//!
//! An operation that needs it answers [`Answer::after`](crate::Answer::after). The transaction commits, the
//! work is done in a bounded pool, and the operation is called again in a new transaction, where
//! [`Call::result`](crate::Call::result) returns the result of the work.
//!
//! A rule of the standard pattern that needs work requests it with [`Writer::need`](crate::Writer::need): the
//! operation ends before it writes anything, and runs again with the result. Sign-in pages await the pool
//! themselves.
//!
//! An operation that is too large for a single transaction does a chunk, answers
//! [`Answer::again`](crate::Answer::again) and is called again at once, without the pool.

pub mod fair_shares;
mod hash_threads;
pub mod pool;

use std::{any::Any, cell::Cell, fmt, pin::Pin, sync::Arc};

/// The result of work, as a call stores it. [`Steps::result`] finds it by its type.
pub type StoredResult = Arc<dyn Any + Send + Sync>;

/// The progress of a call that takes more than one transaction.
#[derive(Default)]
pub struct Steps {
    /// The results of work between transactions, the newest last. They stay with the call, because a transaction may run twice.
    pub results: Vec<StoredResult>,
    /// Work that a rule requests: see [`Writer::need`](crate::Writer::need).
    pub needed: Cell<Option<Work>>,
    /// Whether a unique index refused a write, so that existing rows are checked before the next one.
    pub diagnose: bool,
}

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
    Outbound,
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
        Self::Outbound,
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
            Self::Outbound => "elsewhere",
            Self::Event => "event",
        }
    }
}

/// Work to be done outside of any transaction, and the type of its result.
pub struct Work<T = StoredResult> {
    purpose: Purpose,
    task: Task<T>,
}

/// The way in which work is done.
pub enum Task<T = StoredResult> {
    /// On a processor of this machine: in one of the few slots of the pool.
    Compute(Box<dyn FnOnce() -> T + Send>),
    /// By waiting for another server, which must not block computations.
    Wait(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Work")
    }
}

impl<T> Work<T> {
    /// Work that runs when the pool has a free slot.
    pub fn new(purpose: Purpose, work: impl FnOnce() -> T + Send + 'static) -> Self {
        Self { purpose, task: Task::Compute(Box::new(work)) }
    }

    /// Work that waits, such as for an answer from the network. The future must have its own timeout.
    pub fn waiting(purpose: Purpose, answer: impl Future<Output = T> + Send + 'static) -> Self {
        Self { purpose, task: Task::Wait(Box::pin(answer)) }
    }

    /// The work's purpose.
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The task to run.
    pub fn into_task(self) -> Task<T> {
        self.task
    }
}

impl<T: Send + Sync + 'static> Work<T> {
    /// The same work, with a result that a call can store.
    ///
    /// # Panics
    /// When its result is one already.
    pub fn stored(self) -> Work {
        // the operation would not find its result by type
        assert_ne!(std::any::TypeId::of::<T>(), std::any::TypeId::of::<StoredResult>());
        let task = match self.task {
            Task::Compute(compute) => Task::Compute(Box::new(move || Arc::new(compute()) as StoredResult)),
            Task::Wait(answer) => Task::Wait(Box::pin(async move { Arc::new(answer.await) as StoredResult })),
        };
        Work { purpose: self.purpose, task }
    }
}

/// The progress of an operation that does its work in chunks, each in a transaction of its own.
pub struct Chunk {
    /// The state that the next call continues from. It replaces all earlier results.
    pub state: StoredResult,
    /// How many items are done.
    pub done: u64,
    /// How many items there were at the beginning.
    pub total: u64,
}

impl fmt::Debug for Chunk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Chunk({} of {})", self.done, self.total)
    }
}

impl Steps {
    /// The newest result of this type; `None` until work with such a result is done.
    pub fn result<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.results.iter().rev().find_map(|result| Arc::clone(result).downcast().ok())
    }
}
