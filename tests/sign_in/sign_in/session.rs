//! Sessions: people who have signed in are not asked again until the session ends.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    PASSWORD, SignInApp,
    browser::{Browser, Page},
    claims, parameter,
};
use crate::id;

on_both_engines! {
    async fn a_session_makes_another_password_unnecessary(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let again = browser.open(&home.request(&[])).await.left.unwrap();
        let code = parameter(&again, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["pwd"]));
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some());
    }

    async fn prompt_login_and_max_age_force_a_new_sign_in(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for demand in [("prompt", "login"), ("max_age", "0")] {
            let page = browser.open(&home.request(&[demand])).await;
            assert!(page.html.contains("current-password"), "{demand:?}");
            let answer = browser.sign_in(&page, "ann", PASSWORD).await;
            assert!(parameter(&answer, "code").is_some(), "{demand:?}");
        }
        let page = browser.open(&home.request(&[("prompt", "select_account")])).await;
        assert!(page.html.contains("Ann Archer") && page.html.contains("Use another account"), "{}", page.html);
    }

    /// The cookie changes at authentication: a value that was planted before is not accepted.
    async fn session_fixation_is_prevented(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        browser.cookies.insert("chancery-session".to_owned(), "planted".to_owned());
        let page = browser.open(&home.request(&[])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        assert_ne!(browser.cookies["chancery-session"], "planted");
        let mut other = Browser::new(&world);
        other.cookies.insert("chancery-session".to_owned(), "planted".to_owned());
        let left = other.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"));
    }

    /// Neither the session nor its tokens are accepted after a sign-out.
    async fn signing_out_ends_session_and_tokens(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let address = format!(
            "/connect/endsession?client_id={}&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye&state=x",
            id(&home.app)
        );
        let page = browser.open(&address).await;
        assert!(page.html.contains("Sign out?"), "{}", page.html);
        bearer.get("/connect/userinfo").await.expect(200);
        let csrf = page.field("csrf");
        let done = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        // by a page of this server: browsers apply form-action to a redirect that follows a post
        assert_eq!(done.answer.header("refresh"), Some("0; url=https://app.example/bye?state=x"), "{}", done.html);
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
    }

    /// A sign-out redirects only to URIs of the app. For any other the page says so, and links to the app's home page.
    async fn a_sign_out_redirects_only_to_registered_uris(world: World) {
        let home = SignInApp::with(&world, json!({ "clientUri": "https://ledger.example/about" })).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let address = format!(
            "/connect/endsession?client_id={}&post_logout_redirect_uri=https%3A%2F%2Fevil.example%2F", id(&home.app)
        );
        let page = browser.open(&address).await;
        let csrf = page.field("csrf");
        let page = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        let is_left = |page: &Page| page.left.is_some() || page.answer.header("refresh").is_some();
        let has_link = |page: &Page| page.html.replace("&#x2f;", "/").contains("href=\"https://ledger.example/about\"");
        assert!(!is_left(&page) && page.html.contains("You are signed out"), "{}", page.html);
        assert!(page.html.contains("an address that is not registered") && has_link(&page), "{}", page.html);
        // nobody is signed in any more
        let page = browser.open(&address).await;
        assert!(!is_left(&page) && page.html.contains("an address that is not registered"), "{}", page.html);
        let plain = browser.open(&format!("/connect/endsession?client_id={}", id(&home.app))).await;
        assert!(!is_left(&plain) && !plain.html.contains("not registered") && has_link(&plain), "{}", plain.html);
        let registered = "&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye";
        let page = browser.open(&format!("/connect/endsession?client_id={}{registered}", id(&home.app))).await;
        assert_eq!(page.left.as_deref(), Some("https://app.example/bye"));
    }

    /// Without an app the page stays here, with or without a state.
    async fn a_sign_out_works_without_an_app(world: World) {
        let home = SignInApp::new(&world).await;
        for query in ["", "?state=x"] {
            let (mut browser, _) = home.sign_in(&world).await;
            let page = browser.open(&format!("/connect/endsession{query}")).await;
            let csrf = page.field("csrf");
            let page = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
            assert!(page.left.is_none() && page.html.contains("You are signed out"), "{}", page.html);
            assert!(!browser.cookies.contains_key("chancery-session"));
        }
    }

    /// A form of another site signs nobody out.
    async fn cross_site_sign_outs_are_ignored(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        browser.open("/connect/endsession").await;
        browser.post("/connect/endsession", &[("decision", "allow")], &[]).await;
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        let foreign = [("sec-fetch-site", "cross-site")];
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &foreign).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some());
    }

    /// Nothing of an erased person is accepted.
    async fn erasing_a_person_ends_sessions_and_tokens(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let another = parameter(&browser.open(&home.request(&[])).await.left.unwrap(), "code").unwrap();
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&home.user))), json!(null)).await.expect(204);
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(401);
        home.redeem(&world, &another, &[]).await.expect(400);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!((parameter(&silent, "code"), parameter(&silent, "error").is_some()), (None, true), "{silent}");
    }

    /// OpenID Connect RP-Initiated Logout 1.0: the app's ID token identifies person and app; no page is needed.
    async fn an_id_token_hint_skips_the_sign_out_page(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let hint = tokens["id_token"].as_str().unwrap();
        let silent = [("prompt", "none"), ("id_token_hint", hint)];
        assert!(parameter(&browser.open(&home.request(&silent)).await.left.unwrap(), "code").is_some());
        let forged = format!("{}x", &hint[..hint.len() - 1]);
        let back = "&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye";
        let confirmation = browser.open(&format!("/connect/endsession?id_token_hint={forged}{back}")).await;
        assert!(confirmation.html.contains("Sign out?"), "{}", confirmation.html);
        let mut other = Browser::new(&world);
        let gone = other.open(&format!("/connect/endsession?id_token_hint={hint}{back}")).await;
        assert_eq!(gone.left.as_deref(), Some("https://app.example/bye"), "nobody is signed in there");
        let gone = browser.open(&format!("/connect/endsession?id_token_hint={hint}{back}")).await;
        assert_eq!(gone.left.as_deref(), Some("https://app.example/bye"));
        let after = browser.open(&home.request(&silent)).await.left.unwrap();
        assert_eq!(parameter(&after, "error").as_deref(), Some("login_required"));
    }

    /// If the session is of another person than the hint names, that person has to sign in.
    async fn an_id_token_hint_of_another_person_requires_a_sign_in(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bob = world.user("bob").await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&bob)));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let mut browser = Browser::new(&world);
        let hint = ("id_token_hint", tokens["id_token"].as_str().unwrap());
        let page = browser.open(&home.request(&[hint])).await;
        let next = browser.type_password(&page, "bob", PASSWORD).await;
        let left = match next.left {
            Some(left) => left,
            None => browser.continue_to_app(&next).await,
        };
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"));
        let wrong = browser.open(&home.request(&[("id_token_hint", "x.y.z")])).await.left.unwrap();
        assert_eq!(parameter(&wrong, "error").as_deref(), Some("invalid_request"));
    }

    /// Section 13: a temporary lock ends no session, otherwise attackers could sign people out; a permanent one does.
    async fn temporary_locks_do_not_end_sessions(world: World) {
        let home = SignInApp::new(&world).await;
        for (name, value) in [("LoginThrottlingEnabled", "false"), ("AttemptsBeforeTemporaryLock", "1")] {
            world.set_option(name, value).await;
        }
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let mut other_browser = Browser::new(&world);
        let page = other_browser.open(&home.request(&[])).await;
        other_browser.type_password(&page, "ann", "not this one").await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        assert!(world.admin.get(&one).await.is(200).json()["lockedUntil"].is_string());
        let refused = other_browser.type_password(&page, "ann", PASSWORD).await;
        assert!(refused.html.contains("is not right"), "{}", refused.html);
        bearer.get("/connect/userinfo").await.expect(200);
        let silent = home.request(&[("prompt", "none")]);
        assert!(parameter(&browser.open(&silent).await.left.unwrap(), "code").is_some());
    }
}
