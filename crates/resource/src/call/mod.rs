//! One call of an operation: the request, the context it acts in, and the answer.

pub mod answer;
pub mod app_context;
pub mod context;
pub mod digest;
pub mod fair_shares;
mod hash_threads;
pub mod metadata;
pub mod outbound;
pub mod pool;
pub mod problem;
pub mod random;
pub mod request;
pub mod scope;
pub mod text_message;
pub mod webhook;
pub mod work;

use self::{context::Context, request::Request, work::Steps};
use crate::{Out, Writer};

/// One call of an operation: the request, its context and the answer.
pub struct Call {
    /// The request of the caller.
    pub request: Request,
    /// Who acts, where and when.
    pub context: Context,
    /// The results of work between transactions, and the work still needed.
    pub steps: Steps,
    /// The body of the answer, as it is written.
    pub answer: Out,
}

impl Call {
    /// The writer of rows of the operation's resource.
    pub const fn writer(&self) -> Writer<'_> {
        Writer { context: &self.context, steps: &self.steps, shape: self.request.op.shape }
    }
}
