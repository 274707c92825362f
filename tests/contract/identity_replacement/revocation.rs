//! Revocation after an execution: completed, or retried with backoff.

use chancery_management::identity_replacement::{ReplacedIdentity, RevocationStep};
use chancery_record::Timestamp;
use chancery_resource::{Context, Problem};
use chancery_store::{Error, Mode, Tx, raw};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{admin, body, completed, events, new_instance, new_platform_user, read, request, step, texts};
use crate::id;

/// A time in the future, so that the server's own job does not run the revocation.
const LATER: i64 = 4_000_000_000_000;

/// A step that inserts a row, to see that a failed attempt is rolled back.
fn insert_mark(_: &Context, tx: &mut Tx<'_>, replaced: ReplacedIdentity) -> Result<(), Problem> {
    let sql = "INSERT INTO retired_id (store, resource, id) VALUES (0, 'Mark', ?1)";
    Ok(raw::queue(tx, sql, vec![replaced.identity.into()])?)
}

/// A step that fails twice.
fn fail_twice(_: &Context, tx: &mut Tx<'_>, _: ReplacedIdentity) -> Result<(), Problem> {
    let attempt = tx.one("SELECT attempts FROM identity_revocation", &[], |row| row.int(0))?;
    if attempt < Some(3) {
        Err(Error::Internal("the sessions cannot be reached".into()).into())
    } else {
        Ok(())
    }
}

static FAILING: &[RevocationStep] = &[insert_mark, fail_twice];
static MARKING: &[RevocationStep] = &[insert_mark];

async fn revoke(world: &World, now: i64, steps: &'static [RevocationStep]) -> usize {
    chancery::revoke_due(&world.app.store, &world.app.context, Timestamp(now), steps).await.unwrap()
}

/// An executed replacement whose revocation is not due for the server's own job.
async fn executed(world: &World) -> Value {
    let (user, instance) = (new_platform_user(world, "ada").await, new_instance(world, "work").await);
    let created = request(&world.admin, body(&user, &instance, "a")).await;
    step(&admin(world, "first").await, &created, "/approvals").await.expect(200);
    step(&world.admin, &created, "/execute").await.expect(200);
    completed(world, &created).await;
    let key: Uuid = id(&created).parse().unwrap();
    world
        .sql(vec![
            (
                "UPDATE identity_replacement SET status = 'Executed', revocation_completed_on = NULL, \
             revocation_attempts = 0 WHERE id = ?1",
                vec![key.into()],
            ),
            (
                "INSERT INTO identity_revocation (replacement_rid, due_on, attempts, leased_until) \
             SELECT rid, ?2, 0, 0 FROM identity_replacement WHERE id = ?1",
                vec![key.into(), LATER.into()],
            ),
        ])
        .await;
    created
}

async fn count_marks(world: &World) -> usize {
    texts(world, "SELECT resource FROM retired_id WHERE resource = 'Mark'").await.len()
}

on_both_engines! {
    async fn a_failed_revocation_is_retried_with_backoff(world: World) {
        let created = executed(&world).await;
        assert_eq!(revoke(&world, LATER - 1, FAILING).await, 0, "not due");
        assert_eq!(read(&world, &created).await["status"], "Executed");
        assert_eq!(revoke(&world, LATER, FAILING).await, 0);
        let failed = read(&world, &created).await;
        assert_eq!((&failed["status"], &failed["revocationAttempts"]), (&json!("RevocationFailed"), &json!(1)));
        assert_eq!(texts(&world, "SELECT last_error FROM identity_revocation").await.len(), 1);
        assert!(failed["revocationError"].as_str().is_some_and(|error| !error.is_empty()), "{failed}");
        assert!(failed["revocationDueOn"].is_string(), "{failed}");
        let metrics = world.admin.get("/metrics").await.is(200);
        assert!(String::from_utf8_lossy(&metrics.bytes).contains("chancery_revocations_failed 1"));
        // the first step is rolled back with the failed one, and executing again does not shorten the delay
        assert_eq!(count_marks(&world).await, 0);
        assert_eq!(step(&world.admin, &created, "/execute").await.is(200).json(), failed);
        assert_eq!(revoke(&world, LATER + 9_999, FAILING).await, 0);
        assert_eq!(read(&world, &created).await, failed, "it rests");
        assert_eq!(revoke(&world, LATER + 10_000, FAILING).await, 0);
        assert_eq!(read(&world, &created).await["revocationAttempts"], 2);
        assert_eq!(revoke(&world, LATER + 29_999, FAILING).await, 0, "for longer each time");
        assert_eq!(revoke(&world, LATER + 30_000, FAILING).await, 1);
        let done = read(&world, &created).await;
        assert_eq!((&done["status"], &done["revocationAttempts"]), (&json!("Completed"), &json!(3)));
        assert!(done["revocationCompletedOn"].is_string());
        assert_eq!((&done["revocationDueOn"], &done["revocationError"]), (&json!(null), &json!(null)));
        assert_eq!(count_marks(&world).await, 1);
        assert_eq!(revoke(&world, LATER * 2, FAILING).await, 0, "once");
        let event_types = events(&world, &created).await;
        assert_eq!(event_types, ["created", "approved", "executed", "completed", "revocationfailed", "completed"]);
    }

    /// A lease excludes other workers until it expires, and the expired holder cannot complete the work.
    async fn a_lease_is_exclusive_until_it_expires(world: World) {
        use chancery_management::identity_replacement::{complete, due, lease};
        let created = executed(&world).await;
        let (now, dead) = (Timestamp(LATER), Uuid::from_u128(7));
        let leased = world.app.store.run("Test", Mode::Write, None, move |tx| {
            let rid = due(tx, now, 1)?[0];
            Ok::<_, Error>((rid, lease(tx, rid, dead, now)?, lease(tx, rid, Uuid::from_u128(8), now)?))
        });
        let (rid, first, second) = leased.await.unwrap();
        assert!(first && !second);
        assert_eq!(revoke(&world, LATER + 119_999, MARKING).await, 0);
        let (one, other) = tokio::join!(revoke(&world, LATER + 120_000, MARKING), revoke(&world, LATER + 120_000, MARKING));
        assert_eq!(one + other, 1, "of two jobs one does it");
        assert_eq!((count_marks(&world).await, &read(&world, &created).await["revocationAttempts"]), (1, &json!(2)));
        let context = std::sync::Arc::clone(&world.app.context);
        let late = world.app.store.run("Test", Mode::Write, None, move |tx| {
            complete(&chancery::server_context(&context, chancery_resource::Scope::Everything), tx, rid, dead, MARKING)
        });
        assert!(!late.await.unwrap(), "who comes too late does nothing");
    }
}
