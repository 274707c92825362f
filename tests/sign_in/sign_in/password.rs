//! The password page.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{PASSWORD, SignInApp, browser::Browser, parameter};
use crate::id;

on_both_engines! {
    /// The same refusal for all reasons: unknown, wrong, inactive, locked.
    async fn refusals_do_not_reveal_the_reason(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let wrong = browser.type_password(&page, "ann", "not this one").await;
        let unknown = browser.type_password(&page, "nobody", "not this one").await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&one).await.is(200).json();
        let off = json!({ "isUserActive": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&one, off).await.expect(202);
        let inactive = browser.type_password(&page, "ann", PASSWORD).await;
        let text = "The user name or the password is not right.";
        for page in [&wrong, &unknown, &inactive] {
            assert_eq!(page.status, 200);
            assert!(page.html.contains(text) && page.html.contains("role=\"alert\""), "{}", page.html);
        }
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// Wrong passwords count like those of the services, and a right one resets the count.
    async fn failed_attempts_count_towards_the_lockout(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.type_password(&page, "ann", "not this one").await;
        let user = world.admin.get(&one).await.is(200).json();
        assert_eq!(user["failedUserLoginAttempts"], json!(1));
        browser.sign_in(&page, "ann", PASSWORD).await;
        let user = world.admin.get(&one).await.is(200).json();
        assert_eq!(user["failedUserLoginAttempts"], json!(0));
    }

    /// A form of another site or browser, or without its proof, changes nothing.
    async fn forged_forms_are_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, mut other) = (Browser::new(&world), Browser::new(&world));
        let page = browser.open(&home.request(&[])).await;
        let csrf = page.field("csrf");
        let typed = [("username", "ann"), ("password", PASSWORD)];
        let with = |csrf: &'static str| [("csrf", csrf), typed[0], typed[1]];
        assert_eq!(browser.post(&page.action(), &with("wrong"), &[]).await.status, 403);
        assert_eq!(browser.post(&page.action(), &typed, &[]).await.status, 403);
        let own = [("csrf", csrf.as_str()), typed[0], typed[1]];
        for foreign in [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "none"), ("origin", "https://evil.example")] {
            assert_eq!(browser.post(&page.action(), &own, &[foreign]).await.status, 403, "{foreign:?}");
        }
        assert_eq!(other.post(&page.action(), &own, &[]).await.status, 400, "another browser's flow");
        let next = browser.post(&page.action(), &own, &[("sec-fetch-site", "same-origin"), ("origin", "null")]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        // old browsers send neither header: the token alone decides
        let page = other.open(&home.request(&[])).await;
        assert_eq!(other.post(&page.action(), &with("wrong"), &[]).await.status, 403);
        let next = other.submit(&page, &typed).await;
        assert!(parameter(&other.continue_to_app(&next).await, "code").is_some());
    }

    async fn empty_input_is_reported_at_its_field(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "", "").await;
        assert!(page.html.contains("Enter your password.") && page.html.contains("aria-invalid"), "{}", page.html);
    }

    /// The page forbids framing and scripts, and names the app.
    async fn the_page_is_protected(world: World) {
        let home = SignInApp::new(&world).await;
        // only passkeys add a script
        world.set_option("PasskeyEnabled", "false").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("login_hint", "ann")])).await;
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(policy.contains("form-action 'self'") && policy.contains(&format!("script-src {}/signin/passkey.js;", world.base)), "{policy}");
        assert_eq!(page.answer.header("cache-control"), Some("no-store"));
        assert_eq!(page.answer.header("referrer-policy"), Some("no-referrer"));
        assert!(page.html.contains("Harbour Ledger") && page.html.contains("value=\"ann\""), "{}", page.html);
        assert!(page.html.contains("autocomplete=\"current-password\"") && !page.html.contains("<script"));
        let german = browser.open(&format!("{}&ui_locales=de", page.address)).await;
        assert!(german.html.contains("lang=\"de\"") && german.html.contains("Anmelden"), "{}", german.html);
    }

    /// The page shows the refusal, and going back returns `access_denied` to the app.
    async fn a_restricted_app_refuses_people_without_access(world: World) {
        let home = SignInApp::with(&world, json!({ "isRestricted": true })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("Use another account"), "{}", page.html);
        let back = [("csrf", page.field("csrf")), ("choice", "back".to_owned())];
        let back: Vec<(&str, &str)> = back.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let left = browser.post(&page.action(), &back, &[]).await;
        let answer = browser.continue_to_app(&left).await;
        assert_eq!(parameter(&answer, "error").as_deref(), Some("access_denied"));
    }
}
