//! The table of section 7 of the contract's decisions, repeated here: which role may call which operation.

use std::collections::HashSet;

use chancery::services;
use chancery_resource::{Method, ROLES, RoleType, ScopeKind, Service};
use chancery_testkit::{Client, World, on_both_engines};

use crate::{id, permissions::call};

/// Permitted roles, from the narrowest up.
type Roles = &'static [&'static str];

const NO_ROLE: Roles = &[];
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
/// All roles.
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

/// A path prefix, the roles that may write, the roles that may read. The longest prefix wins. Where
/// it depends on the owner of a row, the narrowest role is listed: for others the row is out of scope.
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
    // requires read access to the client app; access to the user's store is checked in addition
    ("/ClientApp/{clientAppId}/tokens/preview", TENANT, NO_ROLE),
    ("/ClientAppAuthenticationConfiguration", SUBSCRIPTION, TENANT),
    ("/ClientAppFederatedIdentity", SUBSCRIPTION, TENANT),
    ("/ClientAppKeySet", SUBSCRIPTION, TENANT),
    ("/ClientAppRedirectUri", SUBSCRIPTION, TENANT),
    ("/ClientAppRequestUri", SUBSCRIPTION, TENANT),
    ("/ClientAppResource", SUBSCRIPTION, TENANT),
    ("/ClientAppRole", SUBSCRIPTION, TENANT),
    ("/ClientAppScope", SUBSCRIPTION, TENANT),
    ("/ClientAppSecret", SUBSCRIPTION, TENANT),
    // options of a tenant; those of an instance follow the instance
    ("/Option", TENANT, TENANT),
    ("/UserQuestionnaireItem", TENANT, TENANT),
    ("/ClaimRule", TENANT, TENANT),
    ("/CustomAsset", TENANT, TENANT),
    ("/CustomView", TENANT, TENANT),
    ("/CustomView/viewtemplate/names", NO_ROLE, ADMINISTRATORS),
    ("/CustomView/viewtemplate/content", NO_ROLE, ADMINISTRATORS),
    ("/CertStore", TENANT, TENANT),
    // a relation of the instance, seen from its other side
    ("/CertStore/{id}/idpinstances", SUBSCRIPTION, TENANT),
    ("/CustomAuditTrail", NO_ROLE, TRAILS),
    ("/ApplicationUser", NO_ROLE, DATA),
    ("/ApplicationUser/{applicationUserId}/ApplicationUserProfile", SUBSCRIPTION, DATA),
    ("/ApplicationGroup", NO_ROLE, DATA),
    ("/ApplicationUser/{id}/signout", ADMINISTRATORS, DATA),
    ("/SignInSession", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInGrant", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInFactor", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInConsent", TENANT, TENANT),
    ("/ClientAppRefusal", NO_ROLE, TENANT),
    ("/DirectoryRefusal", NO_ROLE, ADMINISTRATORS),
    ("/CredentialSetByOther", NO_ROLE, ADMINISTRATORS),
    ("/SignInRecord", NO_ROLE, RECORDS),
    // readable with read access to the subjects of the events; auditors have the trail
    ("/Event", NO_ROLE, TENANT),
    ("/EventSubscription", TENANT, TENANT),
    ("/SignInEvent", NO_ROLE, TENANT),
    ("/RoleAssignment", TENANT, TENANT),
    // any principal may read its own
    ("/EffectivePermissions", NO_ROLE, ALL),
    ("/passkey-trust", SYSTEM, SYSTEM),
    ("/identity-replacements", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/approvals", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/proofs", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/execute", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/cancel", SYSTEM, SYSTEM),
];

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
    let covered: HashSet<&str> = ALL.iter().copied().collect();
    assert_eq!(covered, ROLES.iter().map(|line| line.role.name()).collect());
}

fn has_prefix(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The row for a path: the longest prefix.
fn row_of(path: &str) -> Option<&'static (&'static str, Roles, Roles)> {
    TABLE.iter().filter(|(prefix, ..)| has_prefix(path, prefix)).max_by_key(|(prefix, ..)| prefix.len())
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
    for role in ALL.iter().copied() {
        let given_at = RoleType::of(role).unwrap().line().given_at;
        let of_tenant = (given_at == [ScopeKind::Tenant]).then_some(tenant);
        let of_instance = (given_at == [ScopeKind::UserStore]).then_some(instance);
        callers.push((role, world.client(role, &[(role, of_tenant, of_instance)]).await));
    }
    callers
}

on_both_engines! {
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
    for row in TABLE {
        let is_used = service().all().any(|op| row_of(op.path).is_some_and(|matched| matched.0 == row.0));
        assert!(is_used, "{}", row.0);
    }
    for (prefix, _) in UNSETTLED {
        assert!(service().all().any(|op| has_prefix(op.path, prefix)), "{prefix}");
    }
}
