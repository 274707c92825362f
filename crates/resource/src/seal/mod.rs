//! Encryption and compression at rest, keys, sealed cursors, the signatures of audit entries, random bytes.

pub mod compact;
pub mod cursor;
pub mod master_key;
pub mod random;
pub mod sealed;
pub mod signer;
