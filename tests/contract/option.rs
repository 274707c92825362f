//! Options: their values, and their immediate effect.

use std::sync::Arc;

use chancery::services;
use chancery_record::Value as Bound;
use chancery_resource::{Problem, Scope, settings::CATALOGUE};
use chancery_store::Mode;
use chancery_testkit::{Database, Engine, Process, World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    each, encode, id,
    permissions::call,
    pointers,
    signing::{FIRST, Person, SECOND, drop_option, option, set, set_all, texts, wrong},
};

const OPTIONS: &str = "/api/management/v2/Option";
const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
const USERS: &str = "/api/userstore/v2/default/administration/User";

/// dataType and editorType follow the default's form.
fn hints(name: &str, default: &str) -> (&'static str, &'static str) {
    match default {
        "true" | "false" => ("Boolean", "Checkbox"),
        _ if !default.is_empty() && default.bytes().all(|byte| byte.is_ascii_digit()) => {
            ("Integer", "Number")
        }
        _ if default.contains(':') => ("TimeSpan", "Duration"),
        _ if ["Recipients", "Origins", "Aaguids", "Links"].iter().any(|end| name.ends_with(end)) => {
            ("CommaSeparatedString", "Tags")
        }
        _ => ("String", "Text"),
    }
}

async fn options(world: &World, filter: &str) -> Value {
    world.admin.get(&format!("{OPTIONS}?filter={}", encode(filter))).await.is(200).json()
}

/// An update body without changes.
fn body_of(option: &Value) -> Value {
    json!({ "id": option["id"], "name": option["name"], "value": option["value"], "concurrencyToken": option["concurrencyToken"] })
}

fn path_of(option: &Value) -> String {
    format!("{OPTIONS}/{}", id(option))
}

on_both_engines! {
    /// Creating an instance or a tenant writes one row per entry of the catalogue, with the default.
    async fn are_there_with_their_owner(world: World) {
        let store = world.user("ada").await["instanceId"].clone();
        for (owner, target) in [("UserStore", "applyToIdpInstanceId"), ("Tenant", "applyToTenantId")] {
            let rows = options(&world, &format!("{target} pr")).await;
            let of_owner = CATALOGUE.iter().filter(|entry| entry.owner.type_name() == owner);
            let expected: Vec<(&str, &str)> = of_owner.map(|entry| (entry.name, entry.default)).collect();
            assert_eq!(rows.as_array().unwrap().len(), expected.len());
            for (name, default) in expected {
                let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(row["value"], default, "{name}");
                assert_eq!((row["dataType"].as_str().unwrap(), row["editorType"].as_str().unwrap()), hints(name, default), "{name}");
                assert_eq!(row["hasConfigurationError"], false, "{name}");
                let targets = ["applyToIdpInstanceId", "applyToMfaInstanceId", "applyToTenantId"];
                assert_eq!(targets.iter().filter(|target| row[**target].is_string()).count(), 1, "{name}");
                assert!(target != "applyToIdpInstanceId" || row[target] == store, "{name}");
                let members: Vec<&String> = row.as_object().unwrap().keys().collect();
                assert_eq!(members, ["applyToIdpInstanceId", "applyToMfaInstanceId", "applyToTenantId", "concurrencyToken",
                    "dataType", "editorType", "hasConfigurationError", "id", "name", "value"]);
            }
        }
    }

    async fn are_found_and_changed(world: World) {
        let row = option(&world.admin, "PasswordMinLength").await;
        assert_eq!(world.admin.get(&path_of(&row)).await.is(200).json(), row);
        let page = world.admin.get(&format!("{OPTIONS}?sortBy=name&count=2&filter={}", encode("applyToIdpInstanceId pr"))).await.is(200);
        assert_eq!(each(&page.json(), "name"), ["AttemptsBeforeTemporaryLock", "AttemptsBeforeUserLocked"]);
        let mut body = body_of(&row);
        body["value"] = json!("9");
        let changed = world.admin.put(&path_of(&row), body.clone()).await.is(202).json();
        assert_eq!((&changed["value"], &changed["applyToIdpInstanceId"]), (&json!("9"), &row["applyToIdpInstanceId"]));
        assert_ne!(changed["concurrencyToken"], row["concurrencyToken"]);
        world.admin.put(&path_of(&row), body.clone()).await.problem(409, "concurrency-conflict");
        let patched = world.admin.patch(&path_of(&row), json!({ "value": "10", "concurrencyToken": changed["concurrencyToken"] })).await.is(202).json();
        assert_eq!((&patched["value"], &patched["name"]), (&json!("10"), &row["name"]));
        world.admin.patch(&path_of(&row), json!({ "value": "10" })).await.problem(400, "invalid-request");
        let long = json!({ "value": "x".repeat(8001), "concurrencyToken": patched["concurrencyToken"] });
        assert_eq!(wrong(world.admin.patch(&path_of(&row), long).await), ["/value"]);
        // hints are ours, and read only
        let hint = json!({ "dataType": "String", "hasConfigurationError": true, "concurrencyToken": patched["concurrencyToken"] });
        let same = world.admin.patch(&path_of(&row), hint).await.is(202).json();
        assert_eq!((&same["dataType"], &same["hasConfigurationError"]), (&json!("Integer"), &json!(false)));
        world.admin.get(&format!("{OPTIONS}/{UNKNOWN_ID}")).await.problem(404, "not-found");
        // its name is one of its target's
        let taken = json!({ "name": "ClaimIssuer", "concurrencyToken": same["concurrencyToken"] });
        assert_eq!(pointers(&world.admin.patch(&path_of(&row), taken).await.problem(409, "conflict")), ["/name"]);
        // the trail of the configuration has an entry
        let entry = texts(&world, "SELECT data_source || action || area || COALESCE(current_content, '') FROM audit_entry ORDER BY rid DESC LIMIT 1").await;
        assert!(entry[0].starts_with("managementModifiedOption") && entry[0].contains("PasswordMinLength"), "{entry:?}");
    }

    /// Exactly one target: a PUT without any retains it, one clears the others, two are 400.
    async fn have_exactly_one_target(world: World) {
        let other = world.other_store("other").await;
        drop_option(&world, other, "EventRetention").await;
        let tenant = options(&world, "applyToTenantId pr").await[0]["applyToTenantId"].clone();
        let of_tenant = options(&world, "applyToTenantId pr and name eq \"EventRetention\"").await[0].clone();
        world.admin.delete(&path_of(&of_tenant)).await.expect(204);
        let row = option(&world.admin, "EventRetention").await;
        let path = path_of(&row);
        let put = async |targets: Value| {
            let mut body = body_of(&world.admin.get(&path).await.is(200).json());
            body.as_object_mut().unwrap().extend(targets.as_object().unwrap().clone());
            world.admin.put(&path, body).await
        };
        for none in [json!({}), json!({ "applyToIdpInstanceId": null, "applyToTenantId": null }), json!({ "applyToIdpInstanceId": "" })] {
            assert_eq!(put(none).await.is(202).json()["applyToIdpInstanceId"], row["applyToIdpInstanceId"]);
        }
        let moved = put(json!({ "applyToTenantId": tenant })).await.is(202).json();
        assert_eq!((&moved["applyToTenantId"], &moved["applyToIdpInstanceId"]), (&tenant, &json!(null)));
        assert_eq!((&moved["dataType"], &moved["hasConfigurationError"]), (&json!("TimeSpan"), &json!(false)));
        let moved = put(json!({ "applyToIdpInstanceId": other, "applyToTenantId": null })).await.is(202).json();
        assert_eq!((&moved["applyToTenantId"], &moved["applyToIdpInstanceId"]), (&json!(null), &json!(other)));
        for two in [json!({ "applyToIdpInstanceId": other, "applyToTenantId": tenant }), json!({ "applyToIdpInstanceId": other, "applyToMfaInstanceId": other, "applyToTenantId": tenant })] {
            put(two).await.problem(400, "invalid-request");
        }
        for (member, target) in [("applyToIdpInstanceId", json!(UNKNOWN_ID)), ("applyToTenantId", json!(other)), ("applyToMfaInstanceId", json!(UNKNOWN_ID))] {
            assert_eq!(wrong(put(json!({ member: target })).await), [format!("/{member}")]);
        }
        assert_eq!(world.admin.get(&path).await.json()["applyToIdpInstanceId"], json!(other));
        // PATCH does the same
        let token = world.admin.get(&path).await.json()["concurrencyToken"].clone();
        let moved = world.admin.patch(&path, json!({ "applyToTenantId": tenant, "concurrencyToken": token })).await.is(202).json();
        assert_eq!((&moved["applyToTenantId"], &moved["applyToIdpInstanceId"]), (&tenant, &json!(null)));
    }

    /// A caller sees and targets the options of its scope alone.
    async fn are_those_of_the_caller_s_scope(world: World) {
        let other = world.other_store("other").await;
        drop_option(&world, other, "ClaimIssuer").await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let row = option(&near, "ClaimIssuer").await;
        set(&near, "ClaimIssuer", "near").await;
        let mut body = body_of(&world.admin.get(&path_of(&row)).await.json());
        body["applyToIdpInstanceId"] = json!(other);
        let refused = near.put(&path_of(&row), body.clone()).await;
        assert_eq!(wrong(refused), ["/applyToIdpInstanceId"]);
        world.admin.put(&path_of(&row), body).await.expect(202);
        near.get(&path_of(&row)).await.problem(404, "not-found");
        assert!(!each(&near.get(OPTIONS).await.is(200).json(), "name").contains(&"ClaimIssuer"));
        let tenant = options(&world, "applyToTenantId pr").await[0]["applyToTenantId"].as_str().unwrap().parse().unwrap();
        let store = option(&near, "PasswordMinLength").await["applyToIdpInstanceId"].as_str().unwrap().parse().unwrap();
        for role in [("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store)), ("AuditTrailReader", None, None)] {
            let low = world.client(&role.0.to_lowercase(), &[role]).await;
            assert_ne!(low.put(&path_of(&row), json!({ "concurrencyToken": "t" })).await.status, 202, "{}", role.0);
        }
    }

    /// Options of a tenant are validated together, too, if an administrator of the subscription or of the tenant changes one.
    async fn options_are_validated_together_for_lower_administrators(world: World) {
        let of_tenant = |name: &str| format!("applyToTenantId pr and name eq \"{name}\"");
        let path = format!("{OPTIONS}?filter={}", encode(&of_tenant("SessionLifetime")));
        let tenant = options(&world, "applyToTenantId pr").await[0]["applyToTenantId"].as_str().unwrap().parse().unwrap();
        for (role, tenant, lifetime, is_wrong) in [
            ("SubscriptionAdmin", None, "100.00:00:00", true), ("TenantAdmin", Some(tenant), "01:00:00", false),
        ] {
            let administrator = world.client(role, &[(role, tenant, None)]).await;
            let row = administrator.get(&path).await.is(200).json()[0].clone();
            let body = json!({ "value": lifetime, "concurrencyToken": row["concurrencyToken"] });
            administrator.patch(&path_of(&row), body).await.expect(202);
            let other = options(&world, &of_tenant("SessionAbsoluteLifetime")).await[0].clone();
            assert_eq!(other["hasConfigurationError"], is_wrong, "{role}");
        }
    }

    /// hasConfigurationError: a mandatory option is empty, or a value does not parse; the default is
    /// in effect then.
    async fn errors_are_flagged_and_fall_to_the_default(world: World) {
        for (name, good, bad) in [
            ("PasswordMinLength", &["", "12", " 9 "][..], &["many", "-1", "1.5"][..]),
            ("EmailMustBeUnique", &["TRUE", "False", ""], &["yes", "1"]),
            ("TemporaryLockDuration", &["00:00:30", "1.02:03:04", "PT5M", "P1D"], &["5", "24:00:00", "soon", "-00:00:01"]),
            ("PasskeyUserVerification", &["Required", "preferred"], &["maybe"]),
            ("MailServerConfig", &["", "{\"Host\":\"mail.example.com\"}"], &["smtp://mail", "[]", "{}", "{\"Host\":\"mail.example.com\",\"Port\":0}"]),
            ("EMailSenderAddress", &["a@example.com", "B\u{fc}cherei <a@example.com>"], &["nope", "Library noreply@example.org"]),
            ("MailServerConfig", &[""], &[]),
            ("PasskeyRelyingPartyId", &["example.com", "localhost", ""], &["https://example.com", "example.com:8443", "exa mple"]),
            ("PasskeyAllowedOrigins", &["https://example.com, http://localhost:3000/idp", "https://example.com/login", "android:apk-key-hash:Ab_-", ""], &["example.com", "https://example.com/login?x"]),
            ("PasskeyAllowedAaguids", &["8446ccb9-ab1d-b374-750b-2367ff6f3a1f, 8446CCB9AB1DB374750B2367FF6F3A1F", ""], &["8446ccb9", "a security key"]),
            ("PasskeyBlockedAaguids", &["00000000-0000-0000-0000-000000000000", ""], &["YubiKey 5"]),
            ("UserLockNotificationRecipients", &["a@example.com, b@example.com", ""], &["a@example.com, b"]),
            (
                "PasswordResetUrlTemplate",
                &["", "https://example.com/reset?u={loginName}#{token}", "HTTP://localhost:3000/{token}"],
                &["https://id.example.com/", "javascript:alert('{token}')", "app:{token}", "/reset"],
            ),
        ] {
            for value in good {
                assert_eq!(set(&world.admin, name, value).await["hasConfigurationError"], false, "{name} {value:?}");
            }
            for value in bad {
                let row = set(&world.admin, name, value).await;
                assert_eq!((&row["hasConfigurationError"], &row["value"]), (&json!(true), &json!(value)), "{name} {value:?}");
                assert_eq!(option(&world.admin, name).await, row);
            }
        }
        let mut terms = options(&world, "name eq \"TermsUrl\"").await[0].clone();
        for (value, is_wrong) in [("/terms", false), ("https://example.com/terms", false), ("javascript:alert(1)", true), ("terms", true)] {
            let body = json!({ "value": value, "concurrencyToken": terms["concurrencyToken"] });
            terms = world.admin.patch(&path_of(&terms), body).await.is(202).json();
            assert_eq!(terms["hasConfigurationError"], is_wrong, "{value}");
        }
        // the default of PasswordMinLength is 8
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        assert_eq!(wrong(ada.reset("kQ7-xzu").await), ["/newPassword"]);
        ada.reset("kQ7-xzu8").await.expect(200);
        // mandatory
        let instance = Uuid::from_u128(7);
        world.sql(vec![(
            "INSERT INTO idp_instance (id, subscription_id, idp_type, name, name_key, is_active, concurrency_token) \
             SELECT ?1, i.subscription_id, 'OpenIdConnect', 'oidc', 'oidc', TRUE, 't' FROM idp_instance i",
            vec![Bound::Id(instance)],
        )]).await;
        let row = option(&world.admin, "ClaimIssuer").await;
        let mut body = json!({ "name": "Authority", "value": "", "applyToIdpInstanceId": instance, "concurrencyToken": row["concurrencyToken"] });
        let empty = world.admin.put(&path_of(&row), body.clone()).await.is(202).json();
        assert_eq!(empty["hasConfigurationError"], true);
        body["value"] = json!("https://idp.example.com");
        body["concurrencyToken"] = empty["concurrencyToken"].clone();
        assert_eq!(world.admin.put(&path_of(&row), body).await.is(202).json()["hasConfigurationError"], false);
    }

    /// Dependent options are validated together, whichever of them is written, one by one or together, or deleted.
    async fn options_are_validated_together(world: World) {
        let is_wrong = async |name: &str| option(&world.admin, name).await["hasConfigurationError"] == json!(true);
        set(&world.admin, "PasswordMinLength", "200").await;
        assert!(is_wrong("PasswordMaxLength").await && !is_wrong("PasswordMinLength").await);
        let store = option(&world.admin, "PasswordMinLength").await["applyToIdpInstanceId"].clone();
        let health = format!("/api/management/v2/IdpInstance/{}", store.as_str().unwrap());
        assert_eq!(world.admin.get(&health).await.is(200).json()["hasConfigurationError"], true);
        assert_eq!(set(&world.admin, "PasswordMaxLength", "300").await["hasConfigurationError"], false);
        assert_eq!(set(&world.admin, "PasswordMaxLength", "199").await["hasConfigurationError"], true);
        let (least, most) = (option(&world.admin, "PasswordMinLength").await, option(&world.admin, "PasswordMaxLength").await);
        let batch = [(&least, "20"), (&most, "30")].map(|(row, value)| {
            let mut body = body_of(row);
            body["value"] = json!(value);
            body
        });
        let batch = world.admin.put(&format!("{OPTIONS}/batch"), json!(batch)).await.is(200).json();
        assert_eq!(each(&batch, "value"), ["20", "30"]);
        assert!(!is_wrong("PasswordMaxLength").await && !is_wrong("PasswordMinLength").await);
        set(&world.admin, "PasswordMinLength", "40").await;
        assert!(is_wrong("PasswordMaxLength").await);
        world.admin.delete(&path_of(&option(&world.admin, "PasswordMinLength").await)).await.expect(204);
        assert!(!is_wrong("PasswordMaxLength").await, "the default is 8");

        set(&world.admin, "MailServerConfig", "{\"Host\":\"mail.example.com\"}").await;
        assert!(is_wrong("EMailSenderAddress").await, "a server without a sender sends nothing");
        set(&world.admin, "EMailSenderAddress", "a@example.com").await;
        assert!(!is_wrong("EMailSenderAddress").await);
        let of_tenant = async |name: &str| options(&world, &format!("applyToTenantId pr and name eq \"{name}\"")).await[0].clone();
        for (name, value, is_wrong) in [
            ("SessionLifetime", "100.00:00:00", true), ("SessionAbsoluteLifetime", "200.00:00:00", false),
            ("SessionLifetime", "01:00:00", false), ("SessionAbsoluteLifetime", "02:00:00", true),
            ("BrowserSessionLifetime", "02:00:00", false), ("BrowserSessionLifetime", "02:00:01", true),
        ] {
            let row = of_tenant(name).await;
            let mut body = body_of(&row);
            body["value"] = json!(value);
            world.admin.put(&path_of(&row), body).await.expect(202);
            assert_eq!(of_tenant("SessionAbsoluteLifetime").await["hasConfigurationError"], is_wrong, "{name}");
        }
    }

    /// Section 15: lifetimes have bounds: where a release narrows them, stored values are flagged at the next
    /// start, once, and valid ones are not.
    async fn values_are_validated_again_when_their_form_changes(world: World) {
        let before = set(&world.admin, "TemporaryLockDuration", "00:10:00").await;
        let wrong = set(&world.admin, "PasswordMinLength", "many").await;
        world.sql(vec![
            ("UPDATE option_value SET value = '9999.00:00:00' WHERE name = 'TemporaryLockDuration'", vec![]),
            ("UPDATE option_value SET value = '9' WHERE name = 'PasswordMinLength'", vec![]),
            ("UPDATE option_entry SET form = 'Span(0, 1)' WHERE name IN ('TemporaryLockDuration', 'PasswordMinLength')", vec![]),
        ]).await;
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let context = Arc::clone(&world.app.context);
            let start = world.app.store.run("Test", Mode::Write, None, move |tx| {
                let call = chancery::server_context(&context, Scope::Everything);
                chancery_management::option::add_new_entries(&call, tx)?;
                tx.advance_epoch()?;
                Ok::<_, Problem>(())
            });
            start.await.unwrap();
            for (name, was, is_wrong) in [("TemporaryLockDuration", &before, true), ("PasswordMinLength", &wrong, false)] {
                let now = option(&world.admin, name).await;
                assert_eq!((&was["hasConfigurationError"], &now["hasConfigurationError"]), (&json!(!is_wrong), &json!(is_wrong)));
                assert_ne!(now["concurrencyToken"], was["concurrencyToken"]);
                tokens.push(now["concurrencyToken"].clone());
            }
        }
        assert_eq!(tokens[..2], tokens[2..], "judged once");
    }

    /// MailServerConfig is encrypted at rest, redacted in the trail, readable at `/Option` alone; null
    /// in a PUT retains it; it gives neither filter nor order.
    async fn secrets_are_encrypted_and_redacted(world: World) {
        let value = r#"{"Host":"mail.example.com","UserName":"mailer","Password":"Rosebud-7f3a"}"#;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let row = set(&near, "MailServerConfig", value).await;
        assert_eq!(row["value"], value);
        for client in [&near, &world.admin] {
            assert_eq!(client.get(&path_of(&row)).await.is(200).json()["value"], value);
            assert_eq!(option(client, "MailServerConfig").await["value"], value);
        }
        let stored = texts(&world, "SELECT value FROM option_value WHERE name = 'MailServerConfig'").await;
        assert!(!stored[0].is_empty() && !stored[0].contains("Rosebud"));
        for null in [json!(null), json!("absent")] {
            let mut body = body_of(&near.get(&path_of(&row)).await.json());
            if null.is_null() { body["value"] = null } else { body.as_object_mut().unwrap().remove("value"); }
            assert_eq!(near.put(&path_of(&row), body).await.is(202).json()["value"], value);
        }
        let body = body_of(&near.get(&path_of(&row)).await.json());
        assert_eq!(near.put(&path_of(&row), body).await.is(202).json()["hasConfigurationError"], false, "as it was read");
        // it does not become another option
        let token = near.get(&path_of(&row)).await.json()["concurrencyToken"].clone();
        let tenant = options(&world, "applyToTenantId pr").await[0]["applyToTenantId"].clone();
        for (member, value) in [("name", json!("SomethingElse")), ("applyToTenantId", tenant)] {
            let mut patch = json!({ "concurrencyToken": token });
            patch[member] = value;
            assert_eq!(wrong(near.patch(&path_of(&row), patch).await), ["/name"]);
        }
        for text in [
            "SELECT value FROM option_value",
            "SELECT envelope FROM outbox_event",
            "SELECT COALESCE(original_content, '') || COALESCE(current_content, '') FROM audit_entry",
        ] {
            assert!(!texts(&world, text).await.concat().contains("Rosebud"), "{text}");
        }
        for query in ["sortBy=value".to_owned(), format!("filter={}", encode("value co \"Rosebud\"")), format!("filter={}", encode("value pr"))] {
            near.get(&format!("{OPTIONS}?{query}")).await.problem(400, "invalid-request");
        }
    }

    /// - Effect of `Option.applyToIdpInstanceId`: The option is in effect for this instance.
    /// - Effect of `Option.value`: This value is in effect, or the default if it is empty or does not have the option's form.
    async fn take_effect_at_once(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        for length in ["12", "7", "12"] {
            set(&world.admin, "PasswordMinLength", length).await;
            assert_eq!(ada.reset("kQ7-xzu8").await.status == 200, length == "7");
        }
        // an option that is moved away falls to its default
        let other = world.other_store("other").await;
        let row = option(&world.admin, "PasswordMinLength").await;
        drop_option(&world, other, "PasswordMinLength").await;
        let body = json!({ "applyToIdpInstanceId": other, "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&path_of(&row), body).await.expect(202);
        ada.reset("kQ7-xzu8").await.expect(200);
    }

    /// Read-only mode: 409 for every write to the store, and reads go on.
    ///
    /// - Effect of `UserStore options.IsDatabaseReadOnlyMode`: Nothing in the store is changed by requests or sign-ins.
    async fn a_store_can_be_read_only(world: World) {
        let ada = Person::named(&world, "ada").await;
        let group = world.group("g").await;
        set(&world.admin, "IsDatabaseReadOnlyMode", "true").await;
        let before = (ada.read().await, world.audit(50).await);
        let mut refused = 0;
        for service in services() {
            for op in service.all().filter(|op| service.name == "userstore" && op.changes_store()) {
                assert_eq!(call(&world.admin, service, op, "default").await, 409, "{}", op.name);
                refused += 1;
            }
        }
        assert!(refused > 30, "{refused}");
        ada.reset(SECOND).await.problem(409, "conflict");
        ada.change("not it", SECOND).await.problem(409, "conflict");
        world.admin.delete(&ada.path).await.problem(409, "conflict");
        world.admin.post(USERS, json!({ "loginName": "b" })).await.problem(409, "conflict");
        assert_eq!((ada.read().await, world.audit(50).await), before);
        world.admin.get(&world.path("/Group")).await.expect(200);
        world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.expect(200);
        // another store is not, and the configuration is not
        world.other_store("other").await;
        world.admin.post("/api/userstore/v2/other/administration/User", json!({ "loginName": "b" })).await.expect(201);
        set(&world.admin, "IsDatabaseReadOnlyMode", "False").await;
        ada.change(FIRST, SECOND).await.expect(200);
    }
}

/// On every process.
#[tokio::test]
async fn take_effect_at_once_on_every_process() {
    let database = Database::create(Engine::Postgres);
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    for number in 0..5 {
        let (one, other) = if number % 2 == 0 { (&left, &right) } else { (&right, &left) };
        set_all(&one.admin, &[("IsDatabaseReadOnlyMode", "true")]).await;
        other.admin.post(USERS, json!({ "loginName": format!("u{number}") })).await.problem(409, "conflict");
        other.admin.get(USERS).await.expect(200);
        set_all(&one.admin, &[("IsDatabaseReadOnlyMode", "false")]).await;
        other.admin.post(USERS, json!({ "loginName": format!("u{number}") })).await.expect(201);
    }
}
