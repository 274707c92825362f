//! Bodies that are announced and never sent.

use std::time::Duration;

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};

use super::{BOUND, connect, send};

on_both_engines! {
    /// A large content-length blocks only its sender: memory is allocated as octets arrive.
    async fn announced_bodies_do_not_block_other_requests(world: World) {
        let mut dripping = Vec::new();
        for name in ["one", "two"] {
            let client = world.client(name, &[("SystemAdmin", None, None)]).await;
            let mut connection = connect(&world.base).await;
            let head = format!(
                "POST {} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
                 content-length: 67108864\r\nexpect: 100-continue\r\n\r\n",
                world.path("/User/batch"),
                client.token(),
            );
            send(&mut connection, &head).await;
            let mut interim = [0; 64];
            let length = timeout(BOUND, connection.read(&mut interim)).await.unwrap().unwrap();
            assert!(interim[..length].starts_with(b"HTTP/1.1 100"), "it is waited for");
            dripping.push(chancery_testkit::spawn(async move {
                while connection.write_all(b" ").await.is_ok() {
                    sleep(Duration::from_secs(5)).await;
                }
            }));
        }
        let users: Vec<Value> = (0..4000).map(|number| json!({ "loginName": format!("u{number:05}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        dripping.iter().for_each(tokio::task::JoinHandle::abort);
    }

    /// A form has a limited number of parameters.
    async fn parameters_are_limited(world: World) {
        let many = "a=b&".repeat(1001);
        let answer = world.anonymous.ask_for_token(&many).await.is(400);
        assert!(answer.json()["error_description"].as_str().unwrap().contains("1000"), "{answer:?}");
        world.admin.get(&world.path(&format!("/User?{many}"))).await.problem(400, "invalid-request");
    }

    /// A committed change is reported as successful, even if the changed item cannot be read.
    async fn a_change_whose_item_cannot_be_read_is_reported_as_successful(world: World) {
        let group = world.group("sales").await;
        let path = world.path(&format!("/Group/{}", group["id"].as_str().unwrap()));
        // all connections for long reads are in use
        let (start_sender, mut started) = tokio::sync::mpsc::unbounded_channel();
        let mut long_reads = Vec::new();
        for _ in 0..world.app.store.long_places() {
            let (store, start_sender) = (world.app.store.clone(), start_sender.clone());
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let (ended, start_sender) = (std::sync::Mutex::new(ended), std::sync::Mutex::new(start_sender));
            let long = async move {
                store.run("Test", chancery_store::Mode::Long, None, move |_| {
                    start_sender.lock().unwrap().send(()).unwrap();
                    let _ = ended.lock().unwrap().recv();
                    Ok::<_, chancery_store::Error>(())
                }).await
            };
            long_reads.push((chancery_testkit::spawn(long), end));
        }
        for _ in &long_reads {
            timeout(BOUND, started.recv()).await.unwrap().unwrap();
        }
        let patch = json!({ "name": "support", "concurrencyToken": group["concurrencyToken"] });
        let answer = world.admin.patch(&path, patch).await.is(202);
        assert!(answer.bytes.is_empty());
        let tag = answer.header("etag").unwrap().to_owned();
        for (long, end) in long_reads {
            drop(end);
            long.await.unwrap().unwrap();
        }
        let now = world.admin.get(&path).await.is(200).json();
        assert_eq!(now["name"], "support");
        assert_eq!(tag, format!("\"{}\"", now["concurrencyToken"].as_str().unwrap()));
    }
}
