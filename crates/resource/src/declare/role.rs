//! Roles: one table, from which the check of permits, scopes, conditions in SQL, the choices of
//! fields and `docs/roles.md` follow.

use chancery_record::{FieldType as _, Value, choice_types};
use uuid::Uuid;

use crate::Permit::{self, self as P};

choice_types! {
    /// A role. Version 1 numbers these: a new one comes last.
    RoleType {
        /// Everything.
        SystemAdmin,
        /// Everything of a customer.
        CustomerAdmin,
        /// Everything of a subscription.
        SubscriptionAdmin,
        /// The items of a tenant.
        TenantAdmin,
        /// Everything in a user store.
        UserStoreAdmin,
        /// The users of a user store.
        UserAdmin,
        /// Reading platform users and groups.
        ApplicationDataReader,
        /// Reading audit trails.
        AuditTrailReader,
    }
}

/// The kinds of scope that a role can be granted at, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    /// The whole system.
    System,
    /// A customer and all below it.
    Customer,
    /// A subscription and all below it.
    Subscription,
    /// A tenant.
    Tenant,
    /// An instance of any type.
    IdpInstance,
    /// An instance that is a user store.
    UserStore,
    /// No scope yet.
    Nothing,
}

/// The scope of a role's grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are the kinds of scopes")]
pub enum RoleScope {
    System,
    Customer(Uuid),
    Subscription(Uuid),
    Tenant(Uuid),
    IdpInstance(Uuid),
    Nothing,
}

/// A role's line in the table.
#[derive(Debug)]
pub struct Role {
    /// The role.
    pub role: RoleType,
    /// The kinds of scope that it can be granted at: one of these.
    pub given_at: &'static [ScopeKind],
    /// The lowest role that implies it within its own scope: its holder may do the same, and grant it.
    pub implied_by: Option<RoleType>,
    /// The permits of which it is the lowest role.
    pub permits: &'static [Permit],
}

const fn role(
    role: RoleType,
    given_at: &'static [ScopeKind],
    implied_by: Option<RoleType>,
    permits: &'static [Permit],
) -> Role {
    Role { role, given_at, implied_by, permits }
}

use RoleType as R;
use ScopeKind as K;

/// The table of roles (`docs/roles.md`).
pub static ROLES: [Role; 8] = [
    role(R::SystemAdmin, &[K::System], None, &[P::SystemAdmin]),
    role(R::CustomerAdmin, &[K::Customer], Some(R::SystemAdmin), &[P::CustomerAdmin]),
    role(R::SubscriptionAdmin, &[K::Subscription], Some(R::CustomerAdmin), &[P::SubscriptionAdmin]),
    role(
        R::TenantAdmin,
        &[K::Tenant],
        Some(R::SubscriptionAdmin),
        &[P::TenantAdmin, P::TenantMember, P::Administrator, P::SignInRecord, P::ApplicationData],
    ),
    role(
        R::UserStoreAdmin,
        &[K::UserStore],
        Some(R::SubscriptionAdmin),
        &[P::UserStore, P::Administrator, P::ApplicationData],
    ),
    role(R::UserAdmin, &[K::Nothing], Some(R::SubscriptionAdmin), &[]),
    role(
        R::ApplicationDataReader,
        &[K::Tenant, K::IdpInstance, K::System],
        Some(R::SubscriptionAdmin),
        &[P::ApplicationData],
    ),
    role(
        R::AuditTrailReader,
        &[K::System],
        Some(R::SystemAdmin),
        &[P::UserStoreAudit, P::Audit, P::SignInRecord],
    ),
];

#[expect(clippy::indexing_slicing, reason = "the compiler looks")]
const _: () = {
    let mut index = 0;
    while index < ROLES.len() {
        assert!(ROLES[index].role as usize == index, "the table has the order of the roles");
        index += 1;
    }
};

impl RoleType {
    /// The role of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::from_value(Value::from(name)).ok()
    }

    /// The role's line in the table of roles.
    #[expect(clippy::indexing_slicing, reason = "there is a line for each role, in their order")]
    pub const fn line(self) -> &'static Role {
        &ROLES[self as usize]
    }

    /// Whether it is the role, or one that implies it.
    pub fn implies(self, role: Self) -> bool {
        self == role || role.line().implied_by.is_some_and(|higher| self.implies(higher))
    }

    /// Whether its holder may call operations of this permit, within its scope.
    pub fn satisfies(self, permit: Permit) -> bool {
        ROLES.iter().any(|line| line.permits.contains(&permit) && self.implies(line.role))
    }

    /// The role's scope where it is granted; `target` returns the id for a kind of scope. `None` where the
    /// role cannot be granted there.
    pub fn scope(self, target: impl Fn(ScopeKind) -> Option<Uuid>) -> Option<RoleScope> {
        self.line().given_at.iter().find_map(|kind| match kind {
            K::System => Some(RoleScope::System),
            K::Customer => target(*kind).map(RoleScope::Customer),
            K::Subscription => target(*kind).map(RoleScope::Subscription),
            K::Tenant => target(*kind).map(RoleScope::Tenant),
            K::IdpInstance | K::UserStore => target(*kind).map(RoleScope::IdpInstance),
            K::Nothing => Some(RoleScope::Nothing),
        })
    }
}

impl ScopeKind {
    /// The kind of scope as a noun, for sentences.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Customer => "customer",
            Self::Subscription => "subscription",
            Self::Tenant => "tenant",
            Self::IdpInstance => "instance",
            Self::UserStore => "user store",
            Self::Nothing => "nothing",
        }
    }

    /// The column with the id of the scope, in the tables of roles.
    pub const fn column(self) -> Option<&'static str> {
        match self {
            Self::System | Self::Nothing => None,
            Self::Customer => Some("apply_to_customer_id"),
            Self::Subscription => Some("apply_to_subscription_id"),
            Self::Tenant => Some("apply_to_tenant_id"),
            Self::IdpInstance | Self::UserStore => Some("apply_to_idp_instance_id"),
        }
    }
}

impl RoleScope {
    /// The kind of the scope.
    pub const fn kind(self) -> ScopeKind {
        match self {
            Self::System => K::System,
            Self::Customer(_) => K::Customer,
            Self::Subscription(_) => K::Subscription,
            Self::Tenant(_) => K::Tenant,
            Self::IdpInstance(_) => K::IdpInstance,
            Self::Nothing => K::Nothing,
        }
    }

    /// The scope kind as in `EffectivePermissions`: a role that is granted nowhere yet is shown as granted to
    /// the system.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System | Self::Nothing => "System",
            Self::Customer(_) => "Customer",
            Self::Subscription(_) => "Subscription",
            Self::Tenant(_) => "Tenant",
            Self::IdpInstance(_) => "IdpInstance",
        }
    }

    /// The id of the covered item; `None` for the system, or nothing.
    pub const fn id(self) -> Option<Uuid> {
        match self {
            Self::Customer(id) | Self::Subscription(id) | Self::Tenant(id) | Self::IdpInstance(id) => {
                Some(id)
            }
            Self::System | Self::Nothing => None,
        }
    }
}

/// The condition that a column holds one of the roles that match the predicate.
pub fn role_condition(column: &str, matches: impl Fn(&Role) -> bool) -> String {
    let names: Vec<String> =
        ROLES.iter().filter(|role| matches(role)).map(|role| format!("'{}'", role.role.name())).collect();
    if names.is_empty() { "FALSE".to_owned() } else { format!("{column} IN ({})", names.join(", ")) }
}

/// The condition that a column holds no role that matches the predicate. An unknown role, such as one of a newer release,
/// matches none: rules that protect the carriers of roles select by this.
pub fn other_role_condition(column: &str, matches: impl Fn(&Role) -> bool) -> String {
    format!("NOT ({})", role_condition(column, matches))
}
