//! Customers, subscriptions and tenants as a tree, and the rows that prevent a deletion.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::administrator;
use crate::id;

on_both_engines! {
    /// Expanding a node shows its children with their number; other nodes stay as they are.
    async fn the_customer_tree_is_expanded_step_by_step(world: World) {
        let mut browser = administrator(&world).await;
        let customer = world.make("Customer", json!({ "name": "Harbour" })).await;
        let subscription = world.make("Subscription", json!({ "name": "Quay", "customerId": customer["id"] })).await;
        for name in ["Berth one", "Berth two"] {
            world.make("Tenant", json!({ "name": name, "subscriptionId": subscription["id"] })).await;
        }
        let closed = browser.open("/console/Customer").await;
        assert!(closed.html.contains("Harbour") && closed.html.contains("1 subscription<"), "{}", closed.html);
        assert!(!closed.html.contains("Quay") && closed.html.contains("their subscriptions"), "{}", closed.html);
        let opened = browser.open(&format!("/console/Customer?open={}", id(&customer))).await;
        assert!(opened.html.contains("Quay") && opened.html.contains("2 tenants") && !opened.html.contains("Berth"), "{}", opened.html);
        let all = browser.open(&format!("/console/Customer?open={},{}", id(&customer), id(&subscription))).await;
        assert!(all.html.contains("Berth one") && all.html.contains("Berth two"), "{}", all.html);
        assert!(all.html.contains(&format!("href=\"/console/Customer?open={}#node-", id(&customer))), "one closes alone: {}", all.html);
        let list = browser.open("/console/Customer?view=list").await;
        assert!(list.html.contains("<table") && list.html.contains("Harbour"), "{}", list.html);
    }

    /// Rows that prevent a deletion are named, with links.
    async fn rows_that_prevent_a_deletion_are_named(world: World) {
        let mut browser = administrator(&world).await;
        let customer = world.make("Customer", json!({ "name": "Harbour" })).await;
        let subscription = world.make("Subscription", json!({ "name": "Quay", "customerId": customer["id"] })).await;
        let path = format!("/console/Customer/{}/delete", id(&customer));
        let held = browser.open(&path).await;
        assert_eq!(held.status, 409, "{}", held.html);
        assert!(held.html.contains(&format!("href=\"/console/Subscription/{}\"", id(&subscription))), "{}", held.html);
        world.admin.delete(&format!("/api/management/v2/Subscription/{}", id(&subscription))).await.expect(204);
        let free = browser.open(&path).await;
        assert_eq!(free.status, 200, "{}", free.html);
    }
}
