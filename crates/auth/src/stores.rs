//! The user stores that a caller has access to.

use chancery_record::Value;
use chancery_resource::{HeldRole, LIST, Permit, RoleScope, Sql};
use chancery_store::{Error, Tx, selectable};
use uuid::Uuid;

use crate::{Caller, StoreContext, decide};

/// The permits that give access to a user store: to its people, or to its audit trail.
const ACCESS_PERMITS: [Permit; 2] = [Permit::UserStore, Permit::UserStoreAudit];

/// Whether a caller has access to a user store.
pub fn has_store_access(caller: &Caller, store: &StoreContext) -> bool {
    ACCESS_PERMITS.into_iter().any(|permit| decide(permit, caller, Some(store)).is_ok())
}

selectable! {
    /// The subscription and the customer that own an instance.
    struct InstanceOwner from "FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id WHERE i.id = ?1" {
        subscription: Uuid = "i.subscription_id",
        customer: Uuid = "s.customer_id",
    }
}

/// Whether roles permit reading the people of an instance, with all their data there: of a user store, or of an external
/// identity provider.
pub fn may_read_people(tx: &mut Tx<'_>, roles: &[HeldRole], instance: Uuid) -> Result<bool, Error> {
    let owner = tx.one(InstanceOwner::SELECT, &[instance.into()], InstanceOwner::read)?;
    let Some(InstanceOwner { subscription, customer }) = owner else { return Ok(false) };
    let covers = |scope: RoleScope| match scope {
        RoleScope::System => true,
        RoleScope::Customer(id) => id == customer,
        RoleScope::Subscription(id) => id == subscription,
        RoleScope::IdpInstance(id) => id == instance,
        RoleScope::Tenant(_) | RoleScope::Nothing => false,
    };
    Ok(roles.iter().any(|held| held.role.satisfies(Permit::UserStore) && covers(held.scope)))
}

/// The names of the active user stores that a caller has access to, in their order, and at most so many.
pub fn store_names(tx: &mut Tx<'_>, caller: &Caller, most: usize) -> Result<Vec<String>, Error> {
    let (mut customers, mut subscriptions, mut instances) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_system_wide = false;
    for held in &caller.roles {
        if !ACCESS_PERMITS.into_iter().any(|permit| held.role.satisfies(permit)) {
            continue;
        }
        match held.scope {
            RoleScope::System => is_system_wide = true,
            RoleScope::Customer(id) => customers.push(id),
            RoleScope::Subscription(id) => subscriptions.push(id),
            RoleScope::IdpInstance(id) => instances.push(id),
            RoleScope::Tenant(_) | RoleScope::Nothing => {}
        }
    }
    let mut sql = Sql::new(
        "SELECT i.name FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id \
         WHERE i.store_name_key IS NOT NULL AND i.is_active",
    );
    if !is_system_wide {
        let parts = [
            (" AND (s.customer_id IN ", customers),
            (" OR s.id IN ", subscriptions),
            (" OR i.id IN ", instances),
        ];
        for (text, ids) in parts {
            sql.add(text);
            sql.add_list(ids.into_iter().take(LIST).map(Value::Id));
        }
        sql.add(")");
    }
    sql.add(&format!(" ORDER BY i.store_name_key LIMIT {most}"));
    let mut names = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        names.push(row.text(0)?.to_owned());
        Ok(())
    })?;
    Ok(names)
}
