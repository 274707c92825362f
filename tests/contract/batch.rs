//! Batches: all or nothing, with a pointer to every element that is wrong.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::{each, id, pointers};

on_both_engines! {
    async fn create_replace_and_delete_in_order(world: World) {
        let batch = world.path("/User/batch");
        let bodies: Vec<Value> = (0..700).map(|number| json!({ "loginName": format!("u{}", 999 - number) })).collect();
        let users = world.admin.post(&batch, json!(bodies)).await.is(200).json();
        assert_eq!(each(&users, "loginName"), each(&json!(bodies), "loginName"));
        let mut changed = users.clone();
        for user in changed.as_array_mut().unwrap() {
            user["firstName"] = json!("F");
        }
        let group = world.group("g").await;
        let member = json!({ "relatedIds": [users[600]["id"]] });
        world.admin.put(&world.path(&format!("/Group/{}/users", id(&group))), member).await.expect(202);
        let answer = world.admin.put(&batch, changed).await.is(200).json();
        assert_eq!(each(&answer, "id"), each(&users, "id"));
        assert!(answer.as_array().unwrap().iter().all(|user| user["firstName"] == "F"));
        assert_eq!(each(&answer[600]["memberOfGroups"], "name"), ["g"]);
        assert_eq!(answer[601]["memberOfGroups"], json!([]));
        let ids = json!(each(&users, "id"));
        world.admin.delete_with(&batch, ids.clone()).await.expect(204);
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json(), json!([]));
        let problem = world.admin.delete_with(&batch, ids).await.problem(404, "not-found");
        assert_eq!((pointers(&problem).len(), &problem["moreErrors"]), (100, &json!(600)));
    }

    async fn all_failures_are_listed_and_the_first_decides(world: World) {
        let ada = world.user("ada").await;
        let (users, batch) = (world.path("/User"), world.path("/User/batch"));
        let bodies = json!([
            { "loginName": "new" },
            { "loginName": "ADA" },
            { "loginName": "other", "emailAddress": "nonsense" },
            { "loginName": "NEW" },
            { "loginName": "b", "id": ada["id"] },
            { "nothing": 1 },
        ]);
        let problem = world.admin.post(&batch, bodies).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/loginName", "/2/emailAddress", "/3/loginName", "/4/id", "/5/nothing", "/5/loginName"]);
        // a collision that only the database knows is found as well
        let problem = world.admin.post(&batch, json!([{ "loginName": "x" }, { "loginName": "aDa" }])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/loginName"]);
        assert_eq!(each(&world.admin.get(&users).await.is(200).json(), "loginName"), ["ada"], "nothing was done");
    }

    async fn replace_names_unknown_stale_and_repeated_elements(world: World) {
        let (a, b) = (world.user("a").await, world.user("b").await);
        let unknown = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
        let token = &a["concurrencyToken"];
        let bodies = json!([
            { "id": a["id"], "loginName": "a2", "concurrencyToken": token },
            { "id": unknown, "loginName": "c", "concurrencyToken": token },
            { "id": b["id"], "loginName": "b2", "concurrencyToken": token },
            { "id": a["id"], "loginName": "a3", "concurrencyToken": token },
            { "loginName": "d", "concurrencyToken": token },
            { "id": b["id"] },
        ]);
        let problem = world.admin.put(&world.path("/User/batch"), bodies).await.problem(404, "not-found");
        assert_eq!(pointers(&problem), ["/1/id", "/2/concurrencyToken", "/3/id", "/4/id", "/5/concurrencyToken"]);
        let taken = json!([{ "id": a["id"], "loginName": "B", "concurrencyToken": token }]);
        let problem = world.admin.put(&world.path("/User/batch"), taken).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/0/loginName"]);
    }

    async fn what_is_no_batch_is_refused(world: World) {
        let batch = world.path("/Group/batch");
        world.admin.post(&batch, json!({ "name": "g" })).await.problem(400, "invalid-request");
        world.admin.delete_with(&batch, json!(["x", 1])).await.problem(400, "invalid-request");
        let many: Vec<Value> = (0..10_001).map(|number| json!({ "name": number.to_string() })).collect();
        let problem = world.admin.post(&batch, json!(many)).await.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("10000"));
        assert_eq!(world.admin.post(&batch, json!([])).await.is(200).json(), json!([]));
        // ids that are used up are found among many
        let group = world.group("gone").await;
        world.admin.delete(&world.path(&format!("/Group/{}", id(&group)))).await.expect(204);
        let problem = world.admin.post(&batch, json!([{ "name": "a" }, { "name": "b", "id": group["id"] }])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/id"]);
    }
}
