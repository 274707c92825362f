//! Many operations in one request.

use chancery_testkit::on_both_engines;
use serde_json::{Value as Json, json};

use super::{ENTERPRISE, at, error, group, own};

fn statuses(answer: &Json) -> Vec<&str> {
    answer["Operations"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn operations_refer_to_each_other(world: World) {
        let client = own(&world).await;
        let mut boss = json!({ "userName": "ada" });
        boss[ENTERPRISE] = json!({ "manager": { "value": "bulkId:bob" } });
        let body = json!({ "schemas": ["urn:ietf:params:scim:api:messages:2.0:BulkRequest"], "Operations": [
            { "method": "POST", "path": "/Groups", "bulkId": "team", "data": { "displayName": "team", "members": [{ "value": "bulkId:ada" }] } },
            { "method": "POST", "path": "/Users", "bulkId": "ada", "data": boss },
            { "method": "POST", "path": "/Users", "bulkId": "bob", "data": { "userName": "bob" } },
            { "method": "PATCH", "path": "/Users/bulkId:bob", "data": { "Operations": [{ "op": "replace", "path": "nickName", "value": "B" }] } },
        ] });
        let told = client.post(&at("/Bulk"), body).await.is(200).json();
        assert_eq!(statuses(&told), ["201", "201", "201", "200"], "{told}");
        let location = |index: usize| {
            let location = told["Operations"][index]["location"].as_str().unwrap();
            at(location.split("/default").nth(1).unwrap())
        };
        let (team, ada, bob) = (client.get(&location(0)).await.is(200).json(), client.get(&location(1)).await.is(200).json(), client.get(&location(2)).await.is(200).json());
        assert_eq!((&team["members"][0]["value"], &ada[ENTERPRISE]["manager"]["value"], &bob["nickName"]), (&ada["id"], &bob["id"], &json!("B")));
        assert_eq!(told["Operations"][1]["version"], ada["meta"]["version"]);
    }

    /// Two people may each be the other's manager: both are made first.
    async fn circles_are_closed_afterwards(world: World) {
        let client = own(&world).await;
        let person = |name: &str, manager: &str| {
            let mut data = json!({ "userName": name });
            data[ENTERPRISE] = json!({ "manager": { "value": format!("bulkId:{manager}") }, "department": "x" });
            json!({ "method": "POST", "path": "/Users", "bulkId": name, "data": data })
        };
        let told = client.post(&at("/Bulk"), json!({ "Operations": [person("ada", "bob"), person("bob", "ada")] })).await.is(200).json();
        assert_eq!(statuses(&told), ["201", "201"], "{told}");
        let list = client.get(&at("/Users?sortBy=userName")).await.is(200).json();
        let [ada, bob] = [&list["Resources"][0], &list["Resources"][1]];
        assert_eq!((&ada[ENTERPRISE]["manager"]["value"], &bob[ENTERPRISE]["manager"]["value"]), (&bob["id"], &ada["id"]), "{list}");
    }

    async fn mistakes_are_counted(world: World) {
        let client = own(&world).await;
        group(&client, "g", &[]).await;
        let wrong = json!({ "method": "POST", "path": "/Groups", "bulkId": "a", "data": { "displayName": "G" } });
        let right = json!({ "method": "POST", "path": "/Groups", "bulkId": "b", "data": { "displayName": "h" } });
        let refers = json!({ "method": "POST", "path": "/Groups", "bulkId": "c", "data": { "displayName": "i", "members": [{ "value": "bulkId:a" }] } });
        let told = client.post(&at("/Bulk"), json!({ "Operations": [wrong, right, refers] })).await.is(200).json();
        assert_eq!(statuses(&told), ["409", "201", "409"], "{told}");
        assert_eq!(told["Operations"][0]["response"]["scimType"], "uniqueness");
        let told = client.post(&at("/Bulk"), json!({ "failOnErrors": 1, "Operations": [wrong, right] })).await.is(200).json();
        assert_eq!(statuses(&told), ["409"]);
        let many: Vec<Json> = (0..1001).map(|_| json!({ "method": "DELETE", "path": "/Users/1" })).collect();
        let (_, detail) = error(&client.post(&at("/Bulk"), json!({ "Operations": many })).await, 413);
        assert!(detail.contains("1000"), "{detail}");
        error(&client.post(&at("/Bulk"), json!({ "Operations": [{ "method": "GET", "path": "/Users" }] })).await, 400);
        let stale = json!({ "method": "DELETE", "path": "/Groups/x", "version": "W/\"x\"" });
        let told = client.post(&at("/Bulk"), json!({ "Operations": [stale] })).await.is(200).json();
        assert_eq!(statuses(&told), ["404"]);
    }
}
