//! Consent of a person to the access of an app.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, parameter,
};
use crate::id;

async fn home(world: &World, mode: &str) -> SignInApp {
    let home = SignInApp::with(world, json!({ "accessGrantConsent": mode })).await;
    let scope = json!({ "clientAppId": home.app["id"], "key": "ledger.read", "name": "Read your bookings" });
    world.make("ClientAppScope", scope).await;
    home
}

/// Submits the consent page.
async fn decide(browser: &mut Browser, page: &Page, fields: &[(&str, &str)]) -> Page {
    let csrf = page.field("csrf");
    let all: Vec<(&str, &str)> =
        [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(&page.action(), &all, &[]).await
}

fn is_consent_page(page: &Page) -> bool {
    page.asks_for_consent()
}

const PLATFORM: [(&str, &str); 2] = [("resource", "PlatformManagementService"), ("scope", "openid")];

/// Links the platform's resource to an app.
async fn link_platform(world: &World, home: &SignInApp) {
    let resource = json!({ "clientAppId": home.app["id"], "key": "PlatformManagementService" });
    world.make("ClientAppResource", resource).await;
}

/// Error of a request with `prompt=none`.
async fn error_without_prompt(browser: &mut Browser, home: &SignInApp) -> Option<String> {
    let silent: Vec<_> = PLATFORM.into_iter().chain([("prompt", "none")]).collect();
    parameter(&browser.open(&home.request(&silent)).await.left.unwrap(), "error")
}

const SCOPE: (&str, &str) = ("scope", "openid email ledger.read");
const ALL: [(&str, &str); 3] = [("decision", "allow"), ("scope", "email"), ("scope", "ledger.read")];

async fn granted(world: &World, home: &SignInApp, answer: &str) -> Value {
    let code = parameter(answer, "code").unwrap_or_else(|| panic!("{answer}"));
    home.redeem(world, &code, &[]).await.is(200).json()["scope"].clone()
}

on_both_engines! {
    /// Explicit: asked until a consent covers the request; an unticked scope is not granted.
    ///
    /// - Effect of `ClientApp.accessGrantConsent`: People are asked for consent never, once or each time, or an administrator consents
    ///   instead.
    async fn explicit_consent_is_requested_once(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(is_consent_page(&page) && page.html.contains("Read your bookings"), "{}", page.html);
        assert!(page.html.contains("Harbour Ledger") && page.html.contains("ann@example.com"), "{}", page.html);
        assert!(browser.cookies.contains_key("chancery-session"), "the person is signed in already");
        let next = decide(&mut browser, &page, &[("decision", "allow"), ("scope", "email"), ("remember", "true")]).await;
        let answer = browser.continue_to_app(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid email"), "a part, and openid always");
        let covered = browser.open(&home.request(&[("scope", "openid email")])).await.left.unwrap();
        assert_eq!(granted(&world, &home, &covered).await, json!("openid email"));
        let more = browser.open(&home.request(&[SCOPE])).await;
        assert!(is_consent_page(&more), "it does not cover all");
        let again = browser.open(&home.request(&[("scope", "openid"), ("prompt", "consent")])).await;
        assert!(is_consent_page(&again), "asked for");
        let silent = browser.open(&home.request(&[SCOPE, ("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("consent_required"));
        let denied = decide(&mut browser, &more, &[("decision", "deny")]).await;
        let answer = browser.continue_to_app(&denied).await;
        assert_eq!(parameter(&answer, "error").as_deref(), Some("access_denied"));
    }

    /// The page shows the name of a resource, not its key; for the platform it has a text of its own.
    ///
    /// - Effect of `ClientAppResource.description`: The consent page explains the resource by this text.
    /// - Effect of `ClientAppResource.name`: The consent page shows the resource under this name.
    async fn the_consent_page_names_resources(world: World) {
        let home = home(&world, "Systematic").await;
        let own = json!({
            "clientAppId": home.app["id"], "key": "https://ledger.example", "name": "The ledger",
            "description": "All bookings of the harbour",
        });
        world.make("ClientAppResource", own).await;
        let api = world.make("ClientApp", json!({ "name": "Crane API" })).await;
        let near = json!({ "clientAppId": api["id"], "key": "urn:cranes", "name": "The cranes" });
        world.make("ClientAppResource", near).await;
        let mut browser = Browser::new(&world);
        let parameters = [("resource", "https://ledger.example"), ("scope", "openid")];
        let page = browser.open(&home.request(&parameters)).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(is_consent_page(&page) && page.html.contains(">The ledger</label>"), "{}", page.html);
        assert!(page.html.contains("All bookings of the harbour"), "{}", page.html);
        let page = browser.open(&home.request(&[("resource", "urn:cranes"), ("scope", "openid")])).await;
        assert!(is_consent_page(&page) && page.html.contains(">The cranes</label>"), "{}", page.html);
        link_platform(&world, &home).await;
        let page = browser.open(&home.request(&PLATFORM)).await;
        assert!(is_consent_page(&page) && page.html.contains("Administer this platform with your rights"), "{}", page.html);
    }

    /// Without "Remember my choice" nothing is stored, and only requested scopes can be granted.
    async fn consent_is_stored_only_if_remembered(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid email")])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let next = decide(&mut browser, &page, &ALL).await;
        let answer = browser.continue_to_app(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid email"), "no more than was asked for");
        assert_eq!(world.all("SignInConsent").await, json!([]));
        assert!(is_consent_page(&browser.open(&home.request(&[("scope", "openid email")])).await));
    }

    async fn systematic_consent_is_requested_every_time(world: World) {
        let home = home(&world, "Systematic").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let mut page = browser.type_password(&page, "ann", PASSWORD).await;
        for _ in 0..2 {
            assert!(is_consent_page(&page) && !page.html.contains("Remember my choice"), "{}", page.html);
            let next = decide(&mut browser, &page, &ALL).await;
            let answer = browser.continue_to_app(&next).await;
            assert_eq!(granted(&world, &home, &answer).await, json!("openid email ledger.read"));
            page = browser.open(&home.request(&[SCOPE])).await;
        }
        assert_eq!(world.all("SignInConsent").await, json!([]));
    }

    /// External: an administrator gives and revokes the consent; a revocation also ends all tokens of the app.
    ///
    /// - Effect of `SignInConsent.clientAppId`: The consent applies to this app.
    /// - Effect of `SignInConsent.platformUserId`: The consent is that of this person.
    /// - Effect of `SignInConsent.scope`: The app gets these scopes without asking the person.
    async fn external_consent_is_given_by_an_administrator(world: World) {
        let home = home(&world, "External").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let refused = browser.type_password(&page, "ann", PASSWORD).await;
        let refused = browser.continue_to_app(&refused).await;
        assert_eq!(parameter(&refused, "error").as_deref(), Some("consent_required"));
        let person = world.all("ApplicationUser").await[0]["id"].clone();
        let body = json!({ "clientAppId": home.app["id"], "platformUserId": person, "scope": "openid email ledger.read" });
        // a consent for another app, another person or fewer scopes has no effect
        world.user("bob").await;
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let people = world.all("ApplicationUser").await;
        let bob = people.as_array().unwrap().iter().find(|one| one["id"] != person).unwrap();
        let other = world.make("ClientApp", json!({ "name": "Other", "accessGrantConsent": "External" })).await;
        world.make("ClientAppScope", json!({ "clientAppId": other["id"], "key": "ledger.read", "name": "Read" })).await;
        for (member, value) in
            [("clientAppId", other["id"].clone()), ("platformUserId", bob["id"].clone()), ("scope", json!("openid email"))]
        {
            let mut body = body.clone();
            body[member] = value;
            let created = world.admin.post(&format!("{BASE}/SignInConsent"), body).await.is(201).json();
            let page = browser.open(&home.request(&[SCOPE])).await;
            let left = browser.sign_in(&page, "ann", PASSWORD).await;
            assert_eq!(parameter(&left, "error").as_deref(), Some("consent_required"), "{member}");
            world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&created))).await.expect(204);
        }
        let consent = world.admin.post(&format!("{BASE}/SignInConsent"), body.clone()).await.is(201).json();
        assert_eq!((&consent["source"], consent["givenOn"].is_string()), (&json!("Administrator"), true));
        world.admin.post(&format!("{BASE}/SignInConsent"), body).await.expect(409);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let answer = match page.left {
            Some(left) => left,
            None => browser.sign_in(&page, "ann", PASSWORD).await,
        };
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(200);
        world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&consent))).await.expect(204);
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = browser.open(&home.request(&[SCOPE])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("consent_required"));
    }

    /// SignInConsent.resources
    ///
    /// - Effect of `SignInConsent.resources`: The app gets tokens for these resources without asking the person.
    async fn a_consent_covers_its_resources_only(world: World) {
        let home = home(&world, "External").await;
        for key in ["urn:ledger", "urn:cranes"] {
            world.make("ClientAppResource", json!({ "clientAppId": home.app["id"], "key": key })).await;
        }
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let person = world.all("ApplicationUser").await[0]["id"].clone();
        let consent = json!({
            "clientAppId": home.app["id"], "platformUserId": person, "scope": "openid", "resources": "urn:ledger",
        });
        world.make("SignInConsent", consent).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("resource", "urn:ledger"), ("scope", "openid")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid"));
        for (resource, error) in [("urn:ledger", None), ("urn:cranes", Some("consent_required"))] {
            let left = browser.open(&home.request(&[("resource", resource), ("scope", "openid")])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), error, "{resource}: {left}");
        }
    }

    /// A stored consent is audited, with the person as actor.
    async fn consent_is_audited(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let remembered: Vec<(&str, &str)> = ALL.into_iter().chain([("remember", "true")]).collect();
        let next = decide(&mut browser, &page, &remembered).await;
        browser.continue_to_app(&next).await;
        let person = world.all("ApplicationUser").await[0]["id"].clone();
        let consents = world.all("SignInConsent").await;
        assert_eq!(
            (&consents[0]["scope"], &consents[0]["source"], &consents[0]["platformUserId"]),
            (&json!("email ledger.read openid"), &json!("Person"), &person)
        );
        let trail = format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=1");
        let entry = world.admin.get(&trail).await.is(200).json()[0].clone();
        assert_eq!((&entry["area"], &entry["user"]), (&json!("SignInConsent"), &person));
    }

    /// A token for the platform has the person's rights. The person is therefore asked once for each app, whatever the app's consent mode.
    async fn administrator_rights_of_an_app_require_consent_once(world: World) {
        let home = home(&world, "Implicit").await;
        link_platform(&world, &home).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid")])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        assert_eq!(error_without_prompt(&mut browser, &home).await.as_deref(), Some("consent_required"));
        let page = browser.open(&home.request(&PLATFORM)).await;
        assert!(is_consent_page(&page) && page.html.contains("Administer this platform with your rights"), "{}", page.html);
        let denied = decide(&mut browser, &page, &[("decision", "deny")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&denied).await, "error").as_deref(), Some("access_denied"));
        assert_eq!(error_without_prompt(&mut browser, &home).await.as_deref(), Some("consent_required"));
        let page = browser.open(&home.request(&PLATFORM)).await;
        let next = decide(&mut browser, &page, &[("decision", "allow")]).await;
        let answer = browser.continue_to_app(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid"));
        assert_eq!(error_without_prompt(&mut browser, &home).await, None);
        let stored = world.all("SignInConsent").await[0].clone();
        assert!(stored["platformGivenOn"].is_string() && stored["resources"] == "PlatformManagementService", "{stored}");
        // after a revocation the person is asked again
        world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&stored))).await.expect(204);
        assert_eq!(error_without_prompt(&mut browser, &home).await.as_deref(), Some("consent_required"));
    }

    /// No administrator can give this consent for the person, even one who may give all others.
    async fn administrators_cannot_consent_to_administrator_rights_of_others(world: World) {
        let home = home(&world, "Implicit").await;
        link_platform(&world, &home).await;
        for mode in ["External", "Implicit", "Explicit"] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "accessGrantConsent": mode })).await;
            world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
            let person = world.all("ApplicationUser").await[0].clone();
            let consent = json!({
                "clientAppId": home.app["id"], "platformUserId": person["id"], "scope": "openid",
                "resources": "PlatformManagementService", "platformGivenOn": "2026-01-01T00:00:00Z",
            });
            let created = world.make("SignInConsent", consent).await;
            assert_eq!(created["platformGivenOn"], json!(null));
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[("scope", "openid")])).await;
            browser.sign_in(&page, "ann", PASSWORD).await;
            assert_eq!(error_without_prompt(&mut browser, &home).await.as_deref(), Some("consent_required"), "{mode}");
            let page = browser.open(&home.request(&PLATFORM)).await;
            assert!(is_consent_page(&page), "{mode}: {}", page.html);
            let next = decide(&mut browser, &page, &[("decision", "allow")]).await;
            assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "{mode}");
            assert_eq!(error_without_prompt(&mut browser, &home).await, None, "{mode}");
            world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&created))).await.expect(204);
        }
    }

    /// A device needs the same consent, and so does each app.
    async fn a_device_needs_consent_for_the_platform(world: World) {
        let home = SignInApp::with(&world, json!({ "allowDeviceAuthorizationGrant": true })).await;
        link_platform(&world, &home).await;
        let form = format!("client_id={}&client_secret={}&scope=openid&resource=PlatformManagementService", id(&home.app), home.secret);
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let path = "/connect/deviceauthorization";
        let device = world.anonymous.send(http::Method::POST, path, &headers, form.into_bytes()).await.is(200).json();
        let mut browser = Browser::new(&world);
        let page = browser.open("/device").await;
        let page = browser.submit(&page, &[("user_code", device["user_code"].as_str().unwrap())]).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(is_consent_page(&page), "{}", page.html);
    }
}
