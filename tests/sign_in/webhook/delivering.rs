//! Deliveries: content, order, and failures.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Database, Engine, Process, Received, Receiver, on_both_engines};
use serde_json::json;

use super::{activate, subscribed, subscriptions, to_this_machine, until};
use crate::{
    id,
    signing::{mails, set_mail_server},
};

const CONFIGURATION: &str = "/api/management/v2/EventSubscription";

/// Whether one of the signatures of a request is by this secret.
fn is_signed_by(received: &Received, secret: &str) -> bool {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let signed = format!(
        "{}.{}.{}",
        received.header("webhook-id"),
        received.header("webhook-timestamp"),
        received.text
    );
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
    let expected = format!("v1,{}", BASE64_STANDARD.encode(tag));
    received.header("webhook-signature").split(' ').any(|signature| signature == expected)
}

/// The received events, without test events.
fn events(got: &[Received]) -> Vec<&Received> {
    got.iter().filter(|received| received.kind() != "platform.event.test").collect()
}

on_both_engines! {
    [to_this_machine]
    /// A connection to a receiver is reused for further deliveries.
    async fn connections_to_a_receiver_are_reused(world: World) {
        let mut receiver = Receiver::start().await;
        subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        for number in 0..20 {
            world.user(&format!("u{number}")).await;
        }
        receiver.until(|got| events(got).len() == 20).await;
        assert!(receiver.connections() <= 8, "{}", receiver.connections());
    }

    /// EventSubscription.ordering: with None no event waits for an earlier one of its subject that is retried.
    ///
    /// - Effect of `EventSubscription.ordering`: With `Subject` an event waits until the earlier ones of its subject are delivered.
    async fn events_without_an_order_do_not_wait_for_each_other(world: World) {
        let mut receiver = Receiver::start().await;
        let more = json!({ "types": ["platform.userstore.user.*"], "ordering": "None" });
        let (path, _) = subscribed(&world, &receiver, more).await;
        receiver.respond_with(|received| received.kind().ends_with("user.created").then(|| "500 No".to_owned()));
        let ada = world.user("ada").await;
        until(&world, &path, |row| row["waiting"] == 1 && !row["lastFailure"].is_null()).await;
        let body = json!({ "firstName": "Ada", "concurrencyToken": ada["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), body).await.expect(202);
        let got = receiver.until(|got| got.iter().any(|received| received.kind().ends_with("user.updated"))).await;
        assert!(got.iter().all(|received| received.kind() == "platform.event.test" || received.subject() == id(&ada)));
        until(&world, &path, |row| row["waiting"] == 1 && row["delivered"] == 1).await;
    }

    /// EventSubscription.startAfter: events after the cursor are sent, although they happened before the subscription was
    /// activated.
    ///
    /// - Effect of `EventSubscription.startAfter`: Deliveries begin after this cursor of the feed.
    async fn deliveries_begin_after_a_cursor(world: World) {
        let mut receiver = Receiver::start().await;
        world.user("early").await;
        let cursor = crate::feed_from_now(&world.admin, &world.path("/Event")).await["next"].clone();
        let late = world.user("late").await;
        let more = json!({ "types": ["platform.userstore.user.created"], "startAfter": cursor });
        subscribed(&world, &receiver, more).await;
        let last = world.user("last").await;
        let got = receiver.until(|got| events(got).len() >= 2).await;
        let mut subjects: Vec<&str> = events(&got).iter().map(|received| received.subject()).collect();
        subjects.sort_unstable();
        let mut expected = [id(&late), id(&last)];
        expected.sort_unstable();
        assert_eq!(subjects, expected);
    }

    /// EventSubscription.applyToTenantId: a platform subscription gets only the events of one tenant.
    ///
    /// - Effect of `EventSubscription.applyToTenantId`: Only events of this tenant are sent.
    async fn a_subscription_of_a_tenant_gets_only_its_events(world: World) {
        let mut receiver = Receiver::start().await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let make = async |name: &str| world.make("Tenant", json!({ "name": name, "subscriptionId": subscription })).await;
        let (own, other) = (make("own").await, make("other").await);
        let body = json!({ "name": "r", "url": receiver.url, "applyToTenantId": own["id"], "types": ["platform.management.tenant.*"] });
        let created = world.admin.post(CONFIGURATION, body).await.is(201).json();
        let path = format!("{CONFIGURATION}/{}", id(&created));
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        activate(&world, &path).await;
        for tenant in [&other, &own] {
            let body = json!({ "description": "changed", "concurrencyToken": tenant["concurrencyToken"] });
            world.admin.patch(&format!("/api/management/v2/Tenant/{}", id(tenant)), body).await.expect(202);
        }
        let got = receiver.until(|got| !events(got).is_empty()).await;
        let subjects: Vec<&str> = events(&got).iter().map(|received| received.subject()).collect();
        assert_eq!(subjects, [id(&own)]);
    }

    /// Section 5: the receiver gets the events of the feed, signed; a secret is rotated without a gap.
    ///
    /// - Effect of `EventSubscription.isActive`: Events are sent while this is set.
    /// - Effect of `EventSubscription.url`: Events are posted to this address.
    async fn events_arrive_signed(world: World) {
        let mut receiver = Receiver::start().await;
        let created = world.admin.post(&subscriptions(&world), json!({ "name": "r", "url": receiver.url })).await.is(201).json();
        let path = format!("{}/{}", subscriptions(&world), id(&created));
        world.user("before").await;
        crate::feed_from_now(&world.admin, &world.path("/Event")).await;
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        activate(&world, &path).await;
        let user = world.user("ada").await;
        let got = receiver.until(|got| events(got).len() >= 2).await;
        // events of different subjects arrive in any order
        let mut kinds: Vec<_> = events(&got).iter().map(|received| received.kind().to_owned()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["platform.userstore.eventsubscription.updated", "platform.userstore.user.created"]);
        let last = got.iter().find(|received| received.subject() == id(&user)).unwrap();
        assert_eq!(last.header("webhook-id"), last.body["id"].as_str().unwrap());
        let secret = created["secret"].as_str().unwrap();
        assert!(got.iter().all(|received| is_signed_by(received, secret)));
        let feed = world.admin.get(&world.path("/Event?count=1000")).await.is(200).json();
        let mut feed_event = feed["items"].as_array().unwrap().last().unwrap().clone();
        // deliveries have no actor
        feed_event["data"]["actor"] = json!(null);
        assert_eq!(feed_event, last.body);
        let next = world.admin.post(&format!("{path}/secret"), json!({})).await.is(200).json();
        let next = next["secret"].as_str().unwrap();
        world.user("ben").await;
        let got = receiver.until(|got| got.iter().any(|received| received.kind().ends_with("user.created") && received.subject() != id(&user))).await;
        let last = got.last().unwrap();
        assert!(is_signed_by(last, secret) && is_signed_by(last, next), "for a day both sign");
        // repeated rotation, because a response was lost, invalidates no secret in use
        let third = world.admin.post(&format!("{path}/secret"), json!({})).await.is(200).json();
        world.admin.post(&format!("{path}/secret"), json!({})).await.expect(200);
        world.admin.post(&format!("{path}/secret"), json!({})).await.problem(409, "conflict");
        let before = receiver.received().len();
        world.user("cy").await;
        let got = receiver.until(|got| got.iter().skip(before).any(|received| received.kind().ends_with("user.created"))).await;
        let last = got.iter().rev().find(|received| received.kind().ends_with("user.created")).unwrap();
        assert!([secret, next, third["secret"].as_str().unwrap()].iter().all(|secret| is_signed_by(last, secret)));
        let row = until(&world, &path, |row| row["waiting"] == 0 && row["delivered"].as_i64() >= Some(5)).await;
        assert_eq!((&row["status"], &row["waiting"]), (&json!("Active"), &json!(0)));
    }

    /// Section 5: later events of a subject wait for one that failed; others do not.
    ///
    /// - Effect of `EventSubscription.types`: Only events of these types are sent.
    async fn events_of_a_subject_are_delivered_in_order(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.*"] })).await;
        let ada = world.user("ada").await;
        receiver.until(|got| events(got).len() == 1).await;
        let is_receiver_broken = Arc::new(AtomicBool::new(true));
        let (is_failing, subject) = (Arc::clone(&is_receiver_broken), id(&ada).to_owned());
        receiver.respond_with(move |received| (is_failing.load(Ordering::Relaxed) && received.subject() == subject).then(|| "500 No".to_owned()));
        let rename = async |name: &str| {
            let row = world.admin.get(&world.path(&format!("/User/{}", id(&ada)))).await.is(200).json();
            let body = json!({ "firstName": name, "concurrencyToken": row["concurrencyToken"] });
            world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), body).await.expect(202);
        };
        rename("One").await;
        until(&world, &path, |row| row["waiting"] == 1).await;
        rename("Two").await;
        rename("Three").await;
        let ben = world.user("ben").await;
        receiver.until(|got| got.iter().any(|received| received.subject() == id(&ben))).await;
        let row = until(&world, &path, |row| row["waiting"] == 3 && row["status"] == "Active").await;
        assert_eq!(row["lastFailure"], "the receiver answered 500");
        let failed = events(&receiver.received()).iter().filter(|received| received.subject() == id(&ada)).count();
        assert_eq!(failed, 2, "what waits behind is not tried");
        is_receiver_broken.store(false, Ordering::Relaxed);
        let got = receiver.until(|got| events(got).len() == 6).await;
        let delivered: Vec<&str> = events(&got).iter().filter(|received| received.subject() == id(&ada)).map(|received| received.header("webhook-id")).collect();
        assert!(delivered[1] == delivered[2] && delivered[2..].is_sorted(), "{delivered:?}");
        until(&world, &path, |row| row["waiting"] == 0).await;
        let listed = world.admin.get(&format!("{path}/Delivery?filter=number%20gt%201")).await.is(200).json();
        assert_eq!((listed[0]["number"].clone(), listed[0]["status"].clone()), (json!(2), json!(200)));
    }

    /// Section 5: after 410 the receiver is not called again, and the subscription is disabled.
    async fn a_receiver_that_is_gone_is_disabled(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"], "contact": "crm@example.com" })).await;
        set_mail_server(&world.admin).await;
        receiver.answer("410 Gone");
        world.user("ada").await;
        receiver.until(|got| events(got).len() == 1).await;
        let row = until(&world, &path, |row| row["status"] == "Disabled").await;
        assert_eq!((&row["isActive"], &row["waiting"]), (&json!(false), &json!(1)));
        let feed = world.admin.get(&world.path("/Event?wait=10&type=platform.event.*")).await.is(200).json();
        assert_eq!(feed["items"][0]["type"], "platform.event.subscription-disabled");
        let [mail] = mails(&world).await.try_into().unwrap();
        assert!(mail["url"].as_str().unwrap().starts_with("http") && mail["since"].is_null(), "{mail}");
        // it continues where it stopped
        receiver.answer("200 OK");
        activate(&world, &path).await;
        world.user("ben").await;
        receiver.until(|got| events(got).len() >= 3).await;
        until(&world, &path, |row| row["status"] == "Active" && row["waiting"] == 0).await;
    }

    /// Without a mail server no mail is created.
    async fn without_a_mail_server_no_mail_is_created(world: World) {
        let receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"], "contact": "crm@example.com" })).await;
        receiver.answer("410 Gone");
        world.user("ada").await;
        until(&world, &path, |row| row["status"] == "Disabled").await;
        assert!(mails(&world).await.is_empty());
    }

    /// Section 5: a receiver that fails for five days is disabled, and the contact is notified, with the mail server of
    /// the first store for subscriptions of the configuration.
    ///
    /// - Effect of `EventSubscription.contact`: This address gets a mail when the subscription is disabled because of failures.
    async fn a_receiver_that_fails_for_days_is_disabled(world: World) {
        let receiver = Receiver::start().await;
        let scope = id(&world.all("Subscription").await[0]).to_owned();
        let body = json!({ "name": "crm", "url": receiver.url, "subscriptionId": scope, "types": ["platform.management.tenant.created"],
            "contact": "crm@example.com" });
        let created = world.admin.post(CONFIGURATION, body).await.is(201).json();
        let path = format!("{CONFIGURATION}/{}", id(&created));
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        activate(&world, &path).await;
        receiver.answer("500 Internal Server Error");
        let tenant = |name: &str| json!({ "name": name, "subscriptionId": scope });
        world.make("Tenant", tenant("one")).await;
        until(&world, &path, |row| row["waiting"] == 1 && !row["lastFailure"].is_null()).await;
        set_mail_server(&world.admin).await;
        world.sql(vec![("UPDATE event_subscriber SET failing_since = 1", vec![])]).await;
        world.make("Tenant", tenant("two")).await;
        until(&world, &path, |row| row["status"] == "Disabled").await;
        let [mail] = mails(&world).await.try_into().unwrap();
        assert_eq!((&mail["kind"], &mail["name"], &mail["since"]), (&json!("SubscriptionDisabled"), &json!("crm"), &json!(1)));
        assert_eq!((&mail["recipient"], &mail["url"]), (&json!("crm@example.com"), &json!(receiver.url)));
    }

    /// Section 5: missed events are sent again, with the same ids; unwanted ones are skipped.
    async fn events_are_replayed_and_skipped(world: World) {
        let mut receiver = Receiver::start().await;
        let before = world.admin.get(&world.path("/User")).await.is(200).header("x-event-cursor").unwrap().to_owned();
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        for name in ["a", "b", "c"] {
            world.user(name).await;
        }
        let got = receiver.until(|got| events(got).len() == 3).await;
        let ids: Vec<String> = events(&got).iter().map(|received| received.header("webhook-id").to_owned()).collect();
        let end = world.admin.get(&world.path("/User")).await.is(200).header("x-event-cursor").unwrap().to_owned();
        let replay = async |body| world.admin.post(&format!("{path}/replay"), body).await;
        assert_eq!(replay(json!({ "ids": [ids[0]] })).await.is(202).json()["count"], 1);
        assert_eq!(replay(json!({ "after": before, "until": end })).await.is(202).json()["count"], 3);
        assert_eq!(replay(json!({ "from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z" })).await.is(202).json()["count"], 3);
        assert_eq!(replay(json!({ "dead": true })).await.is(202).json()["count"], 0);
        let got = receiver.until(|got| events(got).len() == 10).await;
        assert!(events(&got).iter().all(|received| ids.iter().any(|id| id == received.header("webhook-id"))));
        for wrong in [json!({}), json!({ "dead": false }), json!({ "ids": [] }), json!({ "ids": ["x"] }), json!({ "after": end }), json!({ "from": "x", "to": "y" }), json!({ "dead": true, "ids": ["1"] })] {
            replay(wrong).await.problem(400, "invalid-request");
        }
        receiver.answer("500 No");
        world.user("d").await;
        until(&world, &path, |row| row["waiting"] == 1).await;
        let end = crate::feed_from_now(&world.admin, &world.path("/Event")).await["next"].clone();
        let skipped = world.admin.post(&format!("{path}/skip"), json!({ "after": end })).await.is(200).json();
        assert_eq!(skipped["waiting"], 0);
        receiver.answer("200 OK");
        world.user("e").await;
        receiver.until(|got| events(got).len() == 12).await;
        world.admin.post(&format!("{path}/skip"), json!({ "after": "x" })).await.problem(400, "invalid-request");
        // an active subscription is deleted with all its deliveries
        world.admin.delete(&path).await.expect(204);
        world.admin.get(&path).await.problem(404, "not-found");
    }

    /// The waiting deliveries have one limit, whether or not the subscription is active.
    async fn replays_are_limited(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, row) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        world.user("ada").await;
        let got = receiver.until(|got| events(got).len() == 1).await;
        let one = json!({ "ids": [events(&got)[0].header("webhook-id")] });
        let off = json!({ "isActive": false, "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&path, off).await.expect(202);
        // with the next one the count is one below the limit
        world.admin.post(&format!("{path}/replay"), one.clone()).await.expect(202);
        world.sql(vec![(
            "INSERT INTO event_delivery (subscription_id, event, kind, subject, body, due_on, tries, trail, position) \
             WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99998) \
             SELECT d.subscription_id, d.event, d.kind, d.subject, '{}', d.due_on, 0, d.trail, d.position \
             FROM event_delivery d, numbers",
            vec![],
        )]).await;
        world.admin.post(&format!("{path}/replay"), one.clone()).await.expect(202);
        world.admin.post(&format!("{path}/replay"), one).await.problem(409, "conflict");
    }

    /// Section 6: events that were pruned before their delivery are reported as a gap.
    async fn a_gap_is_reported(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, row) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        let off = json!({ "isActive": false, "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&path, off).await.expect(202);
        for name in ["a", "b"] {
            world.user(name).await;
        }
        crate::feed_from_now(&world.admin, &world.path("/Event")).await;
        world.sql(vec![
            ("UPDATE event_trail SET pruned = placed WHERE trail > 0", vec![]),
            ("DELETE FROM event_place WHERE trail > 0 AND position < (SELECT t.placed FROM event_trail t WHERE t.trail = event_place.trail)", vec![]),
        ]).await;
        activate(&world, &path).await;
        let got = receiver.until(|got| events(got).len() == 1).await;
        assert_eq!(events(&got)[0].kind(), "platform.event.gap");
        world.user("c").await;
        receiver.until(|got| events(got).len() == 2).await;
    }

    /// Sign-ins and the configuration share one subscription.
    ///
    /// - Effect of `EventSubscription.subscriptionId`: Events of this subscription are sent.
    async fn a_subscription_of_the_configuration_gets_only_its_scope(world: World) {
        let mut receiver = Receiver::start().await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let other = world.other_subscription("other").await;
        let body = json!({ "name": "r", "url": receiver.url, "subscriptionId": subscription, "types": ["platform.management.tenant.*", "platform.signin.*"] });
        let created = world.admin.post(CONFIGURATION, body).await.is(201).json();
        let path = format!("{CONFIGURATION}/{}", id(&created));
        world.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
        activate(&world, &path).await;
        world.make("Tenant", json!({ "name": "foreign", "subscriptionId": other })).await;
        let own = world.make("Tenant", json!({ "name": "own", "subscriptionId": subscription })).await;
        let got = receiver.until(|got| !events(got).is_empty()).await;
        let subjects: Vec<&str> = events(&got).iter().map(|received| received.subject()).collect();
        assert_eq!(subjects, [id(&own)]);
    }
}

/// A stop waits for deliveries in flight and records them: none is repeated.
async fn a_stop_repeats_no_delivery(engine: Engine) {
    let database = Database::create(engine);
    let mut receiver = Receiver::start().await;
    let settings = [("CHANCERY_EVENT_NETWORKS", "127.0.0.0/8")];
    let mut server = Process::start(&database, &settings).await;
    let store = "/api/userstore/v2/default/administration";
    let body = json!({ "name": "r", "url": receiver.url, "types": ["platform.userstore.user.created"] });
    let created = server.admin.post(&format!("{store}/EventSubscription"), body).await.is(201).json();
    let path = format!("{store}/EventSubscription/{}", id(&created));
    server.admin.post(&format!("{path}/test"), json!({})).await.expect(200);
    let row = server.admin.get(&path).await.is(200).json();
    let body = json!({ "isActive": true, "concurrencyToken": row["concurrencyToken"] });
    server.admin.patch(&path, body).await.expect(202);
    // three times, so that the stop happens at different points of deliveries
    for round in 0..3 {
        for number in 0..60 {
            let body = json!({ "loginName": format!("u{round}-{number}") });
            server.admin.post(&format!("{store}/User"), body).await.expect(201);
        }
        receiver.until(|got| events(got).len() > round * 60).await;
        assert!(server.stop());
        server = Process::start(&database, &settings).await;
    }
    let distinct = |got: &[Received]| {
        events(got).iter().map(|one| one.header("webhook-id").to_owned()).collect::<BTreeSet<_>>().len()
    };
    let got = receiver.until(|got| distinct(got) == 180).await;
    assert_eq!(events(&got).len(), 180, "each came once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_delivery_on_sqlite() {
    a_stop_repeats_no_delivery(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_delivery_on_postgres() {
    a_stop_repeats_no_delivery(Engine::Postgres).await;
}
