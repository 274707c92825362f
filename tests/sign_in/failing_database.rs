//! A PostgreSQL that fails in the middle of its work.

use std::{sync::Arc, time::Duration};

use chancery_store::{Error, Mode, Settings, Store, Target, raw};
use chancery_testkit::{Client, Cut, Database, Engine, Process, Proxy, TlsAnswer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier},
};

use crate::{sign_in::browser::Browser, until};

const USERS: &str = "/api/userstore/v2/default/administration/User";
const TRAIL: &str = "/api/userstore/v2/default/administration/CustomAuditTrail";
const JSON: (&str, &str) = ("content-type", "application/json");

struct Behind {
    database: Database,
    proxy: Proxy,
    server: Process,
}

/// A server whose database is behind a proxy.
async fn behind_a_proxy() -> Behind {
    let database = Database::create(Engine::Postgres);
    let proxy = Proxy::start(database.url()).await;
    let url = proxy.url(database.url(), "127.0.0.1");
    let words = [("CHANCERY_DATABASE", url.as_str()), ("CHANCERY_DATABASE_CONNECTIONS", "2")];
    let server = Process::start(&database, &words).await;
    // so that each connection has its statements prepared, and a change is sent at once
    for number in 0..6 {
        server.admin.post(USERS, json!({ "loginName": format!("warm{number}") })).await.expect(201);
    }
    Behind { database, proxy, server }
}

async fn count(client: &Client, path: &str, filter: &str) -> usize {
    let rows = client.get(&format!("{path}?filter={filter}")).await.is(200).json();
    rows.as_array().unwrap().len()
}

/// How many users of this name exist, and entries of the trail.
async fn traces(client: &Client, name: &str) -> (usize, usize) {
    let users = count(client, USERS, &format!("loginName%20eq%20%22{name}%22")).await;
    let trail = client.get(TRAIL).await.is(200).json();
    let entries = trail.as_array().unwrap().iter().filter(|entry| entry.to_string().contains(name)).count();
    (users, entries)
}

/// Read in the code (C): once COMMIT was sent any loss is Unknown, and its outcome is looked
/// up: no change happens twice, and no answered one is lost, wherever the connection is cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_cut_happens_once() {
    let Behind { database: _database, proxy, server } = behind_a_proxy().await;
    let mut cuts = vec![Cut::Everything, Cut::Commit, Cut::LastByte];
    cuts.extend([0, 1, 5, 40, 100, 200].map(Cut::Answers));
    for (number, cut) in cuts.into_iter().enumerate() {
        let name = format!("cut-{number}-x");
        proxy.cut(&name, cut, false);
        server.admin.post(USERS, json!({ "loginName": name })).await.expect(201);
        assert!(proxy.has_cut(), "{cut:?} was made");
        assert_eq!(traces(&server.admin, &name).await, (1, 1), "{cut:?}");
    }
}

/// Section 2: an unknown commit has a problem of its own, which names `Idempotency-Key`; with one the
/// request is made once.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_commit_is_reported() {
    let Behind { database: _database, proxy, server } = behind_a_proxy().await;
    let body = json!({ "loginName": "lost-one" }).to_string().into_bytes();
    let key = [JSON, ("idempotency-key", "one")];
    proxy.cut("lost-one", Cut::LastByte, true);
    let answer = server.admin.send(http::Method::POST, USERS, &key, body.clone()).await;
    let problem = answer.problem(500, "outcome-unknown");
    assert!(problem["detail"].as_str().unwrap().contains("Idempotency-Key"));
    proxy.open();
    until("it is ready", || async { server.admin.get("/health/ready").await.status == 200 }).await;
    let again = server.admin.send(http::Method::POST, USERS, &key, body).await.is(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(traces(&server.admin, "lost-one").await, (1, 1));
}

/// Section 1: a primary that hangs blocks nothing: readiness reports it within 4 seconds, requests are
/// answered, and everything recovers when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_hanging_database_time_out() {
    let Behind { database: _database, proxy, server } = behind_a_proxy().await;
    server.admin.post(USERS, json!({ "loginName": "before" })).await.expect(201);
    proxy.silence(true);
    let waiting: Vec<_> = (0..40)
        .map(|number| {
            let client = server.admin.clone();
            let body = json!({ "loginName": format!("hung{number}") });
            chancery_testkit::spawn(async move { client.post(USERS, body).await.status.as_u16() })
        })
        .collect();
    let began = std::time::Instant::now();
    until("it is not ready", || async { server.admin.get("/health/ready").await.status == 503 }).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    server.admin.get(USERS).await.problem(503, "unavailable");
    server.admin.get("/health/live").await.expect(200);
    let metrics = tokio::time::timeout(chancery_testkit::PATIENCE, server.admin.get("/metrics")).await;
    assert!([200, 503].contains(&metrics.unwrap().status.as_u16()));
    for answer in waiting {
        let status = tokio::time::timeout(chancery_testkit::PATIENCE, answer).await.unwrap().unwrap();
        assert!([500, 503].contains(&status), "{status}");
    }
    proxy.silence(false);
    until("it is ready", || async { server.admin.get("/health/ready").await.status == 200 }).await;
    server.admin.post(USERS, json!({ "loginName": "afterwards" })).await.expect(201);
}

/// A form of the console during a hang of the database is stored in a page, which sends it again on request.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_outlives_a_database_that_hangs() {
    let Behind { database: _database, proxy, server } = behind_a_proxy().await;
    let options = "/api/management/v2/Option";
    let rows = server
        .admin
        .get(&format!("{options}?filter=name%20eq%20%22PasskeyEnrolment%22"))
        .await
        .is(200)
        .json();
    let off = json!({ "value": "Off", "concurrencyToken": rows[0]["concurrencyToken"] });
    server.admin.patch(&format!("{options}/{}", rows[0]["id"].as_str().unwrap()), off).await.expect(202);
    let link = server.greeting.iter().find_map(|line| line.split_once("/console/setup/")).unwrap().1;
    let link = format!("/console/setup/{}", link.trim());
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let page = browser.open(&link).await;
    let password = "four lively grey herons";
    let csrf = page.field("csrf");
    let typed = [
        ("csrf", csrf.as_str()),
        ("firstName", "Grace"),
        ("emailAddress", "grace@example.com"),
        ("loginName", "grace"),
        ("password", password),
        ("repeated", password),
    ];
    let origin = [("origin", server.base.as_str())];
    let page = browser.post(&link, &typed, &origin).await;
    let next = browser.type_password(&page, "grace", password).await;
    browser.open(&next.redirect_target()).await.answer.expect(200);
    let path = "/console/Customer/new";
    let page = browser.open(path).await;
    let (csrf, key) = (page.field("csrf"), page.field("key"));
    proxy.silence(true);
    let fields = [("csrf", csrf.as_str()), ("key", &key), ("name", "Kept")];
    let kept = browser.post(path, &fields, &origin).await;
    assert!(
        kept.status == 503 && kept.html.contains("data-wait=") && kept.field("name") == "Kept",
        "{}",
        kept.html
    );
    proxy.silence(false);
    until("it is ready", || async { server.admin.get("/health/ready").await.status == 200 }).await;
    let shown = kept.field("kept");
    let again = [("kept", shown.as_str()), ("key", &key), ("name", "Kept")];
    let answered = browser.post(path, &again, &origin).await;
    assert!(answered.status == 200 && answered.html.contains("<h1>Kept"), "{}", answered.html);
}

/// Section 1: `sslmode=require` and `verify-full` work, `prefer` does not continue unencrypted.
#[tokio::test(flavor = "multi_thread")]
async fn sslmode_is_enforced() {
    let database = Database::create(Engine::Postgres);
    let authority = authority("ours");
    let other = authority_file(&database, "other.pem", &self::authority("other"));
    let root = authority_file(&database, "root.pem", &authority);
    let good = speak(&authority, "localhost", 2030, None);
    let verified = format!("sslmode=verify-full&sslrootcert={root}");
    let by = |answer: TlsAnswer| Proxy::start_with_tls(database.url(), answer);
    let (good, named, old) = (
        by(good).await,
        by(speak(&authority, "db.example", 2030, None)).await,
        by(speak(&authority, "localhost", 2020, None)).await,
    );
    let open =
        |proxy: &Proxy, query: &str| opened(format!("{}?{query}", proxy.url(database.url(), "localhost")));
    assert_eq!(open(&good, &verified).await, Ok(()));
    assert_eq!(open(&good, "sslmode=require").await, Ok(()));
    assert_eq!(open(&named, &format!("sslmode=verify-ca&sslrootcert={root}")).await, Ok(()));
    assert_eq!(open(&named, &format!("sslmode=require&sslrootcert={root}")).await, Ok(()), "as in libpq");
    for (proxy, query, why) in [
        (&named, &verified, "name"),
        (&old, &verified, "expired"),
        (&good, &format!("sslmode=verify-full&sslrootcert={other}"), "UnknownIssuer"),
        (&good, &format!("sslmode=verify-ca&sslrootcert={other}"), "UnknownIssuer"),
        (&good, &"sslmode=verify-full".to_owned(), "UnknownIssuer"),
        (&good, &format!("sslmode=verify-full&sslrootcert={root}.gone"), "root.pem.gone"),
        (&good, &"sslmode=prefer".to_owned(), "protects from nobody"),
    ] {
        let refused = open(proxy, query).await.unwrap_err();
        assert!(refused.contains(why), "{query}: {refused}");
    }
}

/// Section 2: `sslnegotiation=direct` begins with TLS, and names the protocol in it.
#[tokio::test(flavor = "multi_thread")]
async fn tls_begins_at_once() {
    let database = Database::create(Engine::Postgres);
    let authority = authority("ours");
    let root = authority_file(&database, "root.pem", &authority);
    let TlsAnswer::Speak(config) = speak(&authority, "localhost", 2030, None) else { panic!("it speaks") };
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let proxy = Proxy::start_with_tls(database.url(), TlsAnswer::SpeakAtOnce(Arc::new(config))).await;
    let url = proxy.url(database.url(), "localhost");
    let url = format!("{url}?sslmode=verify-full&sslrootcert={root}&sslnegotiation=direct");
    assert_eq!(opened(url).await, Ok(()));
}

/// Section 2: a man in the middle who strips TLS, or a server without it, gets nothing.
#[tokio::test(flavor = "multi_thread")]
async fn tls_is_not_stripped() {
    let database = Database::create(Engine::Postgres);
    let stripped = Proxy::start_with_tls(database.url(), TlsAnswer::Refuse).await;
    for mode in ["require", "verify-full"] {
        for url in [stripped.url(database.url(), "localhost"), database.url().to_owned()] {
            let refused = opened(format!("{url}?sslmode={mode}")).await.unwrap_err();
            assert!(refused.contains("TLS"), "{refused}");
        }
    }
}

/// Section 2: `sslcert` and `sslkey` are presented to a server that requests them; files are read for every new
/// connection.
#[tokio::test(flavor = "multi_thread")]
async fn tls_proves_both_sides() {
    let database = Database::create(Engine::Postgres);
    let authority = authority("ours");
    let root = authority_file(&database, "root.pem", &authority);
    let mut trusted = RootCertStore::empty();
    trusted.add(authority.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), Arc::new(default_provider()));
    let proxy = Proxy::start_with_tls(
        database.url(),
        speak(&authority, "localhost", 2030, Some(verifier.build().unwrap())),
    );
    let proxy = proxy.await;
    let url = format!("{}?sslmode=verify-full&sslrootcert={root}", proxy.url(database.url(), "localhost"));
    assert!(opened(url.clone()).await.is_err(), "without a certificate");
    let key = KeyPair::generate().unwrap();
    let own =
        CertificateParams::new(vec!["chancery".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let folder = database.folder();
    let (certificate, key_file) = (folder.join("own.pem"), folder.join("own.key"));
    std::fs::write(&certificate, "not yet").unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let url = format!("{url}&sslcert={}&sslkey={}", certificate.display(), key_file.display());
    assert!(opened(url.clone()).await.unwrap_err().contains("own.pem"));
    std::fs::write(&certificate, own.pem()).unwrap();
    assert_eq!(opened(url).await, Ok(()));
}

/// Section 2: `CHANCERY_DATABASE_CONNECTIONS` is checked against `max_connections`.
#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_the_maximum_are_reported() {
    let database = Database::create(Engine::Postgres);
    let target = Target::Postgres(database.url().to_owned());
    let settings = Settings { connections: 100_000, ..Settings::default() };
    let opened =
        chancery_testkit::spawn_blocking(move || Store::open(&target, settings).map(drop)).await.unwrap();
    assert!(opened.unwrap_err().to_string().contains("lower CHANCERY_DATABASE_CONNECTIONS"));
}

/// Section 2: the start waits for a database that is starting.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_its_database() {
    let database = Database::create(Engine::Postgres);
    let proxy = Proxy::start(database.url()).await;
    proxy.close();
    let opening = chancery_testkit::spawn(opened(proxy.url(database.url(), "127.0.0.1")));
    until("it was tried twice", || async { proxy.refused_connections() >= 2 }).await;
    proxy.open();
    assert_eq!(opening.await.unwrap(), Ok(()));
}

/// Read in the code (C): a statement that took too long is not a missing database (57014); one
/// that takes no writes is (25006), and its connection is closed; a skipped error is no success.
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_distinguished() {
    let database = Database::create(Engine::Postgres);
    let target = Target::Postgres(database.url().to_owned());
    let opening = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opening.await.unwrap().unwrap();
    let slow = store.run("Test", Mode::Write, None, |tx| {
        tx.query("SELECT set_config('statement_timeout', '50', true)", &[], |_| Ok(()))?;
        tx.query("SELECT 1 FROM pg_sleep(5)", &[], |_| Ok(()))
    });
    assert_eq!(slow.await, Err(Error::TooLong));
    let epoch = "UPDATE security_epoch SET value = value + 1";
    let standby = store.run("Test", Mode::Write, None, |tx| {
        tx.query("SELECT set_config('transaction_read_only', 'on', true)", &[], |_| Ok(()))?;
        raw::execute(tx, epoch, &[])
    });
    assert!(matches!(standby.await, Err(Error::Unavailable(_))));
    let passed_over = store.run("Test", Mode::Write, None, |tx| {
        raw::execute(tx, epoch, &[])?;
        let failed = raw::execute(tx, "INSERT INTO security_epoch (value) VALUES (NULL)", &[]);
        assert!(failed.is_err());
        Ok(())
    });
    assert!(matches!(passed_over.await, Err(Error::Internal(_))));
    let before = store.run("Test", Mode::Quick, None, |tx| tx.epoch()).await.unwrap();
    store.run("Test", Mode::Write, None, |tx| tx.advance_epoch()).await.unwrap();
    assert_eq!(
        store.run("Test", Mode::Quick, None, |tx| tx.epoch()).await.unwrap(),
        before + 1,
        "it goes on"
    );
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// Section 5: an operation is refused before it runs, or awaited. Reads of the epoch are shared by their callers.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_read_of_the_epoch_is_awaited() {
    let database = Database::create(Engine::Postgres);
    let target = Target::Postgres(database.url().to_owned());
    let opening = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opening.await.unwrap().unwrap();
    let (locked, is_locked) = std::sync::mpsc::channel();
    let holder = store.run("Test", Mode::Write, None, move |tx| {
        raw::execute(tx, "LOCK TABLE security_epoch IN ACCESS EXCLUSIVE MODE", &[])?;
        let _ = locked.send(());
        // longer than an operation waits in a queue in which nothing happens
        tx.query("SELECT 1 FROM pg_sleep(4)", &[], |_| Ok(()))
    });
    let reader = async {
        chancery_testkit::spawn_blocking(move || is_locked.recv()).await.unwrap().unwrap();
        store.epoch().await
    };
    let (held, epoch) = tokio::join!(holder, reader);
    assert_eq!(held, Ok(()));
    assert!(epoch.is_ok(), "{epoch:?}");
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// Whether a store opens, or why not.
async fn opened(url: String) -> Result<(), String> {
    let opening = chancery_testkit::spawn_blocking(move || {
        let settings = Settings { connections: 2, ..Settings::default() };
        let store =
            Store::open(&Target::Postgres(url), settings).map_err(|error: Error| error.to_string())?;
        store.close();
        Ok(())
    });
    opening.await.unwrap()
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

fn authority_file(database: &Database, name: &str, authority: &Authority) -> String {
    let path = database.folder().join(name);
    std::fs::write(&path, authority.pem()).unwrap();
    path.display().to_string()
}

/// TLS with a certificate of an authority, for a name, until a year.
fn speak(
    authority: &Authority,
    name: &str,
    until: i32,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> TlsAnswer {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2019, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(until, 1, 1);
    let certificate = parameters.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.unwrap_or_else(|| Arc::new(NoClientAuth)))
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAnswer::Speak(Arc::new(config))
}
