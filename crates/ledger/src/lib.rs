//! Proof that an audit trail is complete and unchanged: Merkle trees over its entries (RFC 6962),
//! signed checkpoints (C2SP tlog-checkpoint and signed-note), and the verification of an export.
//!
//! This crate does no I/O of its own and depends on neither database nor network.

mod check;
mod entry;
mod erasure;
mod export;
mod finding;
mod keys;
mod line;
mod note;
mod proof;
mod roots;
mod tile;
mod tree;
mod verify;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tamper;

pub use entry::{Stamp, content_digest, leaf_data, signed_form};
pub use export::{FORMAT, NotAnObject, TILE, write_end, write_entry, write_head, write_tile};
pub use finding::{Finding, FindingKind, Summary, VerifyError};
pub use keys::{AuditKeys, KeysError, SignatureError};
pub use line::MAX_LINE;
pub use note::{Checkpoint, MAX_NOTE, NoteError};
pub use proof::{verify_consistency, verify_inclusion};
pub use tree::{
    Frontier, Hash, Node, consistency_proof, empty_root, inclusion_proof, leaf_hash, node_hash, root,
};
pub use verify::verify;
