//! Authorization between persons: rows that carry roles, such as persons and groups, and their protected
//! fields.
//!
//! A role of a row counts when the caller does not hold its rights. A caller who may write the row anyway must
//! not change its protected fields: by changing a person's password, or the members of a group, the caller
//! would take over the roles.

use chancery_record::Field;
use chancery_store::Tx;
use uuid::Uuid;

use crate::{Context, Problem, ROLES, Relation, RoleScope, RoleType};

/// A role and the scope of its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRole {
    /// The role.
    pub role: RoleType,
    /// The scope of the grant.
    pub scope: RoleScope,
}

/// The rights of the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The server itself, or a person who proves to be the subject of the operation.
    Own,
    /// A caller with these roles, about others. A SCIM client holds none.
    Roles(Vec<HeldRole>),
}

/// The object of a role's grant, with its ancestors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The customer.
    pub customer: Option<Uuid>,
    /// The subscription.
    pub subscription: Option<Uuid>,
    /// The tenant.
    pub tenant: Option<Uuid>,
    /// The identity provider instance.
    pub instance: Option<Uuid>,
}

/// A role that a row carries, directly or through groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedRole {
    /// The id of the row.
    pub row: Uuid,
    /// The role.
    pub role: RoleType,
    /// The object of the grant.
    pub granted_for: Lineage,
}

/// Finds the roles that rows carry, by the rows' ids: their own, or those of the people who sign in by them.
pub type FindRoles = fn(&Context, &mut Tx<'_>, &[Uuid]) -> Result<Vec<CarriedRole>, Problem>;

/// The protection of a resource where a row carries roles. Everything not named here is protected: each other
/// field, custom operations, whether the row exists, and the rows that belong to it. Each is a static: their
/// addresses identify them.
pub struct Protection {
    /// Finds the roles.
    pub find: FindRoles,
    /// The carrier of the roles.
    pub carried_by: CarriedBy,
    /// The fields that are not protected.
    pub open: &'static [&'static Field],
    /// The Boolean fields that may be set to false anyway: a disabled option is no way in.
    pub may_be_switched_off: &'static [&'static Field],
    /// The protected links of the row to others.
    pub links: Links,
    /// Whether an operation on a set of the row is refused even without a change.
    pub refuses_unchanged_sets: bool,
    /// The contact fields of a person: whoever sets them receives the messages, such as links that set a
    /// password.
    pub contact_fields: &'static [&'static Field],
}

impl Protection {
    /// Protects all but these fields, with these links.
    pub const fn new(
        find: FindRoles,
        carried_by: CarriedBy,
        open: &'static [&'static Field],
        links: Links,
    ) -> Self {
        Self {
            find,
            carried_by,
            open,
            may_be_switched_off: &[],
            links,
            refuses_unchanged_sets: false,
            contact_fields: &[],
        }
    }

    /// The same, where these Boolean fields may be set to false anyway: a disabled option is no way in.
    #[must_use]
    pub const fn may_be_switched_off(self, fields: &'static [&'static Field]) -> Self {
        Self { may_be_switched_off: fields, ..self }
    }

    /// The same, where an operation on a set of the row is refused even without a change.
    #[must_use]
    pub const fn refuses_unchanged_sets(self) -> Self {
        Self { refuses_unchanged_sets: true, ..self }
    }

    /// The same, with the contact fields of a person.
    #[must_use]
    pub const fn contact_fields(self, fields: &'static [&'static Field]) -> Self {
        Self { contact_fields: fields, ..self }
    }
}

/// The carrier of a row's roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedBy {
    /// The row itself: it is a person or a group.
    Itself,
    /// The people who sign in by the row: it decides how they prove their identity.
    WhoSignsIn,
    /// The people who delegate to it: it is a client app that may get tokens for the platform.
    WhoLendsThem,
}

/// The protected links of a row, such as the members of a group.
#[derive(Clone, Copy, Debug)]
pub enum Links {
    /// None.
    Open,
    /// All but those in these link tables.
    AllBut(&'static [&'static str]),
}

impl Links {
    /// Whether the links of this relation are protected, from whichever side they are written.
    pub fn protect(self, relation: &Relation) -> bool {
        matches!(self, Self::AllBut(open) if !open.contains(&relation.table))
    }
}

impl Authority {
    /// Whether a role counts against the actor, who does not hold its rights.
    pub fn is_below(&self, carried: &CarriedRole) -> bool {
        let Self::Roles(held) = self else { return false };
        match carried.role {
            RoleType::UserAdmin => false,
            // it reads no more than an administrator of a store may
            RoleType::ApplicationDataReader if !held.is_empty() => false,
            role => {
                !held.iter().any(|own| own.role.implies(role) && own.scope.contains(&carried.granted_for))
            }
        }
    }

    /// Whether a role can count against the actor, wherever it is granted.
    pub fn can_be_below(&self, role: RoleType) -> bool {
        // a role that covers it in the system covers it everywhere
        self.is_below(&CarriedRole { row: Uuid::nil(), role, granted_for: Lineage::default() })
    }

    /// Whether no role counts against the actor, so that the search can be skipped.
    pub fn is_below_none(&self) -> bool {
        !ROLES.iter().any(|line| self.can_be_below(line.role))
    }
}

impl RoleScope {
    /// Whether it contains the object of a grant.
    fn contains(self, granted_for: &Lineage) -> bool {
        match self {
            Self::System => true,
            Self::Customer(id) => granted_for.customer == Some(id),
            Self::Subscription(id) => granted_for.subscription == Some(id),
            Self::Tenant(id) => granted_for.tenant == Some(id),
            Self::IdpInstance(id) => granted_for.instance == Some(id),
            Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Authority, CarriedRole, HeldRole, Lineage};
    use crate::{RoleScope as S, RoleType as R};

    const CUSTOMER: Uuid = Uuid::from_u128(1);
    const SUBSCRIPTION: Uuid = Uuid::from_u128(2);
    const STORE: Uuid = Uuid::from_u128(3);
    const OTHER_STORE: Uuid = Uuid::from_u128(9);

    fn is_below(held: &[(R, S)], role: R, granted_for: Lineage) -> bool {
        let held = held.iter().map(|(role, scope)| HeldRole { role: *role, scope: *scope }).collect();
        Authority::Roles(held).is_below(&CarriedRole { row: Uuid::nil(), role, granted_for })
    }

    #[test]
    fn a_role_counts_unless_one_that_implies_it_covers_what_it_was_granted_for() {
        let system = Lineage::default();
        let customer = Lineage { customer: Some(CUSTOMER), ..system };
        let subscription = Lineage { subscription: Some(SUBSCRIPTION), ..customer };
        let store = Lineage { instance: Some(STORE), ..subscription };
        let of_store = [(R::UserStoreAdmin, S::IdpInstance(STORE))];
        let of_subscription = [(R::SubscriptionAdmin, S::Subscription(SUBSCRIPTION))];
        assert!(!is_below(&of_store, R::UserStoreAdmin, store), "a peer");
        assert!(is_below(
            &of_store,
            R::UserStoreAdmin,
            Lineage { instance: Some(OTHER_STORE), ..subscription }
        ));
        assert!(is_below(&of_store, R::SubscriptionAdmin, subscription));
        assert!(is_below(&of_store, R::SystemAdmin, system));
        assert!(!is_below(&of_store, R::UserAdmin, system));
        assert!(!is_below(&of_store, R::ApplicationDataReader, system));
        assert!(!is_below(&of_subscription, R::UserStoreAdmin, store));
        assert!(!is_below(&of_subscription, R::SubscriptionAdmin, subscription));
        assert!(is_below(&of_subscription, R::CustomerAdmin, customer));
        assert!(is_below(&of_subscription, R::AuditTrailReader, system));
        assert!(!is_below(&[(R::CustomerAdmin, S::Customer(CUSTOMER))], R::UserStoreAdmin, store));
        assert!(!is_below(&[(R::SystemAdmin, S::System)], R::AuditTrailReader, system));
    }

    #[test]
    fn a_scim_client_holds_no_role_and_no_role_counts_against_a_person_about_themselves() {
        assert!(is_below(&[], R::ApplicationDataReader, Lineage::default()));
        assert!(!is_below(&[], R::UserAdmin, Lineage::default()));
        let carried = CarriedRole { row: Uuid::nil(), role: R::SystemAdmin, granted_for: Lineage::default() };
        assert!(!Authority::Own.is_below(&carried));
    }

    #[test]
    fn a_system_administrator_outranks_all_roles_and_some_roles_never_count() {
        let of = |role, scope| Authority::Roles(vec![HeldRole { role, scope }]);
        assert!(Authority::Own.is_below_none() && of(R::SystemAdmin, S::System).is_below_none());
        assert!(!Authority::Roles(Vec::new()).is_below_none());
        let customer = of(R::CustomerAdmin, S::Customer(CUSTOMER));
        assert!(!customer.is_below_none() && customer.can_be_below(R::CustomerAdmin));
        assert!(!customer.can_be_below(R::UserAdmin) && !customer.can_be_below(R::ApplicationDataReader));
    }
}
