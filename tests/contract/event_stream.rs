//! Streams of events: the feed as server-sent events, which go on as long as their reader may read.

use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::{Value as Json, json};

use crate::id;

fn stream(world: &World) -> String {
    world.path("/Event/stream")
}

fn data(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

on_both_engines! {
    /// `8-events.md`, section 4: events come as they happen; a reader that was cut off goes on behind what it saw.
    async fn a_stream_goes_on_where_it_was_cut(world: World) {
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
        // what a stream says is what the feed says, and its ids are the feed's cursors
        let feed = world.admin.get(&format!("{}?after={}", world.path("/Event"), second.id)).await.is(200).json();
        assert_eq!(feed["items"], json!([data(&third.data)]));
        let end = world.admin.get(&format!("{}?after={}", world.path("/Event"), third.id)).await.is(200).json();
        assert_eq!(end["items"], json!([]));
    }

    /// Section 4: what cannot be streamed is refused before the stream begins.
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

    /// Section 4: rights are looked up again for every piece.
    async fn who_loses_the_role_gets_nothing_more(world: World) {
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
