//! Copies of an installation to another database of either engine, and rotations of the master key: everything still works.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use chancery_resource::MasterKey;
use chancery_store::{Error, Mode, Settings, Store, Target};
use chancery_testkit::{Client, Database, Engine, Process};
use http::Method;
use serde_json::{Value as Json, json};

use crate::{picture::png_by, signing::set_mail_server, until};

const USERS: &str = "/api/userstore/v2/default/administration/User";
const OPTION: &str = "/api/management/v2/Option?filter=name%20eq%20%22MailServerConfig%22";

/// Runs the program with the settings of a database.
fn run(database: &Database, words: &[&str]) -> Output {
    let mut command = Process::command(words);
    command.args(["--database", database.url(), "--data-dir"]).arg(database.folder());
    command.output().unwrap()
}

fn text_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", text_of(output));
    text_of(output)
}

fn refused(output: &Output, word: &str) {
    assert!(!output.status.success() && text_of(output).contains(word), "{word}: {}", text_of(output));
}

/// A number that a statement finds, in a database without a server.
async fn number(database: &Database, text: &'static str) -> i64 {
    let target = match database.url().strip_prefix("sqlite:") {
        Some(path) => Target::Sqlite(path.into()),
        None => Target::Postgres(database.url().to_owned()),
    };
    let store = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = store.await.unwrap().unwrap();
    let read = store.run("Test", Mode::Long, None, move |tx| tx.one(text, &[], |row| row.int(0)));
    let found = read.await.map_err(|error: Error| error.to_string()).unwrap().unwrap();
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
    found
}

async fn make_store(admin: &Client, name: &str) -> Json {
    let first =
        async |resource: &str| admin.get(&format!("/api/management/v2/{resource}")).await.is(200).json();
    let subscription = first("Subscription").await[0]["id"].clone();
    let kinds = first("IdpType?filter=name%20eq%20%22UserStore%22").await;
    let body = json!({ "name": name, "subscriptionId": subscription, "idpTypeId": kinds[0]["id"] });
    admin.post("/api/management/v2/IdpInstance", body).await.is(201).json()
}

/// Rows of many kinds: texts, truth values, bytes, secrets, relations, and a deleted user store.
async fn fill(admin: &Client) {
    for number in 0..700 {
        let body = json!({ "loginName": format!("user-{number}"), "isUserActive": number % 2 == 0 });
        admin.post(USERS, body).await.expect(201);
    }
    let user = &admin.get(&format!("{USERS}?count=1")).await.is(200).json()[0]["id"];
    let image = format!("{USERS}/{}/image", user.as_str().unwrap());
    admin.send(Method::PUT, &image, &[("content-type", "image/png")], png_by("a test")).await.expect(200);
    set_mail_server(admin).await;
    let gone = make_store(admin, "gone").await;
    let path = format!("/api/management/v2/IdpInstance/{}", gone["id"].as_str().unwrap());
    admin.delete(&path).await.expect(204);
}

/// All resources that an administrator sees.
async fn seen(admin: &Client) -> Vec<Json> {
    let mut seen = Vec::new();
    for path in [
        "/api/userstore/v2/default/administration/User?count=1000",
        "/api/userstore/v2/default/administration/CustomAuditTrail?count=1000",
        "/api/management/v2/Option?count=1000",
        "/api/management/v2/IdpInstance",
        "/api/management/v2/ClientAppSecret",
        "/api/management/v2/CustomAuditTrail?count=1000",
    ] {
        seen.push(admin.get(path).await.is(200).json());
    }
    seen
}

/// Starts a server on a copied database, with the former master key, and reads everything.
async fn look(database: &Database, key: &[u8]) -> Vec<Json> {
    database.write_private("master.key", key);
    let mut server = Process::start(database, &[]).await;
    let seen = seen(&server.admin).await;
    assert!(server.stop());
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_goes_to_the_other_engine_and_back() {
    let (first, second, third) = (
        Database::create(Engine::Sqlite),
        Database::create(Engine::Postgres),
        Database::create(Engine::Sqlite),
    );
    let copy = |from: &Database, to: &Database| run(from, &["copy", "--to", to.url()]);
    refused(&copy(&first, &second), "master.key: No such file");
    let mut server = Process::start(&first, &[]).await;
    fill(&server.admin).await;
    for trail in ["/api/userstore/v2/default/administration", "/api/management/v2"] {
        let checkpoint = format!("{trail}/CustomAuditTrail/checkpoint");
        until("the trail has a checkpoint", || async { server.admin.get(&checkpoint).await.status == 200 })
            .await;
    }
    let key = fs::read(first.folder().join("master.key")).unwrap();
    second.write_private("master.key", &key);
    refused(&copy(&first, &second), "in use");
    let before = seen(&server.admin).await;
    assert!(server.stop());
    refused(&copy(&first, &first), "the target is the database itself");
    let lines = done(&copy(&first, &second));
    assert!(lines.contains("user_account: 700 rows, equal") && lines.contains("each table equal"), "{lines}");
    assert!(lines.contains("audit trail of management: ") && lines.matches("sound").count() >= 2, "{lines}");
    refused(&copy(&first, &second), "a server has started on it");

    assert_eq!(look(&second, &key).await, before, "PostgreSQL has what SQLite had");
    let last = number(&first, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'idp_instance'").await;
    let mut server = Process::start(&second, &[]).await;
    refused(&copy(&second, &third), "a server uses the database");
    server.admin.post(USERS, json!({ "loginName": "new" })).await.expect(201);
    make_store(&server.admin, "new").await;
    let before = seen(&server.admin).await;
    assert!(server.stop());
    let next = number(&second, "SELECT max(rid) FROM idp_instance").await;
    assert!(next > last, "no number is given twice: {next} after {last}");

    done(&copy(&second, &third));
    assert_eq!(look(&third, &key).await, before, "SQLite has what PostgreSQL had");
    refused(&copy(&second, &third), "is there");
}

/// A copy to another database retains the identity of an installation: tokens that a restore invalidated stay invalid, a copy stays a
/// copy, and a source whose restore is unfinished is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_moved_keeps_the_identity_of_the_installation() {
    let (first, second, third) = (
        Database::create(Engine::Sqlite),
        Database::create(Engine::Postgres),
        Database::create(Engine::Sqlite),
    );
    // access tokens are valid for one public URL, which follows from the address
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let listen = [("CHANCERY_LISTEN", address.as_str())];
    let mut server = Process::start(&first, &listen).await;
    let former = server.admin.token().to_owned();
    assert!(server.stop());
    let mut server = Process::start(&first, &listen).await;
    let with_token = |server: &Process, token: &str| Client::anonymous(&server.base).with_token(token);
    with_token(&server, &former).get(USERS).await.expect(200);
    assert!(server.stop());
    let key = fs::read(first.folder().join("master.key")).unwrap();
    second.write_private("master.key", &key);
    third.write_private("master.key", &key);
    let copy = |from: &Database, to: &Database| run(from, &["copy", "--to", to.url()]);

    crate::server::execute(&first, &["UPDATE installation SET is_restoring = (1 = 1)"]).await;
    refused(&copy(&first, &second), "being restored");
    done(&run(&first, &["restore", "--in-place", "--no-erasures"]));
    done(&copy(&first, &second));
    let mut server = Process::start(&second, &listen).await;
    with_token(&server, &former).get(USERS).await.expect(401);
    assert_eq!(crate::program::warnings(&server).await, "null", "the target is the installation");
    let since = server.admin.token().to_owned();
    assert!(server.stop());

    crate::server::execute(&second, &["UPDATE installation SET place = 'elsewhere'"]).await;
    done(&copy(&second, &third));
    let mut server = Process::start(&third, &listen).await;
    with_token(&server, &since).get(USERS).await.expect(200);
    assert!(crate::program::warnings(&server).await.contains("this is a copy"));
    assert!(server.stop());
}

/// A target with rows that no migration created is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_rows_is_refused_and_stays() {
    let (source, target) = (Database::create(Engine::Sqlite), Database::create(Engine::Postgres));
    assert!(Process::start(&source, &[]).await.stop());
    crate::server::execute(&target, &["INSERT INTO retired_id (store, resource, id) VALUES (1, 'x', '01a20629-644b-7002-8980-dbcc4960bb91')"])
        .await;
    refused(&run(&source, &["copy", "--to", target.url()]), "retired_id has rows");
    assert_eq!(number(&target, "SELECT count(*) FROM retired_id").await, 1);
    let file = source.write_private("target.url", target.url());
    refused(&run(&source, &["copy", "--to-file", file.to_str().unwrap()]), "retired_id has rows");
}

async fn a_master_key_becomes_another(engine: Engine) {
    let database = Database::create(engine);
    let mut server = Process::start(&database, &[]).await;
    let admin = &server.admin;
    admin.post(USERS, json!({ "loginName": "ada" })).await.expect(201);
    set_mail_server(admin).await;
    let before = seen(admin).await;
    let rotate = || run(&database, &["key", "rotate"]);
    refused(&rotate(), if engine == Engine::Sqlite { "in use" } else { "a server uses the database" });
    assert!(server.stop());
    let file = database.folder().join("master.key");
    let old = fs::read(&file).unwrap();
    let copied = database.copy().unwrap();

    let lines = done(&rotate());
    assert!(lines.contains("2 keys"), "{lines}");
    let both = fs::read(&file).unwrap();
    assert_eq!((both.len(), &both[32..]), (64, old.as_slice()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(number(&database, "SELECT floor FROM schema_floor").await >= 61, "older programs are refused");
    // the root client's secret, a digest, and all sealed values still work, and new values are sealed
    let mut server = Process::start(&database, &[]).await;
    assert_eq!(seen(&server.admin).await, before);
    set_mail_server(&server.admin).await;
    server.admin.post(USERS, json!({ "loginName": "ben" })).await.expect(201);
    let before = seen(&server.admin).await;
    assert!(server.stop());

    // the former key opens its own values alone
    database.write_private("master.key", &old);
    let start = run(&database, &["--listen", "127.0.0.1:0"]);
    refused(&start, "cannot be opened with this master key");
    assert_eq!(fs::read(&file).unwrap(), old, "nothing is made in its place");
    database.write_private("master.key", &both);
    assert!(done(&rotate()).contains("3 keys"));
    let mut server = Process::start(&database, &[]).await;
    assert_eq!(seen(&server.admin).await, before);
    assert!(server.stop());

    // a backup from before works with the file from after
    copied.write_private("master.key", fs::read(&file).unwrap());
    let mut server = Process::start(&copied, &[]).await;
    server.admin.get(OPTION).await.expect(200);
    assert!(server.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_key_becomes_another_sqlite() {
    a_master_key_becomes_another(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_key_becomes_another_postgres() {
    a_master_key_becomes_another(Engine::Postgres).await;
}

/// The columns of an embedded database that have values which this key encrypted.
async fn encrypted_by(database: &Database, key: &MasterKey) -> Vec<String> {
    let path = database.url().strip_prefix("sqlite:").unwrap().to_owned();
    let target = Target::Sqlite(path.into());
    let store = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = store.await.unwrap().unwrap();
    let id = key.seal("", b"")[..4].to_vec();
    let read = store.run("Test", Mode::Long, None, move |tx| {
        let (mut columns, mut found) = (Vec::new(), Vec::new());
        let all = "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'";
        tx.query(all, &[], |row| {
            columns.push((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
            Ok(())
        })?;
        // five letters of base64 have the first 30 bits
        let text = format!("\u{1}{}", &BASE64_STANDARD_NO_PAD.encode(&id)[..5]);
        for (table, column) in columns {
            let count = format!(
                "SELECT count(*) FROM {table} WHERE substr({column}, 1, 4) = ?1 OR substr({column}, 1, 6) = ?2"
            );
            let parameters = [id.clone().into(), text.as_str().into()];
            if tx.one(&count, &parameters, |row| row.int(0))? != Some(0) {
                found.push(format!("{table}.{column}"));
            }
        }
        Ok::<_, Error>(found)
    });
    let found = read.await.unwrap();
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
    found
}

/// After a rotation a server encrypts everything again, and logs when the older key can be removed from the file.
async fn an_older_master_key_is_needed_no_longer(engine: Engine) {
    let database = Database::create(engine);
    let mut server = Process::start(&database, &[]).await;
    fill(&server.admin).await;
    let before = seen(&server.admin).await;
    assert!(server.stop());
    let old = MasterKey::new(&fs::read(database.folder().join("master.key")).unwrap()).unwrap();
    done(&run(&database, &["key", "rotate"]));
    if engine == Engine::Sqlite {
        let columns = encrypted_by(&database, &old).await;
        for column in ["user_account.audit_key", "option_value.value"] {
            assert!(columns.iter().any(|found| found == column), "{column} in {columns:?}");
        }
    }
    let both = fs::read(database.folder().join("master.key")).unwrap();
    let mut server = Process::start(&database, &[]).await;
    let log = server.log.clone();
    let is_logged =
        || async { fs::read_to_string(&log).unwrap().contains("need the first master key alone") };
    until("everything is encrypted again", is_logged).await;
    let metrics = server.admin.get("/metrics").await.is(200);
    let metrics = String::from_utf8_lossy(&metrics.bytes);
    let figure = |name: &str| {
        let line = format!("chancery_{name}{{job=\"resealing\"}} ");
        let found = metrics.lines().find_map(|found| found.strip_prefix(&line)).unwrap();
        found.parse::<u64>().unwrap()
    };
    assert!(
        figure("backfill_rows") > 700 && figure("backfill_rows_done") == figure("backfill_rows"),
        "{metrics}"
    );
    assert!(server.stop());
    if engine == Engine::Sqlite {
        assert_eq!(encrypted_by(&database, &old).await, [""; 0]);
    }
    database.write_private("master.key", &both[..32]);
    let mut server = Process::start(&database, &[]).await;
    assert_eq!(seen(&server.admin).await, before);
    assert!(server.stop());
    assert!(!fs::read_to_string(&server.log).unwrap().contains("master key alone"), "one key needs no job");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_master_key_is_needed_no_longer_sqlite() {
    an_older_master_key_is_needed_no_longer(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_master_key_is_needed_no_longer_postgres() {
    an_older_master_key_is_needed_no_longer(Engine::Postgres).await;
}

/// A database of the previous release has no root key yet: it becomes the master key that sealed the signing keys, at any position
/// in the file.
async fn the_root_key_of_an_earlier_release_is_retained(engine: Engine) {
    let database = Database::create(engine);
    assert!(Process::start(&database, &[]).await.stop());
    crate::server::execute(&database, &["DELETE FROM key_root"]).await;
    let old = fs::read(database.folder().join("master.key")).unwrap();
    database.write_private("master.key", [[7; 32].as_slice(), &old].concat());
    let mut server = Process::start(&database, &[]).await;
    assert!(server.stop(), "the digest of the root client's secret is the one that is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_key_of_an_earlier_release_is_retained_sqlite() {
    the_root_key_of_an_earlier_release_is_retained(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_key_of_an_earlier_release_is_retained_postgres() {
    the_root_key_of_an_earlier_release_is_retained(Engine::Postgres).await;
}
