//! The end of a process in which an essential thread panics.

use std::{future::pending, process::Command, sync::Arc, time::Duration};

use chancery::{BROKEN, Job, Leases, Log, exit_on_panic, supervise};
use chancery_store::{Error, Mode, Settings, Store, Target};
use chancery_testkit::{Database, Engine, no_arguments, on_both_engines, run_with};
use chancery_web::now;
use serde_json::json;

use crate::until;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// Breaks the thread of the store that writes this, once it is answered.
async fn break_a_lane(store: &Store) {
    let bomb = Bomb;
    let written = store.run("Break", Mode::Write, None, move |tx| {
        let _bomb = &bomb;
        tx.advance_epoch()
    });
    assert_eq!(written.await, Ok::<(), Error>(()));
}

on_both_engines! {
    /// Read in the code (C): a store whose thread is gone reports it, at once and from then on, and the server
    /// is not ready.
    async fn a_broken_store_reports_it(world: World) {
        break_a_lane(&world.app.store).await;
        until("it is not ready", || async { world.anonymous.get("/health/ready").await.status == 503 }).await;
        assert_eq!(world.anonymous.get("/health/ready").await.json()["reason"], "unavailable");
        let answer = world.admin.post(&world.path("/User"), json!({ "loginName": "ada" })).await;
        answer.problem(503, "unavailable");
        let late = world.app.store.run("Late", Mode::Write, None, |tx| tx.advance_epoch());
        let Err(Error::Unavailable(why)) = late.await else { panic!("nobody writes any more") };
        assert!(why.contains("broke down") || why.contains("the writer is gone"), "{why}");
    }
}

/// The variables by which a test tells its child process to break, with its database.
const BREAKS: &str = "CHANCERY_TEST_BREAKS";
const AT: &str = "CHANCERY_TEST_BREAKS_AT";

/// Section 5: a panic in a lane, the writer or a job ends the process with 70, and its log says why.
#[test]
fn a_panic_ends_the_process() {
    if let Ok(what) = std::env::var(BREAKS) {
        return break_by(&what, std::env::var(AT).unwrap());
    }
    for (what, engine) in [("writer", Engine::Sqlite), ("lane", Engine::Postgres), ("job", Engine::Sqlite)] {
        let database = Database::create(engine);
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ending::a_panic_ends_the_process", "--nocapture"])
            .env(BREAKS, what)
            .env(AT, database.url())
            .env("TMPDIR", database.folder())
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(BROKEN), "{what}: {log}");
        assert!(log.contains("the process cannot go on") && log.contains("on purpose"), "{what}: {log}");
        assert!(log.contains("contract::ending"), "{what}: its backtrace was asked for: {log}");
    }
}

/// Breaks this process as the server's own would.
fn break_by(what: &str, url: String) {
    let _log = Log::start("info").unwrap();
    exit_on_panic();
    if what == "job" {
        return run_with(Engine::Sqlite, no_arguments, |world| {
            Box::pin(async move {
                let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
                let panics = Job::new("panics", Duration::ZERO, || async { panic!("on purpose") });
                supervise(Arc::clone(&world.app), leases, vec![panics]).await;
            })
        });
    }
    let target = match url.strip_prefix("sqlite:") {
        Some(path) => Target::Sqlite(path.into()),
        None => Target::Postgres(url),
    };
    let store = Store::open(&target, Settings { connections: 2, ..Settings::default() }).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        break_a_lane(&store).await;
        // the end of the test would be that of the process, too
        let _ = tokio::time::timeout(Duration::from_secs(30), pending::<()>()).await;
    });
}
