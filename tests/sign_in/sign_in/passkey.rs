//! Passkeys on the pages, with an authenticator of the tests. `scripts/check-sign-in` tests them in a browser.

use chancery::append_pending;
use chancery_record::Timestamp;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    PASSWORD, SignInApp,
    browser::{Browser, Page},
    claims, first, link, parameter,
    second_factor::{code_of, enrol, require_factor, typed},
    tenant_option,
};
use crate::{
    authenticator::{Authenticator, allow},
    id,
};

/// A home whose Ann has a passkey; the enrolment of passkeys is not offered.
pub async fn with_passkey(world: &World) -> (SignInApp, Authenticator) {
    let home = SignInApp::new(world).await;
    allow(world).await;
    let authenticator = Authenticator::new(1);
    authenticator.register(world, &home.user).await.expect(201);
    (home, authenticator)
}

/// Submits the page's second form with the authenticator's assertion.
pub async fn use_passkey(
    browser: &mut Browser,
    page: &Page,
    authenticator: &Authenticator,
    user: &Value,
) -> Page {
    let answer = authenticator.authenticate(&page.challenge(), Some(Uuid::try_parse(id(user)).unwrap()));
    browser.submit(page, &[("credential", &answer.to_string())]).await
}

async fn security_events(world: &World) -> Vec<String> {
    let all = world.admin.get(&world.path("/passkey-security/events")).await.is(200).json();
    let all = all["items"].as_array().unwrap().clone();
    all.iter().map(|event| event["eventType"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    /// Section 12: no name is entered or shown, and a passkey with user verification is strong authentication.
    async fn a_passkey_signs_in(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("acr_values", "phr")])).await;
        assert!(page.challenge()["publicKey"]["allowCredentials"].as_array().is_none_or(Vec::is_empty), "no name is told");
        assert!(page.html.contains("<script src=\"/signin/passkey.js\" data-passkey=\"get\" data-options=\"{"), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap().to_owned();
        assert!(policy.contains(&format!("script-src {}/signin/passkey.js;", world.base)), "{policy}");
        let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["acr"], &id_claims["amr"]), (&json!("phr"), &json!(["mfa", "swk", "user"])));
        assert!(security_events(&world).await.contains(&"PasskeyUsed".to_owned()));
        let script = world.anonymous.get("/signin/passkey.js").await.is(200);
        assert!(script.header("content-type").unwrap().starts_with("text/javascript"));
    }

    /// A challenge is valid once, for one flow; a forged assertion is refused without naming the owner.
    async fn a_challenge_is_valid_once(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let answer = authenticator.authenticate(&page.challenge(), Some(Uuid::try_parse(id(&home.user)).unwrap())).to_string();
        let earlier_cookies = browser.cookies.clone();
        let next = browser.submit(&page, &[("credential", &answer)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        // the same assertion, in the same browser with its earlier state
        browser.cookies = earlier_cookies;
        let refused = browser.submit(&page, &[("credential", &answer)]).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        // in another browser
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let refused = other.submit(&page, &[("credential", &answer)]).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        for forged in [
            Authenticator { signs: false, ..Authenticator::new(1) },
            Authenticator { client_data_overrides: json!({ "origin": "https://evil.example" }), ..Authenticator::new(1) },
            Authenticator::new(7),
        ] {
            let page = other.open(&home.request(&[])).await;
            let refused = use_passkey(&mut other, &page, &forged, &home.user).await;
            assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        }
        for malformed in ["x", "{}", "[]", &"9".repeat(70_000)] {
            let page = other.open(&home.request(&[])).await;
            let refused = other.submit(&page, &[("credential", malformed)]).await;
            assert!(refused.status >= 400 || refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        }
    }

    /// A passkey cannot be guessed: it works during a temporary lock, and ends it. A permanent lock remains.
    async fn a_passkey_ends_a_temporary_lock(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let mut browser = Browser::new(&world);
        let mut page = browser.open(&home.request(&[])).await;
        for _ in 0..5 {
            page = browser.type_password(&page, "ann", "not this one").await;
        }
        let path = world.path(&format!("/User/{}", id(&home.user)));
        assert!(world.admin.get(&path).await.is(200).json()["lockedUntil"].is_string());
        let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        assert!(world.admin.get(&path).await.is(200).json()["lockedUntil"].is_null());
        world.admin.post(&format!("{path}/state"), json!({ "isUserLocked": true })).await.expect(200);
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let refused = use_passkey(&mut other, &page, &authenticator, &home.user).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
    }

    /// PasskeySatisfiesSecondFactor: a passkey with user verification counts as both factors, unless the tenant disables this.
    ///
    /// - Effect of `Tenant options.PasskeySatisfiesSecondFactor`: A passkey that verified its user counts as both factors.
    async fn a_passkey_satisfies_both_factors(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        require_factor(&world, &home, "totp").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        // after a password it is one of the methods, and the only one available
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Use the passkey"), "{}", page.html);
        let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["mfa", "pwd", "swk", "user"]));
        tenant_option(&world, &home, "PasskeySatisfiesSecondFactor", "false").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        assert!(page.html.contains("class=\"secret\""), "another one is asked for: {}", page.html);
    }

    /// A passkey of another person confirms nothing, even in the same browser.
    async fn another_person_s_passkey_is_refused(world: World) {
        let (home, _) = with_passkey(&world).await;
        require_factor(&world, &home, "totp").await;
        let other = world.user("eve").await;
        let authenticator = Authenticator::new(2);
        authenticator.register(&world, &other).await.expect(201);
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let refused = use_passkey(&mut browser, &page, &authenticator, &other).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// PasskeyEnrolment: an offer after an authentication, which is postponed after a refusal; one click creates a passkey.
    async fn enrolment_of_a_passkey_is_offered(world: World) {
        let home = SignInApp::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Not now") && page.html.contains("Create a passkey"), "{}", page.html);
        assert!(page.html.contains("Sign in without a password?"), "{}", page.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
        let authenticator = Authenticator::new(3);
        let created = authenticator.make_passkey(&page.challenge());
        let next = browser.submit(&page, &[("credential", &created.to_string())]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let passkeys = world.path(&format!("/PasskeyCredential/user/{}", id(&home.user)));
        assert_eq!(world.admin.get(&passkeys).await.is(200).json().as_array().map(Vec::len), Some(1));
        // with a session alone there is no offer
        let answer = browser.open(&home.request(&[])).await;
        assert!(answer.left.is_some());
        // the password alone permits no second passkey; after the first passkey it is offered; after a refusal it is postponed
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        for is_offered in [true, false] {
            let mut other = Browser::new(&world);
            let page = other.open(&home.request(&[])).await;
            let mut next = use_passkey(&mut other, &page, &authenticator, &home.user).await;
            if is_offered {
                assert_eq!(next.challenge()["publicKey"]["excludeCredentials"].as_array().map(Vec::len), Some(1));
                assert!(next.html.contains("Create another passkey?"), "{}", next.html);
                assert!(!next.html.contains("Sign in without a password?"), "{}", next.html);
                next = other.submit(&next, &[("choice", "later")]).await;
            }
            assert!(parameter(&other.continue_to_app(&next).await, "code").is_some(), "{is_offered}");
        }
    }

    /// A passkey counts as both factors: the password alone permits none in addition to the existing factors.
    async fn enrolment_of_a_passkey_requires_the_second_factor(world: World) {
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "totp").await;
        let (secret, ..) = enrol(&world, &home).await;
        let links = format!("/api/management/v2/ClientApp/{}/mfainstances", id(&home.app));
        world.admin.put(&links, json!({ "relatedIds": [] })).await.expect(202);
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "none is offered");
        // a required one is created after the factor is used
        world.set_option("PasskeyEnrolment", "Require").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("one-time-code"), "{}", page.html);
        let page = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(page.html.contains("Create a passkey"), "{}", page.html);
        // if enrolment is limited to administrators there is no other way
        tenant_option(&world, &home, "SecondFactorEnrolment", "Administrator").await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        world.admin.delete(&format!("/api/management/v2/MfaInstance/{}", id(&factor))).await.expect(204);
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// Require: nobody can sign in without one, and the page cannot be postponed.
    ///
    /// - Effect of `UserStore options.PasskeyEnrolment`: A sign-in by password offers a passkey, requires one, or does neither.
    async fn enrolment_of_a_passkey_can_be_required(world: World) {
        let home = SignInApp::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Require").await;
        world.set_option("PasskeyRequiredCredentialCount", "1").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(!page.html.contains("Not now"), "{}", page.html);
        let again = browser.submit(&page, &[("choice", "later")]).await;
        assert!(again.html.contains("Create a passkey"), "{}", again.html);
        let wrong = browser.submit(&again, &[("credential", "{}")]).await;
        assert!(wrong.html.contains("could not be created"), "{}", wrong.html);
        let created = Authenticator::new(4).make_passkey(&wrong.challenge());
        let next = browser.submit(&wrong, &[("credential", &created.to_string())]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// The deletion of a passkey ends its sessions.
    async fn deletion_of_a_passkey_ends_its_sessions(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut by_passkey = Browser::new(&world);
        let page = by_passkey.open(&home.request(&[])).await;
        let next = use_passkey(&mut by_passkey, &page, &authenticator, &home.user).await;
        by_passkey.continue_to_app(&next).await;
        let (mut by_password, _) = home.sign_in(&world).await;
        let passkeys = world.path(&format!("/PasskeyCredential/user/{}", id(&home.user)));
        let passkey = world.admin.get(&passkeys).await.is(200).json()[0].clone();
        world.admin.delete(&format!("{passkeys}/{}", id(&passkey))).await.expect(204);
        for (browser, expected) in [(&mut by_passkey, Some("login_required")), (&mut by_password, None)] {
            let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "error").as_deref(), expected);
        }
    }
}

/// An access pass for the home's user, who has neither password nor passkey.
async fn new_person(world: &World) -> (Value, String) {
    let body = json!({ "loginName": "new", "emailAddress": "new@example.com" });
    let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
    let passes = world.path("/passkey-security/temporary-access-passes");
    let pass = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
    (user, pass["value"].as_str().unwrap().to_owned())
}

async fn show_pass(world: &World, home: &SignInApp, pass: &str) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let page = browser.open(&link(&page, "access pass")).await;
    let page = browser.submit(&page, &[("username", "new"), ("pass", pass)]).await;
    (browser, page)
}

on_both_engines! {
    /// Section 12: from an access pass to a passkey as the only credential.
    async fn an_access_pass_enrols_a_passkey(world: World) {
        let home = SignInApp::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (user, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("Create a passkey") && page.html.contains("Choose a password instead"), "{}", page.html);
        let authenticator = Authenticator::new(5);
        let created = authenticator.make_passkey(&page.challenge());
        let next = browser.submit(&page, &[("credential", &created.to_string())]).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["acr"], &id_claims["amr"]), (&json!("sfa"), &json!(["tap"])));
        let mut again = Browser::new(&world);
        let page = again.open(&home.request(&[])).await;
        let next = use_passkey(&mut again, &page, &authenticator, &user).await;
        // another one is offered
        let next = again.submit(&next, &[("choice", "later")]).await;
        assert!(parameter(&again.continue_to_app(&next).await, "code").is_some());
        // the pass was accepted once
        let (_, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("is not right"), "{}", page.html);
    }

    /// A password instead; if passkeys are disabled it is the only choice.
    async fn an_access_pass_sets_a_password(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("PasskeyEnabled", "false").await;
        let (_, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("You have no password yet") && !page.html.contains("current-password"), "{}", page.html);
        let short = browser.submit(&page, &[("new_password", "short"), ("repeated_password", "short")]).await;
        assert!(short.html.contains("does not meet the rules"), "{}", short.html);
        let new = "five quiet brown owls";
        let next = browser.submit(&short, &[("new_password", new), ("repeated_password", new)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let mut again = Browser::new(&world);
        let page = again.open(&home.request(&[])).await;
        let next = again.type_password(&page, "new", new).await;
        assert!(parameter(&again.continue_to_app(&next).await, "code").is_some());
    }

    async fn a_password_can_be_set_instead_of_a_passkey(world: World) {
        let home = SignInApp::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (_, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        let page = browser.submit(&page, &[("choice", "password")]).await;
        assert!(page.html.contains("You have no password yet"), "{}", page.html);
        let new = "five quiet brown owls";
        let next = browser.submit(&page, &[("new_password", new), ("repeated_password", new)]).await;
        // now that there is a credential, a passkey is offered
        let next = browser.submit(&next, &[("choice", "later")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// Wrong passes count as wrong passwords do; a person with a password signs in with the pass alone.
    async fn wrong_access_passes_count_as_failed_attempts(world: World) {
        let home = SignInApp::new(&world).await;
        let passes = world.path("/passkey-security/temporary-access-passes");
        let pass = world.admin.post(&passes, json!({ "userId": id(&home.user) })).await.is(201).json();
        let pass = pass["value"].as_str().unwrap();
        world.set_option("LoginThrottlingEnabled", "false").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let mut page = browser.open(&link(&page, "access pass")).await;
        for (name, typed) in [("ann", "AAAAAAAAAAAA"), ("nobody", pass), ("ann", ""), ("", pass)] {
            page = browser.submit(&page, &[("username", name), ("pass", typed)]).await;
            assert!(page.address.contains("/signin/accesspass") && page.html.contains("role=\"alert\""), "{}", page.html);
        }
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["failedTemporaryLockAttempts"], 1);
        let next = browser.submit(&page, &[("username", "ann"), ("pass", pass)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        assert!(!page.html.contains("access pass"), "{}", page.html);
    }

    /// Terms are accepted once per version; a person who declines returns to the app.
    ///
    /// - Effect of `Tenant options.TermsUrl`: The page that asks people to accept the terms links to this address.
    /// - Effect of `Tenant options.TermsVersion`: People accept the terms of this version before they are signed in.
    async fn terms_are_accepted_once_per_version(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        tenant_option(&world, &home, "TermsUrl", "https://example.com/terms").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("2026-11") && page.html.contains("https://example.com/terms"), "{}", page.html);
        let declined = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&declined).await, "error").as_deref(), Some("access_denied"));
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let next = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let entry = first(&world, "/CustomAuditTrail?sortOrder=descending&count=1").await;
        assert_eq!(entry["area"], "ApplicationUser", "{entry}");
        append_pending(&world.app, Timestamp(1_795_253_400_000)).await.unwrap();
        let accepted = "/api/management/v2/Event?type=platform.management.applicationuser.terms-accepted";
        let accepted = world.admin.get(accepted).await.is(200).json();
        assert_eq!(accepted["items"].as_array().unwrap().len(), 1, "{accepted}");
        assert_eq!(accepted["items"][0]["subject"], entry["primaryKey"]);
        // another version is due with a session, too, and one click ends the step if it was withdrawn meanwhile
        tenant_option(&world, &home, "TermsVersion", "2027-01").await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"));
        let page = browser.open(&home.request(&[])).await;
        let next = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// A new password, or a lock, ends pending sign-ins: earlier proofs are invalid, even after the lock
    /// is lifted.
    async fn a_reset_or_lock_ends_pending_sign_ins(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let user = world.path(&format!("/User/{}", id(&home.user)));
        let lock = async |is_locked: bool| {
            world.admin.post(&format!("{user}/state"), json!({ "isUserLocked": is_locked })).await.expect(200);
        };
        for is_reset in [true, false] {
            let (mut browser, page) = typed(&world, &home, &[]).await;
            if is_reset {
                let same = json!({ "newPassword": PASSWORD });
                world.admin.post(&format!("{user}/password/reset"), same).await.expect(200);
            } else {
                lock(true).await;
                lock(false).await;
            }
            let refused = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
            assert!(refused.html.contains("You cannot sign in here"), "{}", refused.html);
            assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
            // another attempt is a new proof
            let page = browser.submit(&refused, &[("choice", "other")]).await;
            let page = browser.type_password(&page, "ann", PASSWORD).await;
            assert!(page.html.contains("2026-11"), "{}", page.html);
        }
    }

    /// Terms that changed while they were read are shown again.
    async fn terms_that_changed_meanwhile_are_shown_again(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        tenant_option(&world, &home, "TermsVersion", "2027-01").await;
        let shown = browser.submit(&page, &[("version", "2026-11"), ("decision", "accept")]).await;
        assert!(shown.html.contains("The terms have changed") && shown.html.contains("2027-01"), "{}", shown.html);
        let next = browser.submit(&shown, &[("version", "2027-01"), ("decision", "accept")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// A page that stayed open does not restore a session that ended.
    async fn an_open_page_does_not_restore_an_ended_session(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        let (mut browser, consent) = typed(&world, &home, &[]).await;
        assert!(consent.html.contains("Allow access?"), "{}", consent.html);
        let session = world.all("SignInSession").await[0].clone();
        world.admin.delete(&format!("/api/management/v2/SignInSession/{}", id(&session))).await.expect(204);
        let allowed = browser.submit(&consent, &[("decision", "allow")]).await;
        assert_eq!(allowed.status, 400, "{}", allowed.html);
        assert!(world.all("SignInSession").await.as_array().unwrap().iter().all(|one| one["endedOn"].is_string()));
    }

    /// A sign-out ends the other pending sign-ins of the browser.
    async fn signing_out_ends_pending_sign_ins(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        let pending = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(pending.html.contains("2026-11"), "{}", pending.html);
        let page = browser.open("/connect/endsession").await;
        browser.submit(&page, &[("decision", "allow")]).await;
        let over = browser.submit(&pending, &[("version", "2026-11"), ("decision", "accept")]).await;
        assert_eq!(over.status, 400, "{}", over.html);
    }

    /// If a due step disappears, one click completes the flow.
    async fn steps_that_are_no_longer_due_are_skipped(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        tenant_option(&world, &home, "TermsVersion", "").await;
        let shown = browser.open(&page.address).await;
        assert!(shown.address.contains("/signin/continue"), "{}", shown.address);
        let next = browser.submit(&shown, &[("choice", "continue")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }
}
