//! The pages people see (views) and the files those use (assets): where they are, what they may
//! hold, and the pages that are there from the start.
//!
//! Nothing here knows a clock, a database or HTTP. A view is a MiniJinja template that a customer
//! may replace; it comes from outside, so what it may say and what it may cost are bounded, see
//! [`view`].

pub mod asset;
pub mod language;
pub mod location;
pub mod shipped;
pub mod view;
