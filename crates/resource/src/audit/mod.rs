//! The audit trail: entries, their signatures, the trees over them, the keys of persons.

pub mod delta;
pub mod entry;
pub mod envelope;
pub mod event;
pub mod event_cursor;
pub mod feed;
pub mod person;
pub mod placement;
pub mod proof;
pub mod read;
pub mod signer;
pub mod tail;
pub mod tails;
pub mod trail;
pub mod tree;
