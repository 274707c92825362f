//! Callers with roles.

use std::collections::HashMap;

use chancery_testkit::{Client, World};

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
