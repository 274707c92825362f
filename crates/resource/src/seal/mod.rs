//! Encryption at rest: sealed values and their keys.

pub mod master_key;
pub mod reseal;
pub mod sealed;
