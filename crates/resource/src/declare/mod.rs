//! What a resource declares of itself: its shape, fields' rules, relations, references, operations.

pub mod custom;
pub mod operation;
pub mod platform;
pub mod reach;
pub mod references;
pub mod relation;
pub mod role;
pub mod rules;
pub mod service;
pub mod shape;
pub mod standard;

/// What a declaration asks for: where it does not hold, that does not compile.
const fn ask(holds: bool, fault: &'static str) {
    assert!(holds, "{}", fault);
}
