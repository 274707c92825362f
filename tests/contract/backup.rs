//! Backup and restore with the commands of the program: the copy has all answered writes, ended tokens and sessions stay ended, and
//! outbound traffic is disabled on a copy.

mod copies;
mod damage;
mod ending;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use crate::{each, program::warnings, until};

const USERS: &str = "/api/userstore/v2/default/administration/User";
const TRAIL: &str = "/api/userstore/v2/default/administration/CustomAuditTrail";
/// There is no list of erased people.
const NO_ERASURES: &str = "--no-erasures";

/// Runs a command of the program on a database.
fn run(database: &Database, words: &[&str]) -> Output {
    run_with(database, &[], words)
}

/// The same, with further variables of the environment.
fn run_with(database: &Database, environment: &[(&str, &str)], words: &[&str]) -> Output {
    Process::command(words)
        .env("CHANCERY_DATA_DIR", database.folder())
        .env("CHANCERY_DATABASE", database.url())
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// The output of a successful command.
fn done(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The output of a failed command.
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
    text
}

/// A path as a word of a command.
fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// An empty folder on another machine, where the master key was put.
fn on_another_machine(database: &Database) -> Database {
    let other = Database::create(Engine::Sqlite);
    fs::copy(database.folder().join("master.key"), other.folder().join("master.key")).unwrap();
    other
}

/// Makes a backup of an embedded database; its file.
fn back_up(database: &Database, name: &str) -> PathBuf {
    let file = database.folder().join(name);
    done(&run(database, &["backup", "--output", word(&file)]));
    file
}

async fn user(server: &Process, name: &str) -> Json {
    server.admin.post(USERS, json!({ "loginName": name })).await.is(201).json()
}

async fn login_names(client: &Client) -> HashSet<String> {
    let users = client.get(USERS).await.is(200).json();
    each(&users, "loginName").into_iter().map(str::to_owned).collect()
}

/// Creates users until it is stopped. Returns those whose creation was answered.
async fn write(client: Client, worker: usize, stop: Arc<AtomicBool>) -> Vec<String> {
    let mut answered = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let name = format!("w{worker}n{}", answered.len());
        client.post(USERS, json!({ "loginName": name })).await.expect(201);
        answered.push(name);
    }
    answered
}

/// A backup ends while writers continue, and is consistent: it has all writes that were answered before it began, and its audit
/// trail matches its rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_during_writes_is_consistent() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for worker in 0..4 {
        writers.spawn(write(server.admin.clone(), worker, Arc::clone(&stop)));
    }
    for number in 0..20 {
        user(&server, &format!("before {number}")).await;
    }
    let before = login_names(&server.admin).await;
    let (file, folder) = (database.folder().join("copy"), database.folder());
    let backing_up = chancery_testkit::spawn_blocking(move || {
        let words = ["backup", "--output", word(&file)];
        let output = Process::command(&words).env("CHANCERY_DATA_DIR", folder).output();
        (output.unwrap(), file)
    });
    let (output, file) = backing_up.await.unwrap();
    let message = done(&output);
    assert!(message.contains("checkpoints of audit trails"), "{message}");
    let after = login_names(&server.admin).await;
    stop.store(true, Ordering::SeqCst);
    let answered = writers.join_all().await.concat();
    assert!(answered.len() > 20 && after.len() > before.len(), "they went on");

    let other = on_another_machine(&database);
    done(&run(&other, &["restore", word(&file), NO_ERASURES, "--drill"]));
    let copy = Process::start(&other, &[]).await;
    assert!(warnings(&copy).await.contains("this is a copy"), "a drill tells nobody");
    let there = login_names(&copy.admin).await;
    let lost: Vec<_> = before.difference(&there).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let trail = copy.admin.get(TRAIL).await.is(200).json();
    assert_eq!(
        trail.as_array().unwrap().len(),
        there.len(),
        "a change is there with its entry, or neither is"
    );
}

/// The manifest describes the backup, and does not contain the master key.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_describes_its_backup() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    user(&server, "ada").await;
    until_checkpoint(&server).await;
    assert!(server.stop());
    let file = back_up(&database, "copy");
    let text = fs::read_to_string(database.folder().join("copy.manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(manifest["schema"], chancery_store::schema_version());
    assert_eq!(manifest["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(manifest["masterKey"].as_str().unwrap().len(), 8);
    assert!(!manifest["checkpoints"].as_array().unwrap().is_empty(), "{text}");
    for name in ["copy", "copy.manifest.json"] {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(database.folder().join(name)).unwrap().permissions(),
        );
        assert_eq!(mode & 0o077, 0, "{name} is its owner's alone");
    }
    assert!(!database.folder().join("copy.partial").exists());
    let again = refused(&run(&database, &["backup", "--output", word(&file)]));
    assert!(again.contains("is there already"), "{again}");
}

/// Databases of other engines are refused with the names of the right tools.
#[test]
fn a_database_on_postgresql_is_refused_with_the_names_of_its_tools() {
    let database = Database::create(Engine::Postgres);
    let message = refused(&run(&database, &["backup", "--output", "/nowhere/copy"]));
    for tool in ["pg_dump", "pgBackRest", "Barman"] {
        assert!(message.contains(tool), "{message}");
    }
    database.write_private("master.key", [7; 32]);
    let message = refused(&run(&database, &["restore", "/nowhere/copy", NO_ERASURES]));
    assert!(message.contains("pg_restore") && message.contains("--in-place"), "{message}");
}

/// An unsafe restore is refused before anything is changed.
#[tokio::test(flavor = "multi_thread")]
async fn an_unsafe_restore_is_refused_with_the_reason() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    user(&server, "ada").await;
    let file = back_up(&database, "copy");
    let file = word(&file);
    let expect = |words: &[&str], why: &str| {
        let message = refused(&run(&database, words));
        assert!(message.contains(why), "{words:?}: {message}");
    };
    expect(&["restore", file], "--no-erasures");
    expect(&["restore", NO_ERASURES], "--in-place");
    expect(&["restore", file, NO_ERASURES, "--replace"], "is in use");
    assert!(server.stop());
    expect(&["restore", file, NO_ERASURES], "--replace");
    expect(&["restore", file, "--replace", "--erasures", "/nowhere/list"], "/nowhere/list");
    let other = Database::create(Engine::Sqlite);
    let message = refused(&run(&other, &["restore", file, NO_ERASURES]));
    assert!(message.contains("the master key is in no backup"), "{message}");
    other.write_private("master.key", [7; 32]);
    let message = refused(&run(&other, &["restore", file, NO_ERASURES]));
    assert!(message.contains("put the right one in place"), "{message}");
    assert!(!other.folder().join("chancery.sqlite").exists() || !has_data(&other));

    // a changed byte is found by the digest, a changed manifest by its signature
    let own = on_another_machine(&database);
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
    let message = refused(&run(&own, &["restore", file, NO_ERASURES]));
    assert!(message.contains("is not what its manifest says"), "{message}");
    let manifest = database.folder().join("copy.manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("\"version\": \"", "\"version\": \"9");
    fs::write(&manifest, text).unwrap();
    let message = refused(&run(&own, &["restore", file, NO_ERASURES]));
    assert!(message.contains("was changed"), "{message}");
    assert!(!has_data(&own));
    // the existing data is unchanged
    let server = Process::start(&database, &[]).await;
    assert!(login_names(&server.admin).await.contains("ada"));
}

/// Waits until the default store's audit trail has a checkpoint.
pub async fn until_checkpoint(server: &Process) {
    let checkpoint = format!("{TRAIL}/checkpoint");
    until("the trail has a checkpoint", || async { server.admin.get(&checkpoint).await.status == 200 }).await;
}

/// Whether there is a database with data.
fn has_data(database: &Database) -> bool {
    fs::metadata(database.folder().join("chancery.sqlite")).is_ok_and(|facts| facts.len() > 0)
}
