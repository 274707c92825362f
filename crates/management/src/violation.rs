//! Violations of a row's rules, at a member.

use chancery_record::Field;
use chancery_resource::{ProblemKind, Violation};

/// A violation: the member is invalid.
pub fn violation_at(row: usize, field: impl Into<&'static Field>, detail: impl Into<String>) -> Violation {
    Violation { row, kind: ProblemKind::InvalidRequest, field: field.into(), detail: detail.into() }
}

/// A violation: the member conflicts with the state.
pub fn conflict_at(row: usize, field: impl Into<&'static Field>, detail: impl Into<String>) -> Violation {
    Violation { row, kind: ProblemKind::Conflict, field: field.into(), detail: detail.into() }
}
