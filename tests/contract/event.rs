//! Events: their positions, and the completeness of a reader's view.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chancery::append_pending;
use chancery_record::Timestamp;
use chancery_resource::read_text;
use chancery_store::{Error, Mode, Store};
use chancery_testkit::{Engine, World, on_both_engines};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{id, signing::texts};

const NOW: Timestamp = Timestamp(1_795_253_400_000);

/// Keeps the job from sequencing the trails of user stores that have events: their next positions are taken.
pub const HOLD: &str = "INSERT INTO event_place (trail, position, event) SELECT trail, placed + 1, -trail FROM event_trail WHERE trail > 0";
/// Lets it continue.
pub const RELEASE: &str = "DELETE FROM event_place WHERE event < 0";

/// Commits events without pending rows, until [`notice_events`]: no job ever sees them.
pub async fn overlook_events(world: &World) {
    // a trigger, not a rule: prepared statements that a rule made empty are not prepared again
    let texts = match world.engine {
        Engine::Sqlite => {
            vec!["CREATE TRIGGER overlook BEFORE INSERT ON event_pending BEGIN SELECT RAISE(IGNORE); END"]
        }
        Engine::Postgres => vec![
            "CREATE FUNCTION overlook() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "CREATE TRIGGER overlook BEFORE INSERT ON event_pending FOR EACH ROW EXECUTE FUNCTION overlook()",
        ],
    };
    for text in texts {
        world.sql(vec![(text, vec![])]).await;
    }
}

/// Ends the effect of [`overlook_events`].
pub async fn notice_events(world: &World) {
    let text = match world.engine {
        Engine::Sqlite => "DROP TRIGGER overlook",
        Engine::Postgres => "DROP TRIGGER overlook ON event_pending",
    };
    world.sql(vec![(text, vec![])]).await;
}

/// The numbers in a query's result.
async fn numbers(store: &Store, text: &'static str, last: i64) -> Vec<i64> {
    let read = store.run("Test", Mode::Quick, None, move |tx| {
        let mut rows = Vec::new();
        tx.query(text, &[last.into()], |row| {
            rows.push(row.int(0)?);
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    read.await.unwrap()
}

const BY_NUMBER: &str = "SELECT id FROM outbox_event WHERE store > 0 AND id > ?1 ORDER BY id";
const BY_POSITION: &str = "SELECT event FROM event_place WHERE trail > 0 AND position > ?1 ORDER BY position";
const POSITIONS: &str =
    "SELECT position FROM event_place WHERE trail > 0 AND position > ?1 ORDER BY position";

/// The envelopes of a user store's trail, in the order of their positions.
async fn placed(world: &World) -> Vec<Json> {
    append_pending(&world.app, NOW).await.unwrap();
    let read = world.app.store.run("Test", Mode::Long, None, |tx| {
        let mut rows = Vec::new();
        let text = "SELECT o.envelope FROM event_place p JOIN outbox_event o ON o.id = p.event WHERE p.trail > 0 ORDER BY p.position";
        tx.query(text, &[], |row| {
            rows.push(serde_json::from_str(&read_text(row.text(0)?).unwrap()).unwrap());
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    read.await.unwrap()
}

on_both_engines! {
    /// A number is a time taken before the commit. A late commit has a lower number than
    /// the last one that a reader saw: a reader that continues there misses it. By positions nothing is missed.
    async fn a_reader_by_number_misses_late_commits_and_one_by_position_does_not(world: World) {
        world.user("first").await;
        world.user("second").await;
        let seen = numbers(&world.app.store, BY_NUMBER, 0).await;
        append_pending(&world.app, NOW).await.unwrap();
        let positions = numbers(&world.app.store, BY_POSITION, 0).await;
        assert_eq!(positions, seen);
        // a change that took its number before both, and commits now
        let late = seen[0] - 1;
        world.sql(vec![
            ("INSERT INTO outbox_event (id, store, envelope) SELECT ?1, store, envelope FROM outbox_event WHERE id = ?2", vec![late.into(), seen[0].into()]),
            ("INSERT INTO event_pending (trail, event) SELECT store, id FROM outbox_event WHERE id = ?1", vec![late.into()]),
        ]).await;
        append_pending(&world.app, NOW).await.unwrap();
        assert_eq!(numbers(&world.app.store, BY_NUMBER, seen[1]).await, [0_i64; 0]);
        assert_eq!(numbers(&world.app.store, BY_POSITION, 2).await, [late]);
    }

    /// Concurrent writers, and jobs that race: each change has one position, and there is no gap.
    async fn positions_are_dense_and_each_event_has_one(world: World) {
        let (world, done) = (Arc::new(world), Arc::new(AtomicBool::new(false)));
        let sequencing = |world: Arc<World>, done: Arc<AtomicBool>| chancery_testkit::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                append_pending(&world.app, NOW).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let jobs = [sequencing(Arc::clone(&world), Arc::clone(&done)), sequencing(Arc::clone(&world), Arc::clone(&done))];
        let writers = (0..8).map(|writer| {
            let world = Arc::clone(&world);
            chancery_testkit::spawn(async move {
                for round in 0..12 {
                    world.user(&format!("u{writer}x{round}")).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for job in jobs {
            job.await.unwrap();
        }
        append_pending(&world.app, NOW).await.unwrap();
        let positions = numbers(&world.app.store, POSITIONS, 0).await;
        assert!(positions.iter().copied().eq(1..=96), "{positions:?}");
        let mut events = numbers(&world.app.store, BY_POSITION, 0).await;
        events.sort_unstable();
        assert_eq!(events, numbers(&world.app.store, BY_NUMBER, 0).await);
        assert_eq!(numbers(&world.app.store, "SELECT count(*) FROM event_pending WHERE trail > ?1", 0).await, [0]);
    }

    /// An audited event is a leaf of its trail's tree, too, in the same order.
    async fn audited_events_are_leaves(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        world.admin.delete(&one).await.expect(204);
        append_pending(&world.app, NOW).await.unwrap();
        let leaves = numbers(&world.app.store, "SELECT entry FROM audit_leaf WHERE store > 0 AND position >= ?1 ORDER BY position", 0).await;
        assert_eq!(numbers(&world.app.store, BY_POSITION, 0).await, leaves);
        assert_eq!(leaves.len(), 2);
    }

    /// Section 3: an event lists at most 500 added and 500 removed links, with their total numbers.
    async fn an_event_of_many_links_stays_small(world: World) {
        let users: Vec<Json> = (0..501).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let created = world.admin.post(&world.path("/User/batch"), users.into()).await.is(200).json();
        let ids: Vec<&Json> = created.as_array().unwrap().iter().map(|user| &user["id"]).collect();
        let group = world.group("all").await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&members, json!({ "relatedIds": ids })).await.expect(202);
        let events = placed(&world).await;
        let related: Vec<&Json> = events.iter().filter(|event| event["type"].as_str().unwrap().ends_with(".related")).collect();
        let data = &related[0]["data"];
        assert_eq!(data["added"].as_array().unwrap().len(), 500);
        assert_eq!((&data["addedCount"], &data["removedCount"], &data["complete"]), (&json!(501), &json!(0), &json!(false)));
        assert!(related[0].to_string().len() < 64 << 10);
        world.admin.post(&world.path(&format!("/User/{}/groups", ids[0].as_str().unwrap())), json!({ "relatedIds": [world.group("one").await["id"]] })).await.expect(202);
        assert!(placed(&world).await.last().unwrap()["data"]["complete"].is_null());
    }

    /// Section 11: a change of a state is named after it, with any other changes, and by any operation.
    async fn a_change_of_state_is_named_after_it(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let state = format!("{one}/state");
        let locks = json!({ "lockedUntil": "2126-01-01T00:00:00.000Z" });
        for body in [json!({ "isUserLocked": true }), json!({ "isUserLocked": false }), locks, json!({ "isUserActive": false, "isUserLocked": true })] {
            world.admin.post(&state, body).await.expect(200);
        }
        let row = world.admin.get(&one).await.is(200).json();
        let body = json!({ "isUserActive": true, "firstName": "Ada", "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&one, body).await.expect(202);
        let events = placed(&world).await;
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap().strip_prefix("platform.userstore.user.").unwrap()).collect();
        assert_eq!(kinds, ["created", "locked", "unlocked", "locked", "deactivated", "activated"]);
        let changed = events.last().unwrap()["data"]["changed"].as_array().unwrap();
        assert!(changed.contains(&json!("firstName")) && changed.contains(&json!("isUserActive")), "{changed:?}");
    }

    /// An older release's process writes `audit_pending` while both run: its events get their positions, too.
    async fn events_of_an_older_process_get_positions(world: World) {
        world.user("before").await;
        assert_eq!(placed(&world).await.len(), 1);
        overlook_events(&world).await;
        world.user("ada").await;
        notice_events(&world).await;
        world.sql(vec![("INSERT INTO audit_pending (entry, store) SELECT max(id), store FROM outbox_event WHERE store > 0 GROUP BY store", vec![])]).await;
        assert_eq!(placed(&world).await.len(), 2);
        assert_eq!(numbers(&world.app.store, "SELECT count(*) FROM audit_pending WHERE store > ?1", 0).await, [0]);
        assert_eq!(numbers(&world.app.store, "SELECT entry FROM audit_leaf WHERE store > ?1", 0).await.len(), 2);
    }
}

on_both_engines! {
    /// The request behind an event is named as W3C trace context, with the scope of the event.
    async fn an_event_names_its_request_and_what_it_belongs_to(world: World) {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let headers = [("content-type", "application/json"), ("traceparent", parent.as_str())];
        let body = json!({ "loginName": "ada" }).to_string().into_bytes();
        world.admin.send(http::Method::POST, &world.path("/User"), &headers, body).await.expect(201);
        let stored = texts(&world, "SELECT traceparent FROM outbox_event WHERE store > 0").await;
        assert!(stored[0].starts_with(&format!("00-{trace}-")) && stored[0].ends_with("-01"), "{stored:?}");
        let app = world.make("ClientApp", json!({ "name": "portal" })).await;
        let uri = json!({ "clientAppId": app["id"], "uri": "https://portal.example/" });
        let uri = world.make("ClientAppRedirectUri", uri).await;
        for row in [&app, &uri] {
            let (customer, subscription) = belongs(&world, row).await;
            assert!(customer.is_some(), "the customer of the subscription");
            assert_eq!(json!(subscription), app["subscriptionId"]);
        }
    }
}

/// The customer and the subscription of the first event about a row.
async fn belongs(world: &World, row: &Json) -> (Option<Uuid>, Option<Uuid>) {
    let about = format!("\"subject\":{}", row["id"]);
    let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut rows = Vec::new();
        tx.query(
            "SELECT envelope, customer_id, subscription_id FROM outbox_event ORDER BY id",
            &[],
            |row| {
                if read_text(row.text(0)?).unwrap().contains(&about) {
                    rows.push((row.optional_id(1)?, row.optional_id(2)?));
                }
                Ok(())
            },
        )?;
        Ok::<_, Error>(rows)
    });
    read.await.unwrap()[0]
}
