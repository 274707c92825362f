//! Changes during a sign-in: tabs, languages, settings of administrators.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, VERIFIER,
    browser::{Browser, Page},
    change, claims, encode, first, parameter, relate,
};
use crate::id;

on_both_engines! {
    /// Section 11: changes of an administrator apply to pending sign-ins.
    ///
    /// - Effect of `ClientApp.allowUserLogin`: The app gets tokens of people.
    async fn pending_sign_ins_follow_changes_by_administrators(world: World) {
        let home = SignInApp::new(&world).await;
        let (app, tenant) = (format!("/ClientApp/{}", id(&home.app)), home.tenant.clone());
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        change(&world, &app, json!({ "allowUserLogin": false })).await;
        assert_eq!(browser.type_password(&page, "ann", PASSWORD).await.status, 400);
        change(&world, &app, json!({ "allowUserLogin": true })).await;
        relate(&world, &format!("{app}/tenants"), &[]).await;
        assert_eq!(browser.type_password(&page, "ann", PASSWORD).await.status, 400);
        relate(&world, &format!("{app}/tenants"), &[&tenant]).await;
        let filter = encode(&format!("uri eq \"{CALLBACK}\""));
        let uri = first(&world, &format!("/ClientAppRedirectUri?filter={filter}")).await;
        let uri_path = format!("{BASE}/ClientAppRedirectUri/{}", id(&uri));
        world.admin.delete(&uri_path).await.expect(204);
        let gone = browser.type_password(&page, "ann", PASSWORD).await;
        assert_eq!((gone.status, gone.left), (400, None), "{}", gone.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// A code is accepted only at the issuer that issued it.
    async fn a_code_is_valid_at_its_issuer_only(world: World) {
        let home = SignInApp::new(&world).await;
        let tenant = format!("/t/{}", home.tenant);
        for (here, there) in [("", tenant.as_str()), (tenant.as_str(), "")] {
            let mut browser = Browser::new(&world);
            let page = browser.open(&format!("{here}{}", home.request(&[]))).await;
            let answer = browser.sign_in(&page, "ann", PASSWORD).await;
            let form = format!(
                "grant_type=authorization_code&code={}&redirect_uri={}&code_verifier={VERIFIER}&client_id={}&client_secret={}",
                parameter(&answer, "code").unwrap(), encode(CALLBACK), id(&home.app), home.secret
            );
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            for (issuer, status) in [(there, 400), (here, 200)] {
                let path = format!("{issuer}/connect/token");
                let sent = world.anonymous.send(http::Method::POST, &path, &headers, form.clone().into_bytes()).await;
                sent.expect(status);
            }
        }
    }

    /// Two tabs are two flows: after a sign-in in one tab the other continues with the session.
    async fn two_tabs_are_two_flows(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let one = browser.open(&home.request(&[("state", "one")])).await;
        let two = browser.open(&home.request(&[("state", "two")])).await;
        let answer = browser.sign_in(&one, "ann", PASSWORD).await;
        assert_eq!(parameter(&answer, "state").as_deref(), Some("one"));
        // input there is ignored; a page redirects the response, since a form was posted
        let next = browser.type_password(&two, "ann", "whatever").await;
        let answer = browser.continue_to_app(&next).await;
        assert_eq!(parameter(&answer, "state").as_deref(), Some("two"));
        assert!(parameter(&answer, "code").is_some());
    }

    /// Back after a sign-in: a page with a link to the app.
    async fn going_back_after_a_sign_in_links_to_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        let back = browser.open(&page.address).await;
        assert_eq!(back.status, 400);
        assert!(back.html.contains("href=\"https://app.example/\""), "{}", back.html);
    }

    /// A wrong password is answered by a redirect, so that going back repeats no form; the name remains.
    async fn a_wrong_password_is_answered_by_a_redirect(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let wrong = browser.type_password(&page, "ann", "not this one").await;
        assert!(wrong.address.contains("/signin/password?flow="), "{}", wrong.address);
        assert!(wrong.html.contains("value=\"ann\"") && !wrong.html.contains("not this one"), "{}", wrong.html);
        assert!(wrong.html.contains("aria-invalid=\"true\""), "the error is at its field: {}", wrong.html);
    }

    /// The language that was chosen on a page remains; the first supported one of the request is used.
    async fn the_chosen_language_is_remembered(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.open(&format!("{}&ui_locales=de", page.address)).await;
        let wrong = browser.type_password(&page, "ann", "not this one").await;
        assert!(wrong.html.contains("lang=\"de\""), "{}", wrong.html);
        let response = browser.open(&home.request(&[("ui_locales", "fr de en")])).await;
        assert!(response.html.contains("lang=\"de\""), "{}", response.html);
        let headers = [("accept-language", "fr, en;q=0.2, de;q=0.8")];
        let answer = world.anonymous.send(http::Method::GET, "/signin/password?flow=x", &headers, Vec::new()).await;
        assert!(String::from_utf8_lossy(&answer.bytes).contains("lang=\"de\""));
    }

    /// The person's own language applies as soon as the person is known; a chosen or requested language has priority.
    ///
    /// - Effect of `User.locale`: Pages, mails and SMS to the user are in this language, and apps get it as `locale`.
    async fn pages_are_in_the_person_s_language(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let body = json!({ "locale": "de-AT", "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        let is_german = |page: &Page| page.html.contains("<html lang=\"de\"");
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(!is_german(&page), "nobody is known yet: {}", page.html);
        let consent = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(is_german(&consent), "{}", consent.html);
        let csrf = consent.field("csrf");
        let fields = [("csrf", csrf.as_str()), ("decision", "allow")];
        let last = browser.post(&consent.action(), &fields, &[]).await;
        assert!(is_german(&last), "the page that leads on: {}", last.html);
        let chosen = browser.open(&home.request(&[])).await;
        assert!(is_german(&chosen), "{}", chosen.html);
        let chosen = browser.open(&format!("{}&ui_locales=en", chosen.address)).await;
        assert!(!is_german(&chosen), "{}", chosen.html);
        let response = browser.open(&home.request(&[("ui_locales", "en")])).await;
        assert!(!is_german(&response), "{}", response.html);
        // if no other step is due, the page that redirects is the first for a known person
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "accessGrantConsent": "Implicit" })).await;
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let last = other.type_password(&page, "ann", PASSWORD).await;
        assert!(is_german(&last), "{}", last.html);
    }

    /// `login_hint` fills in the name; without a page it must match the person of the session.
    async fn login_hint_fills_the_name(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for (hint, is_theirs) in [("ANN", true), ("ann@example.com", true), ("bob", false)] {
            let silent = home.request(&[("prompt", "none"), ("login_hint", hint)]);
            let left = browser.open(&silent).await.left.unwrap();
            assert_eq!(parameter(&left, "code").is_some(), is_theirs, "{hint}: {left}");
        }
    }

    /// A cross-site form contains no cookies, and replaces none.
    async fn a_cross_site_form_does_not_end_a_flow(world: World) {
        let home = SignInApp::new(&world).await;
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        for path in [home.request(&[]), "/connect/endsession".to_owned(), "/signin/password?flow=x".to_owned()] {
            let answer = world.anonymous.send(http::Method::POST, &path, &headers, b"a=b".to_vec()).await;
            assert!(answer.header("set-cookie").is_none(), "{path}");
        }
    }

    /// Sign-out pages and error pages use the person's language as well, if the person is known.
    async fn sign_out_and_error_pages_are_in_the_person_s_language(world: World) {
        let home = SignInApp::new(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let body = json!({ "locale": "de-AT", "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        let is_german = |page: &Page| page.html.contains("<html lang=\"de\"");
        let wrong = home.request(&[("redirect_uri", "https://elsewhere.example/")]);
        let refused = Browser::new(&world).open(&wrong).await;
        assert!(refused.status == 400 && !is_german(&refused), "nobody is known: {}", refused.html);
        let (mut browser, _) = home.sign_in(&world).await;
        let refused = browser.open(&wrong).await;
        assert!(refused.status == 400 && is_german(&refused), "{}", refused.html);
        let refused = browser.open(&format!("{wrong}&ui_locales=en")).await;
        assert!(!is_german(&refused), "{}", refused.html);
        let response = browser.open("/connect/endsession").await;
        assert!(is_german(&response), "{}", response.html);
        for decision in ["deny", "allow"] {
            let done = browser.submit(&response, &[("decision", decision)]).await;
            assert!(is_german(&done), "{decision}: {}", done.html);
        }
        let over = browser.open("/connect/endsession").await;
        assert!(!is_german(&over), "nobody is signed in: {}", over.html);
    }

    /// RFC 8707: a resource belongs to the app or its subscription; the platform's only if the app has it and requests it.
    ///
    /// - Effect of `ClientAppResource.key`: Requests name the resource by this key, and access tokens have it as `aud`.
    async fn resource_indicators_select_the_audience(world: World) {
        let home = SignInApp::new(&world).await;
        let audience = async |more: &[(&str, &str)], token: &[(&str, &str)]| {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(more)).await;
            let answer = match page.left {
                Some(left) => left,
                None => browser.sign_in_to_platform(&page, "ann", PASSWORD).await,
            };
            let Some(code) = parameter(&answer, "code") else {
                return json!(parameter(&answer, "error"));
            };
            let tokens = home.redeem(&world, &code, token).await.json();
            match tokens.get("access_token") {
                Some(_) => claims(&tokens["access_token"])["aud"].clone(),
                None => tokens["error"].clone(),
            }
        };
        let own_id = home.app["id"].clone();
        assert_eq!(audience(&[], &[]).await, json!([own_id]));
        assert_eq!(audience(&[("resource", "ledger-api")], &[]).await, json!("invalid_target"));
        for key in ["ledger-api", "PlatformManagementService"] {
            world.make("ClientAppResource", json!({ "clientAppId": own_id, "key": key })).await;
        }
        let other = world.make("ClientApp", json!({ "name": "Other" })).await;
        world.make("ClientAppResource", json!({ "clientAppId": other["id"], "key": "near-api" })).await;
        assert_eq!(audience(&[], &[]).await, json!(["ledger-api"]), "the platform's is never a default");
        let both = [("resource", "ledger-api"), ("resource", "near-api")];
        assert_eq!(audience(&both, &[]).await, json!(["ledger-api", "near-api"]));
        assert_eq!(audience(&both, &[("resource", "near-api")]).await, json!(["near-api"]));
        assert_eq!(audience(&both, &[("resource", "elsewhere")]).await, json!("invalid_target"));
        let platform = ("resource", "PlatformManagementService");
        assert_eq!(audience(&[platform], &[]).await, json!(["PlatformManagementService"]));
        let filter = encode("key eq \"PlatformManagementService\"");
        let given = first(&world, &format!("/ClientAppResource?filter={filter}")).await;
        world.admin.delete(&format!("{BASE}/ClientAppResource/{}", id(&given))).await.expect(204);
        assert_eq!(audience(&[platform], &[]).await, json!("invalid_target"), "taken away, it counts at once");
        world.make("ClientAppResource", json!({ "clientAppId": own_id, "key": "PlatformManagementService" })).await;
        assert_eq!(audience(&[platform, both[0]], &[]).await, json!("invalid_target"));
        let users = ("resource", "PlatformUserStoreService");
        assert_eq!(audience(&[users], &[]).await, json!("invalid_target"), "the app does not have it");
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "resourceFilterEnabled": true })).await;
        assert_eq!(audience(&both, &[]).await, json!("invalid_target"));
    }

    /// The Fetch standard: scripts of any site may use endpoints without cookies.
    async fn cors_is_allowed_at_endpoints_without_cookies(world: World) {
        let open = ["/.well-known/openid-configuration", "/.well-known/jwks.json", "/connect/token", "/connect/userinfo"];
        for path in open {
            let response = world.anonymous.send(http::Method::OPTIONS, path, &[], Vec::new()).await.is(204);
            assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{path}");
            assert!(response.header("access-control-allow-credentials").is_none());
            let answer = world.anonymous.get(path).await;
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
        }
        // also for the error that there is none, or a wrong method
        let unknown_tenant = "/t/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f/.well-known/openid-configuration";
        for (path, status) in [(unknown_tenant, 404), ("/connect/tokens", 404), ("/.well-known/nothing", 404), ("/connect/token", 405)] {
            let refused = world.anonymous.get(path).await.is(status);
            assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "{path}");
        }
        // and for errors of the request itself
        let form = ("content-type", "application/x-www-form-urlencoded");
        let origin = ("origin", "https://app.example");
        for (path, header, body, status) in [
            ("/connect/token", form, "grant_type=client_credentials&grant_type=x", 400),
            ("/connect/token", form, "grant_type=client_credentials&client_id=x&client_secret=y", 401),
            ("/connect/token", ("content-type", "application/json"), "{}", 400),
            ("/connect/introspect", form, "token=x&client_id=x&client_secret=y", 401),
            ("/connect/revoke", form, "token=x&client_id=x&client_secret=y", 401),
            ("/connect/deviceauthorization", form, "client_id=x", 401),
            ("/connect/userinfo", ("authorization", "Bearer x"), "", 401),
        ] {
            let body = body.as_bytes().to_vec();
            let refused = world.anonymous.send(http::Method::POST, path, &[header, origin], body).await;
            assert_eq!(refused.status, status, "{path} {}", String::from_utf8_lossy(&refused.bytes));
            assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "{path} {status}");
            let exposed = refused.header("access-control-expose-headers").unwrap();
            assert!(exposed.contains("WWW-Authenticate"), "{path} {exposed}");
        }
        let large = vec![b'a'; 200_000];
        let refused = world.anonymous.send(http::Method::POST, "/connect/token", &[form, origin], large).await;
        assert!(refused.status.is_client_error(), "{}", refused.status);
        assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "a body that is too large");
        assert!(world.anonymous.get("/nothing").await.is(404).header("access-control-allow-origin").is_none());
        let page = world.anonymous.get("/connect/authorize").await;
        assert!(page.header("access-control-allow-origin").is_none());
    }
}
