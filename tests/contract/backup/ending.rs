//! A restore ends tokens and sessions, and repeats erasures.

use std::fs;

use chancery_record::Value;
use chancery_store::{Error, Mode, Settings, Store, Target, raw};
use chancery_testkit::{Client, Database, Engine, Process, on_both_engines};
use serde_json::json;

use super::{USERS, done, login_names, refused, run, user, warnings, word};
use crate::{id, until};

/// A backup, changes after it, and a restore of the backup.
async fn restored_after(engine: Engine) {
    let database = Database::create(engine);
    let list = database.folder().join("erased.jsonl");
    let listing = [("CHANCERY_ERASURE_LIST", word(&list))];
    let mut server = Process::start(&database, &listing).await;
    user(&server, "ada").await;
    let erased = user(&server, "erased since").await;
    let before = server.admin.clone();
    assert!(server.stop());
    let file = database.folder().join("copy");
    let copy = match engine {
        Engine::Sqlite => {
            done(&run(&database, &["backup", "--output", word(&file)]));
            None
        }
        Engine::Postgres => Some(database.copy().unwrap()),
    };

    let mut server = Process::start(&database, &listing).await;
    user(&server, "made since").await;
    let person = id(&erased).to_owned();
    server.admin.post(&format!("{USERS}/{person}/erase"), json!({})).await.expect(204);
    until("the erasure is listed", || async {
        fs::read_to_string(&list).is_ok_and(|text| text.contains(&person))
    })
    .await;
    assert!(server.stop());

    let place = copy.as_ref().unwrap_or(&database);
    let words = match engine {
        Engine::Sqlite => vec!["restore", word(&file), "--replace", "--erasures", word(&list)],
        Engine::Postgres => vec!["restore", "--in-place", "--erasures", word(&list)],
    };
    let told = done(&run(place, &words));
    assert!(told.contains("1 people were there again") && told.contains("is the installation"), "{told}");
    let server = Process::start(place, &listing).await;
    assert_eq!(login_names(&server.admin).await, ["ada".to_owned()].into());
    server.admin.get(&format!("{USERS}/{person}")).await.expect(404);
    let former = Client::anonymous(&server.base).with_token(before.token());
    former.get(USERS).await.expect(401);
    assert_eq!(warnings(&server).await, "null", "it is the installation, and tells others what it has to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_stays_ended_sqlite() {
    restored_after(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_stays_ended_postgres() {
    restored_after(Engine::Postgres).await;
}

/// A server that runs during a restore does not see what ended, so it stops by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_beside_a_restore_ends() {
    let database = Database::create(Engine::Postgres);
    let mut server = Process::start(&database, &[]).await;
    done(&run(&database, &["restore", "--in-place", "--no-erasures"]));
    let (ended, server) = tokio::task::spawn_blocking(move || (server.wait(), server)).await.unwrap();
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(!ended && log.contains("was restored meanwhile"), "{log}");
}

/// No server starts after an interrupted restore until it has been completed.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_broke_off_is_done_again() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    user(&server, "ada").await;
    assert!(server.stop());
    let target = Target::Sqlite(database.folder().join("chancery.sqlite"));
    let opened = tokio::task::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opened.await.unwrap().unwrap();
    let broken = store.run("Test", Mode::Write, None, |tx| {
        raw::execute(tx, "UPDATE installation SET is_restoring = ?1", &[Value::Bool(true)])
    });
    broken.await.map_err(|error: Error| error.to_string()).unwrap();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    let told = refused(&run(&database, &["serve"]));
    assert!(told.contains("being restored"), "{told}");
    done(&run(&database, &["restore", "--in-place", "--no-erasures"]));
    let server = Process::start(&database, &[]).await;
    assert!(login_names(&server.admin).await.contains("ada"));
}

/// A list of another installation, or one that was changed, erases nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_not_its_own_is_refused() {
    let database = Database::create(Engine::Sqlite);
    let list = database.folder().join("erased.jsonl");
    let mut server = Process::start(&database, &[("CHANCERY_ERASURE_LIST", word(&list))]).await;
    let erased = user(&server, "erased").await;
    let kept = user(&server, "kept").await;
    server.admin.post(&format!("{USERS}/{}/erase", id(&erased)), json!({})).await.expect(204);
    until("the erasure is listed", || async {
        fs::read_to_string(&list).is_ok_and(|text| text.contains(id(&erased)))
    })
    .await;
    assert!(server.stop());
    let text = fs::read_to_string(&list).unwrap().replace(id(&erased), id(&kept));
    fs::write(&list, text).unwrap();
    let told = refused(&run(&database, &["restore", "--in-place", "--erasures", word(&list)]));
    assert!(told.contains("line 1") && told.contains("signature"), "{told}");
    let server = Process::start(&database, &[]).await;
    assert!(login_names(&server.admin).await.contains("kept"));
}

on_both_engines! {
    /// Access passes and SCIM tokens of user stores end, with audit entries.
    async fn passes_and_directories_end(world: World) {
        let token = world.admin.post(&world.path("/ScimToken"), json!({ "name": "directory" })).await.is(201).json();
        let ada = world.user("ada").await;
        let path = world.path(&format!("/User/{}/temporary-access-passes", id(&ada)));
        let made = world.admin.post(&path, json!({})).await;
        let is_made = made.status == 201;
        let told = chancery::end_audited(&world.app.store, &world.app.context).await.unwrap();
        assert!(told.contains("1 SCIM tokens") && (!is_made || told.contains("1 access passes")), "{told}");
        let row = world.admin.get(&world.path(&format!("/ScimToken/{}", id(&token)))).await.is(200).json();
        assert_eq!(row["isActive"], false);
        let again = chancery::end_audited(&world.app.store, &world.app.context).await.unwrap();
        assert!(again.contains("0 SCIM tokens") && again.contains("0 access passes"), "{again}");
    }
}
