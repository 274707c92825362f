//! Rights to write questionnaire items. Answers are stored in the users of the tenant's stores and in platform users, which other tenants
//! share: codes and links are sent there, and client apps read rights.

use std::collections::BTreeSet;

use chancery_record::Value;
use chancery_resource::{
    CarriedRole, LIST, Lineage, Problem, ProblemKind, ProposedRow, RoleType, Sql, Tx, Writer, selectable,
};
use uuid::Uuid;

use super::UserQuestionnaireItem;

selectable! {
    /// An identity provider instance of a tenant, with its owners.
    struct InstanceOfTenant<'r> from "FROM tenant t \
        JOIN tenant_idp_instance m ON m.tenant_rid = t.rid JOIN idp_instance o ON o.rid = m.idp_instance_rid \
        JOIN subscription y ON y.id = o.subscription_id WHERE t.id IN " {
        id: Uuid = "o.id",
        subscription: Uuid = "y.id",
        customer: Uuid = "y.customer_id",
        name: &'r str = "o.name",
        is_user_store: bool = "o.store_name_key IS NOT NULL",
    }
}

/// Refuses items of a tenant with a user store for which the caller does not have the rights of a UserStoreAdmin, or with an external
/// provider in a subscription for which the caller does not have those of a SubscriptionAdmin.
pub fn check(writer: Writer<'_>, tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<(), Problem> {
    let of = |row: &ProposedRow<'_>| UserQuestionnaireItem::TENANT_ID.field().id(row.values);
    let tenants: Vec<Uuid> = rows.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect();
    let mut refused = None;
    for chunk in tenants.chunks(LIST) {
        let mut sql = Sql::new(InstanceOfTenant::SELECT);
        sql.add_list(chunk.iter().copied().map(Value::Id));
        sql.add(" ORDER BY o.id");
        tx.query(&sql.text, &sql.parameters, |row| {
            let instance = InstanceOfTenant::read(row)?;
            let granted_for = Lineage {
                customer: Some(instance.customer),
                subscription: Some(instance.subscription),
                instance: Some(instance.id),
                ..Lineage::default()
            };
            let role =
                if instance.is_user_store { RoleType::UserStoreAdmin } else { RoleType::SubscriptionAdmin };
            let needed = CarriedRole { row: instance.id, role, granted_for };
            if refused.is_none() && writer.context.authority.is_below(&needed) {
                refused = Some((instance.id, instance.name.to_owned(), role.name()));
            }
            Ok(())
        })?;
    }
    let Some((instance, name, role)) = refused else { return Ok(()) };
    let detail = format!(
        "Answers are stored in the people of the tenant's identity provider instances. To write items you need the rights of a {role} for \"{name}\", too."
    );
    let problem = Problem::new(ProblemKind::Forbidden, detail).with_member("role", role);
    Err(problem.with_member("id", instance.to_string()))
}
