//! The table of section 7 of the contract's decisions, typed anew: which role may call which operation.

use std::collections::HashSet;

use chancery::services;
use chancery_resource::{Method, ROLES, RoleType, ScopeKind, Service};
use chancery_testkit::{Client, World, on_both_engines};

use crate::{id, permissions::call};

/// Roles that may, from the lowest up.
type Roles = &'static [&'static str];

const NOBODY: Roles = &[];
const SYSTEM: Roles = &["SystemAdmin"];
const CUSTOMER: Roles = &["CustomerAdmin", "SystemAdmin"];
const SUBSCRIPTION: Roles = &["SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
const TENANT: Roles = &["TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
/// Administrators of any kind: a store has one, too.
const ADMINISTRATORS: Roles =
    &["UserStoreAdmin", "TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
const DATA: Roles = &[
    "ApplicationDataReader",
    "UserStoreAdmin",
    "TenantAdmin",
    "SubscriptionAdmin",
    "CustomerAdmin",
    "SystemAdmin",
];
const TRAILS: Roles = &["AuditTrailReader", "SystemAdmin"];
const RECORDS: Roles =
    &["AuditTrailReader", "TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
/// All there are.
const ALL: Roles = &[
    "UserAdmin",
    "AuditTrailReader",
    "ApplicationDataReader",
    "UserStoreAdmin",
    "TenantAdmin",
    "SubscriptionAdmin",
    "CustomerAdmin",
    "SystemAdmin",
];

/// What a path begins with, who may write there, who may read there. The longest beginning counts. Where
/// it depends on whose a row is, it is the lowest of them: the row itself is then out of scope for others.
const TABLE: &[(&str, Roles, Roles)] = &[
    ("/Customer", SYSTEM, CUSTOMER),
    ("/Subscription", CUSTOMER, SUBSCRIPTION),
    ("/Tenant", SUBSCRIPTION, TENANT),
    ("/IdpInstance", SUBSCRIPTION, TENANT),
    ("/MfaInstance", SUBSCRIPTION, TENANT),
    ("/IdpType", SYSTEM, TENANT),
    ("/IpAddressRange", SUBSCRIPTION, TENANT),
    ("/ClientApp", SUBSCRIPTION, TENANT),
    ("/ClientApp/{id}/tenants", TENANT, TENANT),
    ("/ClientApp/{id}/authorizedusers", TENANT, TENANT),
    ("/ClientApp/{id}/authorizedgroups", TENANT, TENANT),
    // who may read the client app; the person's user store is judged besides
    ("/ClientApp/{clientAppId}/tokens/preview", TENANT, NOBODY),
    ("/ClientAppAuthenticationConfiguration", SUBSCRIPTION, TENANT),
    ("/ClientAppFederatedIdentity", SUBSCRIPTION, TENANT),
    ("/ClientAppKeySet", SUBSCRIPTION, TENANT),
    ("/ClientAppRedirectUri", SUBSCRIPTION, TENANT),
    ("/ClientAppRequestUri", SUBSCRIPTION, TENANT),
    ("/ClientAppResource", SUBSCRIPTION, TENANT),
    ("/ClientAppRole", SUBSCRIPTION, TENANT),
    ("/ClientAppScope", SUBSCRIPTION, TENANT),
    ("/ClientAppSecret", SUBSCRIPTION, TENANT),
    // of a tenant; those of an instance are of the instance
    ("/Option", TENANT, TENANT),
    ("/UserQuestionnaireItem", TENANT, TENANT),
    ("/ClaimRule", TENANT, TENANT),
    ("/CustomAsset", TENANT, TENANT),
    ("/CustomView", TENANT, TENANT),
    ("/CustomView/viewtemplate/names", NOBODY, ADMINISTRATORS),
    ("/CustomView/viewtemplate/content", NOBODY, ADMINISTRATORS),
    ("/CertStore", TENANT, TENANT),
    // a relation of the instance, seen from its other side
    ("/CertStore/{id}/idpinstances", SUBSCRIPTION, TENANT),
    ("/CustomAuditTrail", NOBODY, TRAILS),
    ("/ApplicationUser", NOBODY, DATA),
    ("/ApplicationUser/{applicationUserId}/ApplicationUserProfile", SUBSCRIPTION, DATA),
    ("/ApplicationGroup", NOBODY, DATA),
    ("/ApplicationUser/{id}/signout", ADMINISTRATORS, DATA),
    ("/SignInSession", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInGrant", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInFactor", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInConsent", TENANT, TENANT),
    ("/ClientAppRefusal", NOBODY, TENANT),
    ("/DirectoryRefusal", NOBODY, ADMINISTRATORS),
    ("/CredentialSetByOther", NOBODY, ADMINISTRATORS),
    ("/SignInRecord", NOBODY, RECORDS),
    // read by those who may read what the events are about; auditors have the trail
    ("/Event", NOBODY, TENANT),
    ("/EventSubscription", TENANT, TENANT),
    ("/SignInEvent", NOBODY, TENANT),
    ("/RoleAssignment", TENANT, TENANT),
    // the principal itself may be anybody
    ("/EffectivePermissions", NOBODY, ALL),
    ("/passkey-trust", SYSTEM, SYSTEM),
    ("/identity-replacements", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/approvals", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/proofs", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/execute", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/cancel", SYSTEM, SYSTEM),
];

/// Where section 7 can be read in two ways, and for whom: nothing is asserted.
const UNSETTLED: [(&str, Roles); 3] = [
    // "who holds the role": whoever holds it, or the administrators among them
    ("/RoleAssignment", &["UserAdmin", "AuditTrailReader", "ApplicationDataReader", "UserStoreAdmin"]),
    // what is asked about is the subscription, which a TenantAdmin does not read
    ("/IdpInstance/subscription", &["TenantAdmin"]),
    ("/CertStore/type/{type}/subscription", &["TenantAdmin"]),
];

#[test]
fn all_roles_are_tried() {
    let tried: HashSet<&str> = ALL.iter().copied().collect();
    assert_eq!(tried, ROLES.iter().map(|line| line.role.name()).collect());
}

fn begins(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The row that counts for a path.
fn row_of(path: &str) -> Option<&'static (&'static str, Roles, Roles)> {
    TABLE.iter().filter(|(start, ..)| begins(path, start)).max_by_key(|(start, ..)| start.len())
}

fn is_unsettled(path: &str, role: &str) -> bool {
    UNSETTLED.iter().any(|(start, roles)| begins(path, start) && roles.contains(&role))
}

fn service() -> &'static Service {
    let found = services().iter().find(|service| service.name == "management" && service.version == "v2");
    found.copied().unwrap()
}

/// A client of each role, with that role alone.
async fn callers(world: &World) -> Vec<(&'static str, Client)> {
    let (tenants, instances) = (world.all("Tenant").await, world.all("IdpInstance").await);
    let (tenant, instance) = (id(&tenants[0]).parse().unwrap(), id(&instances[0]).parse().unwrap());
    let mut callers = Vec::new();
    for role in ALL.iter().copied() {
        let given_at = RoleType::of(role).unwrap().line().given_at;
        let of_tenant = (given_at == [ScopeKind::Tenant]).then_some(tenant);
        let of_instance = (given_at == [ScopeKind::UserStore]).then_some(instance);
        callers.push((role, world.client(role, &[(role, of_tenant, of_instance)]).await));
    }
    callers
}

on_both_engines! {
    async fn every_role_may_what_section_7_says(world: World) {
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

/// A row that nothing is in is mistyped.
#[test]
fn every_row_is_of_an_operation() {
    for row in TABLE {
        let is_used = service().all().any(|op| row_of(op.path).is_some_and(|found| found.0 == row.0));
        assert!(is_used, "{}", row.0);
    }
    for (start, _) in UNSETTLED {
        assert!(service().all().any(|op| begins(op.path, start)), "{start}");
    }
}
