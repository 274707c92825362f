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
        Permit::CustomerRead | Permit::SubscriptionWrite => {
            if is_system_admin {
                return Ok(Scope::Everything);
            }
            let reached = Reached { subscriptions: Vec::new(), ..reached(roles) };
            if reached.is_none() { Err(Refused::Forbidden) } else { Ok(reached.into_scope()) }
        }
        Permit::SubscriptionRead | Permit::OptionRead | Permit::OptionWrite => {
            if is_system_admin {
                return Ok(Scope::Everything);
            }
            let reached = reached(roles);
            if reached.is_none() { Err(Refused::Forbidden) } else { Ok(reached.into_scope()) }
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
                    Role::TenantAdmin(tenant) => reached.tenants.push(*tenant),
                    Role::UserStoreAdmin(instance) => reached.instances.push(*instance),
                    _ => {}
                }
            }
            if reached.is_none() { Err(Refused::Forbidden) } else { Ok(reached.into_scope()) }
        }
        // it is not asked for; whoever has a token may, too
        Permit::Public => in_store(true, place, |_| true),
        Permit::CustomerWrite | Permit::Metrics => {
            if is_system_admin {
                Ok(Scope::Everything)
            } else {
                Err(Refused::Forbidden)
            }
        }
    }
}

/// What roles of administrators reach of the configuration.
#[derive(Default)]
struct Reached {
    customers: Vec<Uuid>,
    subscriptions: Vec<Uuid>,
    tenants: Vec<Uuid>,
    instances: Vec<Uuid>,
}

impl Reached {
    fn is_none(&self) -> bool {
        [&self.customers, &self.subscriptions, &self.tenants, &self.instances]
            .iter()
            .all(|ids| ids.is_empty())
    }

    fn into_scope(self) -> Scope {
        let Self { customers, subscriptions, tenants, instances } = self;
        Scope::Parts { customers, subscriptions, tenants, instances }
    }
}

fn reached(roles: &[Role]) -> Reached {
    let mut reached = Reached::default();
    for role in roles {
        match role {
            Role::CustomerAdmin(customer) => reached.customers.push(*customer),
            Role::SubscriptionAdmin(subscription) => reached.subscriptions.push(*subscription),
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

    use chancery_resource::{Permit, Scope, StoreScope};
    use chancery_settings::{Options, Owner};
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
            },
            subscription: id(2),
            customer: id(3),
            is_active: true,
        };
        decide(permit, &Caller { id: id(9), enabled: true, roles: vec![role] }, Some(&place))
    }

    #[test]
    fn roles_reach_what_they_cover() {
        use Permit::{ApplicationData, CustomerRead, CustomerWrite, OptionWrite, UserStore, UserStoreAudit};
        let other = id(99);
        for (permit, role, expected) in [
            (UserStore, Role::SystemAdmin, None),
            (UserStore, Role::CustomerAdmin(id(3)), None),
            (UserStore, Role::CustomerAdmin(other), Some(Refused::NotFound)),
            (UserStore, Role::SubscriptionAdmin(id(2)), None),
            (UserStore, Role::SubscriptionAdmin(other), Some(Refused::NotFound)),
            (UserStore, Role::UserStoreAdmin(id(1)), None),
            (UserStore, Role::UserStoreAdmin(other), Some(Refused::NotFound)),
            (UserStore, Role::TenantAdmin(id(4)), Some(Refused::Forbidden)),
            (UserStore, Role::AuditTrailReader, Some(Refused::Forbidden)),
            (UserStoreAudit, Role::AuditTrailReader, None),
            (UserStoreAudit, Role::UserStoreAdmin(id(1)), Some(Refused::Forbidden)),
            (CustomerRead, Role::CustomerAdmin(id(3)), None),
            (CustomerRead, Role::SubscriptionAdmin(id(2)), Some(Refused::Forbidden)),
            (CustomerWrite, Role::CustomerAdmin(id(3)), Some(Refused::Forbidden)),
            (CustomerWrite, Role::SystemAdmin, None),
            (OptionWrite, Role::SubscriptionAdmin(id(2)), None),
            (OptionWrite, Role::UserStoreAdmin(id(1)), Some(Refused::Forbidden)),
            (ApplicationData, Role::ApplicationDataReader(None, Some(id(1))), None),
            (ApplicationData, Role::TenantAdmin(id(4)), None),
            (ApplicationData, Role::AuditTrailReader, Some(Refused::Forbidden)),
        ] {
            assert_eq!(judged(permit, role).err(), expected, "{permit:?} {role:?}");
        }
    }
}
