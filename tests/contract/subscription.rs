//! Subscriptions: the standard pattern, within a customer.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use crate::{each, id, pointers};

const ALL: &str = "/api/management/v2/Subscription";
const CUSTOMERS: &str = "/api/management/v2/Customer";

async fn customer(world: &World, name: &str) -> Value {
    world.admin.post(CUSTOMERS, json!({ "name": name })).await.is(201).json()
}

on_both_engines! {
    /// - Effect of `Subscription.name`: Lists show the subscription under this name.
    async fn the_standard_pattern(world: World) {
        assert_eq!(each(&world.admin.get(ALL).await.is(200).json(), "name"), ["Default"]);
        let acme = customer(&world, "Acme").await;
        let created = world.admin.post(ALL, json!({ "name": "Main", "customerId": id(&acme) })).await.is(201).json();
        assert_eq!((&created["status"], &created["customerId"]), (&json!("Active"), &acme["id"]));
        let one = format!("{ALL}/{}", id(&created));
        let body = json!({ "name": "MAIN", "customerId": id(&acme) });
        let taken = world.admin.post(ALL, body).await.problem(409, "conflict");
        assert_eq!(pointers(&taken), ["/name"]);
        let patch = json!({ "status": "inactive", "concurrencyToken": created["concurrencyToken"] });
        let created = world.admin.patch(&one, patch).await.is(202).json();
        assert_eq!(created["status"], "Inactive");
        let put = json!({ "id": id(&created), "name": "First", "concurrencyToken": created["concurrencyToken"] });
        let created = world.admin.put(&one, put).await.is(202).json();
        assert_eq!((&created["name"], &created["status"], &created["customerId"]), (&json!("First"), &json!("Inactive"), &acme["id"]));
        let batch = json!([{ "name": "A", "customerId": id(&acme) }, { "name": "B", "customerId": id(&acme) }]);
        let batch = world.admin.post(&format!("{ALL}/batch"), batch).await.is(200).json();
        world.admin.delete_with(&format!("{ALL}/batch"), json!(each(&batch, "id"))).await.expect(204);
        world.admin.delete(&one).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
        world.admin.delete(&format!("{CUSTOMERS}/{}", id(&acme))).await.expect(204);
    }

    /// - Effect of `Subscription.customerId`: The subscription belongs to this customer, whose administrators may change it.
    async fn a_customer_must_be_named_and_be_the_caller_s(world: World) {
        let acme = customer(&world, "Acme").await;
        assert_eq!(pointers(&world.admin.post(ALL, json!({ "name": "x" })).await.problem(400, "invalid-request")), ["/customerId"]);
        let admin = world.client("admin", &[("CustomerAdmin", None, None)]).await;
        let unknown_id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
        for foreign in [id(&acme), unknown_id] {
            let problem = admin.post(ALL, json!({ "name": "x", "customerId": foreign })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/customerId"]);
        }
        let own = admin.get(ALL).await.is(200).json()[0]["customerId"].clone();
        let batch = json!([{ "name": "x", "customerId": own }, { "name": "y", "customerId": id(&acme) }]);
        let problem = admin.post(&format!("{ALL}/batch"), batch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/1/customerId"]);
        let created = admin.post(ALL, json!({ "name": "x", "customerId": own })).await.is(201).json();
        let below = world.client("below", &[("SubscriptionAdmin", None, None)]).await;
        assert_eq!(each(&below.get(ALL).await.is(200).json(), "name"), ["Default"]);
        below.get(&format!("{ALL}/{}", id(&created))).await.problem(404, "not-found");
        below.post(ALL, json!({ "name": "z", "customerId": own })).await.problem(403, "forbidden");
    }

    async fn one_with_children_cannot_be_deleted(world: World) {
        let default = world.admin.get(ALL).await.is(200).json()[0].clone();
        let problem = world.admin.delete(&format!("{ALL}/{}", id(&default))).await.problem(409, "conflict");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("tenant \"Default\", instance \"default\", client app \"root\""), "{detail}");
        let problem = world.admin.delete_with(&format!("{ALL}/batch"), json!([id(&default)])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/0"]);
        let customer = format!("{CUSTOMERS}/{}", default["customerId"].as_str().unwrap());
        let problem = world.admin.delete(&customer).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("subscription \"Default\""));
    }
}
