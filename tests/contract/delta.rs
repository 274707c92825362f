//! Deltas: the changes of a resource after a cursor, each item once, in its current state.

use chancery::{append_pending, prune_events};
use chancery_record::Timestamp;
use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value as Json, json};

use crate::id;

const NOW: Timestamp = Timestamp(1_795_253_400_000);

/// The changes of a resource after a cursor, and the next cursor.
async fn changes(world: &World, resource: &str, parameters: &str) -> (Vec<Json>, String) {
    append_pending(&world.app, NOW).await.unwrap();
    let page = world.admin.get(&world.path(&format!("/{resource}/delta?{parameters}"))).await.is(200).json();
    (page["items"].as_array().unwrap().clone(), page["next"].as_str().unwrap().to_owned())
}

/// The cursor of a full list.
async fn listed(world: &World, resource: &str) -> String {
    append_pending(&world.app, NOW).await.unwrap();
    let list = world.admin.get(&world.path(&format!("/{resource}"))).await.is(200);
    format!("after={}", list.header("x-event-cursor").unwrap())
}

async fn read(world: &World, resource: &str, item: &Json) -> Json {
    world.admin.get(&world.path(&format!("/{resource}/{}", id(item)))).await.is(200).json()
}

async fn rename(world: &World, user: &Json, name: &str) -> Json {
    let one = world.path(&format!("/User/{}", id(user)));
    world
        .admin
        .patch(&one, json!({ "firstName": name, "concurrencyToken": user["concurrencyToken"] }))
        .await
        .is(202)
        .json()
}

fn sorted<const N: usize>(items: [&Json; N]) -> Vec<Json> {
    let mut items: Vec<Json> = items.into_iter().cloned().collect();
    items.sort_by_key(|item| item["id"].to_string());
    items
}

on_both_engines! {
    /// Each subject once, in its current state, after any number of changes.
    async fn each_changed_item_comes_once_in_its_current_state(world: World) {
        let untouched = world.user("untouched").await;
        let ada = world.user("ada").await;
        let gone = world.user("gone").await;
        let after = listed(&world, "User").await;
        let (nothing, _) = changes(&world, "User", &after).await;
        assert!(nothing.is_empty(), "{nothing:?}");
        let ada = rename(&world, &ada, "A").await;
        let ada = rename(&world, &ada, "B").await;
        let new = world.user("new").await;
        world.group("staff").await;
        world.admin.delete(&world.path(&format!("/User/{}", id(&gone)))).await.expect(204);
        let (items, next) = changes(&world, "User", &after).await;
        let (ada, new) = (read(&world, "User", &ada).await, read(&world, "User", &new).await);
        let mut expected = sorted([&ada, &new]);
        expected.push(json!({ "id": gone["id"], "deleted": true }));
        assert_eq!(items, expected);
        assert!(!items.iter().any(|item| item["id"] == untouched["id"]));
        // a hidden user comes back
        let restore = world.path(&format!("/User/{}/restore-deletion", id(&gone)));
        world.admin.post(&restore, json!({})).await.expect(200);
        let (items, _) = changes(&world, "User", &format!("after={next}")).await;
        assert_eq!(items, [read(&world, "User", &gone).await]);
        // without a cursor all retained changes are returned
        assert_eq!(changes(&world, "User", "count=1000").await.0.len(), 4);
    }

    /// Links change both ends.
    async fn links_are_a_change_of_both_ends(world: World) {
        let (ada, bob) = (world.user("ada").await, world.user("bob").await);
        let (staff, board) = (world.group("staff").await, world.group("board").await);
        let (users, groups) = (listed(&world, "User").await, listed(&world, "Group").await);
        let members = world.path(&format!("/Group/{}/users", id(&staff)));
        world.admin.post(&members, json!({ "relatedIds": [ada["id"], bob["id"]] })).await.expect(202);
        let (items, next) = changes(&world, "User", &users).await;
        assert_eq!(items, sorted([&read(&world, "User", &ada).await, &read(&world, "User", &bob).await]));
        assert_eq!(items[0]["memberOfGroups"][0]["id"], staff["id"]);
        let (items, behind) = changes(&world, "Group", &groups).await;
        assert_eq!(items, [read(&world, "Group", &staff).await]);
        // from the other side
        let mine = world.path(&format!("/User/{}/groups", id(&ada)));
        world.admin.delete_with(&mine, json!({ "relatedIds": [staff["id"]] })).await.expect(202);
        let (items, next) = changes(&world, "User", &format!("after={next}")).await;
        assert_eq!(items, [read(&world, "User", &ada).await]);
        let (items, behind) = changes(&world, "Group", &format!("after={behind}")).await;
        assert_eq!(items, [read(&world, "Group", &staff).await]);
        // groups in groups
        let inner = world.path(&format!("/Group/{}/membergroups", id(&board)));
        world.admin.post(&inner, json!({ "relatedIds": [staff["id"]] })).await.expect(202);
        let (items, _) = changes(&world, "Group", &format!("after={behind}")).await;
        assert_eq!(items, sorted([&read(&world, "Group", &staff).await, &read(&world, "Group", &board).await]));
        assert!(changes(&world, "User", &format!("after={next}")).await.0.is_empty());
    }

    /// An event lists 500 links at most; the delta knows all of them, or says that it does not.
    async fn links_beyond_those_in_the_event_are_in_the_delta(world: World) {
        let users: Vec<Json> = (0..501).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let created = world.admin.post(&world.path("/User/batch"), users.into()).await.is(200).json();
        let ids: Vec<&Json> = created.as_array().unwrap().iter().map(|user| &user["id"]).collect();
        let group = world.group("all").await;
        let after = listed(&world, "User").await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&members, json!({ "relatedIds": ids })).await.expect(202);
        let (items, _) = changes(&world, "User", &after).await;
        assert_eq!(items.len(), 501);
        assert!(items.iter().all(|user| user["memberOfGroups"][0]["id"] == group["id"]));
        world.sql(vec![("UPDATE audit_entry SET current_content = NULL WHERE area = 'Group'", vec![])]).await;
        let address = world.path(&format!("/User/delta?{after}"));
        let gone = world.admin.get(&address).await.problem(410, "events-gone");
        let oldest = format!("after={}", gone["oldest"].as_str().unwrap());
        assert!(changes(&world, "User", &oldest).await.0.is_empty());
    }

    /// Paging, waiting and cursors are the feed's.
    async fn a_delta_is_read_like_a_feed(world: World) {
        let after = listed(&world, "User").await;
        for number in 0..5 {
            world.user(&format!("u{number}")).await;
        }
        let (mut seen, mut from) = (Vec::new(), after.clone());
        for expected in [2, 2, 1, 0] {
            let (items, next) = changes(&world, "User", &format!("count=2&{from}")).await;
            assert_eq!(items.len(), expected);
            seen.extend(items);
            from = format!("after={next}");
        }
        let mut whole = changes(&world, "User", &format!("count=1000&{after}")).await.0;
        whole.sort_by_key(|item| item["loginName"].to_string());
        seen.sort_by_key(|item| item["loginName"].to_string());
        assert_eq!(seen, whole);
        let waits = world.path(&format!("/User/delta?wait=30&{from}"));
        let (items, ada) = tokio::join!(world.admin.get(&waits), world.user("ada"));
        assert_eq!(items.is(200).json()["items"][0]["id"], ada["id"]);
        for wrong in ["count=0", "wait=31", "after=x", "type=platform.userstore.user.*", "subject=x"] {
            world.admin.get(&world.path(&format!("/User/delta?{wrong}"))).await.problem(400, "invalid-request");
        }
        let none = world.client("none", &[]).await;
        none.get(&world.path("/User/delta")).await.problem(403, "forbidden");
        let run = world.app.store.run("Test", Mode::Write, None, |tx| prune_events(tx, Timestamp(i64::MAX / 2000), 1000));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        world.admin.get(&world.path(&format!("/User/delta?{after}"))).await.problem(410, "events-gone");
    }
}
