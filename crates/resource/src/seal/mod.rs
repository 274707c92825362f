//! What is encrypted where it is kept, and under which key.

pub mod master_key;
pub mod sealed;
