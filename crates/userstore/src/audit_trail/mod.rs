//! The audit trail of a user store.

use chancery_application::APPLICATION_USER;
use chancery_resource::{Op, Reach, Shape, audit_operations, audit_trail::AuditTrail};

use crate::user::USER;

/// The shape of the audit trail.
pub static AUDIT_TRAIL: Shape =
    Shape::of::<AuditTrail>("AuditTrail", "audit_entry", Reach::Store).audit_of(&[&USER, &APPLICATION_USER]);

/// The operations on the audit trail.
pub static OPERATIONS: [Op; 5] =
    audit_operations!("/administration/CustomAuditTrail", UserStoreAudit, &AUDIT_TRAIL);
