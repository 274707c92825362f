//! Customers: the standard pattern of the management service.

use chancery_testkit::on_both_engines;
use serde_json::json;

use crate::{each, id, pointers};

const ALL: &str = "/api/management/v2/Customer";

on_both_engines! {
    /// - Effect of `Customer.address`: The postal address of the customer is kept and shown.
    /// - Effect of `Customer.name`: Lists show the customer under this name.
    async fn the_standard_pattern(world: World) {
        assert_eq!(each(&world.admin.get(ALL).await.is(200).json(), "name"), ["Default"]);
        let customer = world.admin.post(ALL, json!({ "name": "Acme", "address": "1 Road" })).await.is(201).json();
        let one = format!("{ALL}/{}", id(&customer));
        assert_eq!(world.admin.get(&one).await.is(200).json(), customer);
        let put = json!({ "id": customer["id"], "name": "Acme Ltd", "concurrencyToken": customer["concurrencyToken"] });
        let customer = world.admin.put(&one, put).await.is(202).json();
        assert_eq!(customer["address"], json!(null));
        let patch = json!({ "address": "2 Road", "concurrencyToken": customer["concurrencyToken"] });
        let customer = world.admin.patch(&one, patch).await.is(202).json();
        assert_eq!(each(&world.admin.get(&format!("{ALL}?filter=name%20sw%20%22acme%22")).await.is(200).json(), "address"), ["2 Road"]);
        let batch = world.admin.post(&format!("{ALL}/batch"), json!([{ "name": "A" }, { "name": "B" }])).await.is(200).json();
        let batch = world.admin.put(&format!("{ALL}/batch"), batch).await.is(200).json();
        world.admin.delete_with(&format!("{ALL}/batch"), json!(each(&batch, "id"))).await.expect(204);
        world.admin.delete(&one).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
        let again = world.admin.post(ALL, json!({ "name": "Acme", "id": customer["id"] })).await.problem(409, "conflict");
        assert_eq!(pointers(&again), ["/id"]);
        assert_eq!(each(&world.admin.get(ALL).await.is(200).json(), "name"), ["Default"]);
    }

    async fn one_with_subscriptions_stays(world: World) {
        let default = world.admin.get(ALL).await.is(200).json()[0].clone();
        world.admin.delete(&format!("{ALL}/{}", id(&default))).await.problem(409, "conflict");
        world.admin.get(&format!("{ALL}/{}", id(&default))).await.expect(200);
    }

    async fn a_customer_s_admin_sees_that_customer(world: World) {
        let other = world.admin.post(ALL, json!({ "name": "Other" })).await.is(201).json();
        let admin = world.client("admin", &[("CustomerAdmin", None, None)]).await;
        assert_eq!(each(&admin.get(ALL).await.is(200).json(), "name"), ["Default"]);
        admin.get(&format!("{ALL}/{}", id(&other))).await.problem(404, "not-found");
        admin.post(ALL, json!({ "name": "x" })).await.problem(403, "forbidden");
    }
}
