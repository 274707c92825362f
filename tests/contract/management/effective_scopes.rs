//! Effective permissions: the scope of the roles of a principal, and their sources.

use chancery_testkit::{RoleRow, World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, one, related};
use crate::{each, id};

/// Scopes of roles, the narrowest first, and the administrator role of each.
const SCOPES: [(&str, &str); 5] = [
    ("IdpInstance", "UserStoreAdmin"),
    ("Tenant", "TenantAdmin"),
    ("Subscription", "SubscriptionAdmin"),
    ("Customer", "CustomerAdmin"),
    ("System", "SystemAdmin"),
];

/// The id of the first row of a scope; null for the system.
async fn first(world: &World, scope: &str) -> Value {
    if scope == "System" { Value::Null } else { world.all(scope).await[0]["id"].clone() }
}

fn as_id(id: &Value) -> Option<Uuid> {
    id.as_str().unwrap().parse().ok()
}

/// Assigns a role to a platform user or group, at a target.
async fn assign(
    world: &World,
    (kind, principal): (&str, &Value),
    role: &str,
    (scope, target): (&str, &Value),
) -> Value {
    let mut body = json!({ "principalType": kind, "principalId": principal["id"], "roleType": role });
    if !target.is_null() {
        body[format!("applyTo{scope}Id")] = target.clone();
    }
    world.make("RoleAssignment", body).await
}

/// A platform user, its platform group, and the parent of that group.
async fn create_principals(world: &World) -> [Value; 3] {
    let ada = world.user("ada").await;
    let (inner, outer) = (world.group("inner").await, world.group("outer").await);
    let path = world.path(&format!("/Group/{}", id(&inner)));
    world.admin.post(&format!("{path}/users"), related(&[&ada])).await.expect(202);
    world.admin.post(&format!("{path}/parentgroups"), related(&[&outer])).await.expect(202);
    for kind in ["User", "Group"] {
        world.admin.post(&world.path(&format!("/{kind}/synchronize")), json!(null)).await.expect(200);
    }
    [
        world.all("ApplicationUser").await[0].clone(),
        world.all("ApplicationGroup?filter=name%20eq%20%22inner%22").await[0].clone(),
        world.all("ApplicationGroup?filter=name%20eq%20%22outer%22").await[0].clone(),
    ]
}

/// The id of a platform user or group in its user store.
fn in_store(principal: &Value) -> &str {
    principal["identities"][0]["subject"].as_str().unwrap()
}

async fn effective(world: &World, kind: &str, principal: &Value) -> Value {
    world.all(&format!("EffectivePermissions/{kind}/{}", id(principal))).await
}

/// The assignment of this role.
fn assigned<'a>(permissions: &'a Value, role: &str) -> &'a Value {
    let row = permissions["assignments"].as_array().unwrap().iter().find(|row| row["roleType"] == role);
    row.unwrap_or_else(|| panic!("{role} in {permissions}"))
}

fn count(permissions: &Value) -> usize {
    permissions["assignments"].as_array().unwrap().len()
}

/// Creates a client app with these roles, in a subscription; the app and its own effective permissions.
async fn client_with_roles(
    world: &World,
    subscription: &Value,
    name: &str,
    roles: &[RoleRow<'_>],
) -> (Value, Value) {
    let client = world.client_in(subscription, name, roles).await;
    let app = world.all(&format!("ClientApp?filter=name%20eq%20%22{name}%22")).await[0].clone();
    let path = format!("{BASE}/EffectivePermissions/clientapp/{}", id(&app));
    let permissions = client.get(&path).await.is(200).json();
    assert_eq!(world.admin.get(&path).await.is(200).json(), permissions, "everybody is told the same");
    (app, permissions)
}

on_both_engines! {
    /// - Effect of `RoleAssignment.applyToCustomerId`: The role applies to this customer.
    /// - Effect of `RoleAssignment.applyToIdpInstanceId`: The role applies to this instance.
    /// - Effect of `RoleAssignment.applyToSubscriptionId`: The role applies to this subscription.
    /// - Effect of `RoleAssignment.applyToTenantId`: The role applies to this tenant.
    async fn the_effective_scope_is_the_widest(world: World) {
        let [person, _, group] = create_principals(&world).await;
        for (kind, path, principal) in
            [("PlatformUser", "platformuser", &person), ("PlatformGroup", "platformgroup", &group)]
        {
            let mut assigned_roles = Vec::new();
            for (scope, role) in SCOPES {
                let target = first(&world, scope).await;
                assigned_roles.push(assign(&world, (kind, principal), role, (scope, &target)).await);
                let permissions = effective(&world, path, principal).await;
                assert_eq!((&permissions["principalType"], &permissions["principalId"]), (&json!(kind), &principal["id"]));
                assert_eq!(permissions["scope"], scope, "{kind}");
                assert_eq!(
                    *assigned(&permissions, role),
                    json!({
                        "roleType": role, "source": "Direct", "sourceId": principal["id"],
                        "scopeType": scope, "scopeId": target,
                    })
                );
            }
            // and the scope narrows when roles are removed
            while let Some(widest) = assigned_roles.pop() {
                world.admin.delete(&one("RoleAssignment", &widest)).await.expect(204);
                let permissions = effective(&world, path, principal).await;
                let left = assigned_roles.len().checked_sub(1).map(|last| SCOPES[last].0);
                assert_eq!((&permissions["scope"], count(&permissions)), (&json!(left), assigned_roles.len()), "{kind}");
            }
        }
    }

    /// A role with several kinds of targets is held once for each.
    async fn a_data_reader_is_scoped_to_a_tenant_an_instance_or_all(world: World) {
        let [person, ..] = create_principals(&world).await;
        let mut seen = Vec::new();
        for scope in ["IdpInstance", "Tenant", "System"] {
            let target = first(&world, scope).await;
            assign(&world, ("PlatformUser", &person), "ApplicationDataReader", (scope, &target)).await;
            seen.push(scope);
            let permissions = effective(&world, "platformuser", &person).await;
            assert_eq!(permissions["scope"], scope);
            let mut scopes = each(&permissions["assignments"], "scopeType");
            scopes.sort_unstable();
            seen.sort_unstable();
            assert_eq!(scopes, seen);
            assert_eq!(permissions["permissions"], json!(["ApplicationGroup.Read", "ApplicationUser.Read", "ApplicationUserProfile.Read"]));
        }
    }

    /// Roles of groups apply to their members, at any depth, and only while they are members.
    ///
    /// - Effect of `RoleAssignment.principalType`: The role is held by a person, or by the members of a group.
    async fn members_inherit_the_roles_of_nested_groups(world: World) {
        let [person, inner, outer] = create_principals(&world).await;
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let customer = first(&world, "Customer").await;
        assign(&world, ("PlatformUser", &person), "UserStoreAdmin", ("IdpInstance", &store)).await;
        assign(&world, ("PlatformGroup", &inner), "TenantAdmin", ("Tenant", &tenant)).await;
        assign(&world, ("PlatformGroup", &outer), "CustomerAdmin", ("Customer", &customer)).await;
        for (path, principal, expected) in [
            (
                "platformuser",
                &person,
                vec![
                    ("UserStoreAdmin", "Direct", &person),
                    ("TenantAdmin", "Group", &inner),
                    ("CustomerAdmin", "Group", &outer),
                ],
            ),
            (
                "platformgroup",
                &inner,
                vec![("TenantAdmin", "Direct", &inner), ("CustomerAdmin", "Group", &outer)],
            ),
            ("platformgroup", &outer, vec![("CustomerAdmin", "Direct", &outer)]),
        ] {
            let permissions = effective(&world, path, principal).await;
            assert_eq!((&permissions["scope"], count(&permissions)), (&json!("Customer"), expected.len()), "{permissions}");
            for (role, source, through) in expected {
                let row = assigned(&permissions, role);
                assert_eq!((&row["source"], &row["sourceId"]), (&json!(source), &through["id"]), "{permissions}");
            }
        }
        let members = world.path(&format!("/Group/{}/users", in_store(&inner)));
        world.admin.delete_with(&members, json!({ "relatedIds": [in_store(&person)] })).await.expect(202);
        let permissions = effective(&world, "platformuser", &person).await;
        assert_eq!((&permissions["scope"], count(&permissions)), (&json!("IdpInstance"), 1));
        assert_eq!(permissions["assignments"][0]["source"], "Direct");
        let permissions = effective(&world, "platformgroup", &inner).await;
        assert_eq!((&permissions["scope"], count(&permissions)), (&json!("Customer"), 2));
    }

    /// CustomerAdmin and SubscriptionAdmin of a client app apply to its own customer and
    /// subscription; other roles apply to their target.
    ///
    /// - Effect of `ClientAppRole.applyToIdpInstanceId`: The role applies to this instance.
    /// - Effect of `ClientAppRole.applyToTenantId`: The role applies to this tenant.
    /// - Effect of `ClientAppRole.clientAppId`: The app has the role.
    /// - Effect of `ClientAppRole.roleType`: Tokens of the app itself have the rights of this role.
    async fn client_app_roles_default_to_its_own_customer_and_subscription(world: World) {
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let far = world.other_subscription("Far").await;
        let subscription =
            world.admin.get(&format!("{BASE}/Subscription/{}", far.as_str().unwrap())).await.is(200).json();
        let nothing = Value::Null;
        let targets = [&store, &tenant, &far, &subscription["customerId"], &nothing];
        let rows = [
            ("UserStoreAdmin", None, as_id(&store)),
            ("TenantAdmin", as_id(&tenant), None),
            ("SubscriptionAdmin", None, None),
            ("CustomerAdmin", None, None),
            ("SystemAdmin", None, None),
        ];
        for number in 1..=rows.len() {
            let (app, permissions) = client_with_roles(&world, &far, &format!("app{number}"), &rows[..number]).await;
            assert_eq!((&permissions["principalType"], &permissions["principalId"]), (&json!("ClientApp"), &app["id"]));
            assert_eq!((&permissions["scope"], count(&permissions)), (&json!(SCOPES[number - 1].0), number));
            for ((scope, role), target) in SCOPES.into_iter().zip(targets).take(number) {
                assert_eq!(
                    *assigned(&permissions, role),
                    json!({
                        "roleType": role, "source": "ClientApp", "sourceId": app["id"],
                        "scopeType": scope, "scopeId": target,
                    })
                );
            }
        }
        let (_, permissions) = client_with_roles(&world, &far, "none", &[]).await;
        assert_eq!(
            (&permissions["scope"], &permissions["assignments"], &permissions["permissions"]),
            (&nothing, &json!([]), &json!([]))
        );
    }

    /// Permissions are derived from the operations that a role may call.
    async fn permissions_are_those_of_the_roles(world: World) {
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let subscription = first(&world, "Subscription").await;
        for (role, allowed, others) in [
            (("SystemAdmin", None, None), "Customer.Write AuditTrail.Read User.Write", ""),
            (
                ("CustomerAdmin", None, None),
                "Customer.Read Subscription.Write User.Write",
                "Customer.Write AuditTrail.Read",
            ),
            (
                ("SubscriptionAdmin", None, None),
                "Subscription.Read ClientApp.Write User.Write",
                "Subscription.Write Customer.Read",
            ),
            (
                ("TenantAdmin", as_id(&tenant), None),
                "Tenant.Read ClaimRule.Write ClientApp.Read",
                "IdpInstance.Write User.Read",
            ),
            (
                ("UserStoreAdmin", None, as_id(&store)),
                "User.Write Group.Read",
                "IdpInstance.Read ClientApp.Read Tenant.Read",
            ),
            (("AuditTrailReader", None, None), "AuditTrail.Read", "User.Read Tenant.Read"),
        ] {
            let (_, permissions) = client_with_roles(&world, &subscription, role.0, &[role]).await;
            let all = permissions["permissions"].as_array().unwrap();
            let names: Vec<&str> = all.iter().map(|one| one.as_str().unwrap()).collect();
            assert!(names.is_sorted(), "{names:?}");
            for name in allowed.split_whitespace() {
                assert!(names.contains(&name), "{} {name}: {names:?}", role.0);
            }
            for name in others.split_whitespace() {
                assert!(!names.contains(&name), "{} {name}: {names:?}", role.0);
            }
        }
    }
}
