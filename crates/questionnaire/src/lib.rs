//! The questionnaire that completes what is known about a user at sign-in: what its items may be,
//! and whether a submission answers all of them.
//!
//! Nothing here knows a clock, a database or HTTP. No detail repeats what a user wrote.

mod item;
mod submission;

pub use item::{Format, Item, Member, check_item};
pub use submission::{Finding, check_submission};
