//! What comes next in a sign-in, as a pure state machine.
//!
//! A [`Flow`] keeps what an authorization request demands, and what was proven, when and how. What comes next
//! is never kept: [`next`] finds it from the flow and from facts that are read in the transaction of each
//! step. So no address skips a step, and what an administrator changes counts in flows under way.
//!
//! [`next`] gives a [`Due`]: the step, and [`Due::apply`], the only way to change a flow. An event is judged
//! by the step that was found from the same facts at the same time, and refused where it does not belong.
//!
//! Nothing here knows a clock, a database or HTTP. Whoever calls verifies what is proven, reads the facts and
//! keeps the flow sealed.

mod acr;
mod amr;
mod apply;
mod choice;
mod consent;
mod due;
mod event;
mod factor;
mod facts;
mod failure;
mod flow;
mod identified;
mod identify;
mod method;
mod moment;
mod proceed;
mod proof;
mod request;
mod session;
mod step;
mod tenant;
#[cfg(test)]
mod tests;

pub use acr::{Acr, acr_of};
pub use amr::amr_of;
pub use choice::{Choice, Choices};
pub use due::{Due, next};
pub use event::{Event, Refusal};
pub use facts::{
    Action, AppFacts, CodeKind, Consent, DueAction, Enrolment, InstanceFacts, InstanceKind, NotAdmitted,
    PasskeyFacts, PersonFacts, SecondFactors, SessionFacts, TenantFacts, Urgency, UsableFactor,
};
pub use failure::Failure;
pub use flow::{Flow, Granted, LIFETIME_MS};
pub use identified::Identified;
pub use identify::identify;
pub use method::{FactorKind, Method};
pub use proceed::proceed;
pub use proof::{Proof, Proven};
pub use request::{Prompt, Request};
pub use step::{FirstFactor, SignedIn, Step};
