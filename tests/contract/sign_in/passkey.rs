//! Passkeys on the pages, shown by an authenticator of the tests. What a browser adds, `scripts/check-sign-in` shows.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Home, PASSWORD,
    browser::{Browser, Page},
    claims, first, link, parameter,
    second_factor::{ask_for, code_of, enrol, typed},
    tenant_option,
};
use crate::{
    id,
    passkey::authenticator::{Authenticator, allow},
};

/// A home whose Ann has a passkey, of which none is offered.
pub async fn with_passkey(world: &World) -> (Home, Authenticator) {
    let home = Home::new(world).await;
    allow(world).await;
    let authenticator = Authenticator::new(1);
    authenticator.register(world, &home.user).await.expect(201);
    (home, authenticator)
}

/// Posts the page's second form, with what the authenticator answers.
pub async fn show(browser: &mut Browser, page: &Page, authenticator: &Authenticator, user: &Value) -> Page {
    let answer = authenticator.show(&page.asked(), Some(Uuid::try_parse(id(user)).unwrap()));
    browser.submit(page, &[("credential", &answer.to_string())]).await
}

async fn security_events(world: &World) -> Vec<String> {
    let all = world.admin.get(&world.path("/passkey-security/events")).await.is(200).json();
    let all = all["items"].as_array().unwrap().clone();
    all.iter().map(|event| event["eventType"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    /// Section 12: no name is typed or told, and a passkey that verified its user is strong.
    async fn a_passkey_signs_in(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("acr_values", "phr")])).await;
        assert!(page.asked()["publicKey"]["allowCredentials"].as_array().is_none_or(Vec::is_empty), "no name is told");
        assert!(page.html.contains("<script src=\"/signin/passkey.js\" data-passkey=\"get\" data-options=\"{"), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap().to_owned();
        assert!(policy.contains(&format!("script-src {}/signin/passkey.js;", world.base)), "{policy}");
        let next = show(&mut browser, &page, &authenticator, &home.user).await;
        let answer = browser.go_on(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let about = claims(&tokens["id_token"]);
        assert_eq!((&about["acr"], &about["amr"]), (&json!("phr"), &json!(["mfa", "swk", "user"])));
        assert!(security_events(&world).await.contains(&"PasskeyUsed".to_owned()));
        let script = world.anonymous.get("/signin/passkey.js").await.is(200);
        assert!(script.header("content-type").unwrap().starts_with("text/javascript"));
    }

    /// What an authenticator was asked counts once, for one flow; a lie is refused and says nothing of whose it is.
    async fn what_was_asked_counts_once(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let answer = authenticator.show(&page.asked(), Some(Uuid::try_parse(id(&home.user)).unwrap())).to_string();
        let kept = browser.cookies.clone();
        let next = browser.submit(&page, &[("credential", &answer)]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        // the same answer, in the same browser as it was before
        browser.cookies = kept;
        let refused = browser.submit(&page, &[("credential", &answer)]).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        // in another one
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let refused = other.submit(&page, &[("credential", &answer)]).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        for lie in [
            Authenticator { signs: false, ..Authenticator::new(1) },
            Authenticator { lies: json!({ "origin": "https://evil.example" }), ..Authenticator::new(1) },
            Authenticator::new(7),
        ] {
            let page = other.open(&home.request(&[])).await;
            let refused = show(&mut other, &page, &lie, &home.user).await;
            assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        }
        for odd in ["x", "{}", "[]", &"9".repeat(70_000)] {
            let page = other.open(&home.request(&[])).await;
            let refused = other.submit(&page, &[("credential", odd)]).await;
            assert!(refused.status >= 400 || refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        }
    }

    /// It cannot be guessed: it works during a temporary lock, and ends it. A permanent one stays.
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
        let next = show(&mut browser, &page, &authenticator, &home.user).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        assert!(world.admin.get(&path).await.is(200).json()["lockedUntil"].is_null());
        world.admin.post(&format!("{path}/state"), json!({ "isUserLocked": true })).await.expect(200);
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let refused = show(&mut other, &page, &authenticator, &home.user).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
    }

    /// PasskeySatisfiesSecondFactor: a passkey that verified its user counts for both, unless the tenant says no.
    async fn a_passkey_stands_for_both_factors(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        ask_for(&world, &home, "totp").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let next = show(&mut browser, &page, &authenticator, &home.user).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        // after a password it is one of the ways, and the only one that is there
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Use the passkey"), "{}", page.html);
        let next = show(&mut browser, &page, &authenticator, &home.user).await;
        let answer = browser.go_on(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["mfa", "pwd", "swk", "user"]));
        tenant_option(&world, &home, "PasskeySatisfiesSecondFactor", "false").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = show(&mut browser, &page, &authenticator, &home.user).await;
        assert!(page.html.contains("class=\"secret\""), "another one is asked for: {}", page.html);
    }

    /// A passkey of somebody else confirms nothing, even in the same browser.
    async fn another_person_s_passkey_confirms_nothing(world: World) {
        let (home, _) = with_passkey(&world).await;
        ask_for(&world, &home, "totp").await;
        let other = world.user("eve").await;
        let authenticator = Authenticator::new(2);
        authenticator.register(&world, &other).await.expect(201);
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let refused = show(&mut browser, &page, &authenticator, &other).await;
        assert!(refused.html.contains("The passkey was not accepted"), "{}", refused.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// PasskeyEnrolment: an offer right after a proof, that rests once it was put off; a passkey is made by one click.
    async fn a_passkey_is_offered(world: World) {
        let home = Home::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Not now") && page.html.contains("Create a passkey"), "{}", page.html);
        assert!(page.html.contains("Sign in without a password?"), "{}", page.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
        let authenticator = Authenticator::new(3);
        let made = authenticator.make_passkey(&page.asked());
        let next = browser.submit(&page, &[("credential", &made.to_string())]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        let passkeys = world.path(&format!("/PasskeyCredential/user/{}", id(&home.user)));
        assert_eq!(world.admin.get(&passkeys).await.is(200).json().as_array().map(Vec::len), Some(1));
        // a session alone is offered nothing
        let answer = browser.open(&home.request(&[])).await;
        assert!(answer.left.is_some());
        // who knows the password alone makes no second one; who shows the first one is offered it; put off, it rests
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        for is_offered in [true, false] {
            let mut other = Browser::new(&world);
            let page = other.open(&home.request(&[])).await;
            let mut next = show(&mut other, &page, &authenticator, &home.user).await;
            if is_offered {
                assert_eq!(next.asked()["publicKey"]["excludeCredentials"].as_array().map(Vec::len), Some(1));
                assert!(next.html.contains("Create another passkey?"), "{}", next.html);
                assert!(!next.html.contains("Sign in without a password?"), "{}", next.html);
                next = other.submit(&next, &[("choice", "later")]).await;
            }
            assert!(parameter(&other.go_on(&next).await, "code").is_some(), "{is_offered}");
        }
    }

    /// A passkey counts for both factors: who knows the password alone makes none beside what the person has.
    async fn a_password_alone_makes_no_passkey_beside_a_factor(world: World) {
        let home = Home::new(&world).await;
        let factor = ask_for(&world, &home, "totp").await;
        let (secret, ..) = enrol(&world, &home).await;
        let links = format!("/api/management/v2/ClientApp/{}/mfainstances", id(&home.app));
        world.admin.put(&links, json!({ "relatedIds": [] })).await.expect(202);
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some(), "none is offered");
        // one that is required is made by who shows the factor first
        world.set_option("PasskeyEnrolment", "Require").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("one-time-code"), "{}", page.html);
        let page = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(page.html.contains("Create a passkey"), "{}", page.html);
        // an administrator who keeps enrolment closed opens no other way
        tenant_option(&world, &home, "SecondFactorEnrolment", "Administrator").await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        world.admin.delete(&format!("/api/management/v2/MfaInstance/{}", id(&factor))).await.expect(204);
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }

    /// Require: nobody signs in without, and there is no way to put it off.
    async fn a_passkey_is_required(world: World) {
        let home = Home::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Require").await;
        world.set_option("PasskeyRequiredCredentialCount", "1").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(!page.html.contains("Not now"), "{}", page.html);
        let again = browser.submit(&page, &[("choice", "later")]).await;
        assert!(again.html.contains("Create a passkey"), "{}", again.html);
        let wrong = browser.submit(&again, &[("credential", "{}")]).await;
        assert!(wrong.html.contains("could not be created"), "{}", wrong.html);
        let made = Authenticator::new(4).make_passkey(&wrong.asked());
        let next = browser.submit(&wrong, &[("credential", &made.to_string())]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }

    /// A passkey that is deleted takes the sessions with it that it made.
    async fn a_deleted_passkey_ends_its_sessions(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let mut by_passkey = Browser::new(&world);
        let page = by_passkey.open(&home.request(&[])).await;
        let next = show(&mut by_passkey, &page, &authenticator, &home.user).await;
        by_passkey.go_on(&next).await;
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

/// A pass for the home's user, who has neither password nor passkey.
async fn new_person(world: &World) -> (Value, String) {
    let body = json!({ "loginName": "new", "emailAddress": "new@example.com" });
    let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
    let passes = world.path("/passkey-security/temporary-access-passes");
    let pass = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
    (user, pass["value"].as_str().unwrap().to_owned())
}

async fn show_pass(world: &World, home: &Home, pass: &str) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let page = browser.open(&link(&page, "access pass")).await;
    let page = browser.submit(&page, &[("username", "new"), ("pass", pass)]).await;
    (browser, page)
}

on_both_engines! {
    /// Section 12: from an access pass to a passkey alone.
    async fn from_an_access_pass_to_a_passkey(world: World) {
        let home = Home::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (user, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("Create a passkey") && page.html.contains("Choose a password instead"), "{}", page.html);
        let authenticator = Authenticator::new(5);
        let made = authenticator.make_passkey(&page.asked());
        let next = browser.submit(&page, &[("credential", &made.to_string())]).await;
        let answer = browser.go_on(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let about = claims(&tokens["id_token"]);
        assert_eq!((&about["acr"], &about["amr"]), (&json!("sfa"), &json!(["tap"])));
        let mut again = Browser::new(&world);
        let page = again.open(&home.request(&[])).await;
        let next = show(&mut again, &page, &authenticator, &user).await;
        // a second one is offered
        let next = again.submit(&next, &[("choice", "later")]).await;
        assert!(parameter(&again.go_on(&next).await, "code").is_some());
        // the pass served once
        let (_, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("is not right"), "{}", page.html);
    }

    /// A password instead; without passkeys it is the only way.
    async fn from_an_access_pass_to_a_password(world: World) {
        let home = Home::new(&world).await;
        world.set_option("PasskeyEnabled", "false").await;
        let (_, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        assert!(page.html.contains("You have no password yet") && !page.html.contains("current-password"), "{}", page.html);
        let short = browser.submit(&page, &[("new_password", "short"), ("repeated_password", "short")]).await;
        assert!(short.html.contains("does not meet the rules"), "{}", short.html);
        let new = "five quiet brown owls";
        let next = browser.submit(&short, &[("new_password", new), ("repeated_password", new)]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        let mut again = Browser::new(&world);
        let page = again.open(&home.request(&[])).await;
        let next = again.type_password(&page, "new", new).await;
        assert!(parameter(&again.go_on(&next).await, "code").is_some());
    }

    async fn a_password_instead_of_a_passkey(world: World) {
        let home = Home::new(&world).await;
        allow(&world).await;
        world.set_option("PasskeyEnrolment", "Offer").await;
        let (_, pass) = new_person(&world).await;
        let (mut browser, page) = show_pass(&world, &home, &pass).await;
        let page = browser.submit(&page, &[("choice", "password")]).await;
        assert!(page.html.contains("You have no password yet"), "{}", page.html);
        let new = "five quiet brown owls";
        let next = browser.submit(&page, &[("new_password", new), ("repeated_password", new)]).await;
        // now that there is something, a passkey is offered
        let next = browser.submit(&next, &[("choice", "later")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }

    /// Wrong passes count as wrong passwords do; who has a password signs in with the pass alone.
    async fn access_passes_are_guarded(world: World) {
        let home = Home::new(&world).await;
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
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        assert!(!page.html.contains("access pass"), "{}", page.html);
    }

    /// Terms are accepted once a version; who does not goes back to the app.
    async fn terms_are_accepted_once(world: World) {
        let home = Home::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        tenant_option(&world, &home, "TermsUrl", "https://example.com/terms").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("2026-11") && page.html.contains("https://example.com/terms"), "{}", page.html);
        let declined = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.go_on(&declined).await, "error").as_deref(), Some("access_denied"));
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let next = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
        let entry = first(&world, "/CustomAuditTrail?sortOrder=descending&count=1").await;
        assert_eq!(entry["area"], "ApplicationUser", "{entry}");
        // another version is due for a session, too, and ends with one click where it is taken back meanwhile
        tenant_option(&world, &home, "TermsVersion", "2027-01").await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"));
        let page = browser.open(&home.request(&[])).await;
        let next = browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }

    /// A password that is set, or a lock, ends sign-ins under way: what was proven before counts no longer, even once the
    /// lock is undone.
    async fn what_was_proven_before_a_reset_counts_no_longer(world: World) {
        let home = Home::new(&world).await;
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
            // another try is a new proof
            let page = browser.submit(&refused, &[("choice", "other")]).await;
            let page = browser.type_password(&page, "ann", PASSWORD).await;
            assert!(page.html.contains("2026-11"), "{}", page.html);
        }
    }

    /// Terms that changed while they were read are read once more.
    async fn other_terms_are_not_accepted_by_the_way(world: World) {
        let home = Home::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        tenant_option(&world, &home, "TermsVersion", "2027-01").await;
        let shown = browser.submit(&page, &[("version", "2026-11"), ("decision", "accept")]).await;
        assert!(shown.html.contains("The terms have changed") && shown.html.contains("2027-01"), "{}", shown.html);
        let next = browser.submit(&shown, &[("version", "2027-01"), ("decision", "accept")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }

    /// A session that ended is not made anew by a page that stayed open.
    async fn a_session_that_ended_is_not_made_anew(world: World) {
        let home = Home::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        let (mut browser, consent) = typed(&world, &home, &[]).await;
        assert!(consent.html.contains("Allow access?"), "{}", consent.html);
        let session = world.all("SignInSession").await[0].clone();
        world.admin.delete(&format!("/api/management/v2/SignInSession/{}", id(&session))).await.expect(204);
        let allowed = browser.submit(&consent, &[("decision", "allow")]).await;
        assert_eq!(allowed.status, 400, "{}", allowed.html);
        assert!(world.all("SignInSession").await.as_array().unwrap().iter().all(|one| one["endedOn"].is_string()));
    }

    /// Who signs out leaves no other sign-in under way behind.
    async fn signing_out_ends_what_is_under_way(world: World) {
        let home = Home::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        let under_way = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(under_way.html.contains("2026-11"), "{}", under_way.html);
        let page = browser.open("/connect/endsession").await;
        browser.submit(&page, &[("decision", "allow")]).await;
        let over = browser.submit(&under_way, &[("version", "2026-11"), ("decision", "accept")]).await;
        assert_eq!(over.status, 400, "{}", over.html);
    }

    /// What was due and is no longer ends the flow with one click: nothing leads into the void.
    async fn what_is_due_no_longer_is_passed(world: World) {
        let home = Home::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "2026-11").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        tenant_option(&world, &home, "TermsVersion", "").await;
        let shown = browser.open(&page.address).await;
        assert!(shown.address.contains("/signin/continue"), "{}", shown.address);
        let next = browser.submit(&shown, &[("choice", "continue")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some());
    }
}
