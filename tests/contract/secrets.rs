//! No answer, log, audit entry, event, metric or table ever holds a password, a hash where none
//! belongs, or a token.

use std::sync::{Arc, Mutex};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_store::{Error, Mode, Settings, Store, Target};
use chancery_testkit::{Answer, Client, Database, Engine, Process};
use serde_json::{Value, json};

use crate::{
    encode, id,
    signing::{set, set_all},
};

const USERS: &str = "/api/userstore/v2/default/administration/User";
/// Recognisable, and none of them a word of another text.
const PASSWORDS: [&str; 6] = [
    "zwiebel-Rost-0",
    "zwiebel-Rost-1",
    "zwiebel-Rost-2",
    "zwiebel-Rost-3",
    "zwiebel-Rost-4",
    "zwiebel-Rost-5",
];
const MAILER: (&str, &str) = ("mailer", "zwiebel-Mailer-9");
/// The prefix of a hash.
const HASH: &str = "$argon2";

/// A caller that stores every answer.
struct Collector {
    client: Client,
    answers: Mutex<Vec<u8>>,
    /// Plain digests of the bodies that were sent with an Idempotency-Key.
    digests: Mutex<Vec<String>>,
}

impl Collector {
    async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.retain(self.client.send(http::Method::POST, path, &headers, body.to_string().into_bytes()).await)
    }

    async fn post_once(&self, path: &str, body: Value, key: &str) -> Answer {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        let mut sent = Vec::new();
        for part in ["POST", path, ""] {
            sent.extend((part.len() as u64).to_be_bytes());
            sent.extend(part.bytes());
        }
        for whole in [body.to_string().into_bytes(), [sent, body.to_string().into_bytes()].concat()] {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &whole);
            self.digests.lock().unwrap().push(hex(digest.as_ref()));
        }
        self.retain(self.client.send(http::Method::POST, path, &headers, body.to_string().into_bytes()).await)
    }

    fn retain(&self, answer: Answer) -> Answer {
        let mut answers = self.answers.lock().unwrap();
        answers.extend_from_slice(&answer.bytes);
        answers.extend_from_slice(format!("{:?}", answer.headers).as_bytes());
        drop(answers);
        answer
    }
}

/// The database of a running server, opened by the test.
pub async fn store(database: &Database) -> Store {
    let target = match database.url().strip_prefix("sqlite:") {
        Some(path) => Target::Sqlite(path.into()),
        None => Target::Postgres(database.url().to_owned()),
    };
    chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()).unwrap())
        .await
        .unwrap()
}

async fn column(store: &Store, text: String) -> Vec<String> {
    let rows = store.run("Test", Mode::Long, None, move |tx| {
        let mut rows = Vec::new();
        tx.query(&text, &[], |row| {
            rows.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    rows.await.unwrap()
}

/// Every column of every table as hexadecimal text, by name.
async fn dump(store: &Store) -> Vec<(String, String)> {
    let (columns, hex): (&str, fn(&str, &str) -> String) = if store.engine() == "sqlite" {
        (
            "SELECT m.name || ' ' || c.name || ' ' || c.type FROM sqlite_master m JOIN pragma_table_info(m.name) c \
          WHERE m.type = 'table' ORDER BY 1",
            |name, _| format!("lower(hex(CAST({name} AS BLOB)))"),
        )
    } else {
        (
            "SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns \
          WHERE table_schema = 'public' ORDER BY 1",
            |name, kind| {
                if kind == "bytea" {
                    format!("encode({name}, 'hex')")
                } else {
                    format!("encode(convert_to(CAST({name} AS text), 'UTF8'), 'hex')")
                }
            },
        )
    };
    let mut dump = Vec::new();
    for row in column(store, columns.to_owned()).await {
        let [table, name, kind] = row.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let text = format!("SELECT {} FROM {table} WHERE {name} IS NOT NULL", hex(name, kind));
        dump.push((format!("{table}.{name}"), column(store, text).await.join(" ")));
    }
    dump
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Calls every operation with passwords; returns the tokens in mails.
async fn do_everything(server: &Process, collector: &Collector) -> Vec<String> {
    let sink = chancery_mail::sink::Sink::start(chancery_mail::sink::SinkConfig {
        credentials: Some(MAILER),
        ..chancery_mail::sink::SinkConfig::PLAIN
    })
    .await
    .unwrap();
    set_all(
        &server.admin,
        &[
            ("LoginThrottlingEnabled", "false"),
            ("PasswordHistoryCount", "3"),
            ("MailServerConfig", &sink.config()),
            ("EMailSenderAddress", "id@example.com"),
            ("PasswordRequireDigit", "true"),
            ("PasswordResetUrlTemplate", "https://id.example.com/reset?u={loginName}#{token}"),
        ],
    )
    .await;
    let body = json!({ "loginName": "ada", "emailAddress": "ada@example.com" });
    let user = collector.post(USERS, body).await.is(201).json();
    let path = format!("{USERS}/{}/password", id(&user));
    let public = "/api/userstore/v2/default/PublicAdmin/user/loginname/ada/password";
    collector.post(&format!("{path}/initial"), json!({ "password": PASSWORDS[0] })).await.expect(200);
    collector.post(&format!("{path}/initial"), json!({ "password": "zwiebel-Rost" })).await.expect(400);
    collector
        .post_once(&format!("{path}/reset"), json!({ "newPassword": PASSWORDS[1] }), "k1")
        .await
        .expect(200);
    collector
        .post_once(&format!("{path}/reset"), json!({ "newPassword": PASSWORDS[1] }), "k1")
        .await
        .expect(200);
    let change = |old: &str, new: &str| json!({ "oldPassword": old, "newPassword": new });
    collector
        .post_once(&format!("{path}/change"), change(PASSWORDS[2], PASSWORDS[5]), "k2")
        .await
        .expect(400);
    collector.post(&format!("{path}/change"), change(PASSWORDS[1], "zwiebel-Rost")).await.expect(400);
    collector.post(&format!("{path}/change"), change(PASSWORDS[1], PASSWORDS[2])).await.expect(200);
    collector.post(&format!("{public}/change"), change(PASSWORDS[3], PASSWORDS[5])).await.expect(400);
    collector.post(&format!("{public}/change"), change(PASSWORDS[2], PASSWORDS[3])).await.expect(200);
    collector
        .post(&format!("{path}/change?dryRun=true"), change(PASSWORDS[3], PASSWORDS[4]))
        .await
        .expect(200);
    // a body with another mistake
    collector
        .post(&format!("{path}/reset"), json!({ "newPassword": PASSWORDS[5], "other": PASSWORDS[5] }))
        .await
        .expect(400);
    collector.post(&format!("{path}/reset"), json!({ "newPassword": [PASSWORDS[5]] })).await.expect(400);
    let broken = format!("{{\"newPassword\":\"{}\"", PASSWORDS[5]).into_bytes();
    let json_type = [("content-type", "application/json")];
    collector
        .retain(collector.client.send(http::Method::POST, &format!("{path}/reset"), &json_type, broken).await)
        .is(400)
        .json();

    let mut tokens = Vec::new();
    for (count, rest) in ["request", "sendresetemail"].into_iter().enumerate() {
        collector.post(&format!("{path}/reset/{rest}"), json!({})).await.expect(200);
        let mail = sink.wait_for(count + 1).await[count].text();
        let token = mail.split('#').nth(1).unwrap().split_whitespace().next().unwrap();
        tokens.push(token.replace("%2D", "-").replace("%5F", "_"));
    }
    let redeem = |token: &str, new: &str| json!({ "token": token, "newPassword": new });
    collector
        .post_once(&format!("{path}/reset/response"), redeem(&tokens[0], PASSWORDS[4]), "k3")
        .await
        .expect(400);
    collector.post(&format!("{public}/reset/response"), redeem(&tokens[0], PASSWORDS[4])).await.expect(400);
    collector.post(&format!("{public}/reset/response"), redeem(&tokens[1], "zwiebel-Rost")).await.expect(400);
    collector
        .post_once(&format!("{path}/reset/response"), redeem(&tokens[1], PASSWORDS[4]), "k4")
        .await
        .expect(200);
    for rest in ["lockout/reset", "state"] {
        collector.post(&format!("{USERS}/{}/{rest}", id(&user)), json!({ "isUserLocked": true })).await;
    }
    set(&server.admin, "PasswordMinLength", "9").await;
    let trail = "/api/userstore/v2/default/administration/CustomAuditTrail";
    for path in
        [USERS, trail, "/metrics", &format!("/api/management/v2/Option?filter={}", encode("name sw \"P\""))]
    {
        collector.retain(server.admin.get(path).await.is(200));
    }
    tokens
}

async fn no_secret_leaks(engine: Engine) {
    let database = Arc::new(Database::create(engine));
    let mut server = Process::start(
        &database,
        &[
            ("CHANCERY_LOG", "trace"),
            ("CHANCERY_PUBLIC_RATE_LIMIT", "off"),
            ("CHANCERY_PRIVATE_DESTINATIONS", "127.0.0.0/8"),
        ],
    )
    .await;
    let collector =
        Collector { client: server.admin.clone(), answers: Mutex::default(), digests: Mutex::default() };
    let tokens = do_everything(&server, &collector).await;
    assert!(server.stop());
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("answered"), "the log is one: {log}");
    let answers = String::from_utf8_lossy(&collector.answers.lock().unwrap()).into_owned();
    assert!(
        answers.contains("chancery_operation_seconds")
            && answers.contains("password-set") | answers.contains("originalContent")
    );
    let secrets =
        PASSWORDS.into_iter().chain(tokens.iter().map(String::as_str)).chain(["zwiebel", MAILER.1, HASH]);
    // as encoded by SMTP
    let sent =
        [BASE64_STANDARD.encode(format!("\0{}\0{}", MAILER.0, MAILER.1)), BASE64_STANDARD.encode(MAILER.1)];
    let secrets: Vec<&str> = secrets.chain(sent.iter().map(String::as_str)).collect();
    for secret in &secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} in the log: {line:?}");
        assert!(!answers.contains(secret), "{secret} in an answer");
    }
    let store = store(&database).await;
    let tables = dump(&store).await;
    let with_hashes: Vec<&str> = tables
        .iter()
        .filter(|(_, text)| text.contains(&hex(HASH.as_bytes())))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(with_hashes, ["user_password.hash", "user_password_history.hash"]);
    for (name, text) in &tables {
        for secret in secrets.iter().filter(|secret| **secret != HASH) {
            assert!(!text.contains(&hex(secret.as_bytes())), "{secret} in {name}");
        }
    }
    // an unkeyed digest of a body would allow offline guesses of passwords
    let request_digests =
        &tables.iter().find(|(name, _)| name == "idempotent_answer.request_digest").unwrap().1;
    assert_eq!(request_digests.split(' ').count(), 4);
    assert!(!collector.digests.lock().unwrap().iter().any(|digest| request_digests.contains(digest)));
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaks_sqlite() {
    no_secret_leaks(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaks_postgres() {
    no_secret_leaks(Engine::Postgres).await;
}
