//! What refusals and documents tell.

use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::json;

use crate::{each, id};

on_both_engines! {
    /// B10: a configuration in a batch that is named by a token which is no row's any more is 409 at it.
    async fn a_batch_by_a_stale_token_is_a_conflict(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let made = world.make("ClientAppAuthenticationConfiguration", json!({ "clientAppId": app["id"] })).await;
        let batch = "/api/management/v2/ClientAppAuthenticationConfiguration/batch";
        let body = json!([{ "concurrencyToken": made["concurrencyToken"], "tokenEndpointAuthMethod": "client_secret_post" }]);
        world.admin.put(batch, body.clone()).await.expect(200);
        let problem = world.admin.put(batch, body).await.problem(409, "concurrency-conflict");
        assert_eq!(each(&problem["errors"], "pointer"), ["/0/concurrencyToken"]);
    }

    /// B10: what a rule of links, an image or a passkey refuses is told where it stands and in our words.
    async fn refusals_say_where(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let rule = json!({ "name": "r", "ruleType": "Filter", "ruleLevel": "Subscription", "subscriptionId": subscription });
        let made = world.make("ClaimRule", rule.clone()).await;
        let links = json!({ "relatedIds": [app["id"]] });
        let path = format!("/api/management/v2/ClaimRule/{}/clientapps", id(&made));
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

    /// B10: the documents give examples that can be: no action is called "Sales".
    async fn examples_are_of_what_they_stand_for(world: World) {
        for name in ["userstore-v2", "management-v2"] {
            let document = world.anonymous.get(&format!("/openapi/{name}.json")).await.is(200).json();
            let members = &document["components"]["schemas"]["AuditTrail"]["properties"];
            for (member, example) in [("action", "Modified"), ("category", "DatabaseRecordChange"), ("area", "User")] {
                assert_eq!(members[member]["examples"], json!([example]), "{name} {member}");
            }
        }
    }
}
