//! The resource: who has it, what it holds, what it does not tell.

use chancery_testkit::{Receiver, on_both_engines};
use serde_json::{Value as Json, json};

use super::{activate, subscriptions, to_this_machine};
use crate::id;

const CONFIGURATION: &str = "/api/management/v2/EventSubscription";

on_both_engines! {
    [to_this_machine]
    async fn secrets_and_headers_are_told_once_or_never(world: World) {
        let receiver = Receiver::start().await;
        let body = json!({
            "name": "r", "url": receiver.url, "types": ["platform.userstore.user.*"], "contact": "a@b.example",
            "headers": { "X-Api-Key": "hunter2", "X-Other": "o" },
        });
        let made = world.admin.post(&subscriptions(&world), body).await.is(201).json();
        assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
        assert_eq!((made["status"].clone(), made["isActive"].clone(), made["ordering"].clone()), (json!("Pending"), json!(false), json!("Subject")));
        assert_eq!(made["headers"], json!({ "X-Api-Key": null, "X-Other": null }));
        assert_eq!(made["types"], json!(["platform.userstore.user.*"]));
        let path = format!("{}/{}", subscriptions(&world), id(&made));
        let read = world.admin.get(&path).await.is(200).json();
        assert_eq!((&read["secret"], &read["startAfter"]), (&Json::Null, &Json::Null));
        // what was read can be written: null keeps a value, what is left out goes
        let changed = json!({ "headers": { "X-Api-Key": null }, "concurrencyToken": read["concurrencyToken"] });
        let changed = world.admin.patch(&path, changed).await.is(202).json();
        assert_eq!(changed["headers"], json!({ "X-Api-Key": null }));
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        let got = receiver.got();
        assert_eq!((got[0].header("x-api-key"), got[0].header("x-other")), ("hunter2", ""));
        let unknown = json!({ "headers": { "X-New": null }, "concurrencyToken": changed["concurrencyToken"] });
        world.admin.patch(&path, unknown).await.problem(400, "invalid-request");
        // nothing of it is in the audit trail, nor in an event
        let trail = world.audit(20).await;
        let feed = world.admin.get(&world.path("/Event?count=1000")).await.is(200).json();
        for told in [json!(trail), feed] {
            assert!(!told.to_string().contains("hunter2") && !told.to_string().contains("whsec_"), "{told}");
        }
    }

    async fn what_cannot_be_sent_to_is_refused(world: World) {
        let path = subscriptions(&world);
        for (member, value) in [
            ("url", json!("ftp://a.example")),
            ("url", json!("http://a.example")),
            ("url", json!("https://user@a.example")),
            ("url", json!("https://a.example:25")),
            ("types", json!(["Platform.User"])),
            ("types", json!(["*.created"])),
            ("types", json!("platform.*")),
            ("headers", json!({ "Host": "a" })),
            ("headers", json!({ "webhook-id": "a" })),
            ("headers", json!({ "A": "line\nline" })),
            ("headers", json!({ "A b": "c" })),
            ("startAfter", json!("nonsense")),
            ("subscriptionId", world.all("Subscription").await[0]["id"].clone()),
        ] {
            let mut body = json!({ "name": "r", "url": "https://a.example/hook" });
            body[member] = value.clone();
            let problem = world.admin.post(&path, body).await.problem(400, "invalid-request");
            assert!(problem["errors"][0]["pointer"].as_str().unwrap().starts_with(&format!("/{member}")), "{value}: {problem}");
        }
    }

    /// Section 11: what was not tested since its address changed is not activated.
    async fn an_address_is_tested_before_events_go_there(world: World) {
        let (one, other) = (Receiver::start().await, Receiver::start().await);
        let made = world.admin.post(&subscriptions(&world), json!({ "name": "r", "url": one.url })).await.is(201).json();
        let path = format!("{}/{}", subscriptions(&world), id(&made));
        let body = |row: &Json, more: Json| { let mut body = more; body["concurrencyToken"] = row["concurrencyToken"].clone(); body };
        world.admin.patch(&path, body(&made, json!({ "isActive": true }))).await.problem(409, "conflict");
        one.answer("500 No");
        let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
        assert_eq!((tested["delivered"].clone(), tested["status"].clone()), (json!(false), json!(500)));
        world.admin.patch(&path, body(&made, json!({ "isActive": true }))).await.problem(409, "conflict");
        one.answer("204 Good");
        let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
        assert_eq!((tested["delivered"].clone(), tested["problem"].clone()), (json!(true), Json::Null));
        let active = activate(&world, &path).await;
        assert_eq!(active["status"], "Active");
        world.admin.patch(&path, body(&active, json!({ "url": other.url }))).await.problem(409, "conflict");
        let moved = world.admin.patch(&path, body(&active, json!({ "url": other.url, "isActive": false }))).await.is(202).json();
        world.admin.patch(&path, body(&moved, json!({ "isActive": true }))).await.problem(409, "conflict");
        let got = one.got();
        assert_eq!((got[0].kind(), got[0].header("content-type")), ("platform.event.test", "application/cloudevents+json"));
        // what came of tests is listed
        let listed = world.admin.get(&format!("{path}/Delivery")).await.is(200).json();
        let told: Vec<_> = listed.as_array().unwrap().iter().map(|one| (one["status"].clone(), one["count"].clone())).collect();
        assert_eq!(told, [(json!(500), json!(0)), (json!(204), json!(1))]);
        let failed = world.admin.get(&format!("{path}/Delivery?filter=status%20eq%20500&count=10")).await.is(200).json();
        assert_eq!(failed.as_array().unwrap().len(), 1);
    }

    /// Section 5: whoever may read all it will get may have it.
    async fn a_subscription_is_of_a_scope(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let tenant = world.make("Tenant", json!({ "name": "own", "subscriptionId": subscription })).await;
        let other = world.other_subscription("other").await;
        let low = world.client_in(&subscription, "low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let far = world.client_in(&other, "far", &[("SubscriptionAdmin", None, None)]).await;
        let url = "https://a.example/hook";
        let own = json!({ "name": "r", "url": url, "applyToTenantId": tenant["id"] });
        let made = low.post(CONFIGURATION, own.clone()).await.is(201).json();
        assert_eq!(made["subscriptionId"], subscription);
        low.post(CONFIGURATION, json!({ "name": "r", "url": url, "subscriptionId": subscription })).await.problem(400, "invalid-request");
        far.post(CONFIGURATION, own).await.problem(400, "invalid-request");
        let path = format!("{CONFIGURATION}/{}", id(&made));
        far.get(&path).await.problem(404, "not-found");
        for act in ["test", "secret", "replay", "skip"] {
            far.post(&format!("{path}/{act}"), json!({ "dead": true, "after": "x" })).await.problem(404, "not-found");
        }
        far.get(&format!("{path}/Delivery")).await.problem(404, "not-found");
        low.get(&path).await.expect(200);
        // a store's is not among the configuration's, nor the other way round
        let of_store = world.admin.post(&subscriptions(&world), json!({ "name": "s", "url": url })).await.is(201).json();
        world.admin.get(&format!("{CONFIGURATION}/{}", id(&of_store))).await.problem(404, "not-found");
        world.admin.get(&format!("{}/{}", subscriptions(&world), id(&made))).await.problem(404, "not-found");
        // what a tenant's events are sent by keeps the tenant
        world.admin.delete(&format!("/api/management/v2/Tenant/{}", id(&tenant))).await.problem(409, "conflict");
        low.delete(&path).await.expect(204);
    }
}
