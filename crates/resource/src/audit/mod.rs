//! The audit trail: entries, events, the trees over them, the keys of persons.

pub mod compaction;
pub mod delta;
pub mod entry;
pub mod envelope;
pub mod event;
pub mod feed;
pub mod person;
pub mod placement;
pub mod proof;
pub mod read;
pub mod tail;
pub mod trail;
pub mod tree;
