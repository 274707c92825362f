//! Migrations while other sessions use the database: these wait briefly at most, and a migration's wait for them is
//! limited.

use std::{
    fs,
    time::{Duration, Instant},
};

use chancery_store::{Settings, Store, Target};
use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::json;
use tokio::{net::TcpStream, task::spawn_blocking};

use super::{
    FIRST, STORE, Transaction, applied, check_release_data, migrate, missing, output_text, psql, query_value,
    restored, with_token,
};
use crate::{free_address, until};

/// The longest that a request may wait because of a migration.
const MOMENT: Duration = Duration::from_secs(2);

/// A server that starts at this address, once it listens.
async fn starting(database: &Database, listen: &str) -> Process {
    let server = Process::begin(database, &[("CHANCERY_LISTEN", listen)]);
    until("it listens", || async { TcpStream::connect(listen).await.is_ok() }).await;
    server
}

/// Asserts that a server answers probes as alive and not ready.
async fn is_alive_and_not_ready(listen: &str) {
    let anonymous = Client::anonymous(&format!("http://{listen}"));
    anonymous.get("/health/live").await.expect(200);
    for path in ["/health/ready", "/api/userstore/v2/default/administration/User"] {
        let answer = anonymous.get(path).await;
        assert_eq!(answer.header("retry-after"), Some("1"));
        let answer = answer.problem(503, "unavailable");
        assert_eq!(answer["reason"], "starting", "{answer}");
    }
}

/// A migration that waits for a lock lets others pass every half second; the server reports that it is alive.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_for_a_lock_does_not_block_others() {
    let database = restored(Engine::Postgres);
    let held = Transaction::of(&database, "BEGIN; LOCK TABLE user_account IN ACCESS SHARE MODE");
    let listen = free_address();
    let server = starting(&database, &listen).await;
    let waiting = "SELECT done FROM schema_progress WHERE version = 23";
    until("it waits for the lock", || async { query_value(&database, waiting) == "37" }).await;
    let (began, mut reads) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(4) {
        let started = Instant::now();
        assert_eq!(query_value(&database, "SELECT count(*) > 0 FROM user_account"), "t");
        assert!(started.elapsed() < MOMENT, "a read waited {:?}", started.elapsed());
        reads += 1;
        is_alive_and_not_ready(&listen).await;
    }
    assert!(reads > 2);
    assert_eq!(query_value(&database, waiting), "37");
    drop(held);
    let server = with_token(server).await;
    check_release_data(&server).await;
    server.admin.get("/health/ready").await.expect(200);
}

/// A migration that waits too long for a lock fails with a message that names the lock's holder. Finished statements are
/// kept, and the next start continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_too_long_fails_and_names_the_lock_holder() {
    let database = restored(Engine::Postgres);
    let held = Transaction::of(
        &database,
        "SET application_name = 'report'; BEGIN; LOCK TABLE user_account IN ACCESS SHARE MODE",
    );
    let target = Target::Postgres(database.url().to_owned());
    let settings = Settings { connections: 2, lock_wait: Duration::from_secs(3), ..Settings::default() };
    let began = Instant::now();
    let failure = spawn_blocking(move || Store::migrate(&target, settings)).await.unwrap().unwrap_err();
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    let message = failure.to_string();
    let expected = [
        "0023_last_entry waited 3 seconds for locks of other sessions",
        "(report). What was done until then is kept: end them, and start again",
    ];
    assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    assert_eq!(query_value(&database, "SELECT done FROM schema_progress WHERE version = 23"), "37");
    // nothing of the last attempt is left: others can lock the table
    assert_eq!(
        query_value(
            &database,
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT l.granted AND d.datname = current_database()"
        ),
        "0"
    );
    drop(held);
    let server = with_token(Process::begin(&database, &[])).await;
    check_release_data(&server).await;
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(applied(&log)[0].contains("0023_last_entry"), "{log}");
}

/// A process that waits for the migrations of another has no open transaction, because the build of an index would wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_waits_for_the_migrations_of_another_outside_of_transactions() {
    let database = restored(Engine::Postgres);
    let held = Transaction::of(&database, "BEGIN; SELECT pg_advisory_xact_lock(4848110241)");
    let listen = free_address();
    let server = starting(&database, &listen).await;
    let log = server.log.clone();
    let waits = || async { fs::read_to_string(&log).unwrap().contains("another process changes the schema") };
    until("it waits", waits).await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND xact_start < now() - interval '100 milliseconds'";
    until("the one that holds the lock is old enough", || async { query_value(&database, open) == "1" })
        .await;
    for _ in 0..10 {
        assert_eq!(query_value(&database, open), "1", "the one that holds the lock");
        is_alive_and_not_ready(&listen).await;
    }
    assert_eq!(applied(&fs::read_to_string(&log).unwrap()).len(), 0);
    drop(held);
    check_release_data(&with_token(server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_starts_one_migrates() {
    let database = restored(Engine::Postgres);
    let started = [(); 3].map(|()| chancery_testkit::spawn(with_token(Process::begin(&database, &[]))));
    let mut lines = 0;
    let mut servers = Vec::new();
    for server in started {
        let server = server.await.unwrap();
        server.admin.get(&format!("{STORE}/User")).await.expect(200);
        lines += applied(&fs::read_to_string(&server.log).unwrap()).len();
        servers.push(server);
    }
    assert_eq!(lines, missing());
    check_release_data(&servers[0]).await;
}

/// The address of a database for a role of its own, which may read and write rows and nothing else.
fn as_server(database: &Database) -> String {
    let (cluster, name) = database.url().rsplit_once('/').unwrap();
    let role = format!("server_of_{name}");
    let text = format!(
        "CREATE ROLE {role} LOGIN; ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};"
    );
    psql(database, text.as_bytes()).unwrap();
    let (_, host) = cluster.rsplit_once('@').unwrap();
    format!("postgres://{role}@{host}/{name}")
}

/// A server needs no DDL rights if the owner of the tables migrates.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_change_tables_serves_a_current_schema() {
    for (is_new, database) in
        [(true, Database::create(Engine::Postgres)), (false, restored(Engine::Postgres))]
    {
        let url = as_server(&database);
        let as_server = [("CHANCERY_DATABASE", url.as_str())];
        let mut without_rights = Process::begin(&database, &as_server);
        assert!(!without_rights.wait());
        let log = fs::read_to_string(&without_rights.log).unwrap();
        assert!(log.contains("its role may not change the schema: run chancery migrate"), "{log}");
        assert!(is_new || log.contains(FIRST), "{log}");
        let output = migrate(&database).output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        let server = with_token(Process::begin(&database, &as_server)).await;
        if is_new {
            server.admin.post(&format!("{STORE}/User"), json!({ "loginName": "new" })).await.expect(201);
        } else {
            check_release_data(&server).await;
        }
        server.admin.get("/health/ready").await.expect(200);
    }
}
