//! What is done in the background, and by whom.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chancery::{Job, Leases, prune_piece, supervise};
use chancery_record::Value;
use chancery_store::{Error, Mode, Store, when_broken};
use chancery_testkit::{Engine, no_words, on_both_engines, run_with};
use chancery_web::now;

use crate::until;

async fn number(store: &Store, text: &'static str) -> i64 {
    let read = store.run("Test", Mode::Quick, None, move |tx| tx.one(text, &[], |row| row.int(0)));
    read.await.map_err(|error: Error| error.to_string()).unwrap().unwrap_or(0)
}

on_both_engines! {
    /// Point 6: the jobs are a list, and each tells when it last succeeded.
    async fn each_job_tells_when_it_last_succeeded(world: World) {
        for job in ["tree", "certify", "mail", "revoke"] {
            let line = format!("chancery_job_last_success_time_seconds{{job=\"{job}\"}}");
            until(job, || async {
                let metrics = world.admin.get("/metrics").await.is(200);
                String::from_utf8_lossy(&metrics.bytes).contains(&line)
            })
            .await;
        }
    }

    /// Section 1: a clock that jumps ahead takes no event away too early.
    async fn a_clock_that_jumps_takes_nothing_away(world: World) {
        // the clocks agree here, so the bound is the time itself
        assert!(world.app.store.clock_offset().abs() < 2_000);
        world.user("ada").await;
        let before = number(&world.app.store, "SELECT count(*) FROM outbox_event").await;
        let run = world.app.store.run("Test", Mode::Write, None, |tx| prune_piece(tx, now()));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        assert_eq!(number(&world.app.store, "SELECT count(*) FROM outbox_event").await, before);
    }
}

/// Section 6: a job is done by one process at a time; who holds its lease stops before another may
/// begin.
#[test]
fn one_process_at_a_time_holds_a_lease() {
    run_with(Engine::Postgres, no_words, |world| {
        Box::pin(async move {
            let store = &world.app.store;
            world.sql(vec![("INSERT INTO job_lease (name, until) VALUES ('test', 0)", Vec::new())]).await;
            let (one, other) = (Arc::new(Leases::new(store, now)), Leases::new(store, now));
            assert!(!one.holds("test"));
            one.renew_once(&["test"]).await.unwrap();
            other.renew_once(&["test"]).await.unwrap();
            assert!(one.holds("test") && !other.holds("test"));
            one.renew_once(&["test"]).await.unwrap();
            assert!(one.holds("test"), "who has it keeps it");
            // another took it, as after a pause of this process
            let taken = "UPDATE job_lease SET holder = ?1, until = ?2 WHERE name = 'test'";
            let never = i64::MAX / 2;
            world.sql(vec![(taken, vec![Value::Id(uuid::Uuid::from_u128(7)), Value::Int(never)])]).await;
            one.renew_once(&["test"]).await.unwrap();
            tokio::time::timeout(Duration::from_secs(10), one.lost("test")).await.unwrap();
            assert!(!one.holds("test"));
            world.sql(vec![("UPDATE job_lease SET until = 0 WHERE name = 'test'", Vec::new())]).await;
            one.renew_once(&["test"]).await.unwrap();
            one.release().await;
            other.renew_once(&["test"]).await.unwrap();
            assert!(!one.holds("test") && other.holds("test"), "who stops lets others go on at once");
        })
    });
}

/// Section 6: each process has a row, with its version and schema.
#[test]
fn each_process_gives_a_sign_of_life() {
    run_with(Engine::Postgres, no_words, |world| {
        Box::pin(async move {
            let (world, there) = (world, "SELECT count(*) FROM process");
            until("its row is there", || async { number(&world.app.store, there).await == 1 }).await;
            let schema = number(&world.app.store, "SELECT max(schema) FROM process").await;
            assert_eq!(schema, chancery_store::schema_version());
        })
    });
}

static BROKEN: AtomicBool = AtomicBool::new(false);

/// Point 6: a job that panics is told to the process, which ends by it; others go on until then.
#[test]
fn a_job_that_panics_is_not_missed_in_silence() {
    run_with(Engine::Sqlite, no_words, |world| {
        Box::pin(async move {
            when_broken(|_| BROKEN.store(true, Ordering::SeqCst));
            let leases = Arc::new(Leases::new(&world.app.store, now));
            let rest = Duration::from_millis(1);
            let panics = Job::new("panics", rest, || async { panic!("on purpose") });
            let doing = tokio::spawn(supervise(Arc::clone(&world.app), leases, vec![panics]));
            until("it is told", || async { BROKEN.load(Ordering::SeqCst) }).await;
            doing.abort();
            world.user("ada").await;
        })
    });
}
