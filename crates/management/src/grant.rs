//! Granting roles: a caller grants only roles that it holds itself, in a scope that covers the target.

use std::collections::{HashMap, HashSet};

use chancery_record::{Field, Value};
use chancery_resource::{
    Context, Findings, LIST, Problem, ProblemKind, RoleScope, RoleType, Scope, ScopeKind, Sql, Tx, Violation,
    selectable,
};
use uuid::Uuid;

/// A target of a role: its kind, the field that names it, and its id.
pub type Target = (ScopeKind, &'static Field, Option<Uuid>);

/// A role with the scope that a grant would have; `None` if it cannot be granted at the targets.
pub type Grant = (RoleType, Option<RoleScope>);

/// The id of the target of this kind. A user store is an instance.
pub fn target_of(
    kind: ScopeKind,
    targets: impl IntoIterator<Item = (ScopeKind, Option<Uuid>)>,
) -> Option<Uuid> {
    targets.into_iter().find(|(known, _)| known.column() == kind.column()).and_then(|(_, target)| target)
}

/// The targets without their fields.
pub fn targets_alone(targets: &[Target]) -> impl Iterator<Item = (ScopeKind, Option<Uuid>)> {
    targets.iter().map(|(kind, _, target)| (*kind, *target))
}

/// Reports targets that are missing, and targets that the role does not support.
pub fn check_targets(role: RoleType, targets: &[Target], wrong: &mut Findings) {
    let name = role.name();
    let supported = |kind: ScopeKind| role.line().given_at.iter().find(|one| one.column() == kind.column());
    let mut is_given = false;
    for (kind, field, target) in targets {
        let noun = kind.noun();
        match (target, supported(*kind)) {
            (Some(_), None) => wrong.add(*field, format!("must be empty: a {name} is of no {noun}")),
            (Some(_), Some(_)) if is_given => {
                wrong.add(*field, format!("must be empty: a {name} is given at one thing alone"));
            }
            (Some(_), Some(_)) => is_given = true,
            // the only kind of target that the role has
            (None, Some(only)) if role.line().given_at.len() == 1 => {
                wrong.add(*field, format!("is missing: a {name} is one of a {}", only.noun()));
            }
            (None, _) => {}
        }
    }
}

/// Reports user store roles that are granted at an instance of another type; violations are at `field`.
pub fn check_stores(
    tx: &mut Tx<'_>,
    grants: &[Grant],
    field: &'static Field,
) -> Result<Vec<Violation>, Problem> {
    let instance = |grant: &Grant| match grant {
        (role, Some(RoleScope::IdpInstance(id))) if role.line().given_at.contains(&ScopeKind::UserStore) => {
            Some(*id)
        }
        _ => None,
    };
    let ids: HashSet<Uuid> = grants.iter().filter_map(instance).collect();
    let mut others = HashSet::new();
    for chunk in ids.into_iter().collect::<Vec<_>>().chunks(LIST) {
        let mut sql = Sql::new("SELECT id FROM idp_instance WHERE idp_type <> 'UserStore' AND id IN ");
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            others.insert(row.id(0)?);
            Ok(())
        })?;
    }
    let wrong = |(row, grant): (usize, &Grant)| {
        let detail = "names an instance that is no user store: the role is one for a user store";
        instance(grant)
            .filter(|id| others.contains(id))
            .map(|_| crate::violation::violation_at(row, field, detail))
    };
    Ok(grants.iter().enumerate().filter_map(wrong).collect())
}

/// Reports grants of roles that the caller does not hold; violations are at `field`. The resources themselves check
/// that the targets are within the caller's scope.
pub fn check_grants(context: &Context, grants: &[Grant], field: &'static Field) -> Vec<Violation> {
    let refused =
        grants.iter().enumerate().filter(|(_, (role, scope))| !holds(&context.scope, *role, *scope));
    refused
        .map(|(row, (role, _))| Violation {
            row,
            kind: ProblemKind::Forbidden,
            field,
            detail: format!("{} is not yours to grant: nobody grants what they do not hold", role.name()),
        })
        .collect()
}

/// Whether a caller holds a role in this scope, or a role that implies it.
fn holds(caller: &Scope, role: RoleType, scope: Option<RoleScope>) -> bool {
    let Scope::Parts { customers, subscriptions, tenants, .. } = caller else { return true };
    let by_customer = !customers.is_empty() && RoleType::CustomerAdmin.implies(role);
    let by_subscription = !subscriptions.is_empty() && RoleType::SubscriptionAdmin.implies(role);
    match scope {
        None | Some(RoleScope::System) => false,
        Some(RoleScope::Customer(id)) => by_customer && customers.contains(&id),
        // whether the caller's scope covers the other targets is checked where the row names them
        Some(RoleScope::Tenant(id)) if RoleType::TenantAdmin.implies(role) && tenants.contains(&id) => true,
        _ => by_customer || by_subscription,
    }
}

/// Whether the caller's scope covers this customer, or this subscription, as a whole.
pub fn covers_owner(caller: &Scope, customer: Uuid, subscription: Uuid) -> bool {
    let Scope::Parts { customers, subscriptions, .. } = caller else { return true };
    customers.contains(&customer) || subscriptions.contains(&subscription)
}

selectable! {
    /// The customer and the subscription of a client app.
    pub struct ClientAppOwners from
        "FROM client_app a JOIN subscription s ON s.id = a.subscription_id WHERE a.id IN " {
        client_app: Uuid = "a.id",
        /// The customer.
        pub customer: Uuid = "s.customer_id",
        /// The subscription.
        pub subscription: Uuid = "s.id",
    }
}

/// The owners of each client app.
pub fn owners_of(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<HashMap<Uuid, ClientAppOwners>, Problem> {
    let mut owners = HashMap::with_capacity(apps.len());
    for chunk in apps.chunks(LIST) {
        let mut sql = Sql::new(ClientAppOwners::SELECT);
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let found = ClientAppOwners::read(row)?;
            owners.insert(found.client_app, found);
            Ok(())
        })?;
    }
    Ok(owners)
}
