//! What the FIDO Metadata Service (MDS, version 3) tells about makes of authenticators: whose they
//! are, which of them are compromised and which certificates their attestations lead to.
//!
//! Nothing here knows a clock, a network or a database: [`verify`] takes the signed text and the
//! time, a [`Snapshot`] answers questions and can be kept as bytes, and [`accepts`] says whether
//! one may follow another.
//!
//! What is kept is the snapshot, not the text it came from. The text is 30 times the size, and its
//! certificate lives a year: later it could only be verified at the time when it was accepted,
//! which is no more than the word of the row that holds it.

mod anchors;
mod payload;
mod refusal;
mod snapshot;
mod token;

pub use anchors::Anchors;
pub use refusal::{Kind, Refusal};
pub use snapshot::{Make, Snapshot, Status, Step, accepts};
pub use token::{MAX_BYTES, verify};
