//! What is wrong with an authorization request, and how that is told.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::Value;
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    BASE, CALLBACK, Home, PASSWORD, VERIFIER, browser::Browser, claims, encode, first, form, parameter,
    relate,
};
use crate::id;

on_both_engines! {
    /// `state` up to 2,048 and `nonce` up to 512 characters come back as they were, whatever pages lie between: what is too
    /// large for a cookie is a row.
    async fn the_longest_state_comes_back(world: World) {
        let home = Home::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (state, nonce) = ("s".repeat(2_048), "n".repeat(512));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("state", &state), ("nonce", &nonce)])).await;
        let wrong = browser.type_password(&page, "ann", "wrong").await;
        let consent = browser.type_password(&wrong, "ann", PASSWORD).await;
        let next = browser.submit(&consent, &[("decision", "allow")]).await;
        let answer = browser.go_on(&next).await;
        assert_eq!(parameter(&answer, "state").as_deref(), Some(state.as_str()));
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["nonce"], json!(nonce));
        // another browser has nothing of it
        let mut other = Browser::new(&world);
        let flow = page.action().split_once("flow=").unwrap().1.split('&').next().unwrap().to_owned();
        other.cookies.insert(format!("chancery-flow-{flow}"), "row".to_owned());
        assert_eq!(other.open(&page.address).await.status, 400);
    }

    /// Proxies take answers with a head of 4 KB and requests with 8 KB of cookies, as nginx does unless it is set otherwise:
    /// the browser of these tests checks each. What is larger is a row, and a long address is led to by a page.
    async fn proxies_take_the_largest_sign_in(world: World) {
        let home = Home::with(&world, json!({ "accessGrantConsent": "Systematic" })).await;
        let state = "ä".repeat(1_000);
        let mut browser = Browser::new(&world);
        // three tabs are kept
        let mut pages = Vec::new();
        for (state, nonce) in [(&"s".repeat(700), "n"), (&"s".repeat(2_048), &"n".repeat(512)), (&state, "n")] {
            pages.push(browser.open(&home.request(&[("state", state), ("nonce", nonce)])).await);
        }
        let consent = browser.type_password(pages.last().unwrap(), "ann", PASSWORD).await;
        let next = browser.submit(&consent, &[("decision", "allow")]).await;
        let answer = browser.go_on(&next).await;
        assert!(answer.len() > 4_096 && answer.contains(&format!("&state={}", encode(&state))), "{answer}");
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        // the other tabs go on
        for (page, state) in [(&pages[1], "s".repeat(2_048)), (&pages[0], "s".repeat(700))] {
            let next = browser.open(&page.address).await;
            let next = browser.submit(&next, &[("decision", "allow")]).await;
            assert_eq!(parameter(&browser.go_on(&next).await, "state"), Some(state));
        }
        let back = browser.open(&home.request(&[("prompt", "none"), ("state", &state)])).await;
        assert!(back.left.unwrap().contains(&format!("&state={}", encode(&state))));
    }

    /// What nobody knows is no part of a sign-in, so that it makes no row; and rows have a bound.
    async fn a_sign_in_under_way_takes_little_room(world: World) {
        let home = Home::new(&world).await;
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

    /// OpenID Connect Core 1.0, section 3.1.2.2: an ID token that is asked for of a person is given of nobody else.
    async fn claims_may_name_the_person(world: World) {
        let home = Home::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let own = claims(&tokens["id_token"])["sub"].as_str().unwrap().to_owned();
        let mut ask = async |claims: serde_json::Value, more: &[(&str, &str)]| {
            let claims = claims.to_string();
            let all = [&[("prompt", "none"), ("claims", claims.as_str())], more].concat();
            let left = browser.open(&home.request(&all)).await.left.unwrap();
            parameter(&left, "error")
        };
        let sub = |value: &str| json!({ "id_token": { "sub": { "value": value } } });
        assert_eq!(ask(sub(&own), &[]).await, None);
        assert_eq!(ask(json!({ "id_token": { "sub": null } }), &[]).await, None);
        assert_eq!(ask(json!({ "id_token": { "sub": { "values": [own] } } }), &[]).await, None);
        let other = "01970000-0000-7000-8000-000000000000";
        for wrong in [other, "ann", &own.to_uppercase()] {
            assert_eq!(ask(sub(wrong), &[]).await.as_deref(), Some("login_required"), "{wrong}");
        }
        let hint = [("id_token_hint", tokens["id_token"].as_str().unwrap())];
        assert_eq!(ask(sub(&own), &hint).await, None);
        assert_eq!(ask(sub(other), &hint).await.as_deref(), Some("login_required"));
        // whoever signs in on the page, the answer is of the person who was asked for
        let claims = sub(other).to_string();
        let mut elsewhere = Browser::new(&world);
        let page = elsewhere.open(&home.request(&[("claims", &claims)])).await;
        let next = elsewhere.type_password(&page, "ann", PASSWORD).await;
        let left = elsewhere.go_on(&next).await;
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"), "{left}");
    }

    /// A client compares `aud` with the id that it sent.
    async fn a_client_id_is_compared_exactly(world: World) {
        let home = Home::with(&world, json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true })).await;
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

    /// So it is where an app proves itself, in the body and in the header.
    async fn a_client_id_is_compared_exactly_where_an_app_proves_itself(world: World) {
        let home = Home::with(&world, json!({ "allowClientCredentialLogin": true })).await;
        let own = id(&home.app);
        let ask = async |client: &str, path: &str, in_header: bool| {
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
                assert_eq!(ask(own, path, in_header).await, 200, "{path}");
                for other in [own.to_uppercase(), format!("{{{own}}}"), format!("urn:uuid:{own}"), own.replace('-', "")] {
                    assert_eq!(ask(&other, path, in_header).await, 401, "{other} at {path}");
                }
            }
        }
    }

    /// Section 4: what could send an answer to a stranger is told on a page, with the trace id.
    async fn strangers_get_no_redirect(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        for wrong in [
            [("client_id", "")],
            [("client_id", "Harbour Ledger")],
            [("client_id", "01970000-0000-7000-8000-000000000000")],
            [("redirect_uri", "")],
            [("redirect_uri", "https://app.example/callback/")],
            [("redirect_uri", "https://app.example/callback?x=1")],
            [("redirect_uri", "https://app.example@evil.example/callback")],
            [("redirect_uri", "https://app.example/bye")],
        ] {
            let page = browser.open(&home.request(&wrong)).await;
            assert_eq!((page.status, page.left.is_none()), (400, true), "{wrong:?}");
            assert!(page.html.contains("Reference"), "{}", page.html);
        }
    }

    async fn other_mistakes_are_told_to_the_app(world: World) {
        let home = Home::new(&world).await;
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

    async fn an_app_that_is_off_serves_nobody(world: World) {
        let home = Home::new(&world).await;
        let path = format!("/api/management/v2/ClientApp/{}", id(&home.app));
        let now = world.admin.get(&path).await.is(200).json();
        let off = json!({ "enabled": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, off).await.expect(202);
        assert_eq!(Browser::new(&world).open(&home.request(&[])).await.status, 400);
    }

    /// A POST is answered by the same as GET, so that cookies come along.
    async fn a_request_may_be_posted(world: World) {
        let home = Home::new(&world).await;
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

    /// At a tenant's issuer that tenant answers for itself.
    async fn a_tenant_is_an_issuer(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        let issuer = format!("/t/{}", home.tenant);
        let told = world.anonymous.get(&format!("{issuer}/.well-known/openid-configuration")).await.is(200).json();
        assert_eq!(told["authorization_endpoint"], json!(format!("{}{issuer}/connect/authorize", world.base)));
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

    /// What administrators set counts at once, on every process: an app's addresses, scopes and instances.
    async fn what_administrators_change_counts_at_once(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        assert_eq!(browser.open(&home.request(&[])).await.status, 200);
        let added = json!({ "clientAppId": home.app["id"], "uri": "https://app.example/more" });
        let added = world.make("ClientAppRedirectUri", added).await;
        let elsewhere = home.request(&[("redirect_uri", "https://app.example/more")]);
        assert_eq!(browser.open(&elsewhere).await.status, 200);
        world.admin.delete(&format!("{BASE}/ClientAppRedirectUri/{}", id(&added))).await.expect(204);
        assert_eq!(browser.open(&elsewhere).await.status, 400);
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

    /// OAuth 2.0 Form Post Response Mode: the answer is a form that goes to the app, and the person is signed in.
    async fn an_answer_can_be_a_form(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        let request = home.request(&[("response_mode", "form_post")]);
        let page = browser.open(&request).await;
        let first = browser.type_password(&page, "ann", PASSWORD).await;
        let again = browser.open(&request).await;
        for page in [&first, &again] {
            assert_eq!(page.action().replace("&#x2f;", "/"), CALLBACK, "{}", page.html);
            let policy = page.answer.header("content-security-policy").unwrap();
            // it is sent by itself, by the one script that the policy lets run; the button is for browsers without
            assert!(!policy.contains("form-action") && policy.contains(&format!("script-src {}/signin/post.js;", world.base)), "{policy}");
            assert!(page.html.contains("<script src=\"/signin/post.js\" defer></script>") && page.html.contains("type=\"submit\""), "{}", page.html);
            assert_eq!(page.field("state"), "s-1");
            home.redeem(&world, &page.field("code"), &[]).await.expect(200);
        }
        let script = world.anonymous.get("/signin/post.js").await.is(200);
        assert!(script.header("content-type").unwrap().starts_with("text/javascript"));
        // so are refusals, also of who must not be asked
        let mut stranger = Browser::new(&world);
        for (more, error) in [(("prompt", "none"), "login_required"), (("max_age", "-1"), "invalid_request")] {
            let page = stranger.open(&home.request(&[("response_mode", "form_post"), more])).await;
            assert_eq!((page.field("error").as_str(), page.field("state").as_str()), (error, "s-1"), "{}", page.html);
            assert!(page.html.contains("<script src=\"/signin/post.js\" defer></script>"), "{}", page.html);
        }
    }
}
