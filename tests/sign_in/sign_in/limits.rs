//! Limits of attempts on pages per address (`CHANCERY_FAILED_SIGN_INS`), and the source of that address (`CHANCERY_TRUSTED_PROXIES`).

use std::time::{Duration, Instant};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, Client, Database, Engine, PATIENCE, Process, World, with_stopped_clock};
use serde_json::json;
use tokio::time::timeout;

use super::{PASSWORD, SignInApp, browser::Browser, form, link, parameter};
use crate::id;

/// Submits wrong passwords from a forwarded address until the limit is reached; returns their number.
async fn guess(server: &World, home: &SignInApp, from: &str, at_most: usize) -> usize {
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let page = browser.open(&home.request(&[])).await;
    let csrf = page.field("csrf");
    for tried in 0..at_most {
        let name = format!("nobody-{tried}");
        // a form without a password does not reset the count
        let empty = [("csrf", csrf.as_str()), ("username", name.as_str())];
        browser.post(&page.action(), &empty, &[("x-forwarded-for", from)]).await;
        let fields = [("csrf", csrf.as_str()), ("username", name.as_str()), ("password", "guessed")];
        let answer = browser.post(&page.action(), &fields, &[("x-forwarded-for", from)]).await;
        if answer.status == 429 {
            assert!(answer.answer.header("retry-after").is_some() && answer.html.contains("Too many"));
            return tried;
        }
    }
    at_most
}

with_stopped_clock! {
    /// Wrong passwords count for the forwarded address, and for no other; right ones do not count.
    ["--failed-sign-ins", "6", "--trusted-proxies", "127.0.0.0/8"]
    async fn failed_sign_ins_count_for_the_forwarded_address(server: World) {
        let home = SignInApp::created_by(&server.admin, json!({})).await;
        assert_eq!(guess(&server, &home, "198.51.100.7", 20).await, 6);
        assert_eq!(
            guess(&server, &home, "127.0.0.1, 198.51.100.7", 20).await,
            0,
            "what a caller writes itself is nothing"
        );
        assert_eq!(guess(&server, &home, "198.51.100.8", 3).await, 3);
        for _ in 0..10 {
            let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
            let page = browser.open(&home.request(&[])).await;
            let fields =
                [("csrf", page.field("csrf")), ("username", "ann".into()), ("password", PASSWORD.into())];
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let next = browser.post(&page.action(), &fields, &[("x-forwarded-for", "198.51.100.9")]).await;
            assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "an office can sign in");
        }
    }
}

/// Records of known people take longer to write than those of unknown names. Each failed attempt waits until the difference cannot
/// be measured.
#[tokio::test]
async fn failed_attempts_take_equally_long_for_every_name() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let home = SignInApp::created_by(&server.admin, json!({})).await;
    for name in ["ann", "nobody"] {
        for path in ["password", "access pass"] {
            let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
            let page = browser.open(&home.request(&[])).await;
            let page = if path == "password" { page } else { browser.open(&link(&page, path)).await };
            let proof = if path == "password" { "password" } else { "pass" };
            let fields = [("username", name), (proof, "wrong")];
            let began = Instant::now();
            browser.submit(&page, &fields).await;
            assert!(began.elapsed() >= Duration::from_millis(50), "{name} {path}: {:?}", began.elapsed());
        }
    }
}

with_stopped_clock! {
    /// Headers of other peers are ignored, and pages without a session are limited.
    ["--failed-sign-ins", "6"]
    async fn without_a_trusted_proxy_the_peer_address_counts(server: World) {
        let home = SignInApp::created_by(&server.admin, json!({})).await;
        assert_eq!(guess(&server, &home, "198.51.100.7", 20).await, 6);
        assert_eq!(guess(&server, &home, "198.51.100.8", 20).await, 0);
        let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
        let mut shown = 0;
        while browser.open("/device").await.status == 200 {
            shown += 1;
            assert!(shown < 100, "pages are bounded");
        }
        assert!(shown > 20, "{shown}");
    }
}

/// Whether the address of a browser reaches its limit of pages within 100 requests.
async fn reaches_limit(browser: &mut Browser, address: &str) -> bool {
    for _ in 0..100 {
        if browser.open(address).await.status == 429 {
            return true;
        }
    }
    false
}

with_stopped_clock! {
    ["--failed-sign-ins", "6"]
    async fn a_forged_session_cookie_does_not_avoid_the_limit(server: World) {
        let home = SignInApp::created_by(&server.admin, json!({})).await;
        let new = || Browser::of(&Client::anonymous(&server.base), &server.base);
        let mut known = new();
        let page = known.open(&home.request(&[])).await;
        known.sign_in(&page, "ann", PASSWORD).await;
        let mut other = new();
        other.cookies.insert("chancery-session".to_owned(), "made-up".to_owned());
        assert!(reaches_limit(&mut other, "/device").await);
        assert!(!reaches_limit(&mut known, "/device").await, "who is signed in is shown pages");
        // a sign-in that is stored as a row counts for signed-in people, too
        let large =
            home.request(&[("prompt", "login"), ("state", &"s".repeat(2_048)), ("nonce", &"n".repeat(512))]);
        assert!(reaches_limit(&mut known, &large).await);
    }
}

/// A wrong password is answered later than this, so the connection of an attempt is closed before its answer.
const HANGS_UP_AFTER: Duration = Duration::from_millis(25);

#[tokio::test]
async fn a_guess_whose_connection_is_closed_counts() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_FAILED_SIGN_INS", "6")]).await;
    let home = SignInApp::created_by(&server.admin, json!({})).await;
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let page = browser.open(&home.request(&[])).await;
    let (action, csrf) = (page.action(), page.field("csrf"));
    let fields = [("csrf", csrf.as_str()), ("username", "nobody"), ("password", "guessed")];
    let guessing = async {
        loop {
            // only an attempt beyond the limit is answered in time
            if let Ok(page) = timeout(HANGS_UP_AFTER, browser.post(&action, &fields, &[])).await {
                return page;
            }
        }
    };
    let answered = timeout(PATIENCE, guessing).await.expect("closed guesses are never limited");
    assert_eq!(answered.status, 429, "{}", answered.html);
}

with_stopped_clock! {
    /// Codes and links name no person, so there is no count that an attacker could exhaust for others.
    ["--failed-sign-ins", "6", "--trusted-proxies", "127.0.0.0/8"]
    async fn wrong_device_codes_lock_nobody_out(server: World) {
        let app = json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true });
        let home = SignInApp::created_by(&server.admin, app).await;
        let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
        let page = browser.open("/device").await;
        let csrf = page.field("csrf");
        let mut types = async |from: &str, code: &str| {
            let fields = [("csrf", csrf.as_str()), ("user_code", code)];
            browser.post("/device", &fields, &[("x-forwarded-for", from)]).await
        };
        assert_eq!(types("198.51.100.7", "BBBB-BBBB").await.status, 200);
        for other in 1..20 {
            let from = format!("203.0.{other}.1");
            for expected in [200, 200, 429] {
                assert_eq!(types(&from, "CCCC-CCCC").await.status, expected, "an address has its count");
            }
        }
        let begun = begin_device(&server, &home, "198.51.100.7").await.is(200).json();
        let page = types("198.51.100.7", begun["user_code"].as_str().unwrap()).await;
        assert!(page.html.contains("current-password"), "{}", page.html);
    }
}

async fn send(server: &World, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
    all.extend(headers);
    let body = form(fields.iter().copied()).into_bytes();
    Client::anonymous(&server.base).send(http::Method::POST, path, &all, body).await
}

async fn begin_device(server: &World, home: &SignInApp, from: &str) -> Answer {
    let fields = [("client_id", id(&home.app)), ("scope", "openid")];
    send(server, "/connect/deviceauthorization", &fields, &[("x-forwarded-for", from)]).await
}

with_stopped_clock! {
    /// The id of a public app is known to everybody: one address must not use up the app's pending device requests.
    ["--public-rate-limit", "60", "--trusted-proxies", "127.0.0.0/8"]
    async fn pending_device_requests_are_limited_per_address(server: World) {
        let app = json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true });
        let home = SignInApp::created_by(&server.admin, app).await;
        for _ in 0..15 {
            begin_device(&server, &home, "198.51.100.7").await.expect(200);
        }
        let refused = begin_device(&server, &home, "198.51.100.7").await.is(429);
        assert!(refused.header("retry-after").is_some());
        begin_device(&server, &home, "198.51.100.8").await.expect(200);
    }

    ["--public-rate-limit", "9", "--trusted-proxies", "127.0.0.0/8"]
    async fn guessed_tokens_of_a_public_app_count_by_address(server: World) {
        let home = SignInApp::created_by(&server.admin, json!({ "isPublic": true })).await;
        let guess = async |from: &str| {
            let shown =
                [("grant_type", "refresh_token"), ("refresh_token", "guessed"), ("client_id", id(&home.app))];
            send(&server, "/connect/token", &shown, &[("x-forwarded-for", from)]).await
        };
        for _ in 0..9 {
            assert_eq!(guess("198.51.100.7").await.is(400).json()["error"], "invalid_grant");
        }
        guess("198.51.100.7").await.expect(429);
        guess("198.51.100.8").await.expect(400);
    }

    /// Libraries first send the id of a public app with an empty secret (RFC 6749, section 2.3.1): this is no failed attempt.
    ["--public-rate-limit", "9"]
    async fn an_empty_client_secret_is_not_a_failed_attempt(server: World) {
        let public = SignInApp::created_by(&server.admin, json!({ "isPublic": true })).await;
        let basic = |app: &str| format!("Basic {}", BASE64_STANDARD.encode(format!("{app}:")));
        let header = basic(id(&public.app));
        for _ in 0..30 {
            send(&server, "/connect/revoke", &[("token", "x")], &[("authorization", &header)]).await.expect(200);
        }
        let header = basic("root");
        let grant = [("grant_type", "client_credentials")];
        send(&server, "/connect/token", &grant, &[("authorization", &header)]).await.expect(401);
    }
}
