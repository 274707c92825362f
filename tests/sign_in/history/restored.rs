//! After a restore of an older state every cursor is rejected, instead of continuing silently.

use chancery_testkit::{Database, Engine, Process, Receiver};
use serde_json::json;

use super::{STORE, feed, now, of_feed, of_receiver, start, subscribe};
use crate::{free_address, id};

async fn user(server: &Process, name: &str) -> String {
    let created =
        server.admin.post(&format!("{STORE}/User"), json!({ "loginName": name })).await.is(201).json();
    id(&created).to_owned()
}

/// Asserts that a cursor is rejected by feed, delta and stream.
async fn assert_rejected(server: &Process, cursor: &str) {
    for endpoint in ["Event?", "User/delta?", "Group/delta?", "Event/stream?"] {
        let address = format!("{STORE}/{endpoint}after={cursor}");
        server.admin.get(&address).await.problem(410, "event-history-changed");
    }
}

async fn check(engine: Engine) {
    let database = Database::create(engine);
    let mut receiver = Receiver::start().await;
    let mut server = start(&database, &free_address()).await;
    let subscription = subscribe(&server, &receiver).await;
    let first = user(&server, "first").await;
    let feed_before = feed(&server).await;
    let before = now(&server).await;
    receiver.until(|got| of_receiver(got).len() == 1).await;
    assert!(server.stop());
    let backup = database.copy().unwrap();

    let mut server = start(&database, &free_address()).await;
    for name in ["lost", "lost as well"] {
        user(&server, name).await;
    }
    let undone_cursor = now(&server).await;
    let list = server.admin.get(&format!("{STORE}/User")).await.is(200);
    let undone_list_cursor = list.header("x-event-cursor").unwrap().to_owned();
    receiver.until(|got| of_receiver(got).len() == 3).await;
    assert!(server.stop());

    // both where the restored state is behind the cursor, and where it has overtaken it by other changes
    let adopt = Process::command(&["adopt", "--public-url", "http://localhost", "--database", backup.url()])
        .env("CHANCERY_DATA_DIR", backup.folder())
        .status();
    assert!(adopt.unwrap().success());
    let server = start(&backup, &free_address()).await;
    assert_eq!(feed(&server).await[..feed_before.len()], feed_before);
    assert_rejected(&server, &undone_cursor).await;
    let mut since = Vec::new();
    for number in 0..8 {
        since.push(user(&server, &format!("since {number}")).await);
        now(&server).await;
        assert_rejected(&server, &undone_cursor).await;
        assert_rejected(&server, &undone_list_cursor).await;
    }
    // events before the backup are of the same history
    let delta = server.admin.get(&format!("{STORE}/User/delta?after={before}")).await.is(200).json();
    assert_eq!(delta["items"].as_array().unwrap().len(), since.len());
    // the subscription was restored, too, and misses no event of the current history
    let got = receiver.until(|got| since.iter().all(|one| of_receiver(got).contains_key(one.as_str()))).await;
    let events = feed(&server).await;
    for (subject, numbers) in of_feed(&events) {
        assert_eq!(of_receiver(&got)[subject], numbers);
    }
    assert!(of_receiver(&got).contains_key(first.as_str()));
    let row = server.admin.get(&subscription).await.is(200).json();
    assert_eq!(row["status"], "Active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_state_rejects_the_cursors_of_undone_events_sqlite() {
    check(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_state_rejects_the_cursors_of_undone_events_postgres() {
    check(Engine::Postgres).await;
}
