//! The declaration of a resource: its shape, the rules of its fields, relations, references, operations. Declared functions
//! get a `call`, and a call names its operation, so both are here.

pub mod call;
pub mod custom;
pub mod deletes;
pub mod event_name;
pub mod operation;
pub mod plan;
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
pub mod stored_row;
pub mod writes;

/// Requires that a declaration holds, at compile time: a false one is a compile error with `fault`.
const fn require(holds: bool, fault: &'static str) {
    assert!(holds, "{}", fault);
}
