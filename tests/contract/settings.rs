//! Invalid settings are refused by name before the server listens, and secrets come from files that others cannot read.

use std::{
    fs::{Permissions, set_permissions, write},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Output,
    time::Duration,
};

use chancery_testkit::{Client, Database, Engine, PATIENCE, Process};

/// Runs the program on a database's folder, with environment variables.
fn run(database: &Database, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Process::command(&["--data-dir"]);
    command.arg(database.folder());
    command.args(words).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `check-config` and a start report the same errors, and neither creates anything.
fn refused(variables: &[(&str, &str)], words: &[&str]) {
    let database = Database::create(Engine::Sqlite);
    for command in ["check-config", "serve"] {
        let output = run(&database, &[command], variables);
        let text_of_stderr = text(&output.stderr);
        assert!(!output.status.success(), "{command} with {variables:?}");
        for word in words {
            assert!(text_of_stderr.contains(word), "{command}, {word}: {text_of_stderr}");
        }
        assert!(text(&output.stdout).is_empty(), "{command} prints no configuration");
        assert!(!database.folder().join("master.key").exists(), "{command} makes nothing");
    }
}

#[test]
fn absent_files_are_refused_by_the_option_that_names_them() {
    let absent = "/nowhere/at-all";
    let tls = [("CHANCERY_TLS_CERTIFICATE", absent), ("CHANCERY_TLS_KEY", absent)];
    refused(&tls, &["TLS", absent]);
    let root = [("CHANCERY_MDS_ROOT", absent), ("CHANCERY_MDS_NAME", "mds.example.com")];
    refused(&root, &["mds_root", absent]);
    refused(&[("CHANCERY_RESET_PROGRAM", absent)], &["reset_program", absent]);
    refused(&[("CHANCERY_MASTER_KEY_FILE", absent)], &["master_key_file", "/nowhere"]);
    refused(&[("CHANCERY_CONFIG", absent)], &[absent]);
    refused(&[("CHANCERY_ROOT_CLIENT_SECRET_FILE", absent)], &["root_client_secret", absent]);
    refused(&[("CHANCERY_DATABASE_FILE", absent)], &["database", absent]);
    for parameter in ["sslrootcert", "sslcert=/nowhere/at-all&sslkey"] {
        let url = format!("postgres://me@db.example/x?{parameter}={absent}");
        refused(&[("CHANCERY_DATABASE", &url)], &["database", absent]);
    }
}

/// All errors of files are reported at once.
#[test]
fn a_check_of_the_configuration_names_each_wrong_file() {
    let database = Database::create(Engine::Sqlite);
    let directory = database.folder().display().to_string();
    let wrong = [
        ("CHANCERY_TLS_CERTIFICATE", "/nowhere/cert.pem"),
        ("CHANCERY_TLS_KEY", "/nowhere/key.pem"),
        ("CHANCERY_RESET_PROGRAM", directory.as_str()),
    ];
    let text_of_stderr = text(&run(&database, &["check-config"], &wrong).stderr);
    assert!(
        text_of_stderr.contains("/nowhere/cert.pem") && text_of_stderr.contains("it is no program"),
        "{text_of_stderr}"
    );
}

#[test]
fn filters_of_the_log_and_addresses_that_cannot_be_meant_are_refused() {
    refused(&[("CHANCERY_LOG", "inof,chancery_web=debug")], &["log", "\"inof\" is no level"]);
    refused(&[("CHANCERY_LOG", "info,chancery_web=loud")], &["log"]);
    let both = [("CHANCERY_METRICS_LISTEN", "127.0.0.1:9"), ("CHANCERY_CONSOLE_LISTEN", "0.0.0.0:9")];
    let url = ("CHANCERY_PUBLIC_URL", "https://id.example.com");
    refused(&[both[0], both[1], url], &["metrics_listen is 127.0.0.1:9 and console_listen is 0.0.0.0:9"]);
}

/// A variable that names a file for a setting without one would have no effect.
#[test]
fn a_file_for_a_setting_that_takes_none_is_a_warning() {
    let database = Database::create(Engine::Sqlite);
    let output = run(&database, &["check-config"], &[("CHANCERY_LISTEN_FILE", "/x")]);
    let text_of_stderr = text(&output.stderr);
    assert!(
        output.status.success() && text_of_stderr.contains("CHANCERY_LISTEN_FILE is no setting"),
        "{text_of_stderr}"
    );
    let server = Process::start_unready(&database, &[("CHANCERY_LISTEN_FILE", "/x")]);
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("CHANCERY_LISTEN_FILE is no setting"), "{log}");
}

async fn gets_a_token(base: &str, secret: &str) -> bool {
    let form = format!("grant_type=client_credentials&client_id=root&client_secret={secret}");
    Client::anonymous(base).ask_for_token(&form).await.status == 200
}

#[tokio::test]
async fn a_secret_comes_from_a_file_or_a_credential() {
    let database = Database::create(Engine::Sqlite);
    let file = database.write_private("root.secret", "the-secret-of-a-file\n");
    let named = [("CHANCERY_ROOT_CLIENT_SECRET_FILE", file.to_str().unwrap())];
    let mut server = Process::start_configured(&database, &named);
    assert!(gets_a_token(&server.base, "the-secret-of-a-file").await, "by the file");
    assert!(server.stop());

    let credentials = database.folder().join("credentials");
    std::fs::create_dir(&credentials).unwrap();
    let hand_out = |name: &str, content: &[u8]| {
        write(credentials.join(name), content).unwrap();
        set_permissions(credentials.join(name), Permissions::from_mode(0o400)).unwrap();
    };
    hand_out("root_client_secret", b"the-secret-of-a-credential");
    hand_out("master_key", &std::fs::read(database.folder().join("master.key")).unwrap());
    std::fs::remove_file(database.folder().join("master.key")).unwrap();
    let folder = [("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap())];
    let server = Process::start_configured(&database, &folder);
    assert!(gets_a_token(&server.base, "the-secret-of-a-credential").await, "by the credential");
    let twice = [folder[0], ("CHANCERY_ROOT_CLIENT_SECRET", "the-secret-of-a-variable")];
    refused(&twice, &["root_client_secret is given twice"]);
}

fn open_to_others(file: &Path) {
    set_permissions(file, Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_file_with_a_secret_that_others_can_read_is_refused() {
    let database = Database::create(Engine::Sqlite);
    let secret = database.write_private("root.secret", "the-secret-of-a-file");
    let toml = database.write_private("chancery.toml", "root_client_secret = 'the-secret-of-a-file'");
    let url = database.write_private("url.toml", "database = 'postgres://me:hush@localhost/x'");
    let plain = database.write_private("plain.toml", "log = 'warn'");
    for file in [&secret, &toml, &url, &plain] {
        open_to_others(file);
    }
    refused(
        &[("CHANCERY_ROOT_CLIENT_SECRET_FILE", secret.to_str().unwrap())],
        &["root.secret", "users other than its owner"],
    );
    refused(&[("CHANCERY_CONFIG", toml.to_str().unwrap())], &["chancery.toml", "chmod 600"]);
    refused(&[("CHANCERY_CONFIG", url.to_str().unwrap())], &["url.toml", "chmod 600"]);
    let read = run(&database, &["check-config"], &[("CHANCERY_CONFIG", plain.to_str().unwrap())]);
    assert!(read.status.success(), "it holds no secret: {}", text(&read.stderr));

    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = database.write_private("cert.pem", certified.cert.pem());
    let key = database.write_private("key.pem", certified.signing_key.serialize_pem());
    open_to_others(&key);
    let tls = [
        ("CHANCERY_TLS_CERTIFICATE", certificate.to_str().unwrap()),
        ("CHANCERY_TLS_KEY", key.to_str().unwrap()),
    ];
    refused(&tls, &["tls_key", "key.pem: users other than its owner"]);
    let master = database.write_private("other.key", [7; 32]);
    open_to_others(&master);
    refused(&[("CHANCERY_MASTER_KEY_FILE", master.to_str().unwrap())], &["master key", "other.key: users"]);
}

/// The token for configuration as code can come from a file.
#[tokio::test]
async fn a_token_comes_from_a_private_file() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let token = database.write_private("token", format!("{}\n", server.admin.token()));
    let export = |variables: &[(&str, &str)]| {
        let mut command = Process::command(&["export"]);
        command.arg(database.folder().join("set")).args(["--server", &server.base]);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let file = [("CHANCERY_TOKEN_FILE", token.to_str().unwrap())];
    let output = export(&file);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let twice = text(&export(&[file[0], ("CHANCERY_TOKEN", "x")]).stderr);
    assert!(twice.contains("token is given twice"), "{twice}");
    open_to_others(&token);
    let text_of_stderr = text(&export(&file).stderr);
    assert!(text_of_stderr.contains("users other than its owner"), "{text_of_stderr}");
}

/// A key that became readable while the server runs is not loaded at a SIGHUP, and the former one is still used.
#[tokio::test]
async fn a_key_that_others_can_read_is_not_read_again() {
    let database = Database::create(Engine::Sqlite);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = database.write_private("cert.pem", certified.cert.pem());
    let key = database.write_private("key.pem", certified.signing_key.serialize_pem());
    let server = Process::start_unready(
        &database,
        &[
            ("CHANCERY_TLS_CERTIFICATE", certificate.to_str().unwrap()),
            ("CHANCERY_TLS_KEY", key.to_str().unwrap()),
        ],
    );
    open_to_others(&key);
    assert!(server.signal("HUP"));
    let logged = async {
        loop {
            let log = std::fs::read_to_string(&server.log).unwrap();
            if log.contains("what was before stays") {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let log = tokio::time::timeout(PATIENCE, logged).await.expect("a line about the key");
    assert!(log.contains("users other than its owner"), "{log}");
}
