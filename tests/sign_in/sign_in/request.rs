//! Errors in authorization requests, and how they are reported.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::Value;
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, VERIFIER, browser::Browser, claims, encode, first, form, parameter,
    relate,
};
use crate::id;

on_both_engines! {
    /// `state` up to 4,096 and `nonce` up to 1,024 characters are returned unchanged, across all pages: values that are too
    /// large for a cookie are stored as a row.
    async fn the_longest_state_and_nonce_are_returned(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (state, nonce) = ("s".repeat(4_096), "n".repeat(1_024));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("state", &state), ("nonce", &nonce)])).await;
        let wrong = browser.type_password(&page, "ann", "wrong").await;
        let consent = browser.type_password(&wrong, "ann", PASSWORD).await;
        let next = browser.submit(&consent, &[("decision", "allow")]).await;
        let answer = browser.continue_to_app(&next).await;
        assert_eq!(parameter(&answer, "state").as_deref(), Some(state.as_str()));
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["nonce"], json!(nonce));
        // another browser has no access to it
        let mut other = Browser::new(&world);
        let flow = page.action().split_once("flow=").unwrap().1.split('&').next().unwrap().to_owned();
        other.cookies.insert(format!("chancery-flow-{flow}"), "row".to_owned());
        assert_eq!(other.open(&page.address).await.status, 400);
    }

    /// Proxies accept heads of 4 KB in responses and 8 KB of cookies in requests, as nginx does by default:
    /// the browser of these tests checks each. Larger values are stored as a row, and a page redirects to a long URL.
    async fn the_largest_sign_in_fits_default_proxy_limits(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        let state = "ä".repeat(1_000);
        let mut browser = Browser::new(&world);
        // three tabs are stored
        let mut pages = Vec::new();
        for (state, nonce) in [(&"s".repeat(700), "n"), (&"s".repeat(2_048), &"n".repeat(512)), (&state, "n")] {
            pages.push(browser.open(&home.request(&[("state", state), ("nonce", nonce)])).await);
        }
        let consent = browser.type_password(pages.last().unwrap(), "ann", PASSWORD).await;
        let next = browser.submit(&consent, &[("decision", "allow")]).await;
        let answer = browser.continue_to_app(&next).await;
        assert!(answer.len() > 4_096 && answer.contains(&format!("&state={}", encode(&state))), "{answer}");
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        // the other tabs continue
        for (page, state) in [(&pages[1], "s".repeat(2_048)), (&pages[0], "s".repeat(700))] {
            let next = browser.open(&page.address).await;
            let next = browser.submit(&next, &[("decision", "allow")]).await;
            assert_eq!(parameter(&browser.continue_to_app(&next).await, "state"), Some(state));
        }
        let back = browser.open(&home.request(&[("prompt", "none"), ("state", &state)])).await;
        assert!(back.left.unwrap().contains(&format!("&state={}", encode(&state))));
    }

    /// Unknown parameters are not stored, so they create no row; and rows are limited.
    async fn pending_sign_ins_are_limited_in_size(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let unknown: Vec<String> = (0..6).map(|number| format!("&x{number}={}", "y".repeat(1_000))).collect();
        browser.open(&format!("{}{}", home.request(&[]), unknown.concat())).await;
        assert!(browser.cookies.values().all(|value| value != "row"), "{:?}", browser.cookies);
        let (state, nonce) = ("s".repeat(2_048), "n".repeat(512));
        let large = home.request(&[("state", &state), ("nonce", &nonce)]);
        let page = browser.open(&large).await;
        assert!(browser.cookies.values().any(|value| value == "row"), "{:?}", browser.cookies);
        let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
            INSERT INTO sign_in_flow (id, sealed, expires_on) SELECT 'x' || i, ?1, ?2 FROM n";
        world.sql(vec![(fill, vec![Value::Bytes(vec![1]), Value::Int(i64::MAX)])]).await;
        assert_eq!(Browser::new(&world).open(&large).await.status, 503);
        let metrics = world.admin.get("/metrics").await.is(200);
        let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
        assert!(!metrics.contains("error=\"temporarily_unavailable\""), "the app did nothing wrong: {metrics}");
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        assert_eq!(parameter(&answer, "state").as_deref(), Some(state.as_str()), "one that has a row goes on");
    }

    /// OpenID Connect Core 1.0, section 3.1.2.2: an ID token that is requested for a person is issued for nobody else.
    async fn the_claims_parameter_can_require_a_subject(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let own = claims(&tokens["id_token"])["sub"].as_str().unwrap().to_owned();
        let mut error_of = async |claims: serde_json::Value, more: &[(&str, &str)]| {
            let claims = claims.to_string();
            let all = [&[("prompt", "none"), ("claims", claims.as_str())], more].concat();
            let left = browser.open(&home.request(&all)).await.left.unwrap();
            parameter(&left, "error")
        };
        let sub = |value: &str| json!({ "id_token": { "sub": { "value": value } } });
        assert_eq!(error_of(sub(&own), &[]).await, None);
        assert_eq!(error_of(json!({ "id_token": { "sub": null } }), &[]).await, None);
        assert_eq!(error_of(json!({ "id_token": { "sub": { "values": [own] } } }), &[]).await, None);
        let other = "01970000-0000-7000-8000-000000000000";
        for wrong in [other, "ann", &own.to_uppercase()] {
            assert_eq!(error_of(sub(wrong), &[]).await.as_deref(), Some("login_required"), "{wrong}");
        }
        let hint = [("id_token_hint", tokens["id_token"].as_str().unwrap())];
        assert_eq!(error_of(sub(&own), &hint).await, None);
        assert_eq!(error_of(sub(other), &hint).await.as_deref(), Some("login_required"));
        // whoever signs in on the page, the response is only about the requested person
        let claims = sub(other).to_string();
        let mut other_browser = Browser::new(&world);
        let page = other_browser.open(&home.request(&[("claims", &claims)])).await;
        let next = other_browser.type_password(&page, "ann", PASSWORD).await;
        let left = other_browser.continue_to_app(&next).await;
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"), "{left}");
    }

    /// A client compares `aud` with the id that it sent.
    async fn a_client_id_is_compared_exactly(world: World) {
        let home = SignInApp::with(&world, json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true })).await;
        let own = id(&home.app);
        for other in [own.to_uppercase(), format!("{{{own}}}"), format!("urn:uuid:{own}"), own.replace('-', "")] {
            let page = Browser::new(&world).open(&home.request(&[("client_id", &other)])).await;
            assert_eq!((page.status, page.left), (400, None), "{other}");
            let sent = form([("client_id", other.as_str()), ("scope", "openid")].into_iter()).into_bytes();
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            let path = "/connect/deviceauthorization";
            world.anonymous.send(http::Method::POST, path, &headers, sent).await.expect(401);
            let page = Browser::new(&world).open(&format!("/connect/endsession?client_id={}", encode(&other))).await;
            assert!(!page.html.contains("Harbour Ledger"), "{other}");
        }
    }

    /// The same at client authentication, in the body and in the header.
    async fn a_client_id_is_compared_exactly_at_client_authentication(world: World) {
        let home = SignInApp::with(&world, json!({ "allowClientCredentialLogin": true })).await;
        let own = id(&home.app);
        let status_of = async |client: &str, path: &str, in_header: bool| {
            let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", encode(client), home.secret)));
            let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
            let mut fields = vec![("grant_type", "client_credentials"), ("token", "x")];
            if in_header {
                headers.push(("authorization", &basic));
            } else {
                fields.extend([("client_id", client), ("client_secret", home.secret.as_str())]);
            }
            let sent = form(fields.into_iter()).into_bytes();
            world.anonymous.send(http::Method::POST, path, &headers, sent).await.status.as_u16()
        };
        for path in ["/connect/token", "/connect/introspect", "/connect/revoke"] {
            for in_header in [true, false] {
                assert_eq!(status_of(own, path, in_header).await, 200, "{path}");
                for other in [own.to_uppercase(), format!("{{{own}}}"), format!("urn:uuid:{own}"), own.replace('-', "")] {
                    assert_eq!(status_of(&other, path, in_header).await, 401, "{other} at {path}");
                }
            }
        }
    }

    /// Section 4: an error that could be redirected to an attacker is shown on a page, with the trace id.
    ///
    /// - Effect of `ClientAppRedirectUri.redirectUriType`: The address is used for sign-ins or for sign-outs.
    /// - Effect of `ClientAppRedirectUri.uri`: People are sent back only to this exact address.
    async fn invalid_redirect_uris_get_an_error_page(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let [no_client, unknown_client, no_redirect, unknown_redirect] = [
            "did not say which application it is (client_id is missing).",
            "The application that sent you here is not known.",
            "did not say where to send you back (redirect_uri is missing).",
            "wants to send you back is not registered here (redirect_uri).",
        ];
        for (parameter, wrong, sentence) in [
            ("client_id", "", no_client),
            ("client_id", "Harbour Ledger", unknown_client),
            ("client_id", "01970000-0000-7000-8000-000000000000", unknown_client),
            ("redirect_uri", "", no_redirect),
            ("redirect_uri", "https://app.example/callback/", unknown_redirect),
            ("redirect_uri", "https://app.example/callback?x=1", unknown_redirect),
            ("redirect_uri", "https://app.example@evil.example/callback", unknown_redirect),
            ("redirect_uri", "https://app.example/bye", unknown_redirect),
        ] {
            let page = browser.open(&home.request(&[(parameter, wrong)])).await;
            assert_eq!((page.status, page.left.is_none()), (400, true), "{parameter} {wrong}");
            assert!(page.html.contains("Reference") && page.html.contains(sentence), "{wrong}: {}", page.html);
        }
    }

    async fn other_errors_are_returned_to_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        for (wrong, error) in [
            (("response_type", "token"), "unsupported_response_type"),
            (("response_type", "x"), "unsupported_response_type"),
            (("code_challenge", ""), "invalid_request"),
            (("code_challenge_method", "plain"), "invalid_request"),
            (("scope", "openid nobody-has-it"), "none"),
            (("prompt", "none login"), "invalid_request"),
            (("prompt", "none"), "login_required"),
            (("max_age", "-1"), "invalid_request"),
            (("claims", "x"), "invalid_request"),
            (("request", "x.y.z"), "request_not_supported"),
            (("acr_values", "mfa"), "none"),
        ] {
            let page = browser.open(&home.request(&[wrong])).await;
            if error == "none" {
                assert_eq!(page.status, 200, "{wrong:?}");
                continue;
            }
            let left = page.left.unwrap_or_else(|| panic!("{wrong:?} {}", page.html));
            assert_eq!(parameter(&left, "error").as_deref(), Some(error), "{wrong:?}");
            assert_eq!(parameter(&left, "state").as_deref(), Some("s-1"));
            assert!(parameter(&left, "iss").is_some());
        }
    }

    /// - Effect of `ClientApp.enabled`: An app that is not enabled gets no tokens, and those that it has stop working.
    async fn an_inactive_app_is_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(200);
        let path = format!("/api/management/v2/ClientApp/{}", id(&home.app));
        let now = world.admin.get(&path).await.is(200).json();
        let off = json!({ "enabled": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, off).await.expect(202);
        assert_eq!(Browser::new(&world).open(&home.request(&[])).await.status, 400);
        bearer.get("/connect/userinfo").await.expect(401);
    }

    /// A POST is redirected to the same GET, so that cookies are sent.
    async fn a_request_may_be_posted(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let address = home.request(&[]);
        let (path, query) = address.split_once('?').unwrap();
        let fields: Vec<(String, String)> = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.replace("%20", " ").replace("%3A", ":").replace("%2F", "/")))
            .collect();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let page = browser.post(path, &fields, &[]).await;
        assert!(page.html.contains("Sign in"), "{}", page.html);
    }

    /// A tenant's issuer serves that tenant only.
    async fn a_tenant_is_an_issuer(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let issuer = format!("/t/{}", home.tenant);
        let metadata = world.anonymous.get(&format!("{issuer}/.well-known/openid-configuration")).await.is(200).json();
        assert_eq!(metadata["authorization_endpoint"], json!(format!("{}{issuer}/connect/authorize", world.base)));
        let page = browser.open(&format!("{issuer}{}", home.request(&[]))).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        assert_eq!(parameter(&answer, "iss"), Some(format!("{}{issuer}", world.base)));
        let code = parameter(&answer, "code").unwrap();
        let form = format!(
            "grant_type=authorization_code&code={code}&redirect_uri={}&code_verifier={}&client_id={}&client_secret={}",
            encode(CALLBACK), VERIFIER, id(&home.app), encode(&home.secret)
        );
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let path = format!("{issuer}/connect/token");
        let tokens = world.anonymous.send(http::Method::POST, &path, &headers, form.into_bytes()).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["iss"], json!(format!("{}{issuer}", world.base)));
    }

    /// Settings apply immediately, at every process: an app's redirect URIs, scopes and instances.
    ///
    /// - Effect of `ClientApp.idpInstances`: People sign in to the app by these instances.
    /// - Effect of `ClientAppRedirectUri.clientAppId`: The redirect URI belongs to this app.
    /// - Effect of `IdpInstance.clientApps`: These apps offer the instance.
    async fn changes_by_administrators_apply_immediately(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        assert_eq!(browser.open(&home.request(&[])).await.status, 200);
        let added = json!({ "clientAppId": home.app["id"], "uri": "https://app.example/more" });
        let added = world.make("ClientAppRedirectUri", added).await;
        let new_redirect = home.request(&[("redirect_uri", "https://app.example/more")]);
        assert_eq!(browser.open(&new_redirect).await.status, 200);
        world.admin.delete(&format!("{BASE}/ClientAppRedirectUri/{}", id(&added))).await.expect(204);
        assert_eq!(browser.open(&new_redirect).await.status, 400);
        let own = home.request(&[("scope", "openid own")]);
        assert_eq!(browser.open(&own).await.status, 200, "foreign scopes are left out");
        let now = world.admin.get(&format!("{BASE}/ClientApp/{}", id(&home.app))).await.is(200).json();
        let filter = json!({ "scopeFilterEnabled": true, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/ClientApp/{}", id(&home.app)), filter).await.expect(202);
        let left = browser.open(&own).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("invalid_scope"));
        world.make("ClientAppScope", json!({ "clientAppId": home.app["id"], "key": "own" })).await;
        let page = browser.open(&own).await;
        assert_eq!(page.status, 200);
        let instance = first(&world, "/IdpInstance").await;
        relate(&world, &format!("/IdpInstance/{}/clientapps", id(&instance)), &[]).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
    }

    /// OAuth 2.0 Form Post Response Mode: the response is a form that is posted to the app, and the person is signed in.
    async fn form_post_response_mode_is_supported(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let request = home.request(&[("response_mode", "form_post")]);
        let page = browser.open(&request).await;
        let first = browser.type_password(&page, "ann", PASSWORD).await;
        let again = browser.open(&request).await;
        for page in [&first, &again] {
            assert_eq!(page.action().replace("&#x2f;", "/"), CALLBACK, "{}", page.html);
            let policy = page.answer.header("content-security-policy").unwrap();
            // the only script that the policy permits submits it; the button is for browsers without scripts
            assert!(!policy.contains("form-action") && policy.contains(&format!("script-src {}/signin/post.js;", world.base)), "{policy}");
            assert!(page.html.contains("<script src=\"/signin/post.js\" defer></script>") && page.html.contains("type=\"submit\""), "{}", page.html);
            assert_eq!(page.field("state"), "s-1");
            home.redeem(&world, &page.field("code"), &[]).await.expect(200);
        }
        let script = world.anonymous.get("/signin/post.js").await.is(200);
        assert!(script.header("content-type").unwrap().starts_with("text/javascript"));
        // errors as well, also without a prompt
        let mut other_browser = Browser::new(&world);
        for (more, error) in [(("prompt", "none"), "login_required"), (("max_age", "-1"), "invalid_request")] {
            let page = other_browser.open(&home.request(&[("response_mode", "form_post"), more])).await;
            assert_eq!((page.field("error").as_str(), page.field("state").as_str()), (error, "s-1"), "{}", page.html);
            assert!(page.html.contains("<script src=\"/signin/post.js\" defer></script>"), "{}", page.html);
        }
    }
}
