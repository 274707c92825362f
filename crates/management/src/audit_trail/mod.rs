//! The audit trail of the configuration.

use chancery_application::APPLICATION_USER;
use chancery_resource::{Op, Reach, Shape, audit_operations, audit_trail::AuditTrail};

/// The resource.
pub static AUDIT_TRAIL: Shape =
    Shape::of::<AuditTrail>("AuditTrail", "audit_entry", Reach::Store).tells(&[&APPLICATION_USER]);

/// Its operations.
pub static OPERATIONS: [Op; 5] =
    chancery_resource::added(audit_operations!("/CustomAuditTrail", Audit, &AUDIT_TRAIL));
