//! The user stores in which a caller may do something.

use chancery_record::Value;
use chancery_resource::{HeldRole, LIST, Permit, RoleScope, Sql};
use chancery_store::{Error, Tx};
use uuid::Uuid;

use crate::{Caller, StoreContext, decide};

/// What opens a user store to a caller: its people, or its trail.
const OPENING: [Permit; 2] = [Permit::UserStore, Permit::UserStoreAudit];

/// Whether a caller may do something in a user store.
pub fn opens(caller: &Caller, store: &StoreContext) -> bool {
    OPENING.into_iter().any(|permit| decide(permit, caller, Some(store)).is_ok())
}

/// Whether roles let their holder read the people of an instance, and all that is known of them there: of a user store, or of an
/// external identity provider.
///
/// # Errors
/// Errors of the store.
pub fn may_read_people(tx: &mut Tx<'_>, roles: &[HeldRole], instance: Uuid) -> Result<bool, Error> {
    let text = "SELECT i.subscription_id, s.customer_id FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id \
        WHERE i.id = ?1";
    let found = tx.one(text, &[instance.into()], |row| Ok((row.id(0)?, row.id(1)?)))?;
    let Some((subscription, customer)) = found else { return Ok(false) };
    let covers = |scope: RoleScope| match scope {
        RoleScope::System => true,
        RoleScope::Customer(id) => id == customer,
        RoleScope::Subscription(id) => id == subscription,
        RoleScope::IdpInstance(id) => id == instance,
        RoleScope::Tenant(_) | RoleScope::Nothing => false,
    };
    Ok(roles.iter().any(|held| held.role.satisfies(Permit::UserStore) && covers(held.scope)))
}

/// The names of the active user stores in which a caller may do something, in their order, and at most so many.
///
/// # Errors
/// Errors of the store.
pub fn store_names(tx: &mut Tx<'_>, caller: &Caller, most: usize) -> Result<Vec<String>, Error> {
    let (mut customers, mut subscriptions, mut instances) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_everywhere = false;
    for held in &caller.roles {
        if !OPENING.into_iter().any(|permit| held.role.satisfies(permit)) {
            continue;
        }
        match held.scope {
            RoleScope::System => is_everywhere = true,
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
    if !is_everywhere {
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
