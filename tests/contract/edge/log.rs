//! Logging problems do not affect requests.

use std::{fs::File, process::Stdio};

use chancery_testkit::{Database, Engine, Process, SECRET};
use serde_json::json;

/// Writes and reads until lines of the log were dropped, and checks that the server still works.
async fn assert_requests_succeed(mut server: Process) {
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
async fn a_full_log_disk_does_not_affect_requests() {
    let database = Database::create(Engine::Sqlite);
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert_requests_succeed(Process::start_logging_to(&database, &ALL, full.into())).await;
}

/// Section 5 of operating: the same for a pipe without a reader.
#[tokio::test]
async fn a_closed_log_pipe_does_not_affect_requests() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start_logging_to(&database, &ALL, Stdio::piped());
    drop(server.take_stderr());
    assert_requests_succeed(server).await;
}

/// Section 5 of operating: the same for a pipe whose reader has stopped reading.
#[tokio::test]
async fn a_full_log_pipe_does_not_affect_requests() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start_logging_to(&database, &ALL, Stdio::piped());
    let unread = server.take_stderr();
    assert_requests_succeed(server).await;
    drop(unread);
}
