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

    /// The rows that come with an element count: one transaction cannot create thousands of tenants, each with its options,
    /// nor try to.
    async fn a_batch_counts_all_rows_that_it_creates(world: World) {
        let kinds = world.all("IdpType").await;
        let store = kinds.as_array().unwrap().iter().find(|kind| kind["factoryType"] == "UserStore").unwrap()["id"].clone();
        let subscription = world.all("Subscription").await[0]["id"].clone();
        for (resource, own) in [("Tenant", json!({ "subscriptionId": subscription })), ("IdpInstance", json!({ "idpTypeId": store }))] {
            let count = async || world.all(resource).await.as_array().unwrap().len();
            let options = world.all("Option").await.as_array().unwrap().len();
            let body = |count: usize| {
                let one = |number: usize| {
                    let mut one = own.clone();
                    one["name"] = json!(format!("many{number}"));
                    one
                };
                (0..count).map(one).collect::<Value>()
            };
            let path = format!("/api/management/v2/{resource}/batch");
            let before = count().await;
            for path in [format!("{path}?dryRun=true"), path.clone()] {
                let problem = world.admin.post(&path, body(3_000)).await.problem(413, "payload-too-large");
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains("comes with") && detail.contains("not 3000"), "{detail}");
            }
            assert_eq!(count().await, before);
            // as many as the refusal allows are created, with at most 4,000 rows in all
            let problem = world.admin.post(&path, body(3_000)).await.problem(413, "payload-too-large");
            let most = problem["detail"].as_str().unwrap().split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap();
            world.admin.post(&path, body(most + 1)).await.problem(413, "payload-too-large");
            world.admin.post(&path, body(most)).await.expect(200);
            let created = world.all("Option").await.as_array().unwrap().len() - options + most;
            assert!(created <= 4_000 && created > 4_000 - 2 * created / most, "{most} of {resource} are {created} rows");
        }
    }

    /// The sets that the elements of a batch list are bounded together.
    async fn a_batch_counts_all_links_that_it_lists(world: World) {
        let apps: Value = (1..=60_000_u128).map(|number| json!({ "id": uuid::Uuid::from_u128(number) })).collect();
        let rule = |name: &str| json!({
            "name": name, "ruleType": "Filter", "ruleLevel": "ClientApp", "typeEvaluationRule": "^role$", "clientApps": apps,
        });
        let answer = world.admin.post("/api/management/v2/ClaimRule/batch", json!([rule("a"), rule("b")])).await;
        let problem = answer.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("at most 100000 ids, not 120000"), "{problem}");
    }

    /// The answer to a batch has at most 100,000 links: a larger one is 413, unless it is minimal.
    async fn a_batch_is_answered_with_a_bounded_number_of_links(world: World) {
        let users: Vec<Value> = (0..501).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let groups: Vec<Value> = (0..200).map(|number| json!({ "name": format!("g{number}") })).collect();
        let path = world.path("/Group/batch");
        let groups = world.admin.post(&path, json!(groups)).await.is(200).json();
        let link = "INSERT INTO group_member (group_rid, user_rid) SELECT g.rid, u.rid FROM user_group g CROSS JOIN user_account u";
        world.sql(vec![(link, vec![])]).await;
        let problem = world.admin.put(&path, groups.clone()).await.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("more than 100000 links"), "{problem}");
        let headers = [("content-type", "application/json"), ("prefer", "return=minimal")];
        let body = groups.to_string().into_bytes();
        world.admin.send(http::Method::PUT, &path, &headers, body).await.expect(200);
        world.admin.put(&path, json!([groups[0]])).await.problem(409, "concurrency-conflict");
    }

    async fn a_malformed_batch_is_refused(world: World) {
        let batch = world.path("/Group/batch");
        world.admin.post(&batch, json!({ "name": "g" })).await.problem(400, "invalid-request");
        world.admin.delete_with(&batch, json!(["x", 1])).await.problem(400, "invalid-request");
        let many: Vec<Value> = (0..10_001).map(|number| json!({ "name": number.to_string() })).collect();
        let problem = world.admin.post(&batch, json!(many)).await.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("10000"));
        assert_eq!(world.admin.post(&batch, json!([])).await.is(200).json(), json!([]));
        // duplicate ids are found among many
        let group = world.group("gone").await;
        world.admin.delete(&world.path(&format!("/Group/{}", id(&group)))).await.expect(204);
        let problem = world.admin.post(&batch, json!([{ "name": "a" }, { "name": "b", "id": group["id"] }])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/id"]);
    }
}
