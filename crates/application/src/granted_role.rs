//! Assigned roles as their rows state them.

use std::collections::HashMap;

use chancery_resource::{Lineage, RoleScope, RoleType, Row, StoreError, Tx};
use uuid::Uuid;

/// The columns of a role assignment: the role, and the lineage of its target.
pub const ROLE: &str = "r.role_type, COALESCE(r.apply_to_customer_id, y.customer_id), y.id, r.apply_to_tenant_id, r.apply_to_idp_instance_id";
pub const LINEAGE: &str = "LEFT JOIN tenant t ON t.id = r.apply_to_tenant_id \
    LEFT JOIN idp_instance x ON x.id = r.apply_to_idp_instance_id \
    LEFT JOIN subscription y ON y.id = COALESCE(r.apply_to_subscription_id, t.subscription_id, x.subscription_id)";

/// A role with the lineage of its target; `None` if the role is unknown, such as one of a newer release that runs in
/// parallel. Only carriers of that role are refused.
pub type Granted = Option<(RoleType, Lineage)>;
/// Groups of a store that were granted roles.
pub type RoleGroups = HashMap<Uuid, Vec<Granted>>;

/// Reads the columns of [`ROLE`], which follow the first; `None` if the role is unknown.
pub fn read_granted(row: &Row<'_>) -> Result<Granted, StoreError> {
    let Some(role) = RoleType::of(row.text(1)?) else { return Ok(None) };
    let granted_for = Lineage {
        customer: row.optional_id(2)?,
        subscription: row.optional_id(3)?,
        tenant: row.optional_id(4)?,
        instance: row.optional_id(5)?,
    };
    Ok(Some((role, granted_for)))
}

/// The lineage of the target of a role.
pub fn lineage_of(tx: &mut Tx<'_>, scope: RoleScope) -> Result<Lineage, StoreError> {
    let mut lineage = Lineage::default();
    let (joined, id) = match scope {
        RoleScope::System | RoleScope::Nothing => return Ok(lineage),
        RoleScope::Customer(id) => return Ok(Lineage { customer: Some(id), ..lineage }),
        RoleScope::Subscription(id) => ("subscription t ON t.id = y.id", id),
        RoleScope::Tenant(id) => {
            lineage.tenant = Some(id);
            ("tenant t ON t.subscription_id = y.id", id)
        }
        RoleScope::IdpInstance(id) => {
            lineage.instance = Some(id);
            ("idp_instance t ON t.subscription_id = y.id", id)
        }
    };
    let text = format!("SELECT y.customer_id, y.id FROM subscription y JOIN {joined} WHERE t.id = ?1");
    tx.query(&text, &[id.into()], |row| {
        (lineage.customer, lineage.subscription) = (row.optional_id(0)?, row.optional_id(1)?);
        Ok(())
    })?;
    Ok(lineage)
}
