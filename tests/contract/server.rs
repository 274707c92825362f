//! The server's own: health, metrics, the command line.

use std::process::Command;

use chancery::build::COMMIT;
use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Mode, Store, Target, raw};
use chancery_testkit::{Database, Engine, Process, SECRET, on_both_engines};
use serde_json::json;
use uuid::Uuid;

const CLIENT_APPS: &str = "/api/management/v2/ClientApp";

on_both_engines! {
    async fn is_alive_ready_and_measured(world: World) {
        world.anonymous.get("/health/live").await.expect(200);
        world.anonymous.get("/health/ready").await.expect(200);
        world.anonymous.get("/metrics").await.problem(401, "unauthorized");
        world.user("ada").await;
        let text = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8(text.bytes.to_vec()).unwrap();
        for line in ["chancery_operation_seconds_count{service=\"userstore\",version=\"v2\",operation=\"CreateUser\"} 1", "chancery_store_writes", "chancery_outbox_events"] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let schema = chancery_store::schema_version();
        let build = format!("chancery_build_info{{version=\"{}\",commit=\"{COMMIT}\",schema=\"{schema}\"}} 1", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&build), "{build} in {text}");
        let holds = text.contains("chancery_writer_hold_seconds_count{operation=\"CreateUser\"} 1");
        assert_eq!(holds, world.engine == Engine::Sqlite, "one writer is held, where there is one");
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        reader.get("/metrics").await.problem(403, "forbidden");
    }
}

/// Memory is counted by the used pages, not by two mebibytes around each of them.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_memory_is_taken_in_huge_pages() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    assert!(status.contains("THP_enabled:\t0"), "{status}");
}

#[test]
fn the_command_line_explains_itself() {
    let run = |words: &[&str]| Process::command(words).output().unwrap();
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for word in ["serve", "check-config", "version", "CHANCERY_LISTEN", "Examples:"] {
        assert!(help.contains(word), "{word}");
    }
    let (version, schema) = (env!("CARGO_PKG_VERSION"), chancery_store::schema_version());
    for word in ["version", "--version"] {
        let text = String::from_utf8(run(&[word]).stdout).unwrap();
        assert_eq!(text, format!("chancery {version} (commit {COMMIT}, schema {schema})\n"));
    }
    let shown = run(&[
        "check-config",
        "--root-client-secret",
        "hush-hush-hush-hush",
        "--database",
        "postgres://a:hush@b/c",
    ]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("postgres://a@b/c") && !shown.contains("hush"), "{shown}");
    let wrong = run(&["check-config", "--listen", "nowhere"]);
    assert!(!wrong.status.success());
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("listen"));
}

on_both_engines! {
    /// Expired rows are deleted, and younger ones stay.
    async fn old_events_and_idempotency_keys_go(world: World) {
        const DAY: i64 = 24 * 3600 * 1000;
        let now = 1_795_253_400_000_i64;
        let mut rows = Vec::new();
        for (number, age) in [0, 6 * DAY, 8 * DAY, 9 * DAY].into_iter().enumerate() {
            rows.push((
                "INSERT INTO outbox_event (id, store, envelope) VALUES (?1, 99, '{}')",
                vec![Value::Int((now - age) * 1000)],
            ));
            rows.push((
                "INSERT INTO idempotent_answer (caller, key_digest, request_digest, attempt, started_on) \
                 VALUES (?1, ?2, ?2, ?1, ?3)",
                vec![Value::Id(Uuid::from_u128(7)), Value::Bytes(vec![u8::try_from(number).unwrap()]), Value::Int(now - age / 6)],
            ));
        }
        // the record of a used proof outlives any process's clock
        for (number, over) in [59_000, 61_000].into_iter().enumerate() {
            rows.push((
                "INSERT INTO used_proof (digest, expires_on) VALUES (?1, ?2)",
                vec![Value::Bytes(vec![u8::try_from(number).unwrap()]), Value::Int(now - over)],
            ));
        }
        world.sql(rows).await;
        let run = world.app.store.run("Test", Mode::Write, None, move |tx| {
            chancery::prune_batch(tx, Timestamp(now))?;
            chancery::prune_events(tx, Timestamp(now), 1000)
        });
        assert_eq!(run.await.unwrap(), 2);
        let proofs = world.app.store.run("Test", Mode::Long, None, move |tx| {
            let text = "SELECT count(*) FROM used_proof WHERE expires_on < ?1";
            tx.one(text, &[Value::Int(now)], |row| row.int(0))
        });
        assert_eq!(proofs.await, Ok::<_, Error>(Some(1)));
        let left = world.app.store.run("Test", Mode::Long, None, |tx| {
            let events = tx.one("SELECT count(*) FROM outbox_event WHERE store = 99", &[], |row| row.int(0))?;
            let keys = tx.one("SELECT count(*) FROM idempotent_answer", &[], |row| row.int(0))?;
            Ok::<_, Error>((events, keys))
        });
        assert_eq!(left.await.unwrap(), (Some(2), Some(2)));
    }
}

/// A start without a secret generates one and prints it once; the printed line works.
#[tokio::test]
async fn the_greeting_works_when_pasted() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start_unconfigured(&database);
    let line = server.greeting.last().unwrap().trim().to_owned();
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[]", "{line}");
    assert!(server.stop(), "a clean end on SIGTERM");
    let mut again = Process::start_unconfigured(&database);
    assert!(!again.greeting.iter().any(|line| line.contains("root secret")), "shown once");
    assert!(again.stop());
}

pub async fn execute(database: &Database, statements: &'static [&'static str]) {
    let target = match database.url().strip_prefix("sqlite:") {
        Some(path) => Target::Sqlite(path.into()),
        None => Target::Postgres(database.url().to_owned()),
    };
    let store =
        chancery_testkit::spawn_blocking(move || Store::open(&target, chancery_store::Settings::default()));
    let store = store.await.unwrap().unwrap();
    let run = store.run("Test", Mode::Write, None, move |tx| {
        statements.iter().try_for_each(|text| raw::queue(tx, text, Vec::new()))
    });
    run.await.map_err(|error: Error| error.to_string()).unwrap();
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// No caller can get a token any more: after this damage and `chancery recover` the client app in its output
/// can, and by no other secret.
async fn is_recovered(engine: Engine, damage: &'static [&'static str], is_named: bool) {
    let database = Database::create(engine);
    let mut server = Process::start(&database, &[]).await;
    let root = server.admin.get(&format!("{CLIENT_APPS}?filter=name%20eq%20%22root%22")).await.is(200).json()
        [0]
    .clone();
    let configuration = json!({ "clientAppId": root["id"], "tokenEndpointAuthMethod": "client_secret_post" });
    server
        .admin
        .post("/api/management/v2/ClientAppAuthenticationConfiguration", configuration)
        .await
        .expect(201);
    assert!(server.stop());
    execute(&database, damage).await;
    let mut shut = Process::start_unconfigured(&database);
    let form = |client: &str, secret: &str| {
        format!("grant_type=client_credentials&client_id={client}&client_secret={secret}")
    };
    assert!(shut.stop(), "it starts and stops all the same");

    let text = recover(&database).unwrap();
    let word = |label: &str| text.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap().trim();
    let (secret, id) = (word("root secret"), word("root client id").split(' ').next().unwrap());
    assert_eq!(text.contains("(or its name, root)"), is_named, "{text}");
    let again = Process::start_unconfigured(&database);
    again.admin.ask_for_token(&form(id, SECRET)).await.expect(401);
    let token =
        again.admin.ask_for_token(&form(if is_named { "root" } else { id }, secret)).await.is(200).json();
    let admin = again.admin.with_token(token["access_token"].as_str().unwrap());
    admin.get("/api/management/v2/Customer").await.expect(200);
    let trail = admin
        .get("/api/management/v2/CustomAuditTrail?filter=area%20eq%20%22ClientAppSecret%22")
        .await
        .is(200);
    let trail = trail.json().to_string();
    assert!(trail.contains("made by recover") && !trail.contains(secret), "{trail}");
}

fn recover(database: &Database) -> Result<String, String> {
    let mut command = Process::command(&["recover", "--database", database.url(), "--data-dir"]);
    command.arg(database.folder());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[tokio::test]
async fn a_locked_out_administrator_is_recovered() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let damage = &[
            "UPDATE client_app SET enabled = FALSE, allow_client_credential_login = FALSE, is_public = TRUE, security_profile = 'Fapi2Security'",
        ];
        is_recovered(engine, damage, true).await;
    }
}

/// A name grants no role: an app that is only called root gets none, and one with another name is not searched.
#[tokio::test]
async fn a_root_that_is_gone_is_made_again_when_it_is_asked_for() {
    const RENAMED: [&str; 1] =
        ["UPDATE client_app SET name = 'other', name_key = 'other' WHERE name = 'root'"];
    for engine in [Engine::Sqlite, Engine::Postgres] {
        is_recovered(engine, &["DELETE FROM client_app_role"], false).await;
        is_recovered(engine, &RENAMED, true).await;
    }
}

#[tokio::test]
async fn what_is_recovered_is_there() {
    let database = Database::create(Engine::Sqlite);
    assert!(recover(&database).unwrap_err().contains("is not there"));
    Process::start(&database, &[]).await.kill();
    execute(&database, &["DELETE FROM client_app"]).await;
    assert!(recover(&database).unwrap_err().contains("no client app"));
}

/// The output of a start that ends by itself.
fn start(database: &Database) -> std::process::Output {
    Process::command(&["--database", database.url()])
        .arg("--data-dir")
        .arg(database.folder())
        .output()
        .unwrap()
}

/// A second process on one embedded database is refused.
#[tokio::test]
async fn an_embedded_database_is_for_one_process() {
    let database = Database::create(Engine::Sqlite);
    let _server = Process::start(&database, &[]).await;
    let second = start(&database);
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"));
}

/// Keys do not open with another master key, and the server reports it instead of starting.
#[tokio::test]
async fn the_master_key_belongs_to_the_database() {
    let database = Database::create(Engine::Sqlite);
    Process::start(&database, &[]).await.kill();
    std::fs::write(database.folder().join("master.key"), [7; 32]).unwrap();
    let output = start(&database);
    assert!(String::from_utf8_lossy(&output.stderr).contains("master key"));
}

/// A lost master key is not generated again beside the data that it sealed: a backup would contain the wrong one.
async fn lost_master_key_is_not_replaced(engine: Engine) {
    let database = Database::create(engine);
    Process::start(&database, &[]).await.kill();
    let key = database.folder().join("master.key");
    let original = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let output = start(&database);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("master.key is not there"), "{text}");
    assert!(!key.exists());
    database.write_private("master.key", original);
    Process::start(&database, &[]).await.kill();
}

#[tokio::test]
async fn a_lost_master_key_is_not_replaced_on_sqlite() {
    lost_master_key_is_not_replaced(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_lost_master_key_is_not_replaced_on_postgres() {
    lost_master_key_is_not_replaced(Engine::Postgres).await;
}

/// A wrong file of TLS is reported with its name; a mistyped variable is reported with the intended one.
#[test]
fn a_start_reports_wrong_files_and_variables() {
    let database = Database::create(Engine::Sqlite);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (database.folder().join("cert.pem"), database.folder().join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    let closed = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let program = |words: &[&str]| {
        let mut command = Process::command(words);
        command.arg("--data-dir").arg(database.folder());
        command
    };
    for (text, words) in
        [(closed, "password"), (&other, "is not that of the first certificate"), ("", "no private key")]
    {
        database.write_private("key.pem", text);
        let files = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let output = program(&files).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(words) && text.contains("key.pem: "), "{text}");
        assert!(!text.contains("cannot listen"), "{text}");
    }
    let checked = program(&["check-config"]).env("CHANCERY_ADMIN_ARC", "mfa").output().unwrap();
    let text = String::from_utf8(checked.stderr).unwrap();
    assert!(checked.status.success() && text.contains("CHANCERY_ADMIN_ARC"), "{text}");
    assert!(text.contains("CHANCERY_ADMIN_ACR is one"), "{text}");
    let server = Process::start_unready(&database, &[("CHANCERY_LISTN", "127.0.0.1:1")]);
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("CHANCERY_LISTN is no setting") && log.contains("CHANCERY_LISTEN is one"), "{log}");
}

/// Metrics at an address of their own need no token; TLS serves HTTP/2 and HTTP/1.1.
#[tokio::test]
async fn tls_and_an_address_for_metrics() {
    let database = Database::create(Engine::Sqlite);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (database.folder().join("cert.pem"), database.folder().join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    database.write_private("key.pem", certified.signing_key.serialize_pem());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let metrics = format!("127.0.0.1:{port}");
    let server = Process::start_unready(
        &database,
        &[
            ("CHANCERY_TLS_CERTIFICATE", certificate.to_str().unwrap()),
            ("CHANCERY_TLS_KEY", key.to_str().unwrap()),
            ("CHANCERY_METRICS_LISTEN", &metrics),
        ],
    );
    assert!(server.base.starts_with("https://"));
    let curl = |words: &[&str]| {
        let output = Command::new("curl")
            .args(["-sk", "--cacert", certificate.to_str().unwrap()])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let live = format!("{}/health/live", server.base);
    assert!(curl(&["--http2", "-w", " %{http_version}", &live]).ends_with(" 2"));
    assert!(curl(&["--http1.1", "-w", " %{http_version}", &live]).ends_with(" 1.1"));
    // HEAD has the headers of GET, and no body, over both versions
    for (version, path) in
        [("--http2", "/health/live"), ("--http1.1", "/health/live"), ("--http2", "/openapi")]
    {
        let url = format!("{}{path}", server.base);
        let headers = |method: &str| {
            let text = curl(&[version, "-D", "-", "-o", "/dev/null", "-w", "exit %{exitcode}", method, &url]);
            let is_fixed = |line: &&str| {
                !["date:", "x-trace-id:", "traceresponse:"].iter().any(|name| line.starts_with(name))
            };
            text.lines().filter(is_fixed).map(str::to_owned).collect::<Vec<_>>()
        };
        let head = headers("--head");
        assert_eq!(head, headers("--get"), "{version} {path}");
        assert_eq!(head.last().map(String::as_str), Some("exit 0"), "{head:?}");
    }
    assert!(curl(&[&format!("http://{metrics}/metrics")]).contains("chancery_answers"));
    assert!(curl(&[&format!("http://{metrics}/health/live")]).contains("no-such-route"));
}

/// Creates another name for a file.
type MakeLink = fn(&std::path::Path, &std::path::Path) -> std::io::Result<()>;

/// A link to the file is the same file: a second process is refused, and the first one's data stays whole.
#[tokio::test]
async fn an_embedded_database_is_for_one_process_by_whatever_name() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let links: [(&str, MakeLink); 2] = [
        ("hard", |file, link| std::fs::hard_link(file, link)),
        ("symbolic", |file, link| std::os::unix::fs::symlink(file, link)),
    ];
    for (kind, make_link) in links {
        let other = Database::create(Engine::Sqlite);
        let file = |database: &Database, name: &str| database.folder().join(name);
        make_link(&file(&database, "chancery.sqlite"), &file(&other, "chancery.sqlite")).unwrap();
        std::fs::copy(file(&database, "master.key"), file(&other, "master.key")).unwrap();
        let mut refused = Process::start_unready(&other, &[]);
        assert!(
            refused.greeting.is_empty(),
            "a second process starts by a {kind} link: {:?}",
            refused.greeting
        );
        assert!(!refused.wait());
        let log = std::fs::read_to_string(&refused.log).unwrap();
        assert!(log.contains("is in use") && log.contains("another server holds its lock"), "{log}");
        server
            .admin
            .post("/api/userstore/v2/default/administration/User", json!({ "loginName": kind }))
            .await
            .expect(201);
    }
}
