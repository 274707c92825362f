//! Data of programs before 0.2.0 that ran concurrently with a newer one, or after it, is repaired. They append to the
//! audit trees without counting the leaves in `event_trail`, and give events no positions.

use std::collections::BTreeSet;

use chancery::{append_pending, heal, raise_floor};
use chancery_store::{Class, FLOOR};
use chancery_testkit::{Database, Engine, Process, World, on_both_engines};
use chancery_web::now;
use serde_json::{Value as Json, json};

use super::{NOW, append_leaves, checkpoint, numbers, sound, sql};
use crate::{backup::until_checkpoint, each, id, program::warnings, server::execute, until};

/// Deletes the positions of a trail's last events: the state after an older program made those changes and appended their
/// entries to the tree.
async fn delete_positions(world: &World, events: i64) {
    let trail = numbers(world, "SELECT max(trail) FROM event_trail").await[0];
    let last = "DELETE FROM event_place WHERE trail = ?1 AND position > (SELECT placed FROM event_trail WHERE trail = ?1) - ?2";
    let count = "UPDATE event_trail SET placed = placed - ?2, leaves = leaves - ?2 WHERE trail = ?1";
    let parameters = vec![trail.into(), events.into()];
    sql(world, vec![(last.to_owned(), parameters.clone()), (count.to_owned(), parameters)]).await;
}

/// The subjects of all events in the feed of the default store.
async fn subjects(world: &World) -> BTreeSet<String> {
    let feed = world.admin.get(&format!("{}?count=1000", world.path("/Event"))).await.is(200).json();
    let events = feed["items"].as_array().unwrap().iter();
    events.map(|event| event["subject"].as_str().unwrap().to_owned()).collect()
}

async fn create_people(world: &World, names: &[&str]) -> BTreeSet<String> {
    let mut created = BTreeSet::new();
    for name in names {
        created.insert(id(&world.user(name).await).to_owned());
    }
    created
}

async fn ready(world: &World) -> Json {
    world.anonymous.get("/health/ready").await.is(200).json()
}

on_both_engines! {
    /// New program, old program, new program again: every event gets its position, and the tree continues.
    async fn a_trail_with_entries_of_an_older_program_continues(world: World) {
        let mut people = create_people(&world, &["ann", "ben", "eve"]).await;
        append_leaves(&world).await;
        delete_positions(&world, 2).await;
        people.append(&mut create_people(&world, &["ida", "kim"]).await);
        append_leaves(&world).await;
        assert_eq!(subjects(&world).await, people);
        assert_eq!((sound(&world, "default").await.1.entries, checkpoint(&world).await.size), (5, 5));
        assert_eq!(heal(&world.app.store.with(Class::Background), &|_, _| ()).await, Ok(0), "all is repaired");
    }

    /// Until the leaves that an older program appended are counted there is nothing to append; missing leaves are an
    /// error.
    async fn a_tree_with_leaves_of_an_older_program_does_not_fail(world: World) {
        create_people(&world, &["ann", "ben", "eve"]).await;
        append_leaves(&world).await;
        delete_positions(&world, 2).await;
        assert_eq!(append_pending(&world.app, NOW).await, Ok(0));
        assert_eq!(checkpoint(&world).await.size, 3);
        let metrics = world.admin.get("/metrics").await.is(200);
        assert!(String::from_utf8_lossy(&metrics.bytes).contains("\nchancery_audit_unlogged 0\n"));
        let cut = "DELETE FROM audit_leaf WHERE store <> 0 AND position > 0";
        sql(&world, vec![(cut.to_owned(), vec![])]).await;
        let refusal = append_pending(&world.app, NOW).await.unwrap_err().to_string();
        assert!(refusal.contains("its leaf 3 is missing"), "{refusal}");
    }

    /// A trail without new entries is repaired by the job.
    async fn an_idle_trail_of_an_older_program_is_repaired(world: World) {
        let people = create_people(&world, &["ann", "ben", "eve"]).await;
        append_leaves(&world).await;
        delete_positions(&world, 3).await;
        assert!(subjects(&world).await.is_empty());
        let progress = |rows, done| world.app.note_backfill("healing", rows, done);
        assert_eq!(heal(&world.app.store.with(Class::Background), &progress).await, Ok(3));
        let events = numbers(&world, "SELECT count(*) FROM outbox_event").await[0];
        let metrics = world.admin.get("/metrics").await.is(200);
        let metrics = String::from_utf8_lossy(&metrics.bytes);
        for name in ["backfill_rows", "backfill_rows_done"] {
            let line = format!("chancery_{name}{{job=\"healing\"}} {events}");
            assert!(metrics.lines().any(|present| present == line), "{line} in {metrics}");
        }
        append_leaves(&world).await;
        assert_eq!(subjects(&world).await, people);
        assert_eq!((sound(&world, "default").await.1.entries, checkpoint(&world).await.size), (3, 3));
    }

    /// A stuck trail does not block others; readiness and a metric report it until it continues.
    async fn a_stuck_trail_is_reported(world: World) {
        world.user("ann").await;
        append_leaves(&world).await;
        // its next position is occupied
        let trail = numbers(&world, "SELECT max(trail) FROM event_trail").await[0];
        let occupy = "INSERT INTO event_place (trail, position, event) SELECT trail, placed + 1, -1 FROM event_trail WHERE trail = ?1";
        sql(&world, vec![(occupy.to_owned(), vec![trail.into()])]).await;
        world.user("ben").await;
        let warned = async || !ready(&world).await["warnings"].is_null();
        until("readiness warns", warned).await;
        assert!(ready(&world).await["warnings"][0].as_str().unwrap().contains("chancery_event_trails_stuck"));
        let metrics = world.admin.get("/metrics").await.is(200);
        assert!(String::from_utf8_lossy(&metrics.bytes).contains("\nchancery_event_trails_stuck 1\n"));
        // the trail of the configuration continues
        world.other_subscription("other").await;
        let unplaced = "SELECT count(*) FROM event_pending WHERE trail = 0";
        until("other trails go on", async || numbers(&world, unplaced).await == [0]).await;

        sql(&world, vec![("DELETE FROM event_place WHERE event = -1".to_owned(), vec![])]).await;
        until("it goes on", async || ready(&world).await["warnings"].is_null()).await;
        assert_eq!(subjects(&world).await.len(), 2);
    }

    /// The floor is raised once no older program is connected; until then all programs run.
    async fn the_floor_waits_for_older_programs(world: World) {
        let store = world.app.store.with(Class::Background);
        let (floor, now) = ("SELECT floor FROM schema_floor", now().0);
        let process = "INSERT INTO process (id, version, schema, seen_on) VALUES (?1, '0.1.9', ?2, ?3)";
        let older = vec![uuid::Uuid::from_u128(7).into(), (FLOOR - 1).into(), now.into()];
        sql(&world, vec![("UPDATE schema_floor SET floor = 0".to_owned(), vec![]), (process.to_owned(), older)]).await;
        assert_eq!(raise_floor(&store, now).await, Ok(vec!["0.1.9".to_owned()]));
        assert_eq!(numbers(&world, floor).await, [0]);
        // it is no longer seen
        assert_eq!(raise_floor(&store, now + 120_000).await, Ok(vec![]));
        assert_eq!(numbers(&world, floor).await, [FLOOR]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_repairs_a_trail_of_an_older_program_sqlite() {
    repaired_at_start(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_repairs_a_trail_of_an_older_program_postgres() {
    repaired_at_start(Engine::Postgres).await;
}

/// A trail in which an older program left events without positions is repaired by a start.
async fn repaired_at_start(engine: Engine) {
    const USERS: &str = "/api/userstore/v2/default/administration/User";
    const EVENTS: &str = "/api/userstore/v2/default/administration/Event?count=1000";
    let database = Database::create(engine);
    let mut people = BTreeSet::new();
    for names in [["ann", "ben", "eve"], ["ida", "kim", "lea"]] {
        let mut server = Process::start(&database, &[]).await;
        for name in names {
            let user = server.admin.post(USERS, json!({ "loginName": name })).await.is(201).json();
            people.insert(id(&user).to_owned());
        }
        until("all events have positions", async || {
            let feed = server.admin.get(EVENTS).await.is(200).json();
            each(&feed["items"], "subject").into_iter().map(str::to_owned).collect::<BTreeSet<_>>() == people
        })
        .await;
        assert_eq!(warnings(&server).await, "null");
        until_checkpoint(&server).await;
        assert!(server.stop());
        execute(
            &database,
            &[
                "DELETE FROM event_place WHERE trail = (SELECT max(trail) FROM event_trail) \
                    AND position > (SELECT max(placed) - 2 FROM event_trail t WHERE t.trail = event_place.trail)",
                "UPDATE event_trail SET placed = placed - 2, leaves = leaves - 2 \
                    WHERE trail = (SELECT max(trail) FROM event_trail)",
            ],
        )
        .await;
    }
}
