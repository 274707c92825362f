//! Options: the catalogue of known options, the forms of their values, and the values in effect for one
//! owner.
//!
//! No I/O. Rows of options are a resource of the management service.

mod catalogue;
mod form;
mod options;
mod together;

pub use catalogue::{CATALOGUE, Entry, Owner};
pub use form::{Form, OWN_PATHS, clock, flag, links, span, words};
pub use options::Options;
pub use together::Beside;
