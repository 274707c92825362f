//! The facts that are read in the transaction of each step.
//!
//! The facts about the person are separate, because the others determine who the person is.

mod app;
mod person;
mod second_factor;

pub use app::{AppFacts, InstanceFacts, InstanceKind, SessionFacts, TenantFacts};
pub use person::{Action, Consent, DueAction, NotAdmitted, PersonFacts, Urgency};
pub use second_factor::{CodeKind, Enrolment, PasskeyFacts, SecondFactors, UsableFactor};
