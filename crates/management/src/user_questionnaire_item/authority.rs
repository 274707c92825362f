//! Who may ask: answers are stored in the users of the tenant's stores, where e-mail addresses are reached and client apps read rights.

use std::collections::BTreeSet;

use chancery_resource::{Call, CarriedRole, Lineage, Problem, ProblemKind, ProposedRow, RoleType, Tx};

use super::UserQuestionnaireItem;

const STORES: &str = "SELECT o.id, y.id, y.customer_id, o.name FROM tenant t \
    JOIN tenant_idp_instance m ON m.tenant_rid = t.rid JOIN idp_instance o ON o.rid = m.idp_instance_rid \
    JOIN subscription y ON y.id = o.subscription_id WHERE t.id = ?1 AND o.store_name_key IS NOT NULL ORDER BY o.id";

/// Refuses items of a tenant whose user stores the caller does not administer.
pub fn check(call: &Call, tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<(), Problem> {
    let of = |row: &ProposedRow<'_>| UserQuestionnaireItem::TENANT_ID.field().id(row.values);
    let tenants: BTreeSet<_> = rows.iter().filter_map(of).collect();
    for tenant in tenants {
        let mut refused = None;
        tx.query(STORES, &[tenant.into()], |row| {
            let store = row.id(0)?;
            let granted_for = Lineage {
                customer: Some(row.id(2)?),
                subscription: Some(row.id(1)?),
                instance: Some(store),
                ..Lineage::default()
            };
            let needed = CarriedRole { row: store, role: RoleType::UserStoreAdmin, granted_for };
            if refused.is_none() && call.context.authority.is_below(&needed) {
                refused = Some((store, row.text(3)?.to_owned()));
            }
            Ok(())
        })?;
        if let Some((store, name)) = refused {
            let detail = format!(
                "Answers are stored in the users of the tenant's stores, so items are written by who administers them. You do not have \
                 the role UserStoreAdmin of \"{name}\"."
            );
            let problem = Problem::new(ProblemKind::Forbidden, detail).with_member("role", "UserStoreAdmin");
            return Err(problem.with_member("id", store.to_string()));
        }
    }
    Ok(())
}
