//! Stopping the server.

use std::time::{Duration, Instant};

use chancery_testkit::{Client, Database, Engine, Process};
use tokio::{io::AsyncReadExt as _, time::sleep};

use super::{BOUND, connect, ended, receive, send};

const GET: &str = "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";

async fn has_ended(mut server: Process) -> bool {
    chancery_testkit::spawn_blocking(move || server.wait()).await.unwrap()
}

/// Section 5 of operating: after SIGTERM the server reports that it drains, continues to serve, and closes connections
/// after their response; then it exits.
#[tokio::test]
async fn a_server_drains() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_DRAIN", "4")]).await;
    let mut open = connect(&server.base).await;
    send(&mut open, GET).await;
    assert!(!receive(&mut open).await.0.contains("connection: close"));
    let anyone = Client::anonymous(&server.base);
    // before the signal: the server may have it before this test goes on
    let started = Instant::now();
    assert!(server.signal("TERM"));
    let problem = loop {
        let answer = anyone.get("/health/ready").await;
        if answer.status == 503 {
            break answer.problem(503, "unavailable");
        }
        assert!(started.elapsed() < BOUND, "it is told in time");
    };
    assert_eq!(problem["reason"], "draining");
    send(&mut open, GET).await;
    let (head, _) = receive(&mut open).await;
    assert!(head.starts_with("http/1.1 200") && head.contains("connection: close"), "{head}");
    server.admin.get("/api/userstore/v2/default/administration/User").await.expect(200);
    assert!(has_ended(server).await);
    assert!(started.elapsed() >= Duration::from_secs(4), "it served on");
}

/// B7: requests sent before the signal are answered, on accepted connections and on those that are not accepted yet.
#[tokio::test]
async fn pending_requests_are_answered_before_the_stop() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start_unready(&database, &[]);
    let mut connections = Vec::new();
    for _ in 0..12 {
        let mut connection = connect(&server.base).await;
        send(&mut connection, GET).await;
        receive(&mut connection).await;
        connections.push(connection);
    }
    // the process is suspended: it neither accepts nor reads
    assert!(server.signal("STOP"));
    for _ in 0..12 {
        connections.push(connect(&server.base).await);
    }
    for connection in &mut connections {
        send(connection, GET).await;
    }
    assert!(server.signal("TERM") && server.signal("CONT"));
    for connection in &mut connections {
        assert!(receive(connection).await.0.starts_with("http/1.1 200"));
        ended(connection).await;
    }
    drop(connections);
    assert!(has_ended(server).await);
}

/// B7: incomplete heads, incomplete bodies and unread responses are aborted within 10 seconds.
#[tokio::test]
async fn stalled_requests_are_aborted() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let (mut half_head, mut half_body) = (connect(&server.base).await, connect(&server.base).await);
    send(&mut half_head, "GET /health/live HT").await;
    send(&mut half_body, &format!(
        "POST /api/userstore/v2/default/administration/User HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"loginName\"",
        server.admin.token()
    )).await;
    // more than the buffers between the server and a client that does not read
    let mut unread = connect(&server.base).await;
    send(&mut unread, &"GET /openapi/management-v2.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100)).await;
    sleep(Duration::from_millis(200)).await;
    assert!(server.signal("TERM"));
    let started = Instant::now();
    let (head, body) = receive(&mut half_body).await;
    assert!(head.starts_with("http/1.1 503"), "{head} {body}");
    ended(&mut half_head).await;
    drop(half_body);
    assert!(has_ended(server).await);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let (mut all, mut chunk) = (0, vec![0; 1 << 20]);
    while let Ok(length @ 1..) = unread.read(&mut chunk).await {
        all += length;
    }
    assert!(all > 0, "it was being answered");
}
