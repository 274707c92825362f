//! Who may grant which role at what: nobody one that they do not hold, in a scope that covers the target.

use std::collections::{HashMap, HashSet};

use chancery_record::Value;
use chancery_resource::{
    Context, LIST, Problem, ProblemKind, RoleScope, RoleType, Scope, ScopeKind, Sql, Tx, Violation,
};
use uuid::Uuid;

/// A column of a role that says what it is given at, and what that says.
pub type Target = (ScopeKind, Option<Uuid>);

/// A role, and what it covers where it is given; none where it cannot be given there.
pub type Grant = (RoleType, Option<RoleScope>);

/// What a role is given at of a kind. A user store is an instance.
pub fn target_of(kind: ScopeKind, targets: &[Target]) -> Option<Uuid> {
    targets.iter().find(|(known, _)| known.column() == kind.column()).and_then(|(_, target)| *target)
}

/// Finds targets that are missing, and those that the role cannot be given at.
pub fn check_targets(role: RoleType, targets: &[Target], wrong: &mut Vec<(&'static str, String)>) {
    let name = role.name();
    let wanted = |kind: ScopeKind| role.line().given_at.iter().find(|one| one.column() == kind.column());
    let mut is_given = false;
    for (kind, target) in targets {
        let Some(column) = kind.column() else { continue };
        let noun = kind.noun();
        match (target, wanted(*kind)) {
            (Some(_), None) => wrong.push((column, format!("must be empty: a {name} is of no {noun}"))),
            (Some(_), Some(_)) if is_given => {
                wrong.push((column, format!("must be empty: a {name} is given at one thing alone")));
            }
            (Some(_), Some(_)) => is_given = true,
            // the only one that it can be given at
            (None, Some(only)) if role.line().given_at.len() == 1 => {
                wrong.push((column, format!("is missing: a {name} is one of a {}", only.noun())));
            }
            (None, _) => {}
        }
    }
}

/// Finds roles for a user store that are given at an instance of another type.
pub fn check_stores(tx: &mut Tx<'_>, grants: &[Grant]) -> Result<Vec<Violation>, Problem> {
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
            .map(|_| crate::subscription::resolve::wrong(row, "apply_to_idp_instance_id", detail))
    };
    Ok(grants.iter().enumerate().filter_map(wrong).collect())
}

/// Finds grants of what the caller does not hold. That targets are the caller's is the resources'
/// own rule.
pub fn check_grants(context: &Context, grants: &[Grant]) -> Vec<Violation> {
    let refused =
        grants.iter().enumerate().filter(|(_, (role, scope))| !holds(&context.scope, *role, *scope));
    refused
        .map(|(row, (role, _))| Violation {
            row,
            kind: ProblemKind::Forbidden,
            column: "role_type",
            detail: format!("{} is not yours to grant: nobody grants what they do not hold", role.name()),
        })
        .collect()
}

/// Whether a caller holds a role in this scope, or one that implies it.
fn holds(caller: &Scope, role: RoleType, scope: Option<RoleScope>) -> bool {
    let Scope::Parts { customers, subscriptions, tenants, .. } = caller else { return true };
    let is_customer_s = !customers.is_empty() && RoleType::CustomerAdmin.implies(role);
    let is_subscription_s = !subscriptions.is_empty() && RoleType::SubscriptionAdmin.implies(role);
    match scope {
        None | Some(RoleScope::System) => false,
        Some(RoleScope::Customer(id)) => is_customer_s && customers.contains(&id),
        // whether the rest is what the caller's scope covers is looked at where it is named
        Some(RoleScope::Tenant(id)) if RoleType::TenantAdmin.implies(role) && tenants.contains(&id) => true,
        _ => is_customer_s || is_subscription_s,
    }
}

/// Whether a client app of this customer and subscription is within what is the caller's as a whole.
pub fn is_home(caller: &Scope, (customer, subscription): (Uuid, Uuid)) -> bool {
    let Scope::Parts { customers, subscriptions, .. } = caller else { return true };
    customers.contains(&customer) || subscriptions.contains(&subscription)
}

/// The customer and the subscription of each client app.
pub fn homes_of(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<HashMap<Uuid, (Uuid, Uuid)>, Problem> {
    let mut homes = HashMap::with_capacity(apps.len());
    for chunk in apps.chunks(LIST) {
        let mut sql = Sql::new(
            "SELECT a.id, s.customer_id, s.id FROM client_app a JOIN subscription s ON s.id = a.subscription_id WHERE a.id IN ",
        );
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            homes.insert(row.id(0)?, (row.id(1)?, row.id(2)?));
            Ok(())
        })?;
    }
    Ok(homes)
}
