//! One call of an operation: the request, the context it acts in, and the answer.

pub mod answer;
pub mod app_context;
pub mod context;
pub mod digest;
pub mod event_cursor;
pub mod out;
pub mod preconditions;
pub mod problem;
pub mod request;
pub mod scope;
pub mod tail_cache;
pub mod tails;

use std::sync::Arc;

use self::{context::Context, out::Out, request::Request};
use crate::{Steps, Writer};

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

    /// The newest result of this type: see [`Steps::result`].
    pub fn result<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.steps.result()
    }
}
