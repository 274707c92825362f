//! All options of one owner on a page, each with its control.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, Page, administrator, assign, encode, hidden, person, post, sign_in};
use crate::id;

async fn instance(world: &World) -> Value {
    let filter = encode("idpFactoryType eq \"UserStore\"");
    world.admin.get(&format!("{BASE}/IdpInstance?filter={filter}")).await.is(200).json()[0].clone()
}

async fn option(world: &World, name: &str) -> Value {
    let filter = encode(&format!("name eq \"{name}\" and applyToIdpInstanceId pr"));
    world.admin.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json()[0].clone()
}

/// Submits the form with these settings.
async fn save(world: &World, browser: &mut Browser, path: &str, page: &Page, typed: &[(&str, &str)]) -> Page {
    let (base, tokens) = (hidden(page, "base"), hidden(page, "tokens"));
    let hidden_fields = [("base", base.as_str()), ("tokens", tokens.as_str())];
    let fields: Vec<_> = hidden_fields.into_iter().chain(typed.iter().copied()).collect();
    post(world, browser, page, path, &fields).await
}

on_both_engines! {
    async fn settings_are_changed_together(world: World) {
        let mut browser = administrator(&world).await;
        let path = format!("/console/IdpInstance/{}/settings", id(&instance(&world).await));
        let page = browser.open(&path).await;
        assert!(page.html.contains("Default: 5 minutes") && page.html.contains("name=\"TemporaryLockDuration.unit\""), "{}", page.html);
        let unchanged = save(&world, &mut browser, &path, &page, &[("PasswordMinLength", "8")]).await;
        assert!(unchanged.html.contains("Nothing was changed"), "{}", unchanged.html);
        let typed = [
            ("TemporaryLockDuration", "2"), ("TemporaryLockDuration.unit", "hours"), ("LoginByEmailEnabled", "false"),
            ("LoginByEmailEnabled", "true"), ("PasswordMinLength", "12"), ("PasskeyEnrolment", "Require"),
            ("UserLockNotificationRecipients", "a@example.com\r\nb@example.com"),
        ];
        let saved = save(&world, &mut browser, &path, &page, &typed).await;
        assert!(saved.status == 200 && saved.html.contains("Changed. Default: 5 minutes"), "{}", saved.html);
        for (name, value) in [
            ("TemporaryLockDuration", "02:00:00"), ("LoginByEmailEnabled", "true"), ("PasswordMinLength", "12"),
            ("PasskeyEnrolment", "Require"), ("UserLockNotificationRecipients", "a@example.com,b@example.com"),
        ] {
            assert_eq!(option(&world, name).await["value"], json!(value), "{name}");
        }
        let trail = world.admin.get(&format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=5")).await.is(200).json();
        assert!(trail.as_array().unwrap().iter().all(|entry| entry["area"] == "Option" && entry["action"] == "Modified"), "{trail}");
        // undo
        let undo = saved.html.split("class=\"note\"").nth(1).unwrap().split("</form>").next().unwrap();
        let undo = Page { html: undo.to_owned(), ..saved };
        let fields: Vec<(String, String)> = undo.html.split("type=\"hidden\" name=\"").skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned()).map(|name| (name.clone(), hidden(&undo, &name))).collect();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        browser.post(&path, &fields, &[("origin", &world.base)]).await.answer.expect(200);
        assert_eq!(option(&world, "TemporaryLockDuration").await["value"], json!("00:05:00"));
    }

    /// A refused setting leaves all of them unchanged, and is reported at its field.
    async fn a_refused_setting_changes_nothing(world: World) {
        let mut browser = administrator(&world).await;
        let path = format!("/console/IdpInstance/{}/settings", id(&instance(&world).await));
        let page = browser.open(&path).await;
        let row = option(&world, "PasswordMinLength").await;
        let body = json!({ "value": "10", "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/Option/{}", id(&row)), body).await.expect(202);
        let typed = [("PasswordMaxLength", "64"), ("PasswordMinLength", "12")];
        let refused = save(&world, &mut browser, &path, &page, &typed).await;
        assert!(refused.html.contains("f-PasswordMinLength-wrong") && refused.html.contains("Now it is 10"), "{}", refused.html);
        assert_eq!(option(&world, "PasswordMaxLength").await["value"], json!("128"));
        let saved = save(&world, &mut browser, &path, &refused, &typed).await;
        assert_eq!(saved.status, 200, "{}", saved.html);
        assert_eq!(option(&world, "PasswordMinLength").await["value"], json!("12"));
    }

    /// A user whose role does not cover all users that sign in there sees the reason and the remedy at the setting; other
    /// settings are saved.
    async fn a_protected_setting_is_refused_at_its_field(world: World) {
        let store = instance(&world).await;
        let boss = person(&world, "boss").await;
        assign(&world, &boss, "SystemAdmin", json!({})).await;
        let lower = person(&world, "lower").await;
        assign(&world, &lower, "SubscriptionAdmin", json!({ "applyToSubscriptionId": store["subscriptionId"] })).await;
        let mut browser = Browser::new(&world);
        let path = format!("/console/IdpInstance/{}/settings", id(&store));
        let page = sign_in(&mut browser, &path, "lower").await;
        let open = ("UserLockNotificationRecipients", "a@example.com");
        let refused = save(&world, &mut browser, &path, &page, &[open, ("PasswordMinLength", "12")]).await;
        let has = |text: &str| refused.html.contains(text);
        assert!(refused.status == 403 && has("f-PasswordMinLength-wrong") && !has("f-UserLockNotificationRecipients-wrong"), "{}", refused.html);
        assert!(has("has the role SystemAdmin") && has("a user store of their own"), "{}", refused.html);
        assert_eq!(option(&world, "PasswordMinLength").await["value"], json!("8"));
        let saved = save(&world, &mut browser, &path, &page, &[open]).await;
        assert_eq!(saved.status, 200, "{}", saved.html);
        assert_eq!(option(&world, "UserLockNotificationRecipients").await["value"], json!("a@example.com"));
    }

    /// A secret can be set, but is never shown.
    async fn a_mail_server_is_set_by_its_members(world: World) {
        let mut browser = administrator(&world).await;
        let path = format!("/console/IdpInstance/{}/settings", id(&instance(&world).await));
        let page = browser.open(&path).await;
        let typed = [
            ("MailServerConfig", "mail.example.com"), ("MailServerConfig.Port", "587"), ("MailServerConfig.EnableSSL", "false"),
            ("MailServerConfig.UserName", "chancery"), ("MailServerConfig.Password", "hidden-words"),
        ];
        let saved = save(&world, &mut browser, &path, &page, &typed).await;
        assert!(saved.status == 200 && !saved.html.contains("hidden-words") && !saved.html.contains("mail.example.com"), "{}", saved.html);
        let row = option(&world, "MailServerConfig").await;
        let value: Value = serde_json::from_str(row["value"].as_str().unwrap()).unwrap();
        assert_eq!(value, json!({ "MailType": "SMTP", "Host": "mail.example.com", "Port": 587, "EnableSSL": false, "UserName": "chancery", "Password": "hidden-words" }));
        assert_eq!(row["hasConfigurationError"], json!(false));
    }

    /// Tenants and second factors have settings, too.
    async fn each_owner_has_its_settings(world: World) {
        let mut browser = administrator(&world).await;
        for (resource, name) in [("Tenant", "SessionLifetime"), ("MfaInstance", "ResendInterval")] {
            if resource == "MfaInstance" {
                let types = world.admin.get(&format!("{BASE}/IdpType?filter={}", encode("name eq \"email\""))).await.is(200).json();
                world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": types[0]["id"] })).await;
            }
            let row = world.admin.get(&format!("{BASE}/{resource}")).await.is(200).json()[0].clone();
            let page = browser.open(&format!("/console/{resource}/{}", id(&row))).await;
            let path = format!("/console/{resource}/{}/settings", id(&row));
            assert!(page.html.contains(&format!("href=\"{path}\"")), "{}", page.html);
            let page = browser.open(&path).await;
            assert!(page.status == 200 && page.html.contains(&format!("name=\"{name}\"")), "{}", page.html);
        }
    }

    /// Settings are listed by owner: the selected store, other providers, second factors and tenants.
    async fn settings_are_listed_by_owner(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/settings").await;
        let (instance, tenant) = (instance(&world).await, world.all("Tenant").await[0].clone());
        for href in [
            format!("/console/IdpInstance/{}/settings", id(&instance)),
            format!("/console/Tenant/{}/settings", id(&tenant)),
            "/console/Option".to_owned(),
            // the navigation links to this page
            "/console/settings".to_owned(),
        ] {
            assert!(page.html.contains(&format!("href=\"{href}\"")), "{href}: {}", page.html);
        }
        let reader = person(&world, "reader").await;
        assign(&world, &reader, "AuditTrailReader", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "reader").await;
        assert!(!page.html.contains("/console/settings"), "{}", page.html);
        browser.open("/console/settings").await.answer.expect(403);
    }
}
