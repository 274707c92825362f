//! The declaration of a resource: its shape, the rules of its fields, relations, references, operations.

pub mod custom;
pub mod deletes;
pub mod operation;
pub mod platform;
pub mod protection;
pub mod query;
pub mod reach;
pub mod reads;
pub mod references;
pub mod relation;
pub mod role;
pub mod rules;
pub mod service;
pub mod shape;
pub mod standard;
pub mod writes;

/// Requires that a declaration holds, at compile time: a false one is a compile error with `fault`.
const fn require(holds: bool, fault: &'static str) {
    assert!(holds, "{}", fault);
}
