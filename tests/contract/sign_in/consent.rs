//! Consent: what a person lets an app have.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, Home, PASSWORD,
    browser::{Browser, Page},
    change, parameter,
};
use crate::id;

async fn home(world: &World, mode: &str) -> Home {
    let home = Home::with(world, json!({ "accessGrantConsent": mode })).await;
    let scope = json!({ "clientAppId": home.app["id"], "key": "ledger.read", "name": "Read your bookings" });
    world.make("ClientAppScope", scope).await;
    home
}

/// Posts the page that asks.
async fn decide(browser: &mut Browser, page: &Page, fields: &[(&str, &str)]) -> Page {
    let csrf = page.field("csrf");
    let all: Vec<(&str, &str)> =
        [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(&page.action(), &all, &[]).await
}

fn asks(page: &Page) -> bool {
    page.asks_for_consent()
}

const PLATFORM: [(&str, &str); 2] = [("resource", "PlatformManagementService"), ("scope", "openid")];

/// Lets an app have the platform's resource.
async fn give_platform(world: &World, home: &Home) {
    let resource = json!({ "clientAppId": home.app["id"], "key": "PlatformManagementService" });
    world.make("ClientAppResource", resource).await;
}

/// What a request comes to that may show no page.
async fn silent(browser: &mut Browser, home: &Home) -> Option<String> {
    let silent: Vec<_> = PLATFORM.into_iter().chain([("prompt", "none")]).collect();
    parameter(&browser.open(&home.request(&silent)).await.left.unwrap(), "error")
}

const SCOPE: (&str, &str) = ("scope", "openid email ledger.read");
const ALL: [(&str, &str); 3] = [("decision", "allow"), ("scope", "email"), ("scope", "ledger.read")];

async fn granted(world: &World, home: &Home, answer: &str) -> Value {
    let code = parameter(answer, "code").unwrap_or_else(|| panic!("{answer}"));
    home.redeem(world, &code, &[]).await.is(200).json()["scope"].clone()
}

on_both_engines! {
    /// Explicit: asked until a consent covers what is asked for; what is unticked is not granted.
    async fn explicit_consent_is_asked_for_once(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(asks(&page) && page.html.contains("Read your bookings"), "{}", page.html);
        assert!(page.html.contains("Harbour Ledger") && page.html.contains("ann@example.com"), "{}", page.html);
        assert!(browser.cookies.contains_key("chancery-session"), "the person is signed in already");
        let next = decide(&mut browser, &page, &[("decision", "allow"), ("scope", "email"), ("remember", "true")]).await;
        let answer = browser.go_on(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid email"), "a part, and openid always");
        let covered = browser.open(&home.request(&[("scope", "openid email")])).await.left.unwrap();
        assert_eq!(granted(&world, &home, &covered).await, json!("openid email"));
        let more = browser.open(&home.request(&[SCOPE])).await;
        assert!(asks(&more), "it does not cover all");
        let again = browser.open(&home.request(&[("scope", "openid"), ("prompt", "consent")])).await;
        assert!(asks(&again), "asked for");
        let silent = browser.open(&home.request(&[SCOPE, ("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("consent_required"));
        let denied = decide(&mut browser, &more, &[("decision", "deny")]).await;
        let answer = browser.go_on(&denied).await;
        assert_eq!(parameter(&answer, "error").as_deref(), Some("access_denied"));
    }

    /// A resource is called what its owner calls it, and not by its key; the platform's by what the page says alone.
    async fn resources_are_named_on_the_page(world: World) {
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
        let asked = [("resource", "https://ledger.example"), ("scope", "openid")];
        let page = browser.open(&home.request(&asked)).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(asks(&page) && page.html.contains(">The ledger</label>"), "{}", page.html);
        assert!(page.html.contains("All bookings of the harbour"), "{}", page.html);
        let page = browser.open(&home.request(&[("resource", "urn:cranes"), ("scope", "openid")])).await;
        assert!(asks(&page) && page.html.contains(">The cranes</label>"), "{}", page.html);
        give_platform(&world, &home).await;
        let page = browser.open(&home.request(&PLATFORM)).await;
        assert!(asks(&page) && page.html.contains("Administer this platform with your rights"), "{}", page.html);
    }

    /// Without "Remember my choice" nothing is kept, and nothing beyond what was asked for can be granted.
    async fn a_choice_need_not_be_remembered(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid email")])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let next = decide(&mut browser, &page, &ALL).await;
        let answer = browser.go_on(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid email"), "no more than was asked for");
        assert_eq!(world.all("SignInConsent").await, json!([]));
        assert!(asks(&browser.open(&home.request(&[("scope", "openid email")])).await));
    }

    async fn systematic_consent_is_asked_for_always(world: World) {
        let home = home(&world, "Systematic").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let mut page = browser.type_password(&page, "ann", PASSWORD).await;
        for _ in 0..2 {
            assert!(asks(&page) && !page.html.contains("Remember my choice"), "{}", page.html);
            let next = decide(&mut browser, &page, &ALL).await;
            let answer = browser.go_on(&next).await;
            assert_eq!(granted(&world, &home, &answer).await, json!("openid email ledger.read"));
            page = browser.open(&home.request(&[SCOPE])).await;
        }
        assert_eq!(world.all("SignInConsent").await, json!([]));
    }

    /// External: an administrator consents, and takes it back; with it goes all that the app has.
    async fn external_consent_is_an_administrator_s(world: World) {
        let home = home(&world, "External").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let refused = browser.type_password(&page, "ann", PASSWORD).await;
        let refused = browser.go_on(&refused).await;
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
            let made = world.admin.post(&format!("{BASE}/SignInConsent"), body).await.is(201).json();
            let page = browser.open(&home.request(&[SCOPE])).await;
            let left = browser.sign_in(&page, "ann", PASSWORD).await;
            assert_eq!(parameter(&left, "error").as_deref(), Some("consent_required"), "{member}");
            world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&made))).await.expect(204);
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

    /// A remembered consent is audited, by the person.
    async fn consent_is_audited(world: World) {
        let home = home(&world, "Explicit").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[SCOPE])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let kept: Vec<(&str, &str)> = ALL.into_iter().chain([("remember", "true")]).collect();
        let next = decide(&mut browser, &page, &kept).await;
        browser.go_on(&next).await;
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

    /// A token for the platform has the person's rights, so that the person is asked, once for each app, whatever the app's mode says.
    async fn a_person_is_asked_once_before_an_app_administers_as_the_person(world: World) {
        let home = home(&world, "Implicit").await;
        give_platform(&world, &home).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid")])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        assert_eq!(silent(&mut browser, &home).await.as_deref(), Some("consent_required"));
        let page = browser.open(&home.request(&PLATFORM)).await;
        assert!(asks(&page) && page.html.contains("Administer this platform with your rights"), "{}", page.html);
        let denied = decide(&mut browser, &page, &[("decision", "deny")]).await;
        assert_eq!(parameter(&browser.go_on(&denied).await, "error").as_deref(), Some("access_denied"));
        assert_eq!(silent(&mut browser, &home).await.as_deref(), Some("consent_required"));
        let page = browser.open(&home.request(&PLATFORM)).await;
        let next = decide(&mut browser, &page, &[("decision", "allow")]).await;
        let answer = browser.go_on(&next).await;
        assert_eq!(granted(&world, &home, &answer).await, json!("openid"));
        assert_eq!(silent(&mut browser, &home).await, None);
        let kept = world.all("SignInConsent").await[0].clone();
        assert!(kept["platformGivenOn"].is_string() && kept["resources"] == "PlatformManagementService", "{kept}");
        // taken back, the person is asked anew
        world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&kept))).await.expect(204);
        assert_eq!(silent(&mut browser, &home).await.as_deref(), Some("consent_required"));
    }

    /// No administrator says it for the person, whoever may consent to all else.
    async fn nobody_else_lets_an_app_administer_as_the_person(world: World) {
        let home = home(&world, "Implicit").await;
        give_platform(&world, &home).await;
        for mode in ["External", "Implicit", "Explicit"] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "accessGrantConsent": mode })).await;
            world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
            let person = world.all("ApplicationUser").await[0].clone();
            let consent = json!({
                "clientAppId": home.app["id"], "platformUserId": person["id"], "scope": "openid",
                "resources": "PlatformManagementService", "platformGivenOn": "2026-01-01T00:00:00Z",
            });
            let made = world.make("SignInConsent", consent).await;
            assert_eq!(made["platformGivenOn"], json!(null));
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[("scope", "openid")])).await;
            browser.sign_in(&page, "ann", PASSWORD).await;
            assert_eq!(silent(&mut browser, &home).await.as_deref(), Some("consent_required"), "{mode}");
            let page = browser.open(&home.request(&PLATFORM)).await;
            assert!(asks(&page), "{mode}: {}", page.html);
            let next = decide(&mut browser, &page, &[("decision", "allow")]).await;
            assert!(parameter(&browser.go_on(&next).await, "code").is_some(), "{mode}");
            assert_eq!(silent(&mut browser, &home).await, None, "{mode}");
            world.admin.delete(&format!("{BASE}/SignInConsent/{}", id(&made))).await.expect(204);
        }
    }

    /// A device asks the same, and so does every app by itself.
    async fn a_device_is_let_in_to_the_platform_by_the_person_s_consent(world: World) {
        let home = Home::with(&world, json!({ "allowDeviceAuthorizationGrant": true })).await;
        give_platform(&world, &home).await;
        let form = format!("client_id={}&client_secret={}&scope=openid&resource=PlatformManagementService", id(&home.app), home.secret);
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let asked = world.anonymous.send(http::Method::POST, "/connect/deviceauthorization", &headers, form.into_bytes()).await.is(200).json();
        let mut browser = Browser::new(&world);
        let page = browser.open("/device").await;
        let page = browser.submit(&page, &[("user_code", asked["user_code"].as_str().unwrap())]).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(asks(&page), "{}", page.html);
    }
}
