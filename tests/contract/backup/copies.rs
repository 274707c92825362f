//! Outbound traffic is disabled on a copy of an installation; a moved folder and a restarted server are no copies.

use std::{fs, path::Path};

use chancery_testkit::{Database, Engine, Process, Receiver};
use serde_json::json;

use super::{done, refused, run, run_with, user, warnings, word};
use crate::id;

const SUBSCRIPTIONS: &str = "/api/userstore/v2/default/administration/EventSubscription";
const TO_THIS_MACHINE: (&str, &str) = ("CHANCERY_EVENT_NETWORKS", "127.0.0.0/8");

/// Subscribes a receiver to all users of the default store; the subscription's path.
async fn subscribe(server: &Process, receiver: &Receiver) -> String {
    let body = json!({ "name": "r", "url": receiver.url, "types": ["platform.userstore.user.*"] });
    let created = server.admin.post(SUBSCRIPTIONS, body).await.is(201).json();
    let path = format!("{SUBSCRIPTIONS}/{}", id(&created));
    let tested = server.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
    assert_eq!(tested["delivered"], true, "{tested}");
    let row = server.admin.get(&path).await.is(200).json();
    let body = json!({ "isActive": true, "concurrencyToken": row["concurrencyToken"] });
    server.admin.patch(&path, body).await.expect(202);
    path
}

async fn check_copy(engine: Engine) {
    let database = Database::create(engine);
    let mut receiver = Receiver::start().await;
    let mut server = Process::start(&database, &[TO_THIS_MACHINE]).await;
    let subscription = subscribe(&server, &receiver).await;
    user(&server, "first").await;
    receiver.until(|got| got.len() == 2).await;
    assert!(server.stop());
    let copy = database.copy().unwrap();

    // the original is started again, and continues
    let mut server = Process::start(&database, &[TO_THIS_MACHINE]).await;
    assert_eq!(warnings(&server).await, "null");
    let of_original = user(&server, "of the original").await;
    receiver.until(|got| got.iter().any(|one| one.subject() == id(&of_original))).await;
    assert!(server.stop());

    let mut server = Process::start(&copy, &[TO_THIS_MACHINE]).await;
    let warnings_of_copy = warnings(&server).await;
    assert!(
        warnings_of_copy.contains("this is a copy") && warnings_of_copy.contains("chancery adopt"),
        "{warnings_of_copy}"
    );
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("this is a copy"), "{log}");
    let of_copy = user(&server, "of the copy").await;
    let tested = server.admin.post(&format!("{subscription}/test"), json!({})).await.is(200).json();
    assert!(
        tested["delivered"] == false && tested["problem"].to_string().contains("this is a copy"),
        "{tested}"
    );
    let subject = id(&of_copy).to_owned();
    assert!(server.stop());

    let output = done(&run(&copy, &["adopt"]));
    assert!(output.contains("The installation is here now"), "{output}");
    let server = Process::start(&copy, &[TO_THIS_MACHINE]).await;
    assert_eq!(warnings(&server).await, "null");
    // waiting events are sent: none was sent before
    let got = receiver.until(|got| got.iter().any(|one| one.subject() == subject)).await;
    let tests = got.iter().filter(|one| one.kind().contains("test")).count();
    assert_eq!(tests, 1, "a test by the copy was not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_sends_nothing_until_it_is_adopted_sqlite() {
    check_copy(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_sends_nothing_until_it_is_adopted_postgres() {
    check_copy(Engine::Postgres).await;
}

/// A moved folder is no copy; a file that is copied back is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_moved_folder_is_no_copy() {
    let database = Database::create(Engine::Sqlite);
    let (here, there) = (database.folder().join("here"), database.folder().join("there"));
    fs::create_dir(&here).unwrap();
    let at = |folder: &Path| format!("sqlite:{}", folder.join("chancery.sqlite").display());
    let database_url = at(&here);
    let mut server = Process::start(&database, &[("CHANCERY_DATABASE", database_url.as_str())]).await;
    assert!(server.stop());
    fs::rename(&here, &there).unwrap();
    let database_url = at(&there);
    let mut server = Process::start(&database, &[("CHANCERY_DATABASE", database_url.as_str())]).await;
    assert_eq!(warnings(&server).await, "null");
    assert!(server.stop());
    fs::create_dir(&here).unwrap();
    fs::copy(there.join("chancery.sqlite"), here.join("chancery.sqlite")).unwrap();
    let database_url = at(&here);
    let server = Process::start(&database, &[("CHANCERY_DATABASE", database_url.as_str())]).await;
    assert!(warnings(&server).await.contains("this is a copy"));
}

/// A start with another public URL warns about features that stop working, and outbound traffic is disabled until
/// `chancery adopt`.
async fn check_other_public_url(engine: Engine) {
    let database = Database::create(engine);
    let public_url = |url: &'static str| [("CHANCERY_PUBLIC_URL", url)];
    let ready = async |server: &Process| {
        assert!(!server.greeting.is_empty());
        fs::read_to_string(&server.log).unwrap()
    };
    // a first public URL is not another one
    for url in [None, Some("https://id.example.com"), Some("https://id.example.com")] {
        let environment = url.map(public_url);
        let mut server =
            Process::start_unready(&database, environment.as_ref().map_or(&[][..], |some| some.as_slice()));
        let log = ready(&server).await;
        assert!(!log.contains("Outbound traffic is off"), "{url:?}: {log}");
        assert!(server.stop());
    }
    let staging = public_url("https://staging.example.com");
    let mut server = Process::start_unready(&database, &staging);
    let log = ready(&server).await;
    assert!(log.contains("the public URL is another") && log.contains("passkeys"), "{log}");
    assert!(log.contains("Outbound traffic is off"), "{log}");
    assert!(server.stop());
    done(&run_with(&database, &staging, &["adopt"]));
    let mut server = Process::start_unready(&database, &staging);
    let log = ready(&server).await;
    assert!(!log.contains("Outbound traffic is off"), "{log}");
    assert!(server.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_public_url_is_another_installation_sqlite() {
    check_other_public_url(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_public_url_is_another_installation_postgres() {
    check_other_public_url(Engine::Postgres).await;
}

/// The start fails if the list of erasures cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_erasures_that_cannot_be_written_fails_the_start() {
    let database = Database::create(Engine::Sqlite);
    let list = database.folder().join("no such folder/list");
    let error = refused(&run_with(&database, &[("CHANCERY_ERASURE_LIST", word(&list))], &["serve"]));
    assert!(error.contains("the list of erasures"), "{error}");
}
