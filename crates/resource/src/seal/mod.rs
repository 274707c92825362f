//! Encryption at rest: what is encrypted, and under which key.

pub mod master_key;
pub mod reseal;
pub mod sealed;
