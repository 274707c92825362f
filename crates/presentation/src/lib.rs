//! The pages people see (views) and the files those use (assets): their locations, their permitted
//! content, and the shipped pages.
//!
//! Nothing here knows a clock, a database or HTTP. A view is a MiniJinja template that a customer
//! may replace; it is not trusted, so its content and its cost are bounded, see [`view`].

pub mod asset;
pub mod language;
pub mod location;
pub mod shipped;
pub mod view;
