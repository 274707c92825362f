//! Authorization of a caller for an operation: by its roles and the table of roles.

use chancery_resource::{Permit, RoleScope, Scope};

use crate::{Caller, StoreContext};

/// The reason why a caller may not call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDenied {
    /// The caller has no role that satisfies the permit.
    Forbidden,
    /// The role's scope does not cover the store, or there is no such store: the response does not reveal which.
    NotFound,
}

/// Whether a caller has a permit; if so, the scope that its roles cover. `store_context` is the user
/// store that the path names, if there is such a store.
///
/// # Errors
/// [`AccessDenied`].
pub fn decide(
    permit: Permit,
    caller: &Caller,
    store_context: Option<&StoreContext>,
) -> Result<Scope, AccessDenied> {
    // a caller that requests its own data needs no role; administrators' roles cover more than themselves
    let needed = if permit == Permit::Oneself { Permit::Administrator } else { permit };
    let scopes = || caller.roles.iter().filter(|held| held.role.satisfies(needed)).map(|held| held.scope);
    let is_held = scopes().next().is_some();
    match permit {
        // no role is needed, with or without a token
        Permit::Public => in_store(store_context, |_| true),
        // only persons, whatever the roles
        Permit::Person if caller.is_person => in_store(store_context, |_| true),
        Permit::Person => Err(AccessDenied::Forbidden),
        Permit::UserStore | Permit::UserStoreAudit if is_held => {
            in_store(store_context, |store_context| scopes().any(|scope| covers(scope, store_context)))
        }
        Permit::Oneself | Permit::TenantMember | Permit::ApplicationData
            if is_held || permit == Permit::Oneself =>
        {
            Ok(covered_scope(scopes(), true))
        }
        _ if is_held => Ok(covered_scope(scopes(), false)),
        _ => Err(AccessDenied::Forbidden),
    }
}

/// The configuration that role scopes cover, with or without what is assigned to their tenants.
fn covered_scope(scopes: impl Iterator<Item = RoleScope>, with_assigned: bool) -> Scope {
    let (mut customers, mut subscriptions) = (Vec::new(), Vec::new());
    let (mut tenants, mut instances) = (Vec::new(), Vec::new());
    for scope in scopes {
        match scope {
            RoleScope::System => return Scope::Everything,
            RoleScope::Customer(id) => customers.push(id),
            RoleScope::Subscription(id) => subscriptions.push(id),
            RoleScope::Tenant(id) => tenants.push(id),
            RoleScope::IdpInstance(id) => instances.push(id),
            RoleScope::Nothing => {}
        }
    }
    let assigned = if with_assigned { tenants.clone() } else { Vec::new() };
    Scope::Parts { customers, subscriptions, tenants, instances, assigned, writes: false }
}

fn in_store(
    store_context: Option<&StoreContext>,
    is_covered: impl FnOnce(&StoreContext) -> bool,
) -> Result<Scope, AccessDenied> {
    let store_context = store_context
        .filter(|store_context| store_context.is_active && is_covered(store_context))
        .ok_or(AccessDenied::NotFound)?;
    Ok(Scope::Store(store_context.scope.clone()))
}

/// Whether a user store is within a role's scope. A tenant's scope does not cover the stores of its
/// subscription.
pub fn covers(scope: RoleScope, store_context: &StoreContext) -> bool {
    match scope {
        RoleScope::System => true,
        RoleScope::Customer(customer) => customer == store_context.customer,
        RoleScope::Subscription(subscription) => subscription == store_context.subscription,
        RoleScope::IdpInstance(instance) => instance == store_context.scope.id,
        RoleScope::Tenant(_) | RoleScope::Nothing => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use chancery_resource::settings::{Options, UserStoreOption};
    use chancery_resource::{Permit, RoleScope, RoleType, Scope, StoreScope};
    use uuid::Uuid;

    use super::{AccessDenied, decide};
    use chancery_resource::{HeldRole, Lineage};

    use crate::{Caller, StoreContext};

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn decide_for(permit: Permit, role: HeldRole) -> Result<Scope, AccessDenied> {
        let store_context = StoreContext {
            scope: StoreScope {
                number: 1,
                id: id(1),
                name: "default".into(),
                lineage: Lineage::default(),
                options: Arc::new(Options::<UserStoreOption>::new(HashMap::new())),
                metadata: None,
            },
            subscription: id(2),
            customer: id(3),
            is_active: true,
        };
        let caller = Caller {
            id: id(9),
            holder: id(9),
            is_person: false,
            enabled: true,
            needs_nonce: false,
            subscription: id(2),
            login_name: None,
            roles: vec![role],
        };
        decide(permit, &caller, Some(&store_context))
    }

    #[test]
    fn roles_cover_their_scopes() {
        use Permit as P;
        use RoleScope as S;
        use RoleType as R;
        let held = |role, scope| HeldRole { role, scope };
        let other = id(99);
        for (permit, role, expected) in [
            (P::UserStore, held(R::SystemAdmin, S::System), None),
            (P::UserStore, held(R::CustomerAdmin, S::Customer(id(3))), None),
            (P::UserStore, held(R::CustomerAdmin, S::Customer(other)), Some(AccessDenied::NotFound)),
            (P::UserStore, held(R::SubscriptionAdmin, S::Subscription(id(2))), None),
            (P::UserStore, held(R::SubscriptionAdmin, S::Subscription(other)), Some(AccessDenied::NotFound)),
            (P::UserStore, held(R::UserStoreAdmin, S::IdpInstance(id(1))), None),
            (P::UserStore, held(R::UserStoreAdmin, S::IdpInstance(other)), Some(AccessDenied::NotFound)),
            (P::UserStore, held(R::TenantAdmin, S::Tenant(id(4))), Some(AccessDenied::Forbidden)),
            (P::UserStore, held(R::AuditTrailReader, S::System), Some(AccessDenied::Forbidden)),
            (P::UserStoreAudit, held(R::AuditTrailReader, S::System), None),
            (
                P::UserStoreAudit,
                held(R::UserStoreAdmin, S::IdpInstance(id(1))),
                Some(AccessDenied::Forbidden),
            ),
            (P::Audit, held(R::AuditTrailReader, S::System), None),
            (P::Audit, held(R::CustomerAdmin, S::Customer(id(3))), Some(AccessDenied::Forbidden)),
            (P::CustomerAdmin, held(R::CustomerAdmin, S::Customer(id(3))), None),
            (
                P::CustomerAdmin,
                held(R::SubscriptionAdmin, S::Subscription(id(2))),
                Some(AccessDenied::Forbidden),
            ),
            (P::SystemAdmin, held(R::CustomerAdmin, S::Customer(id(3))), Some(AccessDenied::Forbidden)),
            (P::SystemAdmin, held(R::SystemAdmin, S::System), None),
            (P::SubscriptionAdmin, held(R::SubscriptionAdmin, S::Subscription(id(2))), None),
            (P::SubscriptionAdmin, held(R::TenantAdmin, S::Tenant(id(4))), Some(AccessDenied::Forbidden)),
            (P::TenantAdmin, held(R::TenantAdmin, S::Tenant(id(4))), None),
            (P::TenantAdmin, held(R::UserStoreAdmin, S::IdpInstance(id(1))), Some(AccessDenied::Forbidden)),
            (P::ApplicationData, held(R::ApplicationDataReader, S::IdpInstance(id(1))), None),
            (P::ApplicationData, held(R::TenantAdmin, S::Tenant(id(4))), None),
            (P::ApplicationData, held(R::AuditTrailReader, S::System), Some(AccessDenied::Forbidden)),
            (P::Oneself, held(R::UserAdmin, S::Nothing), None),
        ] {
            assert_eq!(decide_for(permit, role).err(), expected, "{permit:?} {role:?}");
        }
    }
}
