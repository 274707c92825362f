//! The answer of an operation.

use std::sync::Arc;

use chancery_record::Value;

use crate::{Chunk, Problem, Work};

/// The answer of an operation. The body is in [`Call::answer`](crate::Call::answer).
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers beyond those that the edge adds.
    pub headers: Vec<(&'static str, String)>,
    /// Whether the body is one resource and so carries an `ETag`.
    pub tagged: bool,
    /// The key of the resource to read for the body, after the commit.
    pub read_later: Option<Value>,
    /// The key of the created resource.
    pub created: Option<String>,
    /// The media type of the body where it is not JSON.
    pub content_type: Option<&'static str>,
    /// Work that is needed before the answer: the transaction commits, the work is done outside of any
    /// transaction, and the operation is called again with its result.
    pub work: Option<Work>,
    /// A finished chunk of an operation that has no answer yet: it is committed, and the operation is called
    /// again for the next one.
    pub chunk: Option<Chunk>,
    /// A refusal that commits the transaction, such as the count of wrong passwords.
    pub refusal: Option<Box<Problem>>,
}

impl Answer {
    /// An answer with this status.
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            tagged: false,
            read_later: None,
            created: None,
            content_type: None,
            work: None,
            chunk: None,
            refusal: None,
        }
    }

    /// A refusal that commits the transaction.
    pub fn refusing(problem: Problem) -> Self {
        Self { refusal: Some(Box::new(problem)), ..Self::new(0) }
    }

    /// No answer yet: this work is to be done first, outside of any transaction.
    pub fn after<T: Send + Sync + 'static>(work: Work<T>) -> Self {
        Self { work: Some(work.stored()), ..Self::new(0) }
    }

    /// No answer yet: a chunk is done, and the next one continues from `state`, which becomes the only result
    /// of [`Call::steps`](crate::Call::steps). `done` of `total` items are done.
    pub fn again<T: Send + Sync + 'static>(state: T, done: u64, total: u64) -> Self {
        Self { chunk: Some(Chunk { state: Arc::new(state), done, total }), ..Self::new(0) }
    }

    /// Whether this is the answer for the caller, not an intermediate step or a refusal.
    pub const fn is_final(&self) -> bool {
        self.work.is_none() && self.chunk.is_none() && self.refusal.is_none()
    }

    /// The answer with one resource.
    pub fn resource(status: u16) -> Self {
        Self { tagged: true, ..Self::new(status) }
    }
}
