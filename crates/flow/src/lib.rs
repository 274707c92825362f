//! The next step of a sign-in, as a pure state machine.
//!
//! A [`Flow`] stores the parameters of an authorization request, and what was proven, when and how. The next
//! step is never stored: [`next`] computes it from the flow and from facts that are read in the transaction of
//! each step. So no URL skips a step, and an administrator's changes apply to flows in progress.
//!
//! [`next`] returns a [`Due`]: the step, and [`Due::apply`], the only way to change a flow. An event is checked
//! against the step that was computed from the same facts at the same time, and refused where it does not
//! belong.
//!
//! This crate has no clock, database or HTTP. The caller verifies what is proven, reads the facts and stores
//! the flow sealed.

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
pub use event::{Event, EventRefusal};
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
