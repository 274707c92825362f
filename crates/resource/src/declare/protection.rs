//! Who may act on whom: rows that carry roles, such as persons and groups, and what of them is protected.
//!
//! A role of a row counts when the caller does not hold its rights. Whoever may write the row all the same must leave its
//! protected facts as they are: by changing a person's password, or the members of a group, one would take over the roles.

use chancery_record::Field;
use chancery_store::Tx;
use uuid::Uuid;

use crate::{Context, Problem, ROLES, Relation, RoleScope, RoleType};

/// A role, and where it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRole {
    /// The role.
    pub role: RoleType,
    /// What it covers.
    pub scope: RoleScope,
}

/// By which rights somebody acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The server itself, or a person about whom an operation is and who proves that.
    Own,
    /// A caller with these roles, about others. A directory holds none.
    Roles(Vec<HeldRole>),
}

/// What a role was granted for, and what that belongs to.
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
    /// What it was granted for.
    pub granted_for: Lineage,
}

/// Finds the roles that rows carry, by the rows' ids: their own, or those of the people who sign in by them.
pub type FindRoles = fn(&Context, &mut Tx<'_>, &[Uuid]) -> Result<Vec<CarriedRole>, Problem>;

/// What of a resource is protected where a row carries roles. What is not named here is protected: each other field, what
/// operations of its own do, whether the row exists, and what belongs to it. Each is a static: their addresses tell them apart.
pub struct Protection {
    /// Finds the roles.
    pub find: FindRoles,
    /// Whose roles they are.
    pub carried_by: CarriedBy,
    /// The fields that are not protected.
    pub open: &'static [&'static Field],
    /// The Boolean fields that may be set to false all the same: what is switched off is no way in.
    pub may_be_switched_off: &'static [&'static Field],
    /// Which links of the row to others are protected.
    pub links: Links,
    /// Whether an operation on a set of the row's is refused even where it changes nothing.
    pub sets_are_acts: bool,
    /// The fields by which a person is reached: who sets them gets what is sent there, such as links that set a password.
    pub reached_by: &'static [&'static Field],
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
            sets_are_acts: false,
            reached_by: &[],
        }
    }

    /// The same, where these Boolean fields may be set to false all the same: what is switched off is no way in.
    #[must_use]
    pub const fn may_be_switched_off(self, fields: &'static [&'static Field]) -> Self {
        Self { may_be_switched_off: fields, ..self }
    }

    /// The same, where an operation on a set of the row's is refused even where it changes nothing.
    #[must_use]
    pub const fn sets_are_acts(self) -> Self {
        Self { sets_are_acts: true, ..self }
    }

    /// The same, where a person is reached by these fields.
    #[must_use]
    pub const fn reached_by(self, fields: &'static [&'static Field]) -> Self {
        Self { reached_by: fields, ..self }
    }
}

/// Whose roles a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedBy {
    /// The row's: it is a person or a group.
    Itself,
    /// Those of the people who sign in by the row: it decides how they prove who they are.
    WhoSignsIn,
    /// Those of the people who let it act: it is a client app that may get tokens for the platform.
    WhoLendsThem,
}

/// Which links of a row are protected, as the members of a group are.
#[derive(Clone, Copy, Debug)]
pub enum Links {
    /// None.
    Open,
    /// All but those in these tables of pairs.
    AllBut(&'static [&'static str]),
}

impl Links {
    /// Whether the links of this relation are protected, from whichever side they are written.
    pub fn protect(self, relation: &Relation) -> bool {
        matches!(self, Self::AllBut(open) if !open.contains(&relation.table))
    }
}

impl Authority {
    /// Whether a role counts against who acts: they do not hold its rights.
    pub fn is_below(&self, carried: &CarriedRole) -> bool {
        let Self::Roles(held) = self else { return false };
        match carried.role {
            RoleType::UserAdmin => false,
            // it reads what whoever administers a store may read there
            RoleType::ApplicationDataReader if !held.is_empty() => false,
            role => {
                !held.iter().any(|own| own.role.implies(role) && own.scope.contains(&carried.granted_for))
            }
        }
    }

    /// Whether a role can count against who acts, wherever it is granted.
    pub fn can_be_below(&self, role: RoleType) -> bool {
        // whoever covers it in the system covers it everywhere
        self.is_below(&CarriedRole { row: Uuid::nil(), role, granted_for: Lineage::default() })
    }

    /// Whether no role counts against who acts, so that none needs to be looked for.
    pub fn is_below_none(&self) -> bool {
        !ROLES.iter().any(|line| self.can_be_below(line.role))
    }
}

impl RoleScope {
    /// Whether it contains what a role was granted for.
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
    const ELSEWHERE: Uuid = Uuid::from_u128(9);

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
            Lineage { instance: Some(ELSEWHERE), ..subscription }
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
    fn a_directory_holds_no_role_and_who_acts_for_oneself_is_below_none() {
        assert!(is_below(&[], R::ApplicationDataReader, Lineage::default()));
        assert!(!is_below(&[], R::UserAdmin, Lineage::default()));
        let carried = CarriedRole { row: Uuid::nil(), role: R::SystemAdmin, granted_for: Lineage::default() };
        assert!(!Authority::Own.is_below(&carried));
    }

    #[test]
    fn who_holds_all_is_below_none_and_roles_that_never_count_are_not_looked_for() {
        let of = |role, scope| Authority::Roles(vec![HeldRole { role, scope }]);
        assert!(Authority::Own.is_below_none() && of(R::SystemAdmin, S::System).is_below_none());
        assert!(!Authority::Roles(Vec::new()).is_below_none());
        let customer = of(R::CustomerAdmin, S::Customer(CUSTOMER));
        assert!(!customer.is_below_none() && customer.can_be_below(R::CustomerAdmin));
        assert!(!customer.can_be_below(R::UserAdmin) && !customer.can_be_below(R::ApplicationDataReader));
    }
}
