//! Options: the catalogue of those that the server knows, the forms of their values, and the
//! values that are in effect for one owner.
//!
//! No I/O. Rows of options are a resource of the management service.

mod catalogue;
mod form;
mod options;

pub use catalogue::{CATALOGUE, Entry, Owner};
pub use form::Form;
pub use options::Options;
