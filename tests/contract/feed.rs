//! Feeds of events: read by cursor, in order, within what a caller may read.

use chancery::{append_pending, prune_events};
use chancery_record::Timestamp;
use chancery_store::{Error, Mode};
use chancery_testkit::{Answer, Client, World, on_both_engines};
use chancery_web::{event_rows, now};
use serde_json::{Value as Json, json};

use crate::{
    event::{HOLD, RELEASE},
    id,
};

const NOW: Timestamp = Timestamp(1_795_253_400_000);
const CONFIGURATION: &str = "/api/management/v2/Event";
const SIGN_INS: &str = "/api/management/v2/SignInEvent";

/// The events of the default store.
fn store(world: &World) -> String {
    world.path("/Event")
}

async fn append_events(world: &World) {
    append_pending(&world.app, NOW).await.unwrap();
}

fn items(answer: &Json) -> &[Json] {
    answer["items"].as_array().unwrap()
}

/// The types of events, without their common prefix.
fn types(answer: &Json) -> Vec<String> {
    items(answer)
        .iter()
        .map(|event| event["type"].as_str().unwrap()["platform.".len()..].to_owned())
        .collect()
}

async fn read(client: &Client, feed: &str, parameters: &str) -> Json {
    client.get(&format!("{feed}?{parameters}")).await.is(200).json()
}

fn next(answer: &Json) -> &str {
    answer["next"].as_str().unwrap()
}

fn cursor(list: &Answer) -> String {
    list.header("x-event-cursor").unwrap().to_owned()
}

on_both_engines! {
    /// The envelope of an event.
    async fn an_event_is_an_envelope_that_foreign_readers_know(world: World) {
        let user = world.user("ada").await;
        append_events(&world).await;
        let answer = read(&world.admin, &store(&world), "").await;
        let [event] = items(&answer) else { panic!("{answer}") };
        assert_eq!((&event["specversion"], &event["type"]), (&json!("1.0"), &json!("platform.userstore.user.created")));
        assert_eq!((&event["subject"], &event["data"]["id"]), (&user["id"], &user["id"]));
        assert_eq!(event["sequence"], "00000000000000000001");
        let instance = event["data"]["scope"]["idpInstanceId"].as_str().unwrap();
        assert_eq!(event["source"], format!("/userstore/{instance}"));
        // a store belongs to a subscription and its customer, and to a tenant where it serves only one
        let whole = |scope: &Json| ["customerId", "subscriptionId", "tenantId"].map(|name| scope[name].clone());
        let [subscription, tenant] = [world.all("Subscription").await[0].clone(), world.all("Tenant").await[0].clone()];
        let expected = [&subscription["customerId"], &subscription["id"], &tenant["id"]].map(Clone::clone);
        assert_eq!(whole(&event["data"]["scope"]), expected);
        let other = world.make("Tenant", json!({ "name": "other", "subscriptionId": subscription["id"] })).await;
        let tenants = format!("/api/management/v2/IdpInstance/{instance}/tenants");
        world.admin.post(&tenants, json!({ "relatedIds": [other["id"]] })).await.expect(202);
        let path = world.path(&format!("/User/{}", user["id"].as_str().unwrap()));
        let body = json!({ "nickname": "Amazing", "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        append_events(&world).await;
        let later = read(&world.admin, &store(&world), "").await;
        assert_eq!(whole(&items(&later)[1]["data"]["scope"]), [expected[0].clone(), expected[1].clone(), json!(null)]);
        assert!(event["data"]["actor"].is_string() && event["traceparent"].as_str().unwrap().len() == 55);
        // its id is that of its audit entry, whose proof any reader of the trail can request
        let proof = world.path(&format!("/CustomAuditTrail/{}/inclusion-proof", event["id"].as_str().unwrap()));
        world.admin.get(&proof).await.expect(200);
        assert_eq!((answer["hasMore"].clone(), answer["next"].is_string()), (json!(false), true));
    }

    /// Section 4: consecutive pages are the whole feed; the end has a cursor, too.
    async fn pages_contain_all_events(world: World) {
        for number in 0..7 {
            world.user(&format!("u{number}")).await;
        }
        append_events(&world).await;
        let whole = read(&world.admin, &store(&world), "count=1000").await;
        assert_eq!(items(&whole).len(), 7);
        let (mut pages, mut after) = (Vec::new(), String::new());
        for more in [true, true, false] {
            let page = read(&world.admin, &store(&world), &format!("count=3{after}")).await;
            assert_eq!(page["hasMore"], more);
            pages.extend_from_slice(items(&page));
            after = format!("&after={}", next(&page));
        }
        assert_eq!(pages, items(&whole));
        let end = read(&world.admin, &store(&world), &after[1..]).await;
        assert!(items(&end).is_empty());
        world.user("later").await;
        append_events(&world).await;
        let later = read(&world.admin, &store(&world), &format!("after={}", next(&end))).await;
        assert_eq!(types(&later), ["userstore.user.created"]);
    }

    /// Section 4: between a list and the feed there is no gap, at any state of sequencing.
    async fn no_change_is_missed_between_a_list_and_its_feed(world: World) {
        world.user("placed").await;
        append_events(&world).await;
        world.sql(vec![(HOLD, vec![])]).await;
        let waiting = world.user("waiting").await;
        let list = world.admin.get(&world.path("/User")).await.is(200);
        world.sql(vec![(RELEASE, vec![])]).await;
        let gone = world.user("gone").await;
        append_events(&world).await;
        let behind = read(&world.admin, &store(&world), &format!("after={}", cursor(&list))).await;
        let subjects: Vec<&Json> = items(&behind).iter().map(|event| &event["subject"]).collect();
        assert_eq!(subjects, [&waiting["id"], &gone["id"]]);
        // pages and lists of the configuration have theirs
        let page = world.admin.get(&world.path("/User?count=1")).await.is(200);
        let configuration = world.admin.get("/api/management/v2/Tenant").await.is(200);
        world.admin.get(&format!("{}?after={}", store(&world), cursor(&page))).await.expect(200);
        world.admin.get(&format!("{CONFIGURATION}?after={}", cursor(&configuration))).await.expect(200);
        world.admin.get(&format!("{}?after={}", store(&world), cursor(&configuration))).await.problem(400, "invalid-request");
    }

    async fn events_are_chosen_by_type_and_subject(world: World) {
        let user = world.user("ada").await;
        world.admin.patch(&world.path(&format!("/User/{}", id(&user))), json!({ "firstName": "A", "concurrencyToken": user["concurrencyToken"] })).await.expect(202);
        let group = world.group("g").await;
        append_events(&world).await;
        let feed = store(&world);
        for (parameters, expected) in [
            ("type=platform.userstore.user.updated".to_owned(), vec!["userstore.user.updated"]),
            ("type=platform.userstore.user.*".to_owned(), vec!["userstore.user.created", "userstore.user.updated"]),
            ("type=*.updated&type=platform.userstore.group.created".to_owned(), vec!["userstore.group.created"]),
            (format!("subject={}", id(&group)), vec!["userstore.group.created"]),
            (format!("subject={}&type=*", id(&user)), vec!["userstore.user.created", "userstore.user.updated"]),
            ("subject=nobody".to_owned(), vec![]),
        ] {
            let answer = read(&world.admin, &feed, &parameters).await;
            assert_eq!(types(&answer), expected, "{parameters}");
            assert_eq!(answer["hasMore"], false);
            // skipped events are not read again
            let end = read(&world.admin, &feed, &format!("after={}", next(&answer))).await;
            assert!(items(&end).is_empty(), "{parameters}");
        }
        for wrong in ["count=0", "count=1001", "wait=31", "type=", "after=", "after=x", "subject=", "filter=x", "subject=a&subject=b"] {
            world.admin.get(&format!("{feed}?{wrong}")).await.problem(400, "invalid-request");
        }
    }

    /// Section 4: a cursor of a lost history is refused, instead of continuing silently.
    async fn a_cursor_of_a_changed_or_pruned_history_is_refused(world: World) {
        for name in ["a", "b", "c", "d"] {
            world.user(name).await;
        }
        append_events(&world).await;
        let feed = store(&world);
        let mut after = Vec::new();
        for count in 1..=4 {
            after.push(next(&read(&world.admin, &feed, &format!("count={count}")).await).to_owned());
        }
        // the first two are old
        world.sql(vec![
            ("UPDATE outbox_event SET id = 7 WHERE id = (SELECT event FROM event_place WHERE trail > 0 AND position = 1)", vec![]),
            ("UPDATE event_place SET event = 7 WHERE trail > 0 AND position = 1", vec![]),
        ]).await;
        let run = world.app.store.run("Test", Mode::Write, None, |tx| prune_events(tx, NOW, 1000));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        assert_eq!(items(&read(&world.admin, &feed, "").await).len(), 3);
        let answer = world.admin.get(&format!("{feed}?after={}", after[1])).await.is(200).json();
        assert_eq!(items(&answer).len(), 2);
        let run = world.app.store.run("Test", Mode::Write, None, |tx| prune_events(tx, Timestamp(i64::MAX / 2000), 1000));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        let gone = world.admin.get(&format!("{feed}?after={}", after[1])).await.problem(410, "events-gone");
        assert!(items(&read(&world.admin, &feed, &format!("after={}", gone["oldest"].as_str().unwrap())).await).is_empty());
        assert!(items(&read(&world.admin, &feed, &format!("after={}", after[3])).await).is_empty());
        // an older state was restored, and another change has the position that was read
        world.sql(vec![
            ("UPDATE event_trail SET placed = 3, pruned = 0 WHERE trail > 0", vec![]),
            ("DELETE FROM event_place WHERE trail > 0 AND position = 4", vec![]),
        ]).await;
        world.admin.get(&format!("{feed}?after={}", after[3])).await.problem(410, "event-history-changed");
        world.user("e").await;
        append_events(&world).await;
        world.admin.get(&format!("{feed}?after={}", after[3])).await.problem(410, "event-history-changed");
    }
}

on_both_engines! {
    /// Section 6: a store's events are retained as configured, and those of all tenants by the longest retention.
    ///
    /// - Effect of `Tenant options.EventRetention`: Events of the tenant's sign-ins are kept for this time.
    /// - Effect of `UserStore options.EventRetention`: Events of the store are kept for this time.
    async fn events_are_retained_as_their_owners_configure(world: World) {
        const DAY: i64 = 24 * 3_600_000;
        world.user("ada").await;
        world.set_option("EventRetention", "2.00:00:00").await;
        let append_all = async || append_pending(&world.app, now()).await.map(drop).unwrap();
        append_all().await;
        let left = async |days: i64| {
            let moment = Timestamp(now().0 + days * DAY + DAY / 2);
            let run = world.app.store.run("Test", Mode::Write, None, move |tx| prune_events(tx, moment, 1000));
            run.await.map_err(|error: Error| error.to_string()).unwrap();
            [items(&read(&world.admin, &store(&world), "").await).len(), items(&read(&world.admin, CONFIGURATION, "").await).len()]
        };
        let [_, changes] = left(1).await;
        assert!(changes > 0);
        assert_eq!(left(1).await[0], 1);
        assert_eq!(left(2).await, [0, changes]);
        set_of_tenants(&world, "20.00:00:00").await;
        append_all().await;
        let [_, changes] = left(9).await;
        assert!(changes > 0);
        set_of_tenants(&world, "1.00:00:00").await;
        append_all().await;
        assert_eq!(left(9).await, [0, 0]);
    }
}

/// Sets the retention of every tenant.
async fn set_of_tenants(world: &World, value: &str) {
    let list = "/api/management/v2/Option?filter=name%20eq%20%22EventRetention%22";
    let options = world.admin.get(list).await.is(200).json();
    for option in options.as_array().unwrap().iter().filter(|option| !option["applyToTenantId"].is_null()) {
        let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
        world.admin.patch(&format!("/api/management/v2/Option/{}", id(option)), body).await.expect(202);
    }
}

on_both_engines! {
    /// Section 11: now is after all answered changes, sequenced or not.
    async fn now_is_after_every_answered_change(world: World) {
        let feed = store(&world);
        world.user("before").await;
        let now = format!("{feed}?after=now");
        let (answer, ()) = tokio::join!(world.admin.get(&now), append_events(&world));
        let answer = answer.is(200).json();
        assert!(items(&answer).is_empty());
        world.user("after").await;
        append_events(&world).await;
        let behind = read(&world.admin, &feed, &format!("after={}", next(&answer))).await;
        assert_eq!(items(&behind).len(), 1);
        // where nothing is sequenced for two seconds, the answer is 503
        world.sql(vec![(HOLD, vec![])]).await;
        world.user("unplaced").await;
        world.admin.get(&format!("{feed}?after=now")).await.problem(503, "unavailable");
    }

    /// Section 4: a waiting reader gets the event as soon as it has its position.
    async fn a_waiting_reader_gets_the_event_at_once(world: World) {
        let feed = store(&world);
        let end = read(&world.admin, &feed, "").await;
        let waits = format!("{feed}?wait=30&after={}", next(&end));
        let (answer, _) = tokio::join!(world.admin.get(&waits), world.user("ada"));
        assert_eq!(types(&answer.is(200).json()), ["userstore.user.created"]);
        let nothing = read(&world.admin, &feed, &format!("wait=1&after={}", next(&end)).replace(next(&end), "now")).await;
        assert!(items(&nothing).is_empty() && nothing["next"].is_string());
    }

    /// Section 4: a reader sees no event out of its scope, nor actors out of it.
    async fn a_reader_sees_what_its_roles_cover(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let tenant = world.make("Tenant", json!({ "name": "own", "subscriptionId": subscription })).await;
        let other = world.other_subscription("other").await;
        let foreign = world.make("Tenant", json!({ "name": "foreign", "subscriptionId": other })).await;
        let near = world.client_in(&subscription, "near", &[("SubscriptionAdmin", None, None)]).await;
        let far = world.client_in(&other, "far", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client_in(&subscription, "low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let none = world.client("none", &[]).await;
        append_events(&world).await;
        let all = read(&world.admin, CONFIGURATION, "count=1000").await;
        let subjects = |answer: &Json| -> Vec<Json> { items(answer).iter().map(|event| event["subject"].clone()).collect() };
        assert!(subjects(&all).contains(&tenant["id"]) && subjects(&all).contains(&foreign["id"]));
        for (client, sees, sees_not) in [(&near, &tenant, &foreign), (&far, &foreign, &tenant), (&low, &tenant, &foreign)] {
            let answer = read(client, CONFIGURATION, "count=1000").await;
            assert!(subjects(&answer).contains(&sees["id"]) && !subjects(&answer).contains(&sees_not["id"]));
            assert_eq!(answer["hasMore"], false);
        }
        let of_tenant = read(&low, CONFIGURATION, "count=1000").await;
        assert!(items(&of_tenant).iter().all(|event| event["data"]["scope"]["tenantId"] == tenant["id"]), "{of_tenant}");
        // the root client app is of the default subscription: another's administrator does not see it
        let actors = |answer: &Json, subject: &Json| items(answer).iter().find(|event| event["subject"] == *subject).unwrap()["data"]["actor"].clone();
        assert!(actors(&all, &tenant["id"]).is_string());
        assert!(actors(&read(&far, CONFIGURATION, "count=1000").await, &foreign["id"]).is_null());
        for feed in [CONFIGURATION, SIGN_INS, &store(&world)] {
            none.get(feed).await.problem(403, "forbidden");
        }
        far.get(&store(&world)).await.problem(404, "not-found");
        read(&near, &store(&world), "").await;
    }
}

on_both_engines! {
    /// An event about one's own app that was linked to another customer's tenant names no tenant out of its reader's scope,
    /// by the feed and by the stream.
    async fn an_event_names_nothing_that_its_reader_does_not_see(world: World) {
        let (own, other) = (world.other_subscription("own").await, world.other_subscription("other").await);
        let tenant = async |subscription: &Json| world.make("Tenant", json!({ "name": "t", "subscriptionId": subscription })).await;
        let (near, far) = (tenant(&own).await, tenant(&other).await);
        let app = world.make("ClientApp", json!({ "name": "cross", "subscriptionId": own, "allowCrossSubscription": true })).await;
        let tenants = format!("/api/management/v2/ClientApp/{}/tenants", id(&app));
        let both = json!({ "relatedIds": [near["id"], far["id"]] });
        world.admin.put(&tenants, both.clone()).await.expect(202);
        world.admin.delete_with(&tenants, both).await.expect(202);
        append_events(&world).await;
        let reader = world.client_in(&own, "reader", &[("SubscriptionAdmin", None, None)]).await;
        let links = |answer: &Json| -> Vec<Json> {
            let links = items(answer).iter().filter(|event| event["subject"] == app["id"] && event["data"]["relation"] == "tenants");
            links.map(|event| json!([event["data"]["added"], event["data"]["removed"], event["data"]["complete"]])).collect()
        };
        let answer = read(&reader, CONFIGURATION, "count=1000").await;
        assert_eq!(links(&answer), [json!([[near["id"]], [], false]), json!([[], [near["id"]], false])]);
        assert!(!answer.to_string().contains(id(&far)), "{answer}");
        let all = links(&read(&world.admin, CONFIGURATION, "count=1000").await);
        assert_eq!((all[0][0].as_array().unwrap().len(), &all[0][2]), (2, &Json::Null), "who sees everything is told of both");
        let path = format!("{CONFIGURATION}/stream?subject={}&type=platform.management.clientapp.related", id(&app));
        let mut stream = reader.stream(&path, &[("accept", "text/event-stream")]).await;
        let event = stream.next().await.unwrap();
        assert!(event.data.contains(id(&near)) && !event.data.contains(id(&far)), "{}", event.data);
    }
}

on_both_engines! {
    /// Section 3: `dataschema` is the URL of the JSON Schema of the event's type, which is public.
    async fn every_type_of_events_has_a_schema(world: World) {
        world.user("ada").await;
        append_events(&world).await;
        let answer = read(&world.admin, &store(&world), "").await;
        let [event] = items(&answer) else { panic!("{answer}") };
        let at = event["dataschema"].as_str().unwrap();
        let path = &at[at.find("/schemas/").unwrap()..];
        let answer = world.anonymous.get(path).await.is(200);
        assert_eq!(answer.header("content-type"), Some("application/schema+json"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"));
        let schema = answer.json();
        assert_eq!((&schema["$id"], &schema["properties"]["type"]["const"]), (&event["dataschema"], &event["type"]));
        for name in schema["required"].as_array().unwrap() {
            assert!(!event[name.as_str().unwrap()].is_null(), "{name}");
        }
        for row in event_rows().iter().filter(|row| !row.kind.is_empty()) {
            let path = format!("/schemas/event/{}/1.json", row.kind);
            assert_eq!(world.anonymous.get(&path).await.is(200).json()["title"], row.kind);
        }
        for wrong in ["platform.userstore.user.made/1.json", "/1.json", "-/1.json", "platform.userstore.user.created/2.json"] {
            world.anonymous.get(&format!("/schemas/event/{wrong}")).await.expect(404);
        }
    }
}
