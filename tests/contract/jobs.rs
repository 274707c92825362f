//! Background jobs, and the processes that run them.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use chancery::{Job, Leases, append_pending, prune_batch, prune_events, purge_due, supervise};
use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Mode, Store, on_panic};
use chancery_testkit::{Database, Engine, Process, no_arguments, on_both_engines, run_with};
use chancery_web::now;
use serde_json::json;

use crate::{id, jobs_by, until};

/// A clock that is eight days ahead.
fn eight_days_ahead() -> Timestamp {
    Timestamp(now().0 + 8 * 24 * 3_600_000)
}

/// A metadata source that does not answer.
fn with_metadata(_: &Path) -> Vec<String> {
    ["--mds-url", "http://127.0.0.1:9/"].map(str::to_owned).into()
}

async fn number(store: &Store, text: &'static str) -> i64 {
    let read = store.run("Test", Mode::Quick, None, move |tx| tx.one(text, &[], |row| row.int(0)));
    read.await.map_err(|error: Error| error.to_string()).unwrap().unwrap_or(0)
}

on_both_engines! { [with_metadata]
    /// Point 6: the jobs are a list, and each reports its last success; one that fails does not.
    async fn each_job_reports_its_last_success(world: World) {
        let names: BTreeSet<_> = jobs_by(&world, now).iter().map(|job| job.name).collect();
        let all = ["certify", "compacting", "count", "delivering", "floor", "growing", "healing", "listening", "mail", "placing", "prune", "purge", "refresh", "refused", "revoke", "sign-out", "uses"];
        assert_eq!(names, BTreeSet::from(all));
        // the server of this test has the leases, and its intervals are minutes
        let soon = |job| Job { rest: Duration::from_millis(100), is_exclusive: false, ..job };
        let mut jobs: Vec<Job> = jobs_by(&world, now).into_iter().map(soon).collect();
        jobs.push(soon(Job::new("fails", Duration::ZERO, || async { Err("on purpose".into()) })));
        let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
        let doing = chancery_testkit::spawn(supervise(Arc::clone(&world.app), leases, jobs));
        let reports_success = async |job: &str| {
            let line = format!("chancery_job_last_success_time_seconds{{job=\"{job}\"}}");
            let metrics = world.admin.get("/metrics").await.is(200);
            String::from_utf8_lossy(&metrics.bytes).contains(&line)
        };
        for job in names {
            until(job, || reports_success(job)).await;
        }
        assert!(!reports_success("fails").await);
        doing.abort();
    }
}

on_both_engines! {
    /// Section 1: a clock that jumps eight days ahead deletes no event, answer or quarantined user too early.
    ///
    /// - Effect of `UserStore options.UserDeletionQuarantineDuration`: A deleted user is erased after this time.
    async fn a_clock_that_jumps_deletes_nothing(world: World) {
        world.set_option("UserDeletionQuarantineDuration", "1.00:00:00").await;
        let (user, users) = (world.user("ada").await, world.path("/User"));
        world.admin.delete(&format!("{users}/{}", id(&user))).await.expect(204);
        let headers = [("content-type", "application/json"), ("idempotency-key", "one")];
        let body = json!({ "loginName": "eve" }).to_string().into_bytes();
        world.admin.send(http::Method::POST, &users, &headers, body).await.expect(201);
        let retained = async || {
            let events = number(&world.app.store, "SELECT count(*) FROM outbox_event").await;
            let answers = number(&world.app.store, "SELECT count(*) FROM idempotent_answer").await;
            (events, answers, number(&world.app.store, "SELECT count(*) FROM user_account").await)
        };
        append_pending(&world.app, now()).await.unwrap();
        let before = retained().await;
        assert!(before.0 > 0 && before.1 == 1 && before.2 == 2, "{before:?}");
        let jobs = jobs_by(&world, eight_days_ahead);
        for job in jobs.iter().filter(|job| ["prune", "purge"].contains(&job.name)) {
            (job.work)().await.unwrap();
        }
        assert_eq!(retained().await, before);
        let doubted = async || {
            let metrics = world.admin.get("/metrics").await.is(200);
            String::from_utf8_lossy(&metrics.bytes).contains("\nchancery_event_pruning_stopped 1\n")
        };
        assert!(doubted().await);
        // by that clock alone all of it would be gone
        let run = world.app.store.run("Test", Mode::Write, None, |tx| {
            prune_batch(tx, eight_days_ahead())?;
            prune_events(tx, eight_days_ahead(), 1000)
        });
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        purge_due(&world.app.store, &world.app.context, eight_days_ahead()).await.unwrap();
        let after = retained().await;
        assert!(after.0 < before.0 && after.1 == 0 && after.2 == 1, "{after:?}");
        for job in jobs_by(&world, now).iter().filter(|job| job.name == "prune") {
            (job.work)().await.unwrap();
        }
        assert!(!doubted().await);
    }

    /// A refused removal by a directory is listed for a month.
    async fn refused_removals_are_noted_for_thirty_days(world: World) {
        let note = "INSERT INTO directory_refusal (idp_instance_id, subject_id, told_on) \
            SELECT id, ?1, CAST(?2 AS BIGINT) FROM idp_instance WHERE name = 'default'";
        let days_ago = |days: i64| Value::Int(now().0 - days * 24 * 3_600_000);
        let notes = [(1, 29), (2, 31)];
        let notes = notes.map(|(subject, days)| (note, vec![Value::Id(uuid::Uuid::from_u128(subject)), days_ago(days)]));
        world.sql(notes.into()).await;
        let run = world.app.store.run("Test", Mode::Write, None, |tx| prune_batch(tx, now()));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        assert_eq!(number(&world.app.store, "SELECT count(*) FROM directory_refusal").await, 1);
    }
}

/// Section 6: a job is run by one process at a time, whatever its clock shows; the holder of its lease stops
/// before another may begin.
#[test]
fn one_process_at_a_time_holds_a_lease() {
    run_with(Engine::Postgres, no_arguments, |world| {
        Box::pin(async move {
            let store = &world.app.store;
            // the lease of a new job was never held: it has no row
            let (one, other) = (Arc::new(Leases::new(store, now, "")), Leases::new(store, now, ""));
            let jumped = Leases::new(store, eight_days_ahead, "");
            assert!(!one.holds("test"));
            one.renew_once(&["test"]).await.unwrap();
            other.renew_once(&["test"]).await.unwrap();
            jumped.renew_once(&["test"]).await.unwrap();
            assert!(one.holds("test") && !other.holds("test") && !jumped.holds("test"));
            one.renew_once(&["test"]).await.unwrap();
            assert!(one.holds("test"), "who has it keeps it");
            // another took it, as after a pause of this process
            let taken = "UPDATE job_lease SET holder = ?1, until = ?2 WHERE name = 'test'";
            let never = i64::MAX / 2;
            world.sql(vec![(taken, vec![Value::Id(uuid::Uuid::from_u128(7)), Value::Int(never)])]).await;
            one.renew_once(&["test"]).await.unwrap();
            tokio::time::timeout(chancery_testkit::PATIENCE, one.lost("test")).await.unwrap();
            assert!(!one.holds("test"));
            world.sql(vec![("UPDATE job_lease SET until = 0 WHERE name = 'test'", Vec::new())]).await;
            one.renew_once(&["test"]).await.unwrap();
            one.release().await;
            other.renew_once(&["test"]).await.unwrap();
            assert!(!one.holds("test") && other.holds("test"), "who stops lets others go on at once");
        })
    });
}

/// Every exclusive job has a lease, so that a process runs it.
#[test]
fn a_process_holds_the_lease_of_every_exclusive_job() {
    run_with(Engine::Postgres, with_metadata, |world| {
        Box::pin(async move {
            let jobs = jobs_by(&world, now);
            for job in jobs.iter().filter(|job| job.is_exclusive) {
                let held = || async {
                    let read = world.app.store.run("Test", Mode::Quick, None, |tx| {
                        let text = "SELECT count(*) FROM job_lease WHERE name = ?1 AND holder IS NOT NULL";
                        tx.one(text, &[job.name.into()], |row| row.int(0))
                    });
                    read.await.map_err(|error: Error| error.to_string()).unwrap() == Some(1)
                };
                until(job.name, held).await;
            }
        })
    });
}

/// Section 6: each process has a row, with its version and schema.
#[test]
fn each_process_sends_heartbeats() {
    run_with(Engine::Postgres, no_arguments, |world| {
        Box::pin(async move {
            let (world, there) = (world, "SELECT count(*) FROM process");
            until("its row is there", || async { number(&world.app.store, there).await == 1 }).await;
            let schema = number(&world.app.store, "SELECT max(schema) FROM process").await;
            assert_eq!(schema, chancery_store::schema_version());
        })
    });
}

/// Section 6: a warning when public URLs differ, once for each change; a program that does not report its
/// own yet causes none.
#[test]
fn another_public_url_is_logged_as_a_warning() {
    run_with(Engine::Postgres, no_arguments, |world| {
        Box::pin(async move {
            let there = "SELECT count(*) FROM process";
            until("its row is there", || async { number(&world.app.store, there).await == 1 }).await;
            let older = "INSERT INTO process (id, version, schema, seen_on) VALUES (?1, '0', 27, ?2)";
            let row = vec![Value::Id(uuid::Uuid::from_u128(7)), Value::Int(now().0)];
            world.sql(vec![(older, row)]).await;
            let of = |url| Leases::new(&world.app.store, now, url);
            let warned = async |leases: &Leases| leases.send_heartbeat().await.unwrap();
            let set = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect::<BTreeSet<_>>();
            let (ours, one) = (world.base.as_str(), of("https://one"));
            let same = of(ours);
            assert_eq!(warned(&same).await, set(&[]), "the same address");
            assert_eq!(warned(&one).await, set(&[ours]));
            assert_eq!(warned(&one).await, set(&[]), "it was told");
            assert_eq!(warned(&same).await, set(&["https://one"]));
            let two = of("https://two");
            assert_eq!(warned(&two).await, set(&[ours, "https://one"]));
            assert_eq!(warned(&one).await, set(&[ours, "https://two"]), "another one came");
            one.release().await;
            two.release().await;
            assert_eq!(warned(&same).await, set(&[]), "all is well again");
            assert_eq!(warned(&one).await, set(&[ours]));
        })
    });
}

/// Section 6: two processes with different public URLs both log it, once.
#[tokio::test(flavor = "multi_thread")]
async fn different_public_addresses_are_logged() {
    let database = Database::create(Engine::Postgres);
    // none is configured: each derives it from its own port
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    let lines = |server: &Process| {
        let log = std::fs::read_to_string(&server.log).unwrap();
        log.lines()
            .filter(|line| line.contains("the same CHANCERY_PUBLIC_URL"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    until("both say so", || async { !lines(&left).is_empty() && !lines(&right).is_empty() }).await;
    for (server, other) in [(&left, &right), (&right, &left)] {
        let lines = lines(server);
        assert!(lines.len() == 1 && lines[0].contains(&other.base), "{lines:?}");
    }
}

on_both_engines! {
    /// A job is woken by a commit of its process, however long its idle interval is.
    async fn a_commit_wakes_jobs_that_wait_for_one(world: World) {
        let runs = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&runs);
        let work = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        };
        let job = Job::new("counts", Duration::from_millis(1), work).idle(Duration::from_hours(1));
        let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
        let doing = chancery_testkit::spawn(supervise(Arc::clone(&world.app), leases, vec![job]));
        for name in ["ada", "bob", "cleo"] {
            let before = runs.load(Ordering::SeqCst);
            world.user(name).await;
            until("the job runs", || async { runs.load(Ordering::SeqCst) > before }).await;
        }
        doing.abort();
    }

    /// A job that failed runs again without a commit, however long its idle interval is.
    async fn a_job_that_failed_is_tried_again_without_a_commit(world: World) {
        let commits_at_runs = Arc::new(Mutex::new(Vec::new()));
        let (app, recorded) = (Arc::clone(&world.app), Arc::clone(&commits_at_runs));
        let work = move || {
            let (app, recorded) = (Arc::clone(&app), Arc::clone(&recorded));
            async move {
                let commits = app.store.committed_since(None).await;
                recorded.lock().unwrap().push(commits);
                Err("on purpose".into())
            }
        };
        let job = Job::new("fails", Duration::from_millis(1), work).idle(Duration::from_hours(1));
        let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
        let doing = chancery_testkit::spawn(supervise(Arc::clone(&world.app), leases, vec![job]));
        let is_again = || commits_at_runs.lock().unwrap().windows(2).any(|pair| pair[0] == pair[1]);
        until("it runs twice with no commit between", || async { is_again() }).await;
        doing.abort();
    }
}

static BROKEN: AtomicBool = AtomicBool::new(false);

/// Point 6: a job that panics ends the process; other jobs continue until then.
#[test]
fn a_job_that_panics_ends_the_process() {
    run_with(Engine::Sqlite, no_arguments, |world| {
        Box::pin(async move {
            on_panic(|_| BROKEN.store(true, Ordering::SeqCst));
            let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
            let rest = Duration::from_millis(1);
            let panics = Job::new("panics", rest, || async { panic!("on purpose") });
            let doing = chancery_testkit::spawn(supervise(Arc::clone(&world.app), leases, vec![panics]));
            until("it is told", || async { BROKEN.load(Ordering::SeqCst) }).await;
            doing.abort();
            world.user("ada").await;
        })
    });
}
