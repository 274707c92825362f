//! A migration that is killed continues where it stopped.

use std::{
    fs,
    process::{Child, Stdio},
    time::Duration,
};

use chancery_testkit::{Database, Engine, Process};

use super::{
    Transaction, applied, check_release_data, migrate, missing, output_text, psql, query_value, restored,
    with_token,
};
use crate::until;

/// Waits until a query has this answer.
async fn until_answered(database: &Database, query: &str, answer: &str) {
    until(&format!("{query} is {answer}"), || async { query_value(database, query) == answer }).await;
}

fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The finished statements of a migration are not executed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_migration_continues_at_its_statement() {
    let database = restored(Engine::Postgres);
    let reader = Transaction::of(&database, "BEGIN; LOCK TABLE user_account IN ACCESS SHARE MODE");
    let mut first = Process::begin(&database, &[]);
    // the 38th of 42 tables is locked
    until_answered(&database, "SELECT done FROM schema_progress WHERE version = 23", "37").await;
    first.kill();
    let columns = "SELECT count(*) FROM information_schema.columns WHERE column_name = 'last_entry'";
    assert_eq!(query_value(&database, columns), "37");
    drop(reader);
    let server = with_token(Process::begin(&database, &[])).await;
    check_release_data(&server).await;
    let logs = [&first.log, &server.log].map(|log| fs::read_to_string(log).unwrap());
    assert!(!applied(&logs[0]).is_empty() && applied(&logs[1])[0].contains("0023_last_entry"), "{}", logs[1]);
    assert_eq!(applied(&logs[0]).len() + applied(&logs[1]).len(), missing());
    assert_eq!(query_value(&database, "SELECT to_regclass('schema_progress') IS NULL"), "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_database_survives_kills_during_migrations() {
    let database = restored(Engine::Sqlite);
    for milliseconds in [0, 20, 40, 60, 80, 100, 120] {
        let process = migrate(&database).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        kill(process);
    }
    let server = Process::start(&database, &[]).await;
    check_release_data(&server).await;
}

/// Many rows are changed in chunks, and committed chunks are not changed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_change_of_many_rows_continues_at_its_chunk() {
    let database = restored(Engine::Postgres);
    // in the third chunk one row is changed so slowly that the program can be killed meanwhile
    let events = "INSERT INTO outbox_event (id, store, envelope) \
         SELECT n, 0, '{\"type\":\"platform.signin.succeeded\"}' FROM generate_series(1, 12000) n;
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql \
         AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END';
         CREATE TRIGGER slow BEFORE UPDATE ON outbox_event FOR EACH ROW WHEN (OLD.id = 11000) EXECUTE FUNCTION wait()";
    psql(&database, events.as_bytes()).unwrap();
    // the older release handles the rest itself
    let without = "SELECT count(*) FROM outbox_event WHERE id NOT IN (SELECT entry FROM audit_pending)";
    let all = query_value(&database, without);
    let process = migrate(&database).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until_answered(&database, "SELECT filled FROM schema_progress WHERE version = 43", "10000").await;
    kill(process);
    let waiting =
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    query_value(&database, &format!("SELECT pg_terminate_backend(({waiting}))"));
    until_answered(&database, waiting, "").await;
    let moved = "SELECT count(*) FROM outbox_event WHERE store = -1";
    assert_eq!(query_value(&database, moved), "10000");
    psql(&database, b"DROP TRIGGER slow ON outbox_event").unwrap();
    let output = migrate(&database).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!(query_value(&database, moved), "12000");
    let waiting = "SELECT count(*) FROM event_pending";
    let both =
        "SELECT count(*) FROM event_pending p JOIN outbox_event o ON o.id = p.event AND o.store = p.trail";
    assert_eq!((query_value(&database, waiting), query_value(&database, both)), (all.clone(), all));
}

/// A snapshot older than an index that is being built: the index waits for its end.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
/// The backend that builds an index and waits for others.
const BUILDING: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
    AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'";
const UNFINISHED: &str = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";

/// Waits until an index is being built, and kills the program that builds it.
async fn kill_while_building(database: &Database) -> (Transaction, String) {
    let snapshot = Transaction::of(database, SNAPSHOT);
    let process = migrate(database).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("an index is built", || async { !query_value(database, BUILDING).is_empty() }).await;
    kill(process);
    let building = query_value(database, BUILDING);
    assert_eq!(query_value(database, UNFINISHED), "1");
    (snapshot, building)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_index_is_built_again() {
    let database = restored(Engine::Postgres);
    let (snapshot, building) = kill_while_building(&database).await;
    query_value(&database, &format!("SELECT pg_terminate_backend({building})"));
    until_answered(&database, BUILDING, "").await;
    assert_eq!(query_value(&database, UNFINISHED), "1");
    drop(snapshot);
    let output = migrate(&database).output().unwrap();
    let text = output_text(&output);
    assert!(output.status.success() && text.contains("an index was not finished"), "{text}");
    assert_eq!(query_value(&database, UNFINISHED), "0");
    let server = with_token(Process::begin(&database, &[])).await;
    check_release_data(&server).await;
}

/// PostgreSQL continues to build an index after its client is gone: the next program waits, and uses the index.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_waits_for_an_index_that_is_still_being_built() {
    let database = restored(Engine::Postgres);
    let (snapshot, _) = kill_while_building(&database).await;
    let next = Process::begin(&database, &[]);
    let log = next.log.clone();
    let waits = || async { fs::read_to_string(&log).unwrap().contains("another process changes the schema") };
    until("the next one waits", waits).await;
    drop(snapshot);
    let server = with_token(next).await;
    check_release_data(&server).await;
    assert_eq!(query_value(&database, UNFINISHED), "0");
    assert!(!fs::read_to_string(&log).unwrap().contains("an index was not finished"));
}
