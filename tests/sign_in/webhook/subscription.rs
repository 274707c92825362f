//! The resource EventSubscription: owner, members, and secrets.

use chancery_testkit::{Receiver, on_both_engines};
use serde_json::{Value as Json, json};

use super::{activate, subscriptions, to_this_machine};
use crate::id;

const CONFIGURATION: &str = "/api/management/v2/EventSubscription";

on_both_engines! {
    [to_this_machine]
    /// - Effect of `EventSubscription.headers`: Every delivery has these headers.
    async fn secrets_are_returned_once_and_header_values_never(world: World) {
        let receiver = Receiver::start().await;
        let body = json!({
            "name": "r", "url": receiver.url, "types": ["platform.userstore.user.*"], "contact": "a@b.example",
            "headers": { "X-Api-Key": "hunter2", "X-Other": "o" },
        });
        let created = world.admin.post(&subscriptions(&world), body).await.is(201).json();
        assert!(created["secret"].as_str().unwrap().starts_with("whsec_"), "{created}");
        assert_eq!((created["status"].clone(), created["isActive"].clone(), created["ordering"].clone()), (json!("Pending"), json!(false), json!("Subject")));
        assert_eq!(created["headers"], json!({ "X-Api-Key": null, "X-Other": null }));
        assert_eq!(created["types"], json!(["platform.userstore.user.*"]));
        let path = format!("{}/{}", subscriptions(&world), id(&created));
        let read = world.admin.get(&path).await.is(200).json();
        assert_eq!((&read["secret"], &read["startAfter"]), (&Json::Null, &Json::Null));
        // the read representation can be written back: null keeps a value, a missing header is removed
        let changed = json!({ "headers": { "X-Api-Key": null }, "concurrencyToken": read["concurrencyToken"] });
        let changed = world.admin.patch(&path, changed).await.is(202).json();
        assert_eq!(changed["headers"], json!({ "X-Api-Key": null }));
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        let got = receiver.received();
        assert_eq!((got[0].header("x-api-key"), got[0].header("x-other")), ("hunter2", ""));
        let unknown = json!({ "headers": { "X-New": null }, "concurrencyToken": changed["concurrencyToken"] });
        world.admin.patch(&path, unknown).await.problem(400, "invalid-request");
        // no secret is in the audit trail or in an event
        let trail = world.audit(20).await;
        let feed = world.admin.get(&world.path("/Event?count=1000")).await.is(200).json();
        for record in [json!(trail), feed] {
            assert!(!record.to_string().contains("hunter2") && !record.to_string().contains("whsec_"), "{record}");
        }
    }

    async fn invalid_receivers_are_rejected(world: World) {
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

    /// Section 11: a subscription that was not tested since its address changed cannot be activated.
    async fn an_address_must_be_tested_before_activation(world: World) {
        let (one, other) = (Receiver::start().await, Receiver::start().await);
        let created = world.admin.post(&subscriptions(&world), json!({ "name": "r", "url": one.url })).await.is(201).json();
        let path = format!("{}/{}", subscriptions(&world), id(&created));
        let body = |row: &Json, more: Json| { let mut body = more; body["concurrencyToken"] = row["concurrencyToken"].clone(); body };
        world.admin.patch(&path, body(&created, json!({ "isActive": true }))).await.problem(409, "conflict");
        one.answer("500 No");
        let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
        assert_eq!((tested["delivered"].clone(), tested["status"].clone()), (json!(false), json!(500)));
        world.admin.patch(&path, body(&created, json!({ "isActive": true }))).await.problem(409, "conflict");
        one.answer("204 Good");
        let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
        assert_eq!((tested["delivered"].clone(), tested["problem"].clone()), (json!(true), Json::Null));
        let active = activate(&world, &path).await;
        assert_eq!(active["status"], "Active");
        world.admin.patch(&path, body(&active, json!({ "url": other.url }))).await.problem(409, "conflict");
        let moved = world.admin.patch(&path, body(&active, json!({ "url": other.url, "isActive": false }))).await.is(202).json();
        world.admin.patch(&path, body(&moved, json!({ "isActive": true }))).await.problem(409, "conflict");
        let got = one.received();
        assert_eq!((got[0].kind(), got[0].header("content-type")), ("platform.event.test", "application/cloudevents+json"));
        // the results of tests are listed
        let listed = world.admin.get(&format!("{path}/Delivery")).await.is(200).json();
        let results: Vec<_> = listed.as_array().unwrap().iter().map(|one| (one["status"].clone(), one["count"].clone())).collect();
        assert_eq!(results, [(json!(500), json!(0)), (json!(204), json!(1))]);
        let failed = world.admin.get(&format!("{path}/Delivery?filter=status%20eq%20500&count=10")).await.is(200).json();
        assert_eq!(failed.as_array().unwrap().len(), 1);
    }

    /// Section 5: a subscription requires read access to all its events.
    async fn a_subscription_requires_its_scope(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let tenant = world.make("Tenant", json!({ "name": "own", "subscriptionId": subscription })).await;
        let other = world.other_subscription("other").await;
        let low = world.client_in(&subscription, "low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let far = world.client_in(&other, "far", &[("SubscriptionAdmin", None, None)]).await;
        let url = "https://a.example/hook";
        let own = json!({ "name": "r", "url": url, "applyToTenantId": tenant["id"] });
        let created = low.post(CONFIGURATION, own.clone()).await.is(201).json();
        assert_eq!(created["subscriptionId"], subscription);
        low.post(CONFIGURATION, json!({ "name": "r", "url": url, "subscriptionId": subscription })).await.problem(400, "invalid-request");
        far.post(CONFIGURATION, own).await.problem(400, "invalid-request");
        let path = format!("{CONFIGURATION}/{}", id(&created));
        far.get(&path).await.problem(404, "not-found");
        for act in ["test", "secret", "replay", "skip"] {
            far.post(&format!("{path}/{act}"), json!({ "dead": true, "after": "x" })).await.problem(404, "not-found");
        }
        far.get(&format!("{path}/Delivery")).await.problem(404, "not-found");
        low.get(&path).await.expect(200);
        // subscriptions of stores and of the configuration are separate
        let of_store = world.admin.post(&subscriptions(&world), json!({ "name": "s", "url": url })).await.is(201).json();
        world.admin.get(&format!("{CONFIGURATION}/{}", id(&of_store))).await.problem(404, "not-found");
        world.admin.get(&format!("{}/{}", subscriptions(&world), id(&created))).await.problem(404, "not-found");
        // a tenant with a subscription cannot be deleted
        world.admin.delete(&format!("/api/management/v2/Tenant/{}", id(&tenant))).await.problem(409, "conflict");
        low.delete(&path).await.expect(204);
    }
}
