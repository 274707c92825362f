//! SIGHUP: settings that may change while the server runs are read again.

use std::{fs, process::Command, time::Duration};

use chancery_testkit::{Database, Engine, Process, SECRET};
use tokio::time::sleep;

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..300 {
        if holds().await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} in time");
}

/// Section 5 of operating: the root client's secret and the log's filter are read again; an invalid file changes nothing.
#[tokio::test]
async fn secrets_and_the_filter_are_read_again() {
    let database = Database::create(Engine::Sqlite);
    let file = database.folder().join("chancery.toml");
    let write = |log: &str, secret: &str| {
        let options = format!("log = \"{log}\"\nroot_client_secret = \"{secret}\"\n");
        database.write_private("chancery.toml", options);
    };
    write("info", SECRET);
    let server = Process::start_configured(&database, &[("CHANCERY_CONFIG", file.to_str().unwrap())]);
    let log = || fs::read_to_string(&server.log).unwrap();
    let form = |secret: &str| format!("grant_type=client_credentials&client_id=root&client_secret={secret}");
    server.admin.ask_for_token(&form(SECRET)).await.expect(200);
    assert!(!log().contains("\"message\":\"answered\""));

    write("info", "short");
    assert!(server.signal("HUP"));
    until("a wrong file is told", async || log().contains("nothing was changed")).await;
    server.admin.ask_for_token(&form(SECRET)).await.expect(200);

    write("debug", "another-secret-for-processes");
    assert!(server.signal("HUP"));
    until("the new secret", async || {
        server.admin.ask_for_token(&form("another-secret-for-processes")).await.status == 200
    })
    .await;
    server.admin.ask_for_token(&form(SECRET)).await.expect(401);
    until("the new filter", async || {
        server.admin.get("/health/live").await.expect(200);
        log().contains("\"message\":\"answered\"")
    })
    .await;
}

/// Section 5 of operating: certificates are read again; while the new ones are invalid the old ones are used.
#[tokio::test]
async fn certificates_are_read_again() {
    let database = Database::create(Engine::Sqlite);
    let (certificate, key) = (database.folder().join("cert.pem"), database.folder().join("key.pem"));
    let certify = || {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&certificate, certified.cert.pem()).unwrap();
        database.write_private("key.pem", certified.signing_key.serialize_pem());
    };
    certify();
    let tls = [
        ("CHANCERY_TLS_CERTIFICATE", certificate.to_str().unwrap()),
        ("CHANCERY_TLS_KEY", key.to_str().unwrap()),
    ];
    let server = Process::start_unready(&database, &tls);
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    // whether the server's certificate is the one in the file
    let serves_current_file = || {
        let resolve = format!("localhost:{port}:127.0.0.1");
        let url = format!("https://localhost:{port}/health/live");
        let arguments = ["-s", "--resolve", &resolve, "--cacert", certificate.to_str().unwrap(), &url];
        Command::new("curl").args(arguments).output().unwrap().status.success()
    };
    assert!(serves_current_file());
    let old = fs::read(&certificate).unwrap();
    fs::write(&certificate, "nothing").unwrap();
    assert!(server.signal("HUP"));
    until("a wrong file is told", async || {
        fs::read_to_string(&server.log).unwrap().contains("what was before stays")
    })
    .await;
    fs::write(&certificate, old).unwrap();
    assert!(serves_current_file(), "the old one serves on");
    certify();
    assert!(!serves_current_file());
    assert!(server.signal("HUP"));
    until("the new certificate", async || serves_current_file()).await;
}
