//! Attacks on the endpoints and pages, one test each (section 22). Other files have more: redirect URIs
//! (`oauth/src/tests/redirect.rs`), session fixation (`session.rs`), planted cookies (`web`), cross-site forms
//! (`password.rs`), open redirects (`session.rs`, `request.rs`), reuse of tokens (`single_use.rs`), ended sessions (`revocation.rs`),
//! other tenants (`tenants.rs`), lockout by attackers (`session.rs`), mix-up (`iss` in `code.rs`).

use std::{io::ErrorKind, net::TcpListener};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, VERIFIER,
    browser::{Browser, Page},
    change, encode, form, parameter,
    sign_out::{notify_apps, receiver},
    tenant_option,
};
use crate::{id, signer::Signer};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// Becomes a script, or an attribute, if it is not escaped.
const SCRIPT: &str = "\"><script>alert(1)</script><i title=\"";

async fn decide(browser: &mut Browser, page: &Page, fields: &[(&str, &str)]) -> Page {
    let csrf = page.field("csrf");
    let all: Vec<(&str, &str)> =
        [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(&page.action(), &all, &[]).await
}

/// Every page, with this attacker-controlled text wherever one can be given.
async fn every_page(world: &World, home: &SignInApp, text: &str) -> Vec<Page> {
    let mut browser = Browser::new(world);
    let own = [
        ("scope", "openid email ledger.read"),
        ("login_hint", text),
        ("state", text),
        ("error", text),
        ("error_description", text),
        ("ui_locales", text),
    ];
    let typed = browser.open(&home.request(&own)).await;
    let mistaken = browser.type_password(&typed, text, "not this one").await;
    let consent = browser.type_password(&typed, "ann", PASSWORD).await;
    let leads_on = decide(&mut browser, &consent, &[("decision", "allow")]).await;
    let posted = [("response_mode", "form_post"), ("state", text)];
    let posted = browser.open(&home.request(&posted)).await;
    let posted = decide(&mut browser, &posted, &[("decision", "allow")]).await;
    let chosen = browser.open(&home.request(&[("prompt", "select_account")])).await;
    let mut errors = Vec::new();
    let path = |path: &str| format!("{path}{}", encode(text));
    for address in [
        home.request(&[("redirect_uri", text)]),
        home.request(&[("client_id", text)]),
        path("/signin/password?error_description="),
        path("/signin/password?flow="),
        path("/signin/signedout?done="),
    ] {
        errors.push(browser.open(&address).await);
    }
    let confirmation =
        browser.open(&path(&format!("/connect/endsession?client_id={}&state=", id(&home.app)))).await;
    let signed_out = decide(&mut browser, &confirmation, &[("decision", "allow")]).await;
    let application = format!("/ClientApp/{}", id(&home.app));
    change(world, &application, json!({ "isRestricted": true })).await;
    let page = browser.open(&home.request(&[])).await;
    let refused = browser.type_password(&page, "ann", PASSWORD).await;
    change(world, &application, json!({ "isRestricted": false })).await;
    for (page, words) in [
        (&typed, "current-password"),
        (&mistaken, "role=\"alert\""),
        (&consent, "Allow access?"),
        (&chosen, "Use another account"),
        (&posted, "name=\"state\""),
        (&confirmation, "Sign out?"),
        (&signed_out, "You are signed out"),
        (&refused, "You cannot sign in here"),
    ] {
        assert!(page.html.contains(words), "{words}: {}", page.html);
    }
    assert!(leads_on.answer.header("refresh").is_some(), "{}", leads_on.html);
    assert!(errors.iter().all(|page| page.status == 400));
    let pages = [typed, mistaken, consent, leads_on, posted, chosen, confirmation, signed_out, refused];
    pages.into_iter().chain(errors).collect()
}

/// An app with systematic consent and this name.
async fn home_with_consent(world: &World, name: &str) -> SignInApp {
    let home = SignInApp::with(world, json!({ "name": name, "accessGrantConsent": "Systematic" })).await;
    let scope =
        json!({ "clientAppId": home.app["id"], "key": "ledger.read", "name": name, "description": name });
    world.make("ClientAppScope", scope).await;
    let user = world.path(&format!("/User/{}", id(&home.user)));
    let now = world.admin.get(&user).await.is(200).json();
    let names = json!({ "firstName": name, "lastName": name, "concurrencyToken": now["concurrencyToken"] });
    world.admin.patch(&user, names).await.expect(202);
    home
}

/// An unused code and the tokens of two sign-ins with `offline_access`.
async fn code_and_tokens(world: &World, home: &SignInApp) -> (Browser, Value, String) {
    let offline = home.request(&[("scope", "openid profile offline_access")]);
    let mut browser = Browser::new(world);
    let page = browser.open(&offline).await;
    let code = parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").unwrap();
    let tokens = home.redeem(world, &code, &[]).await.is(200).json();
    let code = parameter(&browser.open(&offline).await.left.unwrap(), "code").unwrap();
    (browser, tokens, code)
}

on_both_engines! {
    /// PKCE omitted or downgraded (RFC 9700, section 4.8): a verifier without a challenge is refused, and so is a missing
    /// verifier after a challenge, also if the tenant does not require PKCE.
    async fn pkce_cannot_be_downgraded(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for method in ["", "plain", "s256"] {
            let left = browser.open(&home.request(&[("code_challenge_method", method)])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), Some("invalid_request"), "{method}");
        }
        tenant_option(&world, &home, "PkceRequired", "false").await;
        let left = browser.open(&home.request(&[("code_challenge_method", "plain")])).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("invalid_request"));
        let stripped = home.request(&[("code_challenge", ""), ("code_challenge_method", "")]);
        let code = parameter(&browser.open(&stripped).await.left.unwrap(), "code").unwrap();
        assert_eq!(home.redeem(&world, &code, &[]).await.is(400).json()["error"], json!("invalid_grant"));
        let code = parameter(&browser.open(&home.request(&[])).await.left.unwrap(), "code").unwrap();
        let dropped = home.redeem(&world, &code, &[("code_verifier", "")]).await;
        assert_eq!(dropped.is(400).json()["error"], json!("invalid_grant"));
    }

    /// Code injection (RFC 9700, section 4.5): the app redeems the code with the verifier of the session that it was
    /// injected into.
    async fn a_code_cannot_be_injected_into_another_session(world: World) {
        let home = SignInApp::new(&world).await;
        let verifier = "a-verifier-of-somebody-else-who-signs-in-here";
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let mut thief = Browser::new(&world);
        let page = thief.open(&home.request(&[("code_challenge", &challenge)])).await;
        let stolen = parameter(&thief.sign_in(&page, "ann", PASSWORD).await, "code").unwrap();
        let (_, answer) = home.sign_in(&world).await;
        let own = parameter(&answer, "code").unwrap();
        assert_eq!(home.redeem(&world, &stolen, &[]).await.is(400).json()["error"], json!("invalid_grant"));
        let other = [("code_verifier", verifier)];
        assert_eq!(home.redeem(&world, &own, &other).await.is(400).json()["error"], json!("invalid_grant"));
        home.redeem(&world, &own, &[]).await.expect(200);
    }

    /// Code injection with another key (RFC 9449, section 10): `dpop_jkt` binds the code.
    async fn dpop_jkt_binds_a_code_to_its_key(world: World) {
        let home = SignInApp::new(&world).await;
        let (own, thief) = (Signer::new(""), Signer::new(""));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("dpop_jkt", &own.thumbprint())])).await;
        let code = parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").unwrap();
        let endpoint = format!("{}/connect/token", world.base);
        let redeem = async |proof: Option<String>| {
            let fields = [
                ("grant_type", "authorization_code"), ("code", &code), ("redirect_uri", CALLBACK),
                ("code_verifier", VERIFIER), ("client_id", id(&home.app)), ("client_secret", &home.secret),
            ];
            let sent = form(fields.into_iter()).into_bytes();
            let headers: Vec<(&str, &str)> =
                [FORM].into_iter().chain(proof.as_deref().map(|proof| ("dpop", proof))).collect();
            world.anonymous.send(Method::POST, "/connect/token", &headers, sent).await
        };
        assert_eq!(redeem(None).await.is(400).json()["error"], json!("invalid_grant"));
        let proof = thief.prove("POST", &endpoint, json!({}));
        assert_eq!(redeem(Some(proof)).await.is(400).json()["error"], json!("invalid_grant"));
        let proof = own.prove("POST", &endpoint, json!({}));
        assert_eq!(redeem(Some(proof)).await.is(200).json()["token_type"], json!("DPoP"));
    }

    /// `request_uri` to an internal address: nothing is fetched, and the rest of the request is ignored.
    async fn no_request_uri_is_fetched(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let inside = TcpListener::bind("127.0.0.1:0").unwrap();
        inside.set_nonblocking(true).unwrap();
        let address = format!("http://{}/request.jwt", inside.local_addr().unwrap());
        for uri in [address.as_str(), "urn:ietf:params:oauth:request_uri:somebody-else-s"] {
            let page = browser.open(&home.request(&[("request_uri", uri)])).await;
            let error = page.left.as_deref().and_then(|left| parameter(left, "error"));
            assert!(error.as_deref() == Some("request_uri_not_supported") || page.status == 400, "{error:?}");
        }
        assert_eq!(inside.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    /// Login CSRF: the next step of the attacker's sign-in does not work in another browser, and signs nobody else in.
    async fn login_csrf_is_refused(world: World) {
        let home = home_with_consent(&world, "Harbour Ledger").await;
        let mut attacker = Browser::new(&world);
        let page = attacker.open(&home.request(&[])).await;
        let consent = attacker.type_password(&page, "ann", PASSWORD).await;
        let leads_on = decide(&mut attacker, &consent, &[("decision", "allow")]).await;
        let refresh = leads_on.answer.header("refresh").unwrap();
        let onward = refresh.strip_prefix("0; url=").unwrap().to_owned();
        let mut somebody = Browser::new(&world);
        somebody.open(&home.request(&[])).await;
        for address in [&page.address, &consent.address, &leads_on.address, &onward] {
            let shown = somebody.open(address).await;
            assert_eq!((shown.status, shown.left), (400, None), "{address}");
        }
        for page in [&page, &consent] {
            assert_eq!(decide(&mut somebody, page, &[("decision", "allow")]).await.status, 400);
        }
        assert!(somebody.cookies.keys().all(|name| !name.ends_with("session")), "{:?}", somebody.cookies);
    }

    /// Framing, sniffing, referrers and caches: the headers of every page prevent them.
    async fn pages_cannot_be_framed_or_cached(world: World) {
        let home = home_with_consent(&world, "Harbour Ledger").await;
        for page in every_page(&world, &home, "someone").await {
            let header = |name: &str| page.answer.header(name).unwrap_or_default().to_owned();
            let policy = header("content-security-policy");
            assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
            let script = if page.html.contains("/signin/post.js") { "post" } else { "passkey" };
            assert!(policy.contains("base-uri 'none'") && policy.contains(&format!("script-src {}/signin/{script}.js;", world.base)), "{policy}");
            assert_eq!(header("x-frame-options"), "DENY", "{}", page.address);
            assert_eq!(header("referrer-policy"), "no-referrer", "{}", page.address);
            assert_eq!(header("cache-control"), "no-store", "{}", page.address);
            assert_eq!(header("x-content-type-options"), "nosniff", "{}", page.address);
        }
    }

    /// Scripts in names of apps, scopes and people, in input, hints, states and error parameters.
    async fn text_of_others_is_escaped_on_every_page(world: World) {
        // the only script is the page's own
        world.set_option("PasskeyEnabled", "false").await;
        let home = home_with_consent(&world, SCRIPT).await;
        for page in every_page(&world, &home, SCRIPT).await {
            let html = page.html.to_ascii_lowercase().replace("<script src=\"/signin/post.js\" defer></script>", "");
            assert!(!html.contains("<script") && !html.contains("<i title"), "{}", page.html);
        }
        // a state cannot inject a header either
        let mut browser = Browser::new(&world);
        let split = "x\r\nset-cookie: planted=1\r\n\r\n<script>";
        let left = browser.open(&home.request(&[("state", split), ("prompt", "none")])).await;
        assert!(left.left.is_some_and(|left| !left.contains(['\r', '\n', '<'])));
        assert!(!browser.cookies.contains_key("planted"));
    }

    /// Tokens of one type used as another: each is accepted only for its own type.
    async fn tokens_are_not_accepted_as_other_token_types(world: World) {
        let (address, heard) = receiver(vec![204]);
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let (browser, _) = home.sign_in(&world).await;
        let mut browser = browser;
        let code = parameter(&browser.open(&home.request(&[])).await.left.unwrap(), "code").unwrap();
        home.redeem(&world, &code, &[]).await.expect(200);
        let person = world.all("ApplicationUser").await[0].clone();
        let everywhere = format!("{BASE}/ApplicationUser/{}/signout", id(&person));
        world.admin.post(&everywhere, json!(null)).await.expect(204);
        assert_eq!(notify_apps(&world, 0).await.0, 1);
        let posted = heard.recv().unwrap();
        let logout = posted.split_once("logout_token=").unwrap().1.to_owned();
        let (mut browser, tokens, code) = code_and_tokens(&world, &home).await;
        let kind = |name: &str| tokens[name].as_str().unwrap().to_owned();
        let (access, id_token, refresh) = (kind("access_token"), kind("id_token"), kind("refresh_token"));
        for other in [&id_token, &refresh, &code, &logout] {
            let bearer = world.anonymous.with_token(other);
            bearer.get("/connect/userinfo").await.expect(401);
            bearer.get(&format!("{BASE}/Tenant")).await.expect(401);
        }
        for other in [&access, &id_token, &code, &logout] {
            let refused = home.refresh_at(&world.anonymous, other).await.is(400).json();
            assert_eq!(refused["error"], json!("invalid_grant"), "{other} as a refresh token");
        }
        for other in [&access, &id_token, &refresh, &logout] {
            let refused = home.redeem(&world, other, &[]).await.is(400).json();
            assert_eq!(refused["error"], json!("invalid_grant"), "{other} as a code");
        }
        for other in [&access, &refresh, &code, &logout] {
            let left = browser.open(&home.request(&[("id_token_hint", other)])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), Some("invalid_request"), "{other} as a hint");
            let page = browser.open(&format!("/connect/endsession?id_token_hint={other}")).await;
            assert!(page.html.contains("Sign out?"), "{other} as a hint: {}", page.html);
        }
        for other in [&access, &id_token, &refresh, &code, &logout] {
            let mut planted = Browser::new(&world);
            planted.cookies.insert("chancery-session".to_owned(), other.clone());
            let left = planted.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"), "{other} as a session");
        }
        // each is still valid for its own type
        world.anonymous.with_token(&access).get("/connect/userinfo").await.expect(200);
        home.refresh_at(&world.anonymous, &refresh).await.expect(200);
        home.redeem(&world, &code, &[]).await.expect(200);
    }

    /// Consent by a GET, by an old page, before the person is known, and by the form of another step.
    async fn consent_cannot_be_forged(world: World) {
        let home = home_with_consent(&world, "Harbour Ledger").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let by_address = page.address.replace("/signin/password", "/signin/consent");
        let typed = [("decision", "allow"), ("scope", "email")];
        // not yet due: the page of the due step is shown
        let early = browser.open(&format!("{by_address}&decision=allow")).await;
        assert!(early.html.contains("current-password"), "{}", early.html);
        let csrf = [("csrf", page.field("csrf"))];
        let forced: Vec<(&str, &str)> = csrf.iter().map(|(name, value)| (*name, value.as_str())).chain(typed).collect();
        assert_eq!(browser.post(&by_address, &forced, &[]).await.status, 403, "a form of another step");
        let consent = browser.type_password(&page, "ann", PASSWORD).await;
        let again = browser.open(&format!("{}&decision=allow&scope=email", consent.address)).await;
        assert!(again.left.is_none() && again.html.contains("Allow access?"), "{}", again.html);
        let next = decide(&mut browser, &consent, &typed).await;
        let answer = browser.continue_to_app(&next).await;
        assert!(parameter(&answer, "code").is_some(), "{answer}");
        // an old page: its flow has ended
        let old = decide(&mut browser, &consent, &typed).await;
        assert_eq!((old.status, old.left), (400, None));
    }

    /// Enumeration by text, size or commits: the responses to unknown names, users without a password, locked and inactive users
    /// and wrong passwords are identical, to the byte.
    async fn responses_do_not_reveal_whether_a_name_exists(world: World) {
        let home = SignInApp::new(&world).await;
        // challenges differ each time
        world.set_option("PasskeyEnabled", "false").await;
        let mut shown: Vec<(String, u16, String, Vec<String>)> = Vec::new();
        for (name, state) in [
            ("eva", json!({ "isUserLocked": true })),
            ("ian", json!({ "isUserActive": false })),
            ("pam", json!({})),
        ] {
            let user = world.user(name).await;
            if name != "pam" {
                let path = world.path(&format!("/User/{}", id(&user)));
                world.admin.post(&format!("{path}/password/reset"), json!({ "newPassword": PASSWORD })).await.expect(200);
                world.admin.post(&format!("{path}/state"), state).await.expect(200);
            }
        }
        // the first four are the responses to existing names, if there are any
        for (name, password) in
            [("zoe", PASSWORD), ("eva", PASSWORD), ("ian", PASSWORD), ("pam", PASSWORD), ("ann", "four lively grey lemurs")]
        {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let before = world.app.store.figures().commits;
            let refused = browser.type_password(&page, name, password).await;
            let commits = world.app.store.figures().commits - before;
            assert!(commits >= 2, "{name}: by {commits} commits, which take the longest beside the hash");
            let flow = parameter(&refused.address, "flow").unwrap();
            let policy = refused.answer.header("content-security-policy").unwrap();
            let nonce = policy.split_once("'nonce-").unwrap().1.split_once('\'').unwrap().0;
            let text = refused.html.replace(&flow, "flow").replace(nonce, "nonce");
            let text = text.replace(&refused.field("csrf"), "csrf").replace(name, "name");
            let mut sizes: Vec<String> = refused
                .answer
                .headers
                .iter()
                .map(|(name, value)| format!("{name} {}", value.len()))
                .chain(browser.cookies.iter().map(|(name, value)| format!("{} {}", name.len(), value.len())))
                .collect();
            sizes.sort();
            shown.push((name.to_owned(), refused.status, text, sizes));
        }
        for (name, status, text, sizes) in &shown {
            assert!(text.contains("is not right"), "{name}: {text}");
            assert_eq!((status, text, sizes), (&shown[0].1, &shown[0].2, &shown[0].3), "{name}");
        }
    }

    /// 64 KiB in each parameter of URLs: refused with a clear error, or returned to the app, never a server error.
    async fn long_parameters_cause_no_server_error(world: World) {
        let home = SignInApp::new(&world).await;
        let (browser, _) = home.sign_in(&world).await;
        // the client of these tests sends URLs of less than 64 KiB
        let (long, longer) = ("x".repeat(7_000), "x".repeat(60_000));
        let words = "scope x ".repeat(800);
        let mut addresses = Vec::new();
        for text in [&long, &longer, &words] {
            for name in [
                "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "prompt",
                "max_age", "login_hint", "id_token_hint", "ui_locales", "claims", "acr_values", "resource", "request",
                "request_uri", "code_challenge", "code_challenge_method", "dpop_jkt", "display", "unknown",
            ] {
                addresses.push(home.request(&[(name, text)]));
            }
            for name in ["id_token_hint", "client_id", "post_logout_redirect_uri", "state", "logout_hint", "ui_locales"] {
                addresses.push(format!("/connect/endsession?{name}={}", encode(text)));
            }
            for name in ["flow", "done", "ui_locales", "go"] {
                addresses.push(format!("/signin/password?{name}={}", encode(text)));
            }
        }
        addresses.push(format!("{}{}", home.request(&[]), "&resource=x".repeat(500)));
        addresses.push(format!("{}{}", home.request(&[]), "&a=b".repeat(1_500)));
        for address in addresses {
            let shown: Vec<String> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let headers = [("cookie", shown.join("; "))];
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = world.anonymous.send(Method::GET, &address, &headers, Vec::new()).await;
            let about = address.chars().take(120).collect::<String>();
            assert!(answer.status.as_u16() < 500, "{about}: {}", answer.status);
            assert!(answer.status != 200 || answer.header("content-type").unwrap().starts_with("text/html"), "{about}");
        }
        home.sign_in(&world).await;
    }

    /// 64 KiB in each field of forms.
    async fn long_forms_cause_no_server_error(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let csrf = page.field("csrf");
        for text in ["x".repeat(60_000), "x".repeat(64 << 10), "ä ".repeat(12_000)] {
            for name in ["csrf", "username", "password", "remember", "choice", "scope", "decision", "unknown"] {
                let usual = [("csrf", csrf.as_str()), ("username", "nobody"), ("password", "x")];
                let fields: Vec<(&str, &str)> = usual
                    .into_iter()
                    .filter(|(usual, _)| *usual != name)
                    .chain([(name, text.as_str())])
                    .collect();
                let shown = browser.post(&page.action(), &fields, &[]).await;
                assert!(shown.status < 500, "{name}: {}", shown.status);
                assert!(shown.left.is_none(), "{name}");
            }
            for path in ["/connect/authorize", "/connect/endsession"] {
                let shown = browser.post(path, &[("state", &text)], &[]).await;
                assert!((400..500).contains(&shown.status), "{path}: {}", shown.status);
            }
            let secret = home.secret.as_str();
            for (path, names) in [
                ("/connect/token", &["grant_type", "code", "redirect_uri", "code_verifier", "client_id", "client_secret",
                    "refresh_token", "scope", "resource", "client_assertion", "unknown"][..]),
                ("/connect/introspect", &["token", "token_type_hint", "client_id", "client_secret"][..]),
                ("/connect/revoke", &["token", "token_type_hint", "client_id", "client_secret"][..]),
                ("/connect/userinfo", &["access_token"][..]),
            ] {
                for name in names {
                    for grant in ["authorization_code", "refresh_token"] {
                        let usual = [
                            ("grant_type", grant), ("client_id", id(&home.app)), ("client_secret", secret), ("code", "x"),
                            ("redirect_uri", CALLBACK), ("refresh_token", "x"), ("token", "x"),
                        ];
                        let fields = usual.into_iter().filter(|(usual, _)| usual != name);
                        let sent = form(fields.chain([(*name, text.as_str())])).into_bytes();
                        let answer = world.anonymous.send(Method::POST, path, &[FORM], sent).await;
                        assert!(answer.status.as_u16() < 500, "{path} {name}: {}", answer.status);
                        let is_json = answer.header("content-type").is_some_and(|kind| kind.contains("json"));
                        assert!(is_json || answer.bytes.is_empty(), "{path} {name}");
                        let is_taken = matches!(path, "/connect/introspect" | "/connect/revoke");
                        assert!(answer.status != 200 || is_taken, "{path} {name}");
                    }
                }
            }
        }
        home.sign_in(&world).await;
    }

    /// 64 KiB in each header.
    async fn long_headers_cause_no_server_error(world: World) {
        let home = SignInApp::new(&world).await;
        for text in ["x".repeat(8_000), "x".repeat(64 << 10), "a=b; ".repeat(3_000), "de;q=0.5,".repeat(3_000)] {
            for name in [
                "cookie", "user-agent", "accept-language", "origin", "sec-fetch-site", "authorization", "dpop", "accept",
                "referer", "x-forwarded-for", "traceparent",
            ] {
                for path in [home.request(&[]), "/connect/userinfo".into(), "/connect/endsession".into()] {
                    let headers = [(name, text.as_str())];
                    let answer = world.anonymous.try_send(Method::GET, &path, &headers, Vec::new()).await;
                    // a head that is too long closes its connection
                    let Some(answer) = answer else { continue };
                    assert!(answer.status.as_u16() < 500, "{name}: {}", answer.status);
                }
            }
        }
        // the user agent is stored truncated
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let agent = "ä".repeat(3_000);
        let typed = [("csrf", page.field("csrf")), ("username", "ann".into()), ("password", PASSWORD.into())];
        let typed: Vec<(&str, &str)> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let next = browser.post(&page.action(), &typed, &[("user-agent", &agent)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let record = world.all("SignInRecord").await[0].clone();
        assert!(record["userAgent"].as_str().is_none_or(|stored| stored.len() <= 512), "{record}");
    }
}
