//! The table of roles, written independently of the declarations: which role may call which operation.

use std::collections::HashSet;

use chancery::services;
use chancery_resource::{Method, ROLES, RoleType, ScopeKind, Service};
use chancery_testkit::{Client, World, on_both_engines};

use crate::{
    id,
    pattern::{PERMITTED, ROLE_NAMES, Roles},
    permissions::call,
};

/// Ambiguities of section 7, and the roles concerned: nothing is asserted.
const UNSETTLED: [(&str, Roles); 3] = [
    // "who holds the role": any holder, or the administrators among them
    ("/RoleAssignment", &["UserAdmin", "AuditTrailReader", "ApplicationDataReader", "UserStoreAdmin"]),
    // the query names the subscription, which a TenantAdmin does not read
    ("/IdpInstance/subscription", &["TenantAdmin"]),
    ("/CertStore/type/{type}/subscription", &["TenantAdmin"]),
];

#[test]
fn all_roles_are_covered() {
    let covered: HashSet<&str> = ROLE_NAMES.iter().copied().collect();
    assert_eq!(covered, ROLES.iter().map(|line| line.role.name()).collect());
}

fn has_prefix(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The row for a path: the longest prefix.
fn row_of(path: &str) -> Option<&'static (&'static str, Roles, Roles)> {
    PERMITTED.iter().filter(|(prefix, ..)| has_prefix(path, prefix)).max_by_key(|(prefix, ..)| prefix.len())
}

fn is_unsettled(path: &str, role: &str) -> bool {
    UNSETTLED.iter().any(|(prefix, roles)| has_prefix(path, prefix) && roles.contains(&role))
}

fn service() -> &'static Service {
    let service = services().iter().find(|service| service.name == "management" && service.version == "v2");
    service.copied().unwrap()
}

/// A client of each role, with that role alone.
async fn callers(world: &World) -> Vec<(&'static str, Client)> {
    let (tenants, instances) = (world.all("Tenant").await, world.all("IdpInstance").await);
    let (tenant, instance) = (id(&tenants[0]).parse().unwrap(), id(&instances[0]).parse().unwrap());
    let mut callers = Vec::new();
    for role in ROLE_NAMES.iter().copied() {
        let given_at = RoleType::of(role).unwrap().line().given_at;
        let of_tenant = (given_at == [ScopeKind::Tenant]).then_some(tenant);
        let of_instance = (given_at == [ScopeKind::UserStore]).then_some(instance);
        callers.push((role, world.client(role, &[(role, of_tenant, of_instance)]).await));
    }
    callers
}

on_both_engines! {
    /// - Effect of `RoleAssignment.roleType`: The person or the members of the group have the rights of this role; `UserAdmin` gives none.
    async fn every_role_may_call_what_section_7_grants(world: World) {
        let callers = callers(&world).await;
        let mut wrong = Vec::new();
        for op in service().all() {
            let Some((_, write, read)) = row_of(op.path) else {
                wrong.push(format!("{}: no row for {}", op.name, op.path));
                continue;
            };
            let may = if op.method == Method::Get { read } else { write };
            for (role, client) in callers.iter().filter(|(role, _)| !is_unsettled(op.path, role)) {
                let status = call(client, service(), op, "default").await;
                let is_in = ![401, 403, 405].contains(&status) && status < 500;
                if may.contains(role) && !is_in {
                    wrong.push(format!("{}: {role} may, but was answered {status}", op.name));
                } else if !may.contains(role) && status != 403 {
                    wrong.push(format!("{}: {role} may not, but was answered {status}", op.name));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A row without an operation is mistyped.
#[test]
fn every_row_matches_an_operation() {
    for row in PERMITTED {
        let is_used = service().all().any(|op| row_of(op.path).is_some_and(|matched| matched.0 == row.0));
        assert!(is_used, "{}", row.0);
    }
    for (prefix, _) in UNSETTLED {
        assert!(service().all().any(|op| has_prefix(op.path, prefix)), "{prefix}");
    }
}
