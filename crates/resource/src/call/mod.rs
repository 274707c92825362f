//! One call of an operation: the request, the context it acts in, and the answer.

pub mod answer;
pub mod app_context;
pub mod context;
pub mod digest;
pub mod metadata;
pub mod problem;
pub mod random;
pub mod request;
pub mod scope;
pub mod work;

use self::{context::Context, request::Request, work::Steps};
use crate::Out;

/// One call of an operation: all that it may know of the world.
pub struct Call {
    /// What the caller asks for.
    pub request: Request,
    /// Who acts, where and when.
    pub context: Context,
    /// What work between transactions came to, and what is still needed.
    pub steps: Steps,
    /// Where the body of the answer goes.
    pub answer: Out,
}
