//! The table of section 7 of the contract's decisions: which role may do what, where.

use chancery_resource::{Permit, Scope};
use uuid::Uuid;

use crate::{Caller, Place, Role};

/// Why a caller may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The role is missing altogether.
    Forbidden,
    /// The role does not reach there, or there is nothing: which of the two is not told.
    NotFound,
}

/// Whether a caller may do it here, and what its rights cover. `place` is the user store that the
/// path names, if there is such a store.
///
/// # Errors
/// [`Refused`].
pub fn decide(permit: Permit, caller: &Caller, place: Option<&Place>) -> Result<Scope, Refused> {
    let roles = &caller.roles;
    let is_system_admin = roles.contains(&Role::SystemAdmin);
    match permit {
        Permit::UserStore => {
            let could = roles.iter().any(|role| {
                use Role as R;
                matches!(
                    role,
                    R::SystemAdmin | R::CustomerAdmin(_) | R::SubscriptionAdmin(_) | R::UserStoreAdmin(_)
                )
            });
            in_store(could, place, |place| roles.iter().any(|role| administers(*role, place)))
        }
        Permit::UserStoreAudit => {
            let could = is_system_admin || roles.contains(&Role::AuditTrailReader);
            in_store(could, place, |_| true)
        }
        Permit::Audit if roles.contains(&Role::AuditTrailReader) => Ok(Scope::Everything),
        Permit::Audit
        | Permit::SystemAdmin
        | Permit::CustomerAdmin
        | Permit::SubscriptionAdmin
        | Permit::TenantAdmin
        | Permit::TenantMember
        | Permit::Administrator
        | Permit::Oneself
            if is_system_admin =>
        {
            Ok(Scope::Everything)
        }
        Permit::Audit | Permit::SystemAdmin => Err(Refused::Forbidden),
        Permit::CustomerAdmin => {
            let all = reached(roles);
            Reached { customers: all.customers, ..Reached::default() }.scope()
        }
        Permit::SubscriptionAdmin => {
            let all = reached(roles);
            Reached { tenants: Vec::new(), ..all }.scope()
        }
        Permit::TenantAdmin => reached(roles).scope(),
        Permit::TenantMember => {
            let all = reached(roles);
            Reached { assigned: all.tenants.clone(), ..all }.scope()
        }
        Permit::ApplicationData => {
            if is_system_admin || roles.contains(&Role::ApplicationDataReader(None, None)) {
                return Ok(Scope::Everything);
            }
            let mut reached = reached(roles);
            for role in roles {
                match role {
                    Role::ApplicationDataReader(tenant, instance) => {
                        reached.tenants.extend(tenant);
                        reached.instances.extend(instance);
                    }
                    Role::UserStoreAdmin(instance) => reached.instances.push(*instance),
                    _ => {}
                }
            }
            reached.assigned.clone_from(&reached.tenants);
            reached.scope()
        }
        // what is reached may be nothing: the path can name the caller
        Permit::Oneself => {
            let all = reached(roles);
            let stores = roles.iter().filter_map(|role| match role {
                Role::UserStoreAdmin(instance) => Some(*instance),
                _ => None,
            });
            Ok(Reached { assigned: all.tenants.clone(), instances: stores.collect(), ..all }.into_scope())
        }
        Permit::Administrator => {
            let is_one = |role: &Role| {
                !matches!(role, Role::UserAdmin | Role::ApplicationDataReader(..) | Role::AuditTrailReader)
            };
            if roles.iter().any(is_one) { Ok(reached(roles).into_scope()) } else { Err(Refused::Forbidden) }
        }
        // it is not asked for; whoever has a token may, too
        Permit::Public => in_store(true, place, |_| true),
    }
}

/// What roles of administrators reach of the configuration.
#[derive(Default)]
struct Reached {
    customers: Vec<Uuid>,
    subscriptions: Vec<Uuid>,
    tenants: Vec<Uuid>,
    instances: Vec<Uuid>,
    assigned: Vec<Uuid>,
}

impl Reached {
    fn into_scope(self) -> Scope {
        let Self { customers, subscriptions, tenants, instances, assigned } = self;
        Scope::Parts { customers, subscriptions, tenants, instances, assigned, writes: false }
    }

    /// The scope; forbidden where no role gives any.
    fn scope(self) -> Result<Scope, Refused> {
        let parts = [&self.customers, &self.subscriptions, &self.tenants, &self.instances];
        if parts.iter().all(|ids| ids.is_empty()) { Err(Refused::Forbidden) } else { Ok(self.into_scope()) }
    }
}

fn reached(roles: &[Role]) -> Reached {
    let mut reached = Reached::default();
    for role in roles {
        match role {
            Role::CustomerAdmin(customer) => reached.customers.push(*customer),
            Role::SubscriptionAdmin(subscription) => reached.subscriptions.push(*subscription),
            Role::TenantAdmin(tenant) => reached.tenants.push(*tenant),
            _ => {}
        }
    }
    reached
}

fn in_store(
    could: bool,
    place: Option<&Place>,
    covers: impl FnOnce(&Place) -> bool,
) -> Result<Scope, Refused> {
    if !could {
        return Err(Refused::Forbidden);
    }
    let place = place.filter(|place| place.is_active && covers(place)).ok_or(Refused::NotFound)?;
    Ok(Scope::Store(place.scope.clone()))
}

/// A higher role implies the lower ones inside its scope; a tenant's does not reach its stores.
fn administers(role: Role, place: &Place) -> bool {
    match role {
        Role::SystemAdmin => true,
        Role::CustomerAdmin(customer) => customer == place.customer,
        Role::SubscriptionAdmin(subscription) => subscription == place.subscription,
        Role::UserStoreAdmin(store) => store == place.scope.id,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use chancery_resource::settings::{Options, Owner};
    use chancery_resource::{Permit, Scope, StoreScope};
    use uuid::Uuid;

    use super::{Refused, decide};
    use crate::{Caller, Place, Role};

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn judged(permit: Permit, role: Role) -> Result<Scope, Refused> {
        let place = Place {
            scope: StoreScope {
                number: 1,
                id: id(1),
                name: "default".into(),
                options: Arc::new(Options::new(Owner::UserStore, HashMap::new())),
                metadata: None,
            },
            subscription: id(2),
            customer: id(3),
            is_active: true,
        };
        let caller = Caller {
            id: id(9),
            holder: id(9),
            enabled: true,
            needs_nonce: false,
            subscription: id(2),
            roles: vec![role],
        };
        decide(permit, &caller, Some(&place))
    }

    #[test]
    fn roles_reach_what_they_cover() {
        use Permit as P;
        let other = id(99);
        for (permit, role, expected) in [
            (P::UserStore, Role::SystemAdmin, None),
            (P::UserStore, Role::CustomerAdmin(id(3)), None),
            (P::UserStore, Role::CustomerAdmin(other), Some(Refused::NotFound)),
            (P::UserStore, Role::SubscriptionAdmin(id(2)), None),
            (P::UserStore, Role::SubscriptionAdmin(other), Some(Refused::NotFound)),
            (P::UserStore, Role::UserStoreAdmin(id(1)), None),
            (P::UserStore, Role::UserStoreAdmin(other), Some(Refused::NotFound)),
            (P::UserStore, Role::TenantAdmin(id(4)), Some(Refused::Forbidden)),
            (P::UserStore, Role::AuditTrailReader, Some(Refused::Forbidden)),
            (P::UserStoreAudit, Role::AuditTrailReader, None),
            (P::UserStoreAudit, Role::UserStoreAdmin(id(1)), Some(Refused::Forbidden)),
            (P::Audit, Role::AuditTrailReader, None),
            (P::Audit, Role::CustomerAdmin(id(3)), Some(Refused::Forbidden)),
            (P::CustomerAdmin, Role::CustomerAdmin(id(3)), None),
            (P::CustomerAdmin, Role::SubscriptionAdmin(id(2)), Some(Refused::Forbidden)),
            (P::SystemAdmin, Role::CustomerAdmin(id(3)), Some(Refused::Forbidden)),
            (P::SystemAdmin, Role::SystemAdmin, None),
            (P::SubscriptionAdmin, Role::SubscriptionAdmin(id(2)), None),
            (P::SubscriptionAdmin, Role::TenantAdmin(id(4)), Some(Refused::Forbidden)),
            (P::TenantAdmin, Role::TenantAdmin(id(4)), None),
            (P::TenantAdmin, Role::UserStoreAdmin(id(1)), Some(Refused::Forbidden)),
            (P::ApplicationData, Role::ApplicationDataReader(None, Some(id(1))), None),
            (P::ApplicationData, Role::TenantAdmin(id(4)), None),
            (P::ApplicationData, Role::AuditTrailReader, Some(Refused::Forbidden)),
            (P::Oneself, Role::UserAdmin, None),
        ] {
            assert_eq!(judged(permit, role).err(), expected, "{permit:?} {role:?}");
        }
    }
}
