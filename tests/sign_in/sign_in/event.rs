//! Events of sign-ins: each one once, with ids only.

use chancery::append_pending;
use chancery_record::Timestamp;
use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    PASSWORD, SignInApp,
    browser::Browser,
    parameter,
    second_factor::{enrol, require_factor},
};
use crate::id;

/// The events of sign-ins so far, in order.
async fn events(world: &World) -> Vec<Value> {
    append_pending(&world.app, Timestamp(1_795_253_400_000)).await.unwrap();
    let response = world.admin.get("/api/management/v2/SignInEvent?count=1000").await.is(200).json();
    let all = response["items"].as_array().unwrap().clone();
    assert!(all.iter().all(|event| event["type"].as_str().unwrap().starts_with("platform.signin.")));
    all
}

/// The type of each event, without the common prefix.
async fn types(world: &World) -> Vec<String> {
    let all = events(world).await;
    all.iter().map(|event| event["type"].as_str().unwrap()["platform.signin.".len()..].to_owned()).collect()
}

const OFFLINE: &str = "openid offline_access";

/// Signs in with `offline_access`: the browser, and the tokens.
async fn offline(world: &World, home: &SignInApp) -> (Browser, Value) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[("scope", OFFLINE)])).await;
    let code = parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").unwrap();
    (browser, home.redeem(world, &code, &[]).await.is(200).json())
}

on_both_engines! {
    async fn sessions_and_grants_emit_events(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        assert_eq!(types(&world).await, ["session.created", "grant.created"]);
        let [session, grant] = events(&world).await.try_into().unwrap();
        let scope = &session["data"]["scope"];
        assert_eq!(session["source"], json!(format!("/signin/{}", scope["subscriptionId"].as_str().unwrap())));
        assert_eq!(scope["tenantId"], json!(home.tenant));
        assert_eq!(session["subject"], session["data"]["id"]);
        assert_eq!(session["data"]["sessionId"], session["data"]["id"]);
        assert_eq!(session["data"]["actor"], session["data"]["platformUserId"]);
        assert_eq!(grant["data"]["clientAppId"], home.app["id"]);
        assert_eq!(grant["data"]["sessionId"], session["data"]["id"]);
        assert_eq!(grant["data"]["scope"], *scope);
        // by the person, and one event each
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert_eq!(types(&world).await[2..], ["session.ended", "grant.revoked"]);
        let ended = &events(&world).await[2];
        assert_eq!(ended["data"]["actor"], session["data"]["platformUserId"]);
        let text = serde_json::to_string(&events(&world).await).unwrap();
        for personal in ["ann", "127.0.0.1", "Ann"] {
            assert!(!text.contains(&format!("\"{personal}")), "{personal} is told: {text}");
        }
    }

    /// A failure emits an event with the id of its record; attempts at unknown names emit none.
    async fn failed_attempts_emit_events(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        let before = types(&world).await.len();
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.type_password(&page, "nobody", PASSWORD).await;
        assert_eq!(types(&world).await.len(), before);
        browser.type_password(&page, "ann", "not hers").await;
        assert_eq!(types(&world).await[before..], ["attempt.failed"]);
        let failed = &events(&world).await[before];
        let path = format!("/api/management/v2/SignInRecord/{}", failed["data"]["id"].as_str().unwrap());
        let record = world.admin.get(&path).await.is(200).json();
        assert_eq!((&record["outcome"], &record["reason"]), (&json!("Refused"), &json!("Credentials")));
        assert_eq!(record["platformUserId"], failed["data"]["platformUserId"]);
    }

    /// Reuse of a replaced refresh token emits an event, and so does the end of its grant.
    async fn refresh_token_reuse_emits_events(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true })).await;
        let (_, tokens) = offline(&world, &home).await;
        let first = tokens["refresh_token"].as_str().unwrap();
        let second = home.refresh_at(&world.anonymous, first).await.is(200).json();
        home.refresh_at(&world.anonymous, second["refresh_token"].as_str().unwrap()).await.expect(200);
        let before = types(&world).await.len();
        home.refresh_at(&world.anonymous, first).await.expect(400);
        assert_eq!(types(&world).await[before..], ["grant.revoked", "grant.reused"]);
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
        assert!(text.contains("chancery_refresh_reuse_total 1\n"), "{text}");
        assert!(text.contains("chancery_flows_total{step=\"password\",outcome=\"complete\"} 1\n"), "{text}");
    }

    /// An end by an administrator emits the event of the audit entry, and no other.
    async fn ends_by_administrators_emit_one_event(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let all = events(&world).await;
        let [session, grant] = ["session.created", "grant.created"].map(|kind| {
            let matching = all.iter().find(|event| event["type"] == json!(format!("platform.signin.{kind}")));
            matching.unwrap()["data"]["id"].clone()
        });
        let before = all.len();
        world.admin.delete(&format!("/api/management/v2/SignInSession/{}", id_of(&session))).await.expect(204);
        assert_eq!(types(&world).await[before..], ["session.ended"], "the grant is for when the person is away");
        world.admin.delete(&format!("/api/management/v2/SignInGrant/{}", id_of(&grant))).await.expect(204);
        assert_eq!(types(&world).await[before + 1..], ["grant.revoked"]);
        for event in &events(&world).await[before..] {
            let number: i64 = event["id"].as_str().unwrap().parse().unwrap();
            let entry = world.app.store.run("Entry", Mode::Quick, None, move |tx| {
                tx.one("SELECT area FROM audit_entry WHERE rid = ?1", &[number.into()], |row| Ok(row.text(0)?.to_owned()))
            });
            assert!(Result::<_, Error>::unwrap(entry.await).is_some(), "{event} can be proven by its audit entry");
        }
        home.refresh_at(&world.anonymous, tokens["refresh_token"].as_str().unwrap()).await.expect(400);
    }

    /// A permanent lock of a user ends the sessions, with events.
    async fn a_permanent_lock_emits_events(world: World) {
        let home = SignInApp::new(&world).await;
        offline(&world, &home).await;
        let before = types(&world).await.len();
        let path = format!("/api/userstore/v2/default/administration/User/{}", id(&home.user));
        let user = world.admin.get(&path).await.is(200).json();
        let token = &user["concurrencyToken"];
        world.admin.patch(&path, json!({ "isUserActive": false, "concurrencyToken": token })).await.expect(202);
        assert_eq!(types(&world).await[before..], ["session.ended", "grant.revoked"]);
    }

    async fn second_factors_emit_events(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        enrol(&world, &home).await;
        assert_eq!(types(&world).await, ["factor.enrolled", "session.created", "grant.created"]);
        let factor = world.admin.get("/api/management/v2/SignInFactor").await.is(200).json()[0].clone();
        let path = format!("/api/management/v2/SignInFactor/{}", id(&factor));
        world.admin.delete(&path).await.expect(204);
        assert_eq!(types(&world).await[3..], ["session.ended", "grant.revoked", "factor.removed"]);
    }

    async fn consents_emit_events(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Explicit" })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid email")])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let csrf = page.field("csrf");
        let given = [("csrf", csrf.as_str()), ("decision", "allow"), ("scope", "email"), ("remember", "true")];
        browser.post(&page.action(), &given, &[]).await;
        assert_eq!(types(&world).await, ["session.created", "consent.given"]);
        let consent = world.admin.get("/api/management/v2/SignInConsent").await.is(200).json()[0].clone();
        let path = format!("/api/management/v2/SignInConsent/{}", id(&consent));
        world.admin.delete(&path).await.expect(204);
        assert_eq!(types(&world).await[2..], ["consent.withdrawn"]);
    }
}

fn id_of(text: &Value) -> &str {
    text.as_str().unwrap()
}
