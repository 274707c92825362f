//! The metadata of the FIDO Metadata Service (MDS, version 3) about authenticator models: their names, which
//! of them are compromised, and which certificates their attestations chain to.
//!
//! Nothing here knows a clock, a network or a database: [`verify`] takes the signed text and the time, a
//! [`Snapshot`] is queried and can be stored as bytes, and [`accepts`] decides whether one may follow
//! another.
//!
//! The snapshot is stored, and not the text it came from. The text is 30 times the size, and its certificate
//! is valid for a year: later it could only be verified as of the time when it was accepted, and that proves
//! no more than the row which states that time.

mod anchors;
mod payload;
mod refusal;
mod snapshot;
mod token;

pub use anchors::Anchors;
pub use refusal::{MetadataRefusal, RefusalKind};
pub use snapshot::{AuthenticatorModel, Snapshot, SnapshotOrder, Status, accepts};
pub use token::{MAX_BYTES, verify};
