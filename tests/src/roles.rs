//! Callers with roles.

use std::collections::HashMap;

use chancery_testkit::{Client, World};
use serde_json::{Value, json};

/// A client for each right role, each with that role alone; one with wrong ones; one of another store.
pub async fn callers(world: &World) -> (HashMap<&'static str, Client>, Client, Client) {
    let store = world.user("somebody").await["instanceId"].as_str().unwrap().parse().unwrap();
    let other = world.other_store("other").await;
    let mut good = HashMap::new();
    let tenant = world.all("Tenant").await[0]["id"].as_str().unwrap().parse().unwrap();
    let roles = [
        "TenantAdmin",
        "UserStoreAdmin",
        "AuditTrailReader",
        "CustomerAdmin",
        "SystemAdmin",
        "SubscriptionAdmin",
        "ApplicationDataReader",
    ];
    for role in roles {
        let instance = (role == "UserStoreAdmin").then_some(store);
        let tenant = (role == "TenantAdmin").then_some(tenant);
        good.insert(role, world.client(role.to_lowercase().as_str(), &[(role, tenant, instance)]).await);
    }
    let wrong = world.client("wrong", &[("UserAdmin", None, None)]).await;
    let other_store = world.client("elsewhere", &[("UserStoreAdmin", None, Some(other))]).await;
    (good, wrong, other_store)
}

/// The body that assigns a role to a platform user or group, with the member that names the role's target, if it has one.
pub fn assignment(kind: &str, principal: &Value, role: &str, target: &Value) -> Value {
    let mut body = json!({ "principalType": kind, "principalId": principal["id"], "roleType": role });
    body.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
    body
}

/// Assigns a role to a platform user or group; returns the assignment.
pub async fn assign_role(world: &World, kind: &str, principal: &Value, role: &str, target: Value) -> Value {
    world.make("RoleAssignment", assignment(kind, principal, role, &target)).await
}
