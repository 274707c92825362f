//! Options: the catalogue of known options, the forms of their values, and the values in effect for one
//! owner.
//!
//! No I/O. Rows of options are a resource of the management service.

mod catalogue;
mod constraints;
mod declared;
mod form;
mod options;
mod setting;

pub use catalogue::{CATALOGUE, Entry, Owner};
pub use constraints::Constraint;
pub use declared::{FactorOption, ProviderOption, TenantOption, UserStoreOption};
pub use form::{Form, OWN_PATHS, clock, flag, links, span, words};
pub use options::Options;
pub use setting::{Count, Flag, List, Setting, Span, Text, ValueType};
