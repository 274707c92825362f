//! Streams of events: the feed as server-sent events, as long as their reader may read.

use std::sync::Arc;

use chancery_record::Timestamp;
use chancery_resource::EventCursor;
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::{Value as Json, json};

use crate::id;

const NOW: Timestamp = Timestamp(1_795_253_400_000);

fn stream(world: &World) -> String {
    world.path("/Event/stream")
}

fn data(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

on_both_engines! {
    /// Events come as they happen; a reader that was cut off continues after its last event.
    async fn a_reconnected_stream_continues_without_a_gap(world: World) {
        let ada = world.user("ada").await;
        let mut reader = world.admin.stream(&format!("{}?type=platform.userstore.user.created", stream(&world)), &[]).await;
        let first = reader.next().await.unwrap();
        assert_eq!((first.event.as_str(), &data(&first.data)["subject"]), ("platform.userstore.user.created", &ada["id"]));
        world.group("unasked").await;
        let ben = world.user("ben").await;
        let second = reader.next().await.unwrap();
        assert_eq!(data(&second.data)["subject"], ben["id"]);
        drop(reader);
        let eve = world.user("eve").await;
        let again = [("last-event-id", second.id.as_str())];
        let mut reader = world.admin.stream(&format!("{}?after=now&type=platform.userstore.user.created", stream(&world)), &again).await;
        let third = reader.next().await.unwrap();
        assert_eq!(data(&third.data)["subject"], eve["id"]);
        // the events of a stream are those of the feed, and its ids are the feed's cursors
        let feed = world.admin.get(&format!("{}?after={}", world.path("/Event"), second.id)).await.is(200).json();
        assert_eq!(feed["items"], json!([data(&third.data)]));
        let end = world.admin.get(&format!("{}?after={}", world.path("/Event"), third.id)).await.is(200).json();
        assert_eq!(end["items"], json!([]));
    }

    /// Section 4: a request that cannot be streamed is refused before the stream begins.
    async fn a_stream_is_refused_like_a_feed(world: World) {
        let path = stream(&world);
        for wrong in ["count=1", "wait=1", "after=x", "type="] {
            world.admin.get(&format!("{path}?{wrong}")).await.problem(400, "invalid-request");
        }
        let none = world.client("none", &[]).await;
        none.get(&path).await.problem(403, "forbidden");
        let json_only = [("accept", "application/json")];
        world.admin.send(Method::GET, &path, &json_only, Vec::new()).await.problem(406, "not-acceptable");
        let mut open = Vec::new();
        for _ in 0..8 {
            open.push(world.admin.stream(&path, &[]).await);
        }
        world.admin.get(&path).await.problem(503, "unavailable");
        drop(open);
    }

    /// Section 4: many read one trail at a time; each gets its events, and sees only itself as an actor.
    async fn each_reader_of_a_trail_gets_its_own(world: World) {
        let store = Some(instance(&world).await);
        let other = world.client("other", &[("UserStoreAdmin", None, store)]).await;
        let users = format!("{}?after=now&type=platform.userstore.user.*", stream(&world));
        let all = format!("{}?after=now", stream(&world));
        let mut readers = Vec::new();
        for (client, path, acted) in [(&world.admin, &users, true), (&other, &users, false), (&world.admin, &all, true), (&other, &all, false)] {
            readers.push((client, client.stream(path, &[]).await, (path == &all, acted)));
        }
        let mut created = Vec::new();
        for number in 0..5 {
            created.push((true, world.user(&format!("u{number}")).await["id"].clone()));
            created.push((false, world.group(&format!("g{number}")).await["id"].clone()));
        }
        for (client, mut reader, (is_all, acted)) in readers {
            let mut last = None;
            for (_, subject) in created.iter().filter(|(is_user, _)| is_all || *is_user) {
                let streamed = reader.next().await.unwrap();
                let event = data(&streamed.data);
                assert_eq!((&event["subject"], &event["type"]), (subject, &json!(streamed.event)));
                assert_eq!(event["data"]["actor"].is_string(), acted);
                last = Some((streamed.id, event));
            }
            // a cursor is the feed's, and so is its event
            let (cursor, event) = last.unwrap();
            let whole = client.get(&format!("{}?count=1000", world.path("/Event"))).await.is(200).json();
            assert!(whole["items"].as_array().unwrap().contains(&event));
            client.get(&format!("{}?after={cursor}", world.path("/Event"))).await.expect(200);
        }
    }

    /// Section 4: the end of a trail is read once for all readers there; a reader further behind queries by itself.
    async fn the_end_of_a_trail_is_read_once(world: World) {
        let app = &world.app.context;
        world.user("ada").await;
        let feed_end = crate::feed_from_now(&world.admin, &world.path("/Event")).await;
        let begin = EventCursor::read(app, feed_end["next"].as_str().unwrap()).unwrap();
        let tail = app.tails.follow(begin.trail).unwrap();
        let read = async |cursor| tail.after(app, &world.app.store, cursor, NOW).await;
        world.user("ben").await;
        app.tails.wait(begin.trail, begin.position, chancery_testkit::PATIENCE).await;
        let (first, second) = tokio::join!(read(begin), read(begin));
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first.len() == 1 && Arc::ptr_eq(&first[0], &second[0]));
        world.user("eve").await;
        app.tails.wait(begin.trail, begin.position + 1, chancery_testkit::PATIENCE).await;
        let third = read(begin).await.unwrap();
        assert!(Arc::ptr_eq(&first[0], &third[0]), "it is not read again");
        let before = EventCursor { position: 0, event: 0, ..begin };
        let of_another_history = EventCursor { event: begin.event + 1, ..begin };
        assert!(read(before).await.is_none() && read(of_another_history).await.is_none());
    }

    /// Section 4: of the configuration a reader gets the events within its roles, beside one that gets all.
    async fn streams_of_the_configuration_are_within_their_scopes(world: World) {
        let path = "/api/management/v2/Event/stream?type=platform.management.tenant.created&after=now";
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let other = world.other_subscription("other").await;
        let near = world.client_in(&subscription, "near", &[("SubscriptionAdmin", None, None)]).await;
        let far = world.client_in(&other, "far", &[("SubscriptionAdmin", None, None)]).await;
        let mut all = world.admin.stream(path, &[]).await;
        let mut streams = [near.stream(path, &[]).await, far.stream(path, &[]).await];
        for round in 0..3 {
            for (index, (of, client)) in [(&subscription, &near), (&other, &far)].into_iter().enumerate() {
                let tenant = world.make("Tenant", json!({ "name": format!("t{index}{round}"), "subscriptionId": of })).await;
                let whole = data(&all.next().await.unwrap().data);
                let own = data(&streams[index].next().await.unwrap().data);
                assert_eq!((&whole["subject"], &own["subject"]), (&tenant["id"], &tenant["id"]));
                let feed = client.get("/api/management/v2/Event?count=1000").await.is(200).json();
                assert!(feed["items"].as_array().unwrap().contains(&own), "a stream says what the feed says");
            }
        }
    }

    /// Section 4: rights are looked up again for every chunk.
    async fn a_reader_that_loses_its_role_gets_no_more_events(world: World) {
        let reader = world.client("reader", &[("UserStoreAdmin", None, Some(instance(&world).await))]).await;
        let mut streamed = reader.stream(&stream(&world), &[]).await;
        world.user("seen").await;
        assert!(streamed.next().await.unwrap().data.contains("user.created"));
        let roles = world.all("ClientAppRole").await;
        let own = roles.as_array().unwrap().iter().find(|role| role["roleType"] == "UserStoreAdmin").unwrap().clone();
        world.admin.delete(&format!("/api/management/v2/ClientAppRole/{}", id(&own))).await.expect(204);
        world.user("unseen").await;
        assert_eq!(streamed.next().await, None, "the stream ends with the role");
        reader.get(&stream(&world)).await.problem(403, "forbidden");
    }
}

async fn instance(world: &World) -> uuid::Uuid {
    id(&world.all("IdpInstance").await[0]).parse().unwrap()
}
