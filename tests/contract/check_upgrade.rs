//! `chancery check-upgrade`: reports before an upgrade which stored rows the release refuses.

use chancery_record::Value;
use chancery_testkit::{Database, Engine, Process, on_both_engines};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{
    program::{check, refused},
    signing::set_mail_server,
};

/// Asserts that one line names a row and its field, with the reason.
fn assert_reported(lines: &[String], kind: &str, id: &Json, field: &str, why: &str) {
    let id = id.as_str().unwrap();
    let is_it = |line: &&String| {
        line.starts_with(&format!("{kind} {id} \""))
            && line.contains(&format!("\" {field}: "))
            && line.contains(why)
    };
    assert_eq!(lines.iter().filter(is_it).count(), 1, "{kind} {id} {field}: {lines:#?}");
}

const REDIRECT_URI: &str = "UPDATE client_app_redirect_uri SET uri = 'ms-settings:privacy' WHERE id = ?1";
const ADDRESS: &str = "UPDATE user_account SET email_address = 'ada@@example' WHERE id = ?1";
const NAME: &str = "UPDATE client_app SET name = ?2, name_key = ?2 WHERE id = ?1";
const SPELLING: &str = "UPDATE client_app_resource SET key = 'HTTPS://API.example.com/a' WHERE id = ?1";
const VIEW: &str = "UPDATE custom_view SET content = '<iframe src=\"https://elsewhere.example\"></iframe>'";
const LENGTH: &str =
    "UPDATE option_value SET value = ?1 WHERE name = ?2 AND apply_to_idp_instance_id IS NOT NULL";
const UNMARK: &str =
    "UPDATE option_value SET has_configuration_error = FALSE WHERE name = 'MailServerConfig'";

on_both_engines! {
    /// Rows that are stored as documented but not served are listed before an upgrade: they would have no effect.
    async fn rows_that_are_not_served_are_listed(world: World) {
        let app = world.make("ClientApp", json!({ "name": "Web" })).await["id"].clone();
        let identity = json!({ "clientAppId": app, "name": "ci", "issuer": "https://ci.example", "subject": "s" });
        let identity = world.make("ClientAppFederatedIdentity", identity).await["id"].clone();
        let uri = json!({ "clientAppId": app, "uri": "https://app.example/request.jwt" });
        let uri = world.make("ClientAppRequestUri", uri).await["id"].clone();
        let lines = refused(&world.database);
        assert_reported(&lines, "ClientAppFederatedIdentity", &identity, "issuer", "tokens of other issuers");
        assert_reported(&lines, "ClientAppRequestUri", &uri, "uri", "does not support request_uri");
        assert_eq!(lines.len(), 2, "{lines:#?}");
    }

    /// Rows are validated by the rules of writes: redirect URIs, texts, spellings of resources, views, and options alone and
    /// together, secret ones, too.
    async fn rows_that_a_release_would_refuse_are_listed(world: World) {
        assert_eq!(refused(&world.database), [""; 0], "a new installation has none");
        let app = world.make("ClientApp", json!({ "name": "Web" })).await["id"].clone();
        let uri = json!({ "clientAppId": app, "uri": "https://app.example.com/back" });
        let uri = world.make("ClientAppRedirectUri", uri).await["id"].clone();
        let resource = |key: &str| json!({ "clientAppId": app, "key": key });
        world.make("ClientAppResource", resource("https://api.example.com/a")).await;
        let spelled = world.make("ClientAppResource", resource("https://api.example.com/b")).await["id"].clone();
        let view = json!({ "viewName": "SignIn" });
        world.admin.post("/api/management/v2/CustomView/viewtemplate/view", view).await.expect(201);
        let user = world.user("ada").await["id"].clone();
        set_mail_server(&world.admin).await;
        let wrong = json!({ "value": "{\"MailType\":\"SMTP\"}" });
        let option = world.admin.get("/api/management/v2/Option?filter=name%20eq%20%22MailServerConfig%22").await.is(200);
        let option = option.json()[0].clone();
        let path = format!("/api/management/v2/Option/{}", option["id"].as_str().unwrap());
        let mut body = wrong.clone();
        body["concurrencyToken"] = option["concurrencyToken"].clone();
        world.admin.patch(&path, body).await.expect(202);
        assert_eq!(refused(&world.database), [""; 0], "what is marked already is no news");

        let id = |json: &Json| Value::Id(json.as_str().unwrap().parse::<Uuid>().unwrap());
        world.sql(vec![
            (REDIRECT_URI, vec![id(&uri)]),
            (ADDRESS, vec![id(&user)]),
            (NAME, vec![id(&app), "Web\u{7}".into()]),
            (SPELLING, vec![id(&spelled)]),
            (VIEW, vec![]),
            (LENGTH, vec!["many".into(), "PasswordHistoryCount".into()]),
            (LENGTH, vec!["4".into(), "PasswordMaxLength".into()]),
            (UNMARK, vec![]),
        ])
        .await;
        let lines = refused(&world.database);
        assert_reported(&lines, "ClientAppRedirectUri", &uri, "uri", "scheme");
        assert_reported(&lines, "User", &user, "emailAddress", "must be an e-mail address");
        assert!(lines.iter().any(|line| line.contains("\"ada\" emailAddress: ")), "{lines:#?}");
        assert_reported(&lines, "ClientApp", &app, "name", "control characters");
        assert_reported(&lines, "ClientAppResource", &spelled, "key", "same address");
        assert_reported(&lines, "Option", &option["id"], "value", "form");
        let has = |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(has(&["CustomView", "content: line 1", "iframe"]), "{lines:#?}");
        assert!(has(&["Option", "\"PasswordHistoryCount\" value: is not in the form"]), "{lines:#?}");
        assert!(has(&["Option", "\"PasswordMaxLength\" value: contradicts the option PasswordMinLength"]), "{lines:#?}");
        assert_eq!(lines.len(), 8, "{lines:#?}");
        assert!(!lines.concat().contains('\u{7}'), "names are escaped");
    }
}

/// Before an upgrade the schema is the older release's: columns and tables of this one are missing.
async fn an_older_schema_is_read(engine: Engine) {
    let database = Database::create(engine);
    let nothing = check(&database);
    let message = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(2), "{message}");
    Process::start(&database, &[]).await.kill();
    crate::server::execute(
        &database,
        &[
            "DELETE FROM schema_migration WHERE version > 50",
            "DROP TABLE schema_floor",
            "DROP TABLE directory_refusal",
            "ALTER TABLE sign_in_consent DROP COLUMN platform_given_on",
            "DROP INDEX resource_owner__normal_key",
            "ALTER TABLE resource_owner DROP COLUMN normal_key",
            "INSERT INTO client_app_redirect_uri (id, client_app_id, uri, redirect_uri_type, concurrency_token, last_entry) \
             SELECT id, id, 'about:blank', 'Login', 'x', 0 FROM client_app WHERE name = 'root'",
        ],
    )
    .await;
    let lines = refused(&database);
    assert!(matches!(&lines[..], [one] if one.contains("about:blank")), "{lines:?}");
}

#[tokio::test]
async fn an_older_schema_is_read_sqlite() {
    an_older_schema_is_read(Engine::Sqlite).await;
}

#[tokio::test]
async fn an_older_schema_is_read_postgres() {
    an_older_schema_is_read(Engine::Postgres).await;
}
