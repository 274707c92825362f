//! A start rejects damaged database files.

use std::{
    fs::{self, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::PermissionsExt as _,
};

use chancery_store::{Error, Mode, Settings, Store, Target, raw};
use chancery_testkit::{Database, Engine, Process};
use serde_json::json;

use super::{USERS, login_names, refused, run, until_checkpoint};

const SQLITE: &str = "chancery.sqlite";

/// A server with some hundred people, stopped.
async fn filled() -> Database {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    let users: Vec<_> = (0..500).map(|number| json!({ "loginName": format!("u{number}") })).collect();
    server.admin.post(&format!("{USERS}/batch"), json!(users)).await.expect(200);
    until_checkpoint(&server).await;
    assert!(server.stop());
    database
}

/// A copy with pages of two points in time, as a plain copy of a running server's file may be.
#[tokio::test(flavor = "multi_thread")]
async fn a_torn_copy_is_rejected() {
    let database = filled().await;
    let copy = database.copy().unwrap();
    let mut server = Process::start(&database, &[]).await;
    let later: Vec<_> = (0..500).map(|number| json!({ "loginName": format!("later{number}") })).collect();
    server.admin.post(&format!("{USERS}/batch"), json!(later)).await.expect(200);
    assert!(server.stop());
    // the second half is copied later than the first
    let from = fs::read(database.folder().join(SQLITE)).unwrap();
    let path = copy.folder().join(SQLITE);
    let half = fs::metadata(&path).unwrap().len() / 8192 * 4096;
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(half)).unwrap();
    file.write_all(&from[usize::try_from(half).unwrap()..]).unwrap();
    drop(file);
    let error = refused(&run(&copy, &["serve"]));
    assert!(error.contains("torn or damaged") && error.contains("chancery backup"), "{error}");
}

/// An undamaged copy is checked once, and served.
#[tokio::test(flavor = "multi_thread")]
async fn an_undamaged_copy_is_checked_once() {
    let copy = filled().await.copy().unwrap();
    for is_checked in [true, false] {
        let mut server = Process::start(&copy, &[]).await;
        let log = fs::read_to_string(&server.log).unwrap();
        assert_eq!(log.contains("is checked whole"), is_checked, "{log}");
        assert!(login_names(&server.admin).await.contains("u499"));
        assert!(server.stop());
    }
}

/// A truncated file is detected also without a copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_rejected() {
    let database = filled().await;
    let path = database.folder().join(SQLITE);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(fs::metadata(&path).unwrap().len() / 2).unwrap();
    drop(file);
    let error = refused(&run(&database, &["serve"]));
    assert!(error.contains("torn or damaged"), "{error}");
    // a file that is no database at all
    let mut file = OpenOptions::new().write(true).read(true).open(&path).unwrap();
    file.write_all(&[7; 4096]).unwrap();
    let mut some = [0; 1];
    let _ = file.read(&mut some);
    let error = refused(&run(&database, &["serve"]));
    assert!(error.contains("torn or damaged"), "{error}");
}

/// A file that lacks the last entry of a signed checkpoint is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_behind_its_checkpoint_is_rejected() {
    let database = filled().await;
    let target = Target::Sqlite(database.folder().join(SQLITE));
    let cut = |text: &'static str| {
        let target = target.clone();
        async move {
            let opened = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
            let store = opened.await.unwrap().unwrap();
            let cut = store.run("Test", Mode::Write, None, move |tx| raw::execute(tx, text, &[]));
            assert!(cut.await.map_err(|error: Error| error.to_string()).unwrap() > 0);
            chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
        }
    };
    cut("DELETE FROM audit_leaf WHERE position >= (SELECT size - 1 FROM audit_tree t WHERE t.store = audit_leaf.store)").await;
    let error = refused(&run(&database, &["serve"]));
    assert!(error.contains("torn or damaged") && error.contains("audit trail"), "{error}");
}

/// The database of another program is rejected and not changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_program_is_rejected() {
    let database = Database::create(Engine::Sqlite);
    let path = database.folder().join(SQLITE);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE note (text TEXT)").unwrap();
    drop(other);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::read(&path).unwrap();
    for arguments in [&["serve"][..], &["--migrate", "off", "serve"], &["migrate"]] {
        let error = refused(&run(&database, arguments));
        assert!(error.contains("another program"), "{arguments:?}: {error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}
