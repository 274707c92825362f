//! The content of refusals and of documents.

use chancery_management::directory_refusal::DIRECTORY_REFUSAL;
use chancery_record::Value as Bound;
use chancery_resource::{Scope, list_statement};
use chancery_testkit::{Engine, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use crate::{
    each, encode, id,
    members::{explain, plan_from},
};

on_both_engines! {
    /// B10: a configuration in a batch that is named by a token of no current row is 409 at its element.
    async fn a_batch_by_a_stale_token_is_a_conflict(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let created = world.make("ClientAppAuthenticationConfiguration", json!({ "clientAppId": app["id"] })).await;
        let batch = "/api/management/v2/ClientAppAuthenticationConfiguration/batch";
        let body = json!([{ "concurrencyToken": created["concurrencyToken"], "tokenEndpointAuthMethod": "client_secret_post" }]);
        world.admin.put(batch, body.clone()).await.expect(200);
        let problem = world.admin.put(batch, body).await.problem(409, "concurrency-conflict");
        assert_eq!(each(&problem["errors"], "pointer"), ["/0/concurrencyToken"]);
    }

    /// Also under A: creating with an id answers the same for another's id, one's own, and a former one.
    async fn a_taken_id_does_not_reveal_its_owner(world: World) {
        let (own, other) = (world.other_subscription("own").await, world.other_subscription("other").await);
        let mine = world.client_in(&own, "mine", &[("SubscriptionAdmin", None, None)]).await;
        let foreign = world.make("Tenant", json!({ "name": "t", "subscriptionId": other })).await;
        let seen = world.make("Tenant", json!({ "name": "t", "subscriptionId": own })).await;
        let gone = world.make("Tenant", json!({ "name": "u", "subscriptionId": other })).await;
        world.admin.delete(&format!("/api/management/v2/Tenant/{}", id(&gone))).await.expect(204);
        let tenants = "/api/management/v2/Tenant";
        let mut problems = Vec::new();
        for taken in [&foreign, &seen, &gone] {
            let body = json!({ "id": taken["id"], "name": "new", "subscriptionId": own });
            let mut problem = mine.post(tenants, body.clone()).await.problem(409, "conflict");
            problem.as_object_mut().unwrap().remove("traceId");
            let mut many = mine.post("/api/management/v2/Tenant/batch", json!([body])).await.problem(409, "conflict");
            many.as_object_mut().unwrap().remove("traceId");
            problems.push((problem, many));
        }
        assert!(problems.windows(2).all(|pair| pair[0] == pair[1]), "{problems:?}");
    }

    /// B10: refusals of rules of links, images and passkeys have a pointer and a text of their own.
    async fn refusals_say_where(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let rule = json!({ "name": "r", "ruleType": "Filter", "ruleLevel": "Subscription", "subscriptionId": subscription });
        let created = world.make("ClaimRule", rule.clone()).await;
        let links = json!({ "relatedIds": [app["id"]] });
        let path = format!("/api/management/v2/ClaimRule/{}/clientapps", id(&created));
        let problem = world.admin.post(&path, links).await.problem(400, "invalid-request");
        assert_eq!(each(&problem["errors"], "pointer"), ["/relatedIds"]);
        let mut new = rule;
        new["clientApps"] = json!([{ "id": app["id"] }]);
        let problem = world.admin.post("/api/management/v2/ClaimRule", new).await.problem(400, "invalid-request");
        assert_eq!(each(&problem["errors"], "pointer"), ["/clientApps"]);

        let user = world.user("ada").await;
        let image = world.path(&format!("/User/{}/image", id(&user)));
        let sent = world.admin.send(Method::PUT, &image, &[("content-type", "image/png")], b"no picture".to_vec()).await;
        let problem = sent.problem(400, "invalid-request");
        assert_eq!(each(&problem["errors"], "pointer"), [""]);
    }

    /// B8: the trail of one key is found by an index, in either order, at the beginning and after a page: nothing is sorted,
    /// and no whole table read, although one key has most of the entries.
    async fn the_trail_of_a_key_has_an_index(world: World) {
        let users: Vec<Value> = (0..2000).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let group = world.group("g").await;
        let one = world.path(&format!("/Group/{}", id(&group)));
        let patch = json!({ "name": "h", "concurrencyToken": group["concurrencyToken"] });
        world.admin.patch(&one, patch).await.expect(202);
        let filter = format!("primaryKey eq \"{}\"", id(&group));
        let many = "INSERT INTO audit_entry (store, timestamp, area, primary_key, category, action, data_source, signature, \
            signature_public_key_info) SELECT store, timestamp, area, 'busy', category, action, data_source, signature, \
            signature_public_key_info FROM audit_entry WHERE area = 'User'";
        world.sql(vec![(many, vec![]), (many, vec![]), ("ANALYZE audit_entry", vec![])]).await;
        for from in [(false, None), (true, None), (false, Some(Bound::Int(1))), (true, Some(Bound::Int(i64::MAX)))] {
            let plan = plan_from(&world, "GetAuditTrails", &filter, from).await;
            let has = |what: &str| plan.iter().any(|line| line.contains(what));
            assert!(has("audit_entry__store__primary_key__rid"), "{plan:?}");
            assert!(!has("SCAN t") && !has("Seq Scan on audit_entry") && !has("Sort") && !has("TEMP B-TREE"), "{plan:?}");
        }
        let newest = format!("/CustomAuditTrail?filter={}&sortOrder=descending&count=1", encode(&filter));
        let page = world.admin.get(&world.path(&newest)).await.is(200);
        assert_eq!(each(&page.json(), "action"), ["Modified"]);
        let next = world.admin.get(&page.next().unwrap()).await.is(200);
        assert_eq!((each(&next.json(), "action"), next.next()), (vec!["Added"], None));
    }

    /// The overview of the console counts them at each view, however many users there are.
    async fn the_list_of_refused_removals_reads_no_other_users(world: World) {
        let context = chancery::server_context(&world.app.context, Scope::Everything);
        let plan = explain(&world, list_statement(&context, &DIRECTORY_REFUSAL, "id pr", false, None).unwrap()).await;
        // PostgreSQL decides by its statistics
        if world.engine == Engine::Sqlite {
            let has = |what: &str| plan.iter().any(|line| line.contains(what));
            assert!(has("user_account__store__id") && has("application_user__idp_instance_id__id"), "{plan:?}");
            assert!(!has("SCAN u") && !has("SCAN a"), "{plan:?}");
        }
    }

    /// B10: the examples in the documents are plausible: no action is called "Sales".
    async fn examples_match_their_members(world: World) {
        for name in ["userstore-v2", "management-v2"] {
            let document = world.anonymous.get(&format!("/openapi/{name}.json")).await.is(200).json();
            let members = &document["components"]["schemas"]["AuditTrail"]["properties"];
            for (member, example) in [("action", "Added"), ("category", "DatabaseRecordChange"), ("area", "User")] {
                assert_eq!(members[member]["examples"], json!([example]), "{name} {member}");
            }
        }
    }
}
