//! The audit trail of the configuration.

use chancery_application::APPLICATION_USER;
use chancery_resource::{Op, Reach, Shape, audit_operations, audit_trail::AuditTrail};

/// The shape of the audit trail.
pub static AUDIT_TRAIL: Shape =
    Shape::of::<AuditTrail>("AuditTrail", "audit_entry", Reach::Store).audit_of(&[&APPLICATION_USER]);

/// The operations on the audit trail.
pub static OPERATIONS: [Op; 5] =
    chancery_resource::added(audit_operations!("/CustomAuditTrail", Audit, &AUDIT_TRAIL));
