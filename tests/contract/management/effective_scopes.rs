//! Effective permissions: what the roles of somebody cover, and through what they are held.

use chancery_testkit::{RoleRow, World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, one, related};
use crate::{each, id};

/// What a role can be of, the narrowest first, and the administrator of each.
const SCOPES: [(&str, &str); 5] = [
    ("IdpInstance", "UserStoreAdmin"),
    ("Tenant", "TenantAdmin"),
    ("Subscription", "SubscriptionAdmin"),
    ("Customer", "CustomerAdmin"),
    ("System", "SystemAdmin"),
];

/// The id of the first of what a scope names; there is none of the system.
async fn first(world: &World, scope: &str) -> Value {
    if scope == "System" { Value::Null } else { world.all(scope).await[0]["id"].clone() }
}

fn as_id(id: &Value) -> Option<Uuid> {
    id.as_str().unwrap().parse().ok()
}

/// Gives a platform user or group a role of something.
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

/// A platform user, the platform group that they are in, and the one that this is in.
async fn people(world: &World) -> [Value; 3] {
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

/// The id that a platform user or group has in its store.
fn in_store(principal: &Value) -> &str {
    principal["identities"][0]["subject"].as_str().unwrap()
}

async fn effective(world: &World, kind: &str, principal: &Value) -> Value {
    world.all(&format!("EffectivePermissions/{kind}/{}", id(principal))).await
}

/// The assignment of this role.
fn assigned<'a>(told: &'a Value, role: &str) -> &'a Value {
    let found = told["assignments"].as_array().unwrap().iter().find(|held| held["roleType"] == role);
    found.unwrap_or_else(|| panic!("{role} in {told}"))
}

fn count(told: &Value) -> usize {
    told["assignments"].as_array().unwrap().len()
}

/// Makes a client app with these roles, in a subscription; what it is told of itself.
async fn told_to_itself(world: &World, home: &Value, name: &str, roles: &[RoleRow<'_>]) -> (Value, Value) {
    let client = world.client_in(home, name, roles).await;
    let app = world.all(&format!("ClientApp?filter=name%20eq%20%22{name}%22")).await[0].clone();
    let path = format!("{BASE}/EffectivePermissions/clientapp/{}", id(&app));
    let told = client.get(&path).await.is(200).json();
    assert_eq!(world.admin.get(&path).await.is(200).json(), told, "everybody is told the same");
    (app, told)
}

on_both_engines! {
    async fn the_scope_is_the_widest(world: World) {
        let [person, _, group] = people(&world).await;
        for (kind, path, principal) in
            [("PlatformUser", "platformuser", &person), ("PlatformGroup", "platformgroup", &group)]
        {
            let mut made = Vec::new();
            for (scope, role) in SCOPES {
                let target = first(&world, scope).await;
                made.push(assign(&world, (kind, principal), role, (scope, &target)).await);
                let told = effective(&world, path, principal).await;
                assert_eq!((&told["principalType"], &told["principalId"]), (&json!(kind), &principal["id"]));
                assert_eq!(told["scope"], scope, "{kind}");
                assert_eq!(
                    *assigned(&told, role),
                    json!({
                        "roleType": role, "source": "Direct", "sourceId": principal["id"],
                        "scopeType": scope, "scopeId": target,
                    })
                );
            }
            // and what is left of it when roles go
            while let Some(widest) = made.pop() {
                world.admin.delete(&one("RoleAssignment", &widest)).await.expect(204);
                let told = effective(&world, path, principal).await;
                let left = made.len().checked_sub(1).map(|last| SCOPES[last].0);
                assert_eq!((&told["scope"], count(&told)), (&json!(left), made.len()), "{kind}");
            }
        }
    }

    /// A role that can be of several things is held once for each.
    async fn a_reader_reads_of_a_tenant_an_instance_or_all(world: World) {
        let [person, ..] = people(&world).await;
        let mut seen = Vec::new();
        for scope in ["IdpInstance", "Tenant", "System"] {
            let target = first(&world, scope).await;
            assign(&world, ("PlatformUser", &person), "ApplicationDataReader", (scope, &target)).await;
            seen.push(scope);
            let told = effective(&world, "platformuser", &person).await;
            assert_eq!(told["scope"], scope);
            let mut scopes = each(&told["assignments"], "scopeType");
            scopes.sort_unstable();
            seen.sort_unstable();
            assert_eq!(scopes, seen);
            assert_eq!(told["permissions"], json!(["ApplicationGroup.Read", "ApplicationUser.Read", "ApplicationUserProfile.Read"]));
        }
    }

    /// What groups hold counts for who is in them, at any depth, and only while they are.
    async fn what_groups_hold_their_members_hold(world: World) {
        let [person, inner, outer] = people(&world).await;
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let customer = first(&world, "Customer").await;
        assign(&world, ("PlatformUser", &person), "UserStoreAdmin", ("IdpInstance", &store)).await;
        assign(&world, ("PlatformGroup", &inner), "TenantAdmin", ("Tenant", &tenant)).await;
        assign(&world, ("PlatformGroup", &outer), "CustomerAdmin", ("Customer", &customer)).await;
        for (path, principal, held) in [
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
            let told = effective(&world, path, principal).await;
            assert_eq!((&told["scope"], count(&told)), (&json!("Customer"), held.len()), "{told}");
            for (role, source, through) in held {
                let row = assigned(&told, role);
                assert_eq!((&row["source"], &row["sourceId"]), (&json!(source), &through["id"]), "{told}");
            }
        }
        let members = world.path(&format!("/Group/{}/users", in_store(&inner)));
        world.admin.delete_with(&members, json!({ "relatedIds": [in_store(&person)] })).await.expect(202);
        let told = effective(&world, "platformuser", &person).await;
        assert_eq!((&told["scope"], count(&told)), (&json!("IdpInstance"), 1));
        assert_eq!(told["assignments"][0]["source"], "Direct");
        let told = effective(&world, "platformgroup", &inner).await;
        assert_eq!((&told["scope"], count(&told)), (&json!("Customer"), 2));
    }

    /// CustomerAdmin and SubscriptionAdmin of a client app are those of its own customer and
    /// subscription; other roles are of what they name.
    async fn a_client_app_has_roles_at_home(world: World) {
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let far = world.other_subscription("Far").await;
        let home =
            world.admin.get(&format!("{BASE}/Subscription/{}", far.as_str().unwrap())).await.is(200).json();
        let nothing = Value::Null;
        let places = [&store, &tenant, &far, &home["customerId"], &nothing];
        let rows = [
            ("UserStoreAdmin", None, as_id(&store)),
            ("TenantAdmin", as_id(&tenant), None),
            ("SubscriptionAdmin", None, None),
            ("CustomerAdmin", None, None),
            ("SystemAdmin", None, None),
        ];
        for number in 1..=rows.len() {
            let (app, told) = told_to_itself(&world, &far, &format!("app{number}"), &rows[..number]).await;
            assert_eq!((&told["principalType"], &told["principalId"]), (&json!("ClientApp"), &app["id"]));
            assert_eq!((&told["scope"], count(&told)), (&json!(SCOPES[number - 1].0), number));
            for ((scope, role), target) in SCOPES.into_iter().zip(places).take(number) {
                assert_eq!(
                    *assigned(&told, role),
                    json!({
                        "roleType": role, "source": "ClientApp", "sourceId": app["id"],
                        "scopeType": scope, "scopeId": target,
                    })
                );
            }
        }
        let (_, told) = told_to_itself(&world, &far, "none", &[]).await;
        assert_eq!(
            (&told["scope"], &told["assignments"], &told["permissions"]),
            (&nothing, &json!([]), &json!([]))
        );
    }

    /// Permissions are those of the operations that a role may call.
    async fn permissions_are_those_of_the_roles(world: World) {
        let (store, tenant) = (first(&world, "IdpInstance").await, first(&world, "Tenant").await);
        let home = first(&world, "Subscription").await;
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
            let (_, told) = told_to_itself(&world, &home, role.0, &[role]).await;
            let all = told["permissions"].as_array().unwrap();
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
