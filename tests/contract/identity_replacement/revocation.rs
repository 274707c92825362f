//! What is left to do after an execution: done, put off when it fails, done again.

use chancery_management::identity_replacement::{ReplacedIdentity, Step};
use chancery_record::Timestamp;
use chancery_resource::{Context, Problem};
use chancery_store::{Error, Mode, Tx, raw};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{admin, body, completed, events, found, new_instance, new_person, read, request, step};
use crate::id;

/// A time that the server's own job does not see.
const LATER: i64 = 4_000_000_000_000;

/// Leaves its mark, so that what a failed attempt did is seen to be undone.
fn marks(_: &Context, tx: &mut Tx<'_>, replaced: ReplacedIdentity) -> Result<(), Problem> {
    let text = "INSERT INTO retired_id (store, resource, id) VALUES (0, 'Mark', ?1)";
    Ok(raw::queue(tx, text, vec![replaced.identity.into()])?)
}

/// Fails twice.
fn fails(_: &Context, tx: &mut Tx<'_>, _: ReplacedIdentity) -> Result<(), Problem> {
    let attempt = tx.one("SELECT attempts FROM identity_revocation", &[], |row| row.int(0))?;
    if attempt < Some(3) {
        Err(Error::Internal("the sessions cannot be reached".into()).into())
    } else {
        Ok(())
    }
}

static FAILING: &[Step] = &[marks, fails];
static MARKING: &[Step] = &[marks];

async fn revoke(world: &World, now: i64, steps: &'static [Step]) -> usize {
    chancery::revoke_due(&world.app.store, &world.app.context, Timestamp(now), steps).await.unwrap()
}

/// A replacement that was executed, and whose revocation the server's own job leaves alone.
async fn executed(world: &World) -> Value {
    let (user, instance) = (new_person(world, "ada").await, new_instance(world, "work").await);
    let made = request(&world.admin, body(&user, &instance, "a")).await;
    step(&admin(world, "first").await, &made, "/approvals").await.expect(200);
    step(&world.admin, &made, "/execute").await.expect(200);
    completed(world, &made).await;
    let key: Uuid = id(&made).parse().unwrap();
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
    made
}

async fn marks_there(world: &World) -> usize {
    found(world, "SELECT resource FROM retired_id WHERE resource = 'Mark'").await.len()
}

on_both_engines! {
    async fn a_failure_is_put_off_and_tried_again(world: World) {
        let made = executed(&world).await;
        assert_eq!(revoke(&world, LATER - 1, FAILING).await, 0, "not due");
        assert_eq!(read(&world, &made).await["status"], "Executed");
        assert_eq!(revoke(&world, LATER, FAILING).await, 0);
        let failed = read(&world, &made).await;
        assert_eq!((&failed["status"], &failed["revocationAttempts"]), (&json!("RevocationFailed"), &json!(1)));
        assert_eq!(found(&world, "SELECT last_error FROM identity_revocation").await.len(), 1);
        assert!(failed["revocationError"].as_str().is_some_and(|why| !why.is_empty()), "{failed}");
        assert!(failed["revocationDueOn"].is_string(), "{failed}");
        let metrics = world.admin.get("/metrics").await.is(200);
        assert!(String::from_utf8_lossy(&metrics.bytes).contains("chancery_revocations_failed 1"));
        // what stands first is undone with what failed, and executing again does not hurry it
        assert_eq!(marks_there(&world).await, 0);
        assert_eq!(step(&world.admin, &made, "/execute").await.is(200).json(), failed);
        assert_eq!(revoke(&world, LATER + 9_999, FAILING).await, 0);
        assert_eq!(read(&world, &made).await, failed, "it rests");
        assert_eq!(revoke(&world, LATER + 10_000, FAILING).await, 0);
        assert_eq!(read(&world, &made).await["revocationAttempts"], 2);
        assert_eq!(revoke(&world, LATER + 29_999, FAILING).await, 0, "for longer each time");
        assert_eq!(revoke(&world, LATER + 30_000, FAILING).await, 1);
        let done = read(&world, &made).await;
        assert_eq!((&done["status"], &done["revocationAttempts"]), (&json!("Completed"), &json!(3)));
        assert!(done["revocationCompletedOn"].is_string());
        assert_eq!((&done["revocationDueOn"], &done["revocationError"]), (&json!(null), &json!(null)));
        assert_eq!(marks_there(&world).await, 1);
        assert_eq!(revoke(&world, LATER * 2, FAILING).await, 0, "once");
        let told = events(&world, &made).await;
        assert_eq!(told, ["created", "approved", "executed", "completed", "revocationfailed", "completed"]);
    }

    /// What somebody works on is left to them until their time is over, and theirs counts no more then.
    async fn a_lease_keeps_others_off_and_ends(world: World) {
        use chancery_management::identity_replacement::{complete, due, lease};
        let made = executed(&world).await;
        let (now, dead) = (Timestamp(LATER), Uuid::from_u128(7));
        let taken = world.app.store.run("Test", Mode::Write, None, move |tx| {
            let rid = due(tx, now, 1)?[0];
            Ok::<_, Error>((rid, lease(tx, rid, dead, now)?, lease(tx, rid, Uuid::from_u128(8), now)?))
        });
        let (rid, first, second) = taken.await.unwrap();
        assert!(first && !second);
        assert_eq!(revoke(&world, LATER + 119_999, MARKING).await, 0);
        let (one, other) = tokio::join!(revoke(&world, LATER + 120_000, MARKING), revoke(&world, LATER + 120_000, MARKING));
        assert_eq!(one + other, 1, "of two jobs one does it");
        assert_eq!((marks_there(&world).await, &read(&world, &made).await["revocationAttempts"]), (1, &json!(2)));
        let context = std::sync::Arc::clone(&world.app.context);
        let late = world.app.store.run("Test", Mode::Write, None, move |tx| {
            complete(&chancery::own_context(&context, chancery_resource::Scope::Everything), tx, rid, dead, MARKING)
        });
        assert!(!late.await.unwrap(), "who comes too late does nothing");
    }
}
