//! Consent, terms, sessions, grants and second factors of people of an external identity provider, and their end by
//! administrators and by a directory.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, SignInApp,
    browser::{Browser, Page},
    change,
    external::{people, set_up, sign_in, sign_in_with, tokens},
    first, parameter,
    second_factor::{between, code_of, require_factor},
    tenant_option,
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::StubProvider},
    scim::{directory_of, operations},
};

const OFFLINE: (&str, &str) = ("scope", "openid profile email offline_access");

/// The page after the return from the provider.
async fn returned(world: &World, home: &SignInApp, provider: &StubProvider) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[OFFLINE])).await;
    let page = sign_in_with(&mut browser, &page, "Partner", provider).await;
    (browser, page)
}

/// The tokens of a sign-in that continues to the app from this page.
async fn redeemed(world: &World, home: &SignInApp, browser: &mut Browser, page: &Page) -> Value {
    let code = parameter(&browser.continue_to_app(page).await, "code").unwrap();
    home.redeem(world, &code, &[]).await.is(200).json()
}

fn bearer(world: &World, tokens: &Value) -> Client {
    world.anonymous.with_token(tokens["access_token"].as_str().unwrap())
}

async fn refresh(world: &World, home: &SignInApp, tokens: &Value) -> u16 {
    home.refresh_at(&world.anonymous, tokens["refresh_token"].as_str().unwrap()).await.status.as_u16()
}

/// The error of a request without pages.
async fn silent_error(home: &SignInApp, browser: &mut Browser) -> Option<String> {
    let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
    parameter(&silent, "error")
}

on_both_engines! {
    [allow_loopback]
    async fn consent_and_terms_are_requested_of_external_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "accessGrantConsent": "Explicit" })).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        tenant_option(&world, &home, "TermsUrl", "https://example.com/terms").await;
        let (mut browser, page) = returned(&world, &home, &provider).await;
        assert!(page.html.contains("2026-11") && page.html.contains("https://example.com/terms"), "{}", page.html);
        let declined = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&declined).await, "error").as_deref(), Some("access_denied"));
        let (mut browser, page) = returned(&world, &home, &provider).await;
        let page = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        let entry = first(&world, "/CustomAuditTrail?sortOrder=descending&count=1").await;
        assert_eq!(entry["area"], "ApplicationUser", "{entry}");
        assert!(page.asks_for_consent(), "{}", page.html);
        let allow = [("decision", "allow"), ("scope", "profile"), ("scope", "email"), ("scope", "offline_access"), ("remember", "true")];
        let next = browser.submit(&page, &allow).await;
        redeemed(&world, &home, &mut browser, &next).await;
        let person = people(&world, &instance).await.remove(0);
        let consent = first(&world, "/SignInConsent").await;
        assert_eq!((&consent["platformUserId"], &consent["clientAppId"]), (&person["id"], &home.app["id"]));
        // both are asked once
        let (mut browser, page) = returned(&world, &home, &provider).await;
        redeemed(&world, &home, &mut browser, &page).await;
        world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&consent))).await.expect(204);
        let (_, page) = returned(&world, &home, &provider).await;
        assert!(page.asks_for_consent(), "{}", page.html);
    }

    /// A tenant's administrator sees and ends what the tenant's people have; a store's administrator has no part in them.
    async fn administrators_end_sessions_and_grants_of_external_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (mut browser, answer) = sign_in(&world, &home, &provider, &[]).await;
        let issued = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let person = people(&world, &instance).await.remove(0);
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Other", "subscriptionId": subscription["id"] })).await;
        let (tenant, other) = (home.tenant.parse().unwrap(), id(&other).parse().unwrap());
        let store = home.user["instanceId"].as_str().unwrap().parse().unwrap();
        let own = world.client("own", &[("TenantAdmin", Some(tenant), None)]).await;
        let foreign = world.client("foreign", &[("TenantAdmin", Some(other), None)]).await;
        let keeper = world.client("keeper", &[("UserStoreAdmin", None, Some(store))]).await;
        for resource in ["SignInSession", "SignInGrant", "SignInRecord"] {
            let row = first(&world, &format!("/{resource}")).await;
            assert_eq!(row["platformUserId"], person["id"], "{resource}");
            let (all, one) = (format!("{BASE}/{resource}"), format!("{BASE}/{resource}/{}", id(&row)));
            for (client, count) in [(&own, 1), (&foreign, 0)] {
                let seen = client.get(&all).await.is(200).json();
                assert_eq!(seen.as_array().unwrap().len(), count, "{resource}");
                client.get(&one).await.expect(if count == 1 { 200 } else { 404 });
            }
            if resource == "SignInRecord" {
                keeper.get(&all).await.expect(403);
                continue;
            }
            assert_eq!(keeper.get(&all).await.is(200).json(), json!([]), "{resource}");
            for client in [&foreign, &keeper] {
                client.get(&one).await.expect(404);
                client.delete(&one).await.expect(404);
            }
        }
        let session = first(&world, "/SignInSession").await;
        own.delete(&format!("{BASE}/SignInSession/{}", id(&session))).await.expect(204);
        bearer(&world, &issued).get("/connect/userinfo").await.expect(401);
        assert_eq!(silent_error(&home, &mut browser).await.as_deref(), Some("login_required"));
        let issued = tokens(&world, &home, &provider, &[OFFLINE]).await;
        let grants = world.all("SignInGrant").await;
        let grant = grants.as_array().unwrap().iter().find(|grant| grant["isOffline"] == json!(true)).unwrap();
        own.delete(&format!("{BASE}/SignInGrant/{}", id(grant))).await.expect(204);
        assert_eq!(refresh(&world, &home, &issued).await, 400);
        bearer(&world, &issued).get("/connect/userinfo").await.expect(401);
    }

    async fn administrators_remove_second_factors_of_external_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        require_factor(&world, &home, "totp").await;
        tenant_option(&world, &home, "RememberDeviceLifetime", "30.00:00:00").await;
        let (mut browser, page) = returned(&world, &home, &provider).await;
        let secret = between(&page.html, "class=\"secret\"><code>", "<").to_owned();
        let shown = browser.submit(&page, &[("code", &code_of(&secret, 0))]).await;
        let next = browser.submit(&shown, &[]).await;
        redeemed(&world, &home, &mut browser, &next).await;
        // a remembered browser is not asked for a code
        let (mut browser, page) = returned(&world, &home, &provider).await;
        assert!(page.html.contains("Do not ask again"), "{}", page.html);
        let next = browser.submit(&page, &[("code", &code_of(&secret, 1)), ("remember", "true")]).await;
        redeemed(&world, &home, &mut browser, &next).await;
        browser.cookies.retain(|name, _| !name.ends_with("session"));
        let page = browser.open(&home.request(&[OFFLINE])).await;
        let next = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        redeemed(&world, &home, &mut browser, &next).await;
        let person = people(&world, &instance).await.remove(0);
        let factor = first(&world, "/SignInFactor").await;
        assert_eq!((&factor["platformUserId"], &factor["kind"]), (&person["id"], &json!("Authenticator")));
        world.admin.delete(&format!("{BASE}/SignInFactor/{}", id(&factor))).await.expect(204);
        // nor does the remembered browser skip the enrolment
        browser.cookies.retain(|name, _| !name.ends_with("session"));
        let page = browser.open(&home.request(&[OFFLINE])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("class=\"secret\""), "{}", page.html);
    }

    async fn deactivation_and_deletion_by_a_directory_end_everything(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "autoCreatePlatformUser": false })).await;
        let (directory, base) = directory_of(&world, &instance).await;
        let body = json!({ "userName": "ada@corp.example", "externalId": "ada" });
        let ada = directory.post(&format!("{base}/Users"), body).await.is(201).json();
        let path = format!("{base}/Users/{}", id(&ada));
        let active = |value: bool| operations(&json!([{ "op": "replace", "path": "active", "value": value }]));
        for is_deleted in [false, true] {
            let (mut browser, page) = returned(&world, &home, &provider).await;
            let issued = redeemed(&world, &home, &mut browser, &page).await;
            bearer(&world, &issued).get("/connect/userinfo").await.expect(200);
            let sessions = world.all("SignInSession?filter=endedOn%20eq%20null").await;
            let session = sessions[0].clone();
            if is_deleted {
                directory.delete(&path).await.expect(204);
            } else {
                directory.patch(&path, active(false)).await.expect(200);
            }
            bearer(&world, &issued).get("/connect/userinfo").await.expect(401);
            assert_eq!(refresh(&world, &home, &issued).await, 400);
            assert!(silent_error(&home, &mut browser).await.is_some());
            let (_, page) = returned(&world, &home, &provider).await;
            assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
            if !is_deleted {
                let ended = world.admin.get(&format!("{BASE}/SignInSession/{}", id(&session))).await.is(200).json();
                assert!(ended["endedOn"].is_string(), "{ended}");
                // a leaver who comes back signs in again: what was issued before stays ended
                directory.patch(&path, active(true)).await.expect(200);
                assert_eq!(refresh(&world, &home, &issued).await, 400);
                bearer(&world, &issued).get("/connect/userinfo").await.expect(401);
            }
        }
    }
}
