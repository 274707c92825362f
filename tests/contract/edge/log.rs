//! Logging never hurts.

use std::{fs::File, process::Stdio};

use chancery_testkit::{Database, Engine, Process, SECRET};
use serde_json::json;

/// Writes and reads until lines of the log were dropped, and the server is as well as before.
async fn serves_on(mut server: Process) {
    let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
    let token = server.admin.ask_for_token(&form).await.is(200).json();
    server.admin = server.admin.with_token(token["access_token"].as_str().unwrap());
    let users = "/api/userstore/v2/default/administration/User";
    let mut dropped = 0;
    for number in 0..5_000 {
        server.admin.post(users, json!({ "loginName": format!("u{number}") })).await.expect(201);
        if number % 50 == 0 {
            let metrics = server.admin.get("/metrics").await.is(200);
            let text = String::from_utf8(metrics.bytes.to_vec()).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("chancery_log_dropped ")).unwrap();
            dropped = line.parse().unwrap();
        }
        if dropped > 10 {
            break;
        }
    }
    assert!(dropped > 10, "{dropped}");
    server.admin.post(users, json!({ "loginName": "last" })).await.expect(201);
    server.admin.get("/health/ready").await.expect(200);
    assert!(server.stop());
}

const ALL: [(&str, &str); 1] = [("CHANCERY_LOG", "trace")];

/// Section 5 of operating: a log whose disk is full loses lines and nothing else.
#[tokio::test]
async fn a_full_disk_does_no_harm() {
    let database = Database::create(Engine::Sqlite);
    let full = File::options().write(true).open("/dev/full").unwrap();
    serves_on(Process::start_logging_to(&database, &ALL, full.into())).await;
}

/// Section 5 of operating: so does one that nobody reads any more.
#[tokio::test]
async fn a_closed_pipe_does_no_harm() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start_logging_to(&database, &ALL, Stdio::piped());
    drop(server.take_stderr());
    serves_on(server).await;
}

/// Section 5 of operating: and one whose reader has stopped reading.
#[tokio::test]
async fn a_full_pipe_does_no_harm() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start_logging_to(&database, &ALL, Stdio::piped());
    let unread = server.take_stderr();
    serves_on(server).await;
    drop(unread);
}
