//! Upgrades: the data of an older release is migrated, also while servers use it and after interruptions.
//! `tests/contract/releases` has the data, made by `scripts/dump-release`.

mod concurrent;
mod interrupted;
mod replayed;

use std::{
    fs::{self, File, Permissions},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use chancery_store::migration_checksums;
use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::json;

use crate::id;

const STORE: &str = "/api/userstore/v2/default/administration";
const MANAGEMENT: &str = "/api/management/v2";
const ENGINES: [Engine; 2] = [Engine::Sqlite, Engine::Postgres];

/// The schema version of the stored release data, and the name of the first migration since.
const BEFORE: i64 = 18;
const FIRST: &str = "0019_write_gate";

/// The data of release 0.1.0.
fn restored(engine: Engine) -> Database {
    let database = Database::create(engine);
    let key = database.folder().join("master.key");
    fs::copy(release_file("master.key"), &key).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    match engine {
        Engine::Sqlite => {
            fs::write(database.folder().join("chancery.sqlite"), unpacked("chancery.sqlite.gz")).unwrap();
        }
        Engine::Postgres => {
            psql(&database, &unpacked("chancery.sql.gz")).unwrap();
        }
    }
    database
}

fn release_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("contract/releases/0.1.0").join(name)
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(File::open(release_file(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Runs statements on a database of PostgreSQL, as its owner: returns their output, or the error.
fn psql(database: &Database, statements: &[u8]) -> Result<String, String> {
    let mut psql = start_psql(database);
    psql.stdin.take().unwrap().write_all(statements).unwrap();
    let output = psql.wait_with_output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn start_psql(database: &Database) -> Child {
    Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database.url(), "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The output of a query; empty where it fails.
fn query_value(database: &Database, query: &str) -> String {
    psql(database, query.as_bytes()).unwrap_or_default()
}

/// A foreign transaction, open until the value is dropped.
struct Transaction(Child);

impl Transaction {
    fn of(database: &Database, statements: &str) -> Self {
        let mut psql = start_psql(database);
        let text = format!("{statements};\n\\echo held\n");
        psql.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        let mut lines = BufReader::new(psql.stdout.as_mut().unwrap()).lines();
        while lines.next().unwrap().unwrap() != "held" {}
        Self(psql)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `chancery migrate`.
fn migrate(database: &Database) -> Command {
    let mut command = Process::command(&["migrate"]);
    command
        .env("CHANCERY_DATABASE", database.url())
        .env("CHANCERY_DATA_DIR", database.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// How many migrations the program has beyond those of the release.
fn missing() -> usize {
    migration_checksums().filter(|(version, _)| *version > BEFORE).count()
}

/// The lines of the log that name an applied migration.
fn applied(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("applied a migration")).collect()
}

async fn with_token(server: Process) -> Process {
    let mut server = chancery_testkit::spawn_blocking(|| server.awaited()).await.unwrap();
    let anonymous = Client::anonymous(&server.base);
    let form =
        format!("grant_type=client_credentials&client_id=root&client_secret={}", chancery_testkit::SECRET);
    let token = anonymous.ask_for_token(&form).await.is(200).json();
    server.admin = anonymous.with_token(token["access_token"].as_str().unwrap());
    server
}

/// Asserts that the data of the release is there, and that a server works with it.
async fn check_release_data(server: &Process) {
    let admin = &server.admin;
    let users = admin.get(&format!("{STORE}/User?count=100")).await.is(200).json();
    let users = users.as_array().unwrap();
    assert_eq!(users.len(), 19, "the twentieth was deleted");
    for user in users {
        let number = user["loginName"].as_str().unwrap().strip_prefix("person-").unwrap();
        assert_eq!(user["firstName"], format!("First {number}"));
        assert_eq!(user["emailAddress"], format!("p{number}@example.com"));
    }
    let groups =
        admin.get(&format!("{STORE}/Group?filter=name%20eq%20%22Kept%20group%22")).await.is(200).json();
    let members = users.iter().filter(|user| user["memberOfGroups"][0]["id"] == groups[0]["id"]);
    assert_eq!(members.count(), 3);
    let anonymous = Client::anonymous(&server.base);
    let password = "/api/userstore/v2/default/PublicAdmin/user/loginname/person-0/password/change";
    let change =
        json!({ "oldPassword": "five quiet brown otters", "newPassword": "nine lively grey herons" });
    anonymous.post(password, change).await.expect(200);
    let app = format!("{MANAGEMENT}/ClientApp?filter=name%20eq%20%22Kept%20app%22");
    let app = admin.get(&app).await.is(200).json();
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret=a-secret-of-an-app-that-is-kept",
        id(&app[0])
    );
    anonymous.ask_for_token(&form).await.expect(200);
    admin.post(&format!("{STORE}/User"), json!({ "loginName": "new" })).await.expect(201);
}

/// A torn file of an older release is rejected before it is upgraded.
#[tokio::test(flavor = "multi_thread")]
async fn a_torn_file_of_an_older_release_is_rejected() {
    let database = restored(Engine::Sqlite);
    let path = database.folder().join("chancery.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 8192 * 4096;
    bytes[half..].fill(0);
    fs::write(&path, bytes).unwrap();
    let output = migrate(&database).output().unwrap();
    assert!(
        !output.status.success() && output_text(&output).contains("torn or damaged"),
        "{}",
        output_text(&output)
    );
}

/// A start migrates the data of a release, and logs each migration.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_upgrades_the_data_of_an_older_release() {
    for engine in ENGINES {
        let database = restored(engine);
        let server = Process::start(&database, &[]).await;
        check_release_data(&server).await;
        let log = fs::read_to_string(&server.log).unwrap();
        let lines = applied(&log);
        assert_eq!(lines.len(), missing(), "{engine:?}");
        assert!(lines[0].contains(FIRST) && lines[0].contains("seconds"), "{}", lines[0]);
    }
}

/// A tenant of the older release has no row of the option PkceRequired. It retains the old default, and a new tenant has the new one.
/// So do client apps with their new members.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_apps_of_an_older_release_retain_the_old_defaults() {
    for engine in ENGINES {
        let database = restored(engine);
        let server = Process::start(&database, &[]).await;
        let admin = &server.admin;
        let tenants = admin.get(&format!("{MANAGEMENT}/Tenant")).await.is(200).json();
        let tenant = json!({ "name": "New", "subscriptionId": tenants[0]["subscriptionId"] });
        let new = admin.post(&format!("{MANAGEMENT}/Tenant"), tenant).await.is(201).json();
        for (tenant, expected) in [(&tenants[0], "true"), (&new, "false")] {
            let filter =
                format!("name%20eq%20%22PkceRequired%22%20and%20applyToTenantId%20eq%20%22{}%22", id(tenant));
            let options = admin.get(&format!("{MANAGEMENT}/Option?filter={filter}")).await.is(200).json();
            let values: Vec<_> = options.as_array().unwrap().iter().map(|option| &option["value"]).collect();
            assert_eq!(values, [expected], "{engine:?} {}", tenant["name"]);
        }
        let apps = format!("{MANAGEMENT}/ClientApp");
        let old = admin.get(&format!("{apps}?filter=name%20eq%20%22Kept%20app%22")).await.is(200).json();
        let new = admin.post(&apps, json!({ "name": "New" })).await.is(201).json();
        for (app, claims) in [(&old[0], "Minimal"), (&new, "Scopes")] {
            let values =
                ["idTokenClaims", "refreshTokens", "pkce"].map(|member| app[member].as_str().unwrap());
            assert_eq!(values, [claims, "OfflineAccess", "AsTenant"], "{engine:?} {}", app["name"]);
        }
    }
}

/// An audit export from before the upgrade is verified with the keys from after it.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_trail_that_an_older_release_exported_is_verified() {
    let database = restored(Engine::Sqlite);
    let (export, keys) = (database.folder().join("export.jsonl"), database.folder().join("keys.json"));
    fs::write(&export, unpacked("export.jsonl.gz")).unwrap();
    let server = Process::start(&database, &[]).await;
    fs::write(&keys, server.admin.get("/.well-known/audit-keys.json").await.is(200).bytes).unwrap();
    let mut verify = Process::command(&["audit", "verify"]);
    let output = verify.arg(&export).arg("--keys").arg(&keys).output().unwrap();
    assert!(output.status.success() && output_text(&output).contains("sound"), "{}", output_text(&output));
}

/// With `CHANCERY_MIGRATE=off` a start refuses pending migrations, and the command applies them.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_upgraded_by_the_command_alone_where_starts_must_not() {
    let off = [("CHANCERY_MIGRATE", "off")];
    for engine in ENGINES {
        let database = restored(engine);
        let mut refused = Process::begin(&database, &off);
        assert!(!refused.wait());
        let log = fs::read_to_string(&refused.log).unwrap();
        assert!(log.contains("Run chancery migrate") && log.contains(FIRST), "{log}");
        let output = migrate(&database).output().unwrap();
        let text = output_text(&output);
        assert!(output.status.success(), "{text}");
        assert!(text.contains(&format!("{} migrations were applied", missing())), "{text}");
        assert_eq!(applied(&text).len(), missing());
        let output = migrate(&database).output().unwrap();
        assert!(output_text(&output).contains("nothing was missing"), "{}", output_text(&output));
        let server = with_token(Process::begin(&database, &off)).await;
        check_release_data(&server).await;
        let log = fs::read_to_string(&server.log).unwrap();
        assert_eq!(applied(&log).len(), 0);
    }
}

/// The command creates the schema of an empty database, too; beside a server with an embedded database it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_makes_a_schema_and_explains_itself() {
    for engine in ENGINES {
        let database = Database::create(engine);
        let output = migrate(&database).output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        let mut server = Process::start(&database, &[("CHANCERY_MIGRATE", "off")]).await;
        let with_server = migrate(&database).output().unwrap();
        assert_eq!(with_server.status.success(), engine == Engine::Postgres, "{}", output_text(&with_server));
        assert!(server.stop());
    }
    let help = Process::command(&["migrate", "--help"]).output().unwrap();
    let help = output_text(&help);
    for word in ["CHANCERY_MIGRATE=off", "Example", "ALTER DEFAULT PRIVILEGES", "ten minutes"] {
        assert!(help.contains(word), "{word} in {help}");
    }
}
