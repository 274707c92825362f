//! Bulk requests.

use chancery_testkit::on_both_engines;
use serde_json::{Value as Json, json};

use super::{ENTERPRISE, at, error, group, own, user};

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
        let response = client.post(&at("/Bulk"), body).await.is(200).json();
        assert_eq!(statuses(&response), ["201", "201", "201", "200"], "{response}");
        let location = |index: usize| {
            let location = response["Operations"][index]["location"].as_str().unwrap();
            at(location.split("/default").nth(1).unwrap())
        };
        let (team, ada, bob) = (client.get(&location(0)).await.is(200).json(), client.get(&location(1)).await.is(200).json(), client.get(&location(2)).await.is(200).json());
        assert_eq!((&team["members"][0]["value"], &ada[ENTERPRISE]["manager"]["value"], &bob["nickName"]), (&ada["id"], &bob["id"], &json!("B")));
        assert_eq!(response["Operations"][1]["version"], ada["meta"]["version"]);
    }

    /// Two people may each be the other's manager: both are created first.
    async fn cyclic_managers_are_set_afterwards(world: World) {
        let client = own(&world).await;
        let person = |name: &str, manager: &str| {
            let mut data = json!({ "userName": name });
            data[ENTERPRISE] = json!({ "manager": { "value": format!("bulkId:{manager}") }, "department": "x" });
            json!({ "method": "POST", "path": "/Users", "bulkId": name, "data": data })
        };
        let response = client
            .post(&at("/Bulk"), json!({ "Operations": [person("ada", "bob"), person("bob", "ada")] }))
            .await
            .is(200)
            .json();
        assert_eq!(statuses(&response), ["201", "201"], "{response}");
        let list = client.get(&at("/Users?sortBy=userName")).await.is(200).json();
        let [ada, bob] = [&list["Resources"][0], &list["Resources"][1]];
        assert_eq!((&ada[ENTERPRISE]["manager"]["value"], &bob[ENTERPRISE]["manager"]["value"]), (&bob["id"], &ada["id"]), "{list}");
    }

    async fn failed_operations_are_counted(world: World) {
        let client = own(&world).await;
        group(&client, "g", &[]).await;
        let wrong = json!({ "method": "POST", "path": "/Groups", "bulkId": "a", "data": { "displayName": "G" } });
        let right = json!({ "method": "POST", "path": "/Groups", "bulkId": "b", "data": { "displayName": "h" } });
        let refers = json!({ "method": "POST", "path": "/Groups", "bulkId": "c", "data": { "displayName": "i", "members": [{ "value": "bulkId:a" }] } });
        let response = client.post(&at("/Bulk"), json!({ "Operations": [wrong, right, refers] })).await.is(200).json();
        assert_eq!(statuses(&response), ["409", "201", "409"], "{response}");
        assert_eq!(response["Operations"][0]["response"]["scimType"], "uniqueness");
        let response = client.post(&at("/Bulk"), json!({ "failOnErrors": 1, "Operations": [wrong, right] })).await.is(200).json();
        assert_eq!(statuses(&response), ["409"]);
        let many: Vec<Json> = (0..1001).map(|_| json!({ "method": "DELETE", "path": "/Users/1" })).collect();
        let (_, detail) = error(&client.post(&at("/Bulk"), json!({ "Operations": many })).await, 413);
        assert!(detail.contains("1000"), "{detail}");
        error(&client.post(&at("/Bulk"), json!({ "Operations": [{ "method": "GET", "path": "/Users" }] })).await, 400);
        let stale = json!({ "method": "DELETE", "path": "/Groups/x", "version": "W/\"x\"" });
        let response = client.post(&at("/Bulk"), json!({ "Operations": [stale] })).await.is(200).json();
        assert_eq!(statuses(&response), ["404"]);
    }

    /// Each operation is validated, and nothing is stored: neither by it nor by operations that refer to it.
    async fn a_dry_run_of_many_operations_writes_nothing(world: World) {
        let client = own(&world).await;
        let existing = user(&client, "ada").await;
        let before = world.audit(1000).await.len();
        let mut bob = json!({ "userName": "bob" });
        bob[ENTERPRISE] = json!({ "manager": { "value": "bulkId:carl" } });
        let id = existing["id"].as_str().unwrap();
        let body = json!({ "Operations": [
            { "method": "POST", "path": "/Users", "bulkId": "bob", "data": bob },
            { "method": "POST", "path": "/Users", "bulkId": "carl", "data": { "userName": "carl" } },
            { "method": "POST", "path": "/Users", "bulkId": "taken", "data": { "userName": "ADA" } },
            { "method": "POST", "path": "/Groups", "bulkId": "team", "data": { "displayName": "team", "members": [{ "value": "bulkId:bob" }, { "value": id }] } },
            { "method": "POST", "path": "/Groups", "bulkId": "lost", "data": { "displayName": "lost", "members": [{ "value": "bulkId:taken" }] } },
            { "method": "PATCH", "path": "/Users/bulkId:bob", "data": { "Operations": [{ "op": "replace", "path": "nickName", "value": "B" }] } },
            { "method": "PATCH", "path": "/Users/bulkId:bob", "data": { "Operations": [{ "op": "replace", "path": "nobody", "value": "B" }] } },
            { "method": "PATCH", "path": format!("/Users/{id}"), "data": { "Operations": [{ "op": "replace", "path": "nickName", "value": "A" }] } },
            { "method": "DELETE", "path": format!("/Users/{id}") },
        ] });
        for dry_run in ["true", "True"] {
            let response = client.post(&at(&format!("/Bulk?dryRun={dry_run}")), body.clone()).await.is(200).json();
            assert_eq!(statuses(&response), ["201", "201", "409", "201", "409", "200", "400", "200", "204"], "{response}");
        }
        error(&client.post(&at("/Bulk?dryRun=maybe"), body).await, 400);
        error(&client.post(&at("/Users?dryRun=maybe"), json!({ "userName": "dan" })).await, 400);
        let users = client.get(&at("/Users")).await.is(200).json();
        assert_eq!((&users["totalResults"], &users["Resources"][0]), (&json!(1), &existing));
        assert_eq!(client.get(&at("/Groups")).await.is(200).json()["totalResults"], 0);
        assert_eq!(world.audit(1000).await.len(), before);
    }

    async fn a_duplicate_bulk_id_is_rejected(world: World) {
        let client = own(&world).await;
        let person = |name: &str| json!({ "method": "POST", "path": "/Users", "bulkId": "same", "data": { "userName": name } });
        let answer = client.post(&at("/Bulk"), json!({ "Operations": [person("ada"), person("bob")] })).await;
        assert_eq!(error(&answer, 400).0, "invalidSyntax");
        assert_eq!(client.get(&at("/Users")).await.is(200).json()["totalResults"], 0);
    }

    /// Groups that all contain each other are rejected one by one; without the cycle each gets its members at once.
    async fn cyclic_groups_are_rejected_one_by_one(world: World) {
        let client = own(&world).await;
        let groups = |count: usize, named: &dyn Fn(usize) -> Vec<usize>| -> Vec<Json> {
            let members = |number: usize| -> Vec<Json> {
                named(number).iter().map(|other| json!({ "value": format!("bulkId:{other}") })).collect()
            };
            (0..count).map(|number| json!({ "method": "POST", "path": "/Groups", "bulkId": number.to_string(),
                "data": { "displayName": format!("g{number}"), "members": members(number) } })).collect()
        };
        let all = groups(50, &|_| (0..50).collect());
        let response = client.post(&at("/Bulk"), json!({ "Operations": all })).await.is(200).json();
        assert!(statuses(&response).iter().all(|status| *status == "409"), "{response}");
        assert_eq!(client.get(&at("/Groups")).await.is(200).json()["totalResults"], 0, "none is there without its members");
        let before = world.audit(1000).await.len();
        let later = groups(50, &|number| (number + 1..50).collect());
        let response = client.post(&at("/Bulk"), json!({ "Operations": later })).await.is(200).json();
        assert!(statuses(&response).iter().all(|status| *status == "201"), "{response}");
        assert_eq!(world.audit(1000).await.len(), before + 50 + 49, "a group, and a set of members");
        let refers = json!({ "value": "bulkId:0" });
        let many = json!([{ "method": "PATCH", "path": "/Groups/1", "data": { "members": vec![refers; 10_001] } }]);
        let (_, detail) = error(&client.post(&at("/Bulk"), json!({ "Operations": many })).await, 413);
        assert!(detail.contains("10000"), "{detail}");
    }
}
