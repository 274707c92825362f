//! Answered writes are durable: after a kill, and on every process.

use std::{collections::HashSet, sync::Arc};

use chancery_testkit::{Client, Database, Engine, Process, SECRET};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{each, until};

const USERS: &str = "/api/userstore/v2/default/administration/User";

/// Creates users until the server is gone; returns the answered login names.
async fn create_until_gone(
    client: Client,
    worker: usize,
    sender: tokio::sync::mpsc::Sender<()>,
) -> Vec<String> {
    let mut answered = Vec::new();
    for number in 0..100_000 {
        let name = format!("w{worker}n{number}");
        let body = json!({ "loginName": name }).to_string().into_bytes();
        let json_type = [("content-type", "application/json")];
        match client.try_send(http::Method::POST, USERS, &json_type, body).await {
            Some(answer) if answer.status == 201 => answered.push(name),
            Some(answer) => assert_eq!(answer.status, 503, "{:?}", answer.bytes),
            None => break,
        }
        let _ = sender.try_send(());
    }
    answered
}

async fn login_names(client: &Client) -> HashSet<String> {
    let users = client.get(USERS).await.is(200).json();
    each(&users, "loginName").into_iter().map(str::to_owned).collect()
}

/// Loads servers, kills all of them in the middle, and checks after a restart.
async fn kill_under_load(engine: Engine, servers: usize) {
    let database = Arc::new(Database::create(engine));
    for round in 0..2 {
        let mut running = Vec::new();
        for _ in 0..servers {
            running.push(Process::start(&database, &[]).await);
        }
        let (sender, mut receiver) = tokio::sync::mpsc::channel(10_000);
        let mut workers = JoinSet::new();
        for worker in 0..8 {
            let client = running[worker % servers].admin.clone();
            workers.spawn(create_until_gone(client, round * 8 + worker, sender.clone()));
        }
        for _ in 0..200 {
            receiver.recv().await.unwrap();
        }
        for server in &mut running {
            server.kill();
        }
        let answered: Vec<String> = workers.join_all().await.concat();
        assert!(answered.len() >= 100);
        let again = Process::start(&database, &[]).await;
        let stored = login_names(&again.admin).await;
        let lost: Vec<_> = answered.iter().filter(|name| !stored.contains(*name)).collect();
        assert!(lost.is_empty(), "lost {lost:?}");
        // a change and its audit entry are there together or not at all
        let trail =
            again.admin.get("/api/userstore/v2/default/administration/CustomAuditTrail").await.is(200).json();
        assert_eq!(trail.as_array().unwrap().len(), stored.len());
    }
}

#[tokio::test]
async fn no_answered_write_is_lost_embedded() {
    kill_under_load(Engine::Sqlite, 1).await;
}

#[tokio::test]
async fn no_answered_write_is_lost_with_two_processes_on_postgres() {
    kill_under_load(Engine::Postgres, 2).await;
}

/// The write-ahead log does not grow until the server ends: it is checkpointed into the file meanwhile.
#[tokio::test]
async fn the_write_ahead_log_is_checkpointed() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let file = database.folder().join("chancery.sqlite");
    let size = || std::fs::metadata(&file).unwrap().len();
    let before = size();
    let users: Vec<_> = (0..1_000).map(|number| json!({ "loginName": format!("u{number}") })).collect();
    server.admin.post(&format!("{USERS}/batch"), json!(users)).await.expect(200);
    until("the file has grown", || async { size() > before }).await;
    let log = || std::fs::metadata(database.folder().join("chancery.sqlite-wal")).unwrap().len();
    until("the log of an idle server is empty", || async { log() == 0 }).await;
    server.admin.post(USERS, json!({ "loginName": "ada" })).await.expect(201);
    assert!(log() > 0);
}

/// An erased person is in no file of the database any more, while the server runs.
#[tokio::test]
async fn an_erased_person_is_in_no_file() {
    const NAME: &str = "zqerasedperson";
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let body = json!({ "loginName": "ada", "firstName": NAME });
    let user = server.admin.post(USERS, body).await.is(201).json();
    let is_there = || {
        let files = ["", "-wal", "-shm"].map(|end| database.folder().join(format!("chancery.sqlite{end}")));
        let has = |bytes: Vec<u8>| bytes.windows(NAME.len()).any(|window| window == NAME.as_bytes());
        files.into_iter().any(|file| std::fs::read(file).is_ok_and(has))
    };
    assert!(is_there(), "the name is looked for where it is");
    let erase = format!("{USERS}/{}/erase", user["id"].as_str().unwrap());
    server.admin.post(&erase, json!({})).await.expect(204);
    until("the name is gone", || async { !is_there() }).await;
    server.admin.post(USERS, json!({ "loginName": "bob" })).await.expect(201);
}

/// Two processes on one PostgreSQL see each other's writes, and rights, at once.
#[tokio::test]
async fn two_processes_are_one_service() {
    let database = Database::create(Engine::Postgres);
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    for number in 0..30 {
        let (writer, reader) = if number % 2 == 0 { (&left, &right) } else { (&right, &left) };
        let user =
            writer.admin.post(USERS, json!({ "loginName": format!("u{number}") })).await.is(201).json();
        let one = format!("{USERS}/{}", user["id"].as_str().unwrap());
        assert_eq!(reader.admin.get(&one).await.is(200).json(), user);
        let patch = json!({ "firstName": "A", "concurrencyToken": user["concurrencyToken"] });
        reader.admin.patch(&one, patch.clone()).await.expect(202);
        writer.admin.patch(&one, patch).await.expect(409);
    }
    // a cursor and a token of the one are good at the other
    let page = left.admin.get(&format!("{USERS}?count=10")).await.is(200);
    let next = page.next().unwrap();
    let path = next.strip_prefix(left.base.as_str()).unwrap();
    assert_eq!(right.admin.get(path).await.is(200).json().as_array().unwrap().len(), 10);
}

/// A stop under load finishes running requests: every request gets an answer or never began.
#[tokio::test]
async fn a_stop_finishes_what_runs() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(10_000);
    let mut workers = JoinSet::new();
    for worker in 0..4 {
        workers.spawn(create_until_gone(server.admin.clone(), worker, sender.clone()));
    }
    for _ in 0..50 {
        receiver.recv().await.unwrap();
    }
    assert!(chancery_testkit::spawn_blocking(move || server.stop()).await.unwrap());
    let answered =
        tokio::time::timeout(chancery_testkit::PATIENCE, workers.join_all()).await.unwrap().concat();
    let again = Process::start(&database, &[]).await;
    let stored = login_names(&again.admin).await;
    assert!(answered.iter().all(|name| stored.contains(name)));
}

/// A missing database is a 503 with `Retry-After`, and nothing worse.
#[tokio::test]
async fn a_missing_database_is_answered_with_503() {
    let database = Database::create(Engine::Postgres);
    let server = Process::start(&database, &[]).await;
    server.admin.get(USERS).await.expect(200);
    database.destroy();
    let answer = server.admin.get(USERS).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    answer.problem(503, "unavailable");
    // B10: the token endpoint says it, too
    let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
    let answer = Client::anonymous(&server.base).ask_for_token(&form).await.is(503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["error"], "temporarily_unavailable");
    until("it is not ready", || async { server.admin.get("/health/ready").await.status == 503 }).await;
    let answer = server.admin.get("/health/ready").await;
    assert_eq!(answer.json()["reason"], "unavailable");
    answer.problem(503, "unavailable");
    server.admin.post(USERS, json!({ "loginName": "ada" })).await.problem(503, "unavailable");
    server.admin.get("/health/live").await.expect(200);
}
