//! Notification of client apps about a sign-out: by front-channel and back-channel logout.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
};

use chancery_fetch::Policy;
use chancery_record::Timestamp;
use chancery_testkit::{PATIENCE, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, change, claims, parameter};
use crate::{id, signing::calling_this_machine};

/// A client app's back channel: answers each request with a status, and forwards its body.
pub fn receiver(statuses: Vec<u16>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/logout", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut posted = Vec::new();
            let mut part = [0; 4096];
            while !String::from_utf8_lossy(&posted).contains("logout_token=") || part[0] == 0 {
                let count = stream.read(&mut part).unwrap();
                posted.extend_from_slice(&part[..count]);
                if count == 0 {
                    break;
                }
            }
            let _ = stream.write_all(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").as_bytes());
            sender.send(String::from_utf8(posted).unwrap()).unwrap();
        }
    });
    (address, received)
}

/// Signs in, and redeems the code.
async fn tokens(world: &World, home: &SignInApp) -> (Browser, Value) {
    let (browser, answer) = home.sign_in(world).await;
    let tokens = home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
    (browser, tokens)
}

/// Signs out on the page.
async fn sign_out(browser: &mut Browser, query: &str) -> super::browser::Page {
    let page = browser.open(&format!("/connect/endsession{query}")).await;
    let csrf = page.field("csrf");
    browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await
}

pub async fn notify_apps(world: &World, minutes: i64) -> (usize, usize) {
    let policy =
        Policy { networks: "127.0.0.0/8".parse().unwrap(), plain_loopback: true, ..Policy::default() };
    let now = chancery_web::now();
    let permission = world.app.context.outbound.permission().unwrap();
    let report =
        world.app.deliver_sign_outs(permission, &policy, Timestamp(now.0 + minutes * 60_000)).await.unwrap();
    (report.delivered, report.failed)
}

async fn logout_metrics(world: &World) -> Value {
    let metrics = world.admin.get("/metrics").await.is(200);
    let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("chancery_{name} "))).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    json!([value("logout_waiting"), value("logout_dead")])
}

on_both_engines! {
    [calling_this_machine]
    /// The server's own job sends http requests to localhost, if the operator permits it.
    async fn back_channel_calls_to_localhost_require_configuration(world: World) {
        let (address, heard) = receiver(vec![200]);
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let (mut browser, _) = tokens(&world, &home).await;
        sign_out(&mut browser, "").await;
        let notification = chancery_testkit::spawn_blocking(move || heard.recv_timeout(PATIENCE)).await.unwrap();
        assert!(notification.unwrap().contains("logout_token="));
    }
}

on_both_engines! {
    /// Section 2: a request may be posted because of a long hint, which browsers and proxies need not accept in a URL.
    async fn a_long_id_token_hint_makes_no_long_url(world: World) {
        let home = SignInApp::with(&world, json!({ "logoutConsent": "Implicit" })).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let form = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
        let post_hint = async |hint: &str, more: &str| {
            let body = format!(
                "id_token_hint={hint}&client_id={}&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye&state=s-1&x={more}",
                id(&home.app)
            );
            let posted = world.anonymous.send(http::Method::POST, "/connect/endsession", &form, body.into_bytes()).await;
            assert_eq!(posted.status, 303);
            let next = posted.header("location").unwrap().to_owned();
            assert!(next.len() < 1_000, "{}", next.len());
            next
        };
        // an invalid hint is ignored, and the person is asked
        let next = post_hint(&"x".repeat(12_000), "").await;
        let page = browser.open(&next).await;
        assert!(page.html.contains("Sign out?") && page.field("csrf").len() > 20, "{}", page.html);
        // a valid hint applies at its own issuer
        let next = post_hint(tokens["id_token"].as_str().unwrap(), &"y".repeat(12_000)).await;
        let tenant_page = browser.open(&format!("/t/{}{next}", home.tenant)).await;
        assert!(tenant_page.html.contains("Sign out?"), "{}", tenant_page.html);
        assert_eq!(browser.open(&next).await.left.as_deref(), Some("https://app.example/bye?state=s-1"));
        assert!(browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap().contains("login_required"));
    }

    /// OpenID Connect Back-Channel Logout 1.0: a new token for each attempt, until the app accepts it.
    ///
    /// - Effect of `ClientApp.backchannelLogoutUri`: The server posts a logout token to this address when a session of the app ends.
    async fn apps_are_notified_by_back_channel_logout(world: World) {
        let (address, heard) = receiver(vec![500, 200]);
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        assert_eq!(notify_apps(&world, 0).await, (0, 0));
        sign_out(&mut browser, "").await;
        assert_eq!(notify_apps(&world, 0).await, (0, 1));
        assert_eq!(notify_apps(&world, 0).await, (0, 0), "it rests");
        assert_eq!(notify_apps(&world, 1).await, (1, 0), "within 90 seconds");
        assert_eq!(notify_apps(&world, 60).await, (0, 0), "once");
        let (first, second) = (heard.recv().unwrap(), heard.recv().unwrap());
        let token = |posted: &str| {
            assert!(posted.contains("application/x-www-form-urlencoded"), "{posted}");
            posted.split_once("logout_token=").unwrap().1.to_owned()
        };
        let (first, second) = (token(&first), token(&second));
        let about = claims(&json!(first));
        let before = claims(&tokens["id_token"]);
        for same in ["iss", "sub", "aud", "sid"] {
            assert_eq!(about[same], before[same], "{same}");
        }
        assert_eq!(about["events"], json!({ "http://schemas.openid.net/event/backchannel-logout": {} }));
        assert!(about.get("nonce").is_none(), "section 2.4");
        assert_ne!(about["jti"], claims(&json!(second))["jti"]);
        assert_eq!(logout_metrics(&world).await, json!(["0", "0"]));
    }

    /// Attempts end after an hour, and are counted.
    async fn notifications_of_a_hanging_app_are_abandoned(world: World) {
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": "http://127.0.0.1:9/" })).await;
        let (mut browser, _) = tokens(&world, &home).await;
        sign_out(&mut browser, "").await;
        for minutes in [0, 30, 60] {
            assert_eq!(notify_apps(&world, minutes).await, (0, 1), "{minutes}");
        }
        assert_eq!(logout_metrics(&world).await, json!(["1", "1"]));
        assert_eq!(notify_apps(&world, 120).await, (0, 0));
    }

    /// Apps are notified whatever ends a session: here a lock by an administrator.
    async fn apps_are_notified_however_a_session_ends(world: World) {
        let (address, heard) = receiver(vec![204, 204]);
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let locked = world.path(&format!("/User/{}/state", id(&home.user)));
        tokens(&world, &home).await;
        world.admin.post(&locked, json!({ "isUserLocked": true })).await.expect(200);
        assert_eq!(notify_apps(&world, 0).await, (1, 0));
        world.admin.post(&locked, json!({ "isUserLocked": false })).await.expect(200);
        tokens(&world, &home).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&home.user))), json!(null)).await.expect(204);
        assert_eq!(notify_apps(&world, 0).await, (1, 0));
        assert!(heard.recv().unwrap().contains("logout_token=") && heard.recv().is_ok());
    }

    /// OpenID Connect Front-Channel Logout 1.0: a frame for each app, listed in the page's policy, and a link back.
    ///
    /// - Effect of `ClientApp.frontchannelLogoutUri`: The sign-out page loads this address in a frame.
    async fn apps_are_notified_by_front_channel_logout(world: World) {
        let uri = "https://ledger.example/logout?x=1";
        let members = json!({ "frontchannelLogoutUri": uri, "frontchannelLogoutSessionRequired": true });
        let home = SignInApp::with(&world, members).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let back = "post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye";
        let done = sign_out(&mut browser, &format!("?client_id={}&{back}", id(&home.app))).await;
        let sid = claims(&tokens["id_token"])["sid"].as_str().unwrap().to_owned();
        assert!(done.html.contains("<iframe") && done.html.contains(&sid), "{}", done.html);
        assert!(done.html.contains("href=\"https://app.example/bye\""), "{}", done.html);
        assert!(done.answer.header("refresh").is_none(), "the frames have to load first");
        let policy = done.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-src https://ledger.example;"), "{policy}");
        let mut other = Browser::new(&world);
        assert_eq!(other.open(&done.address).await.status, 400, "the page is of one browser");
    }

    /// ClientApp.frontchannelLogoutSessionRequired (OpenID Connect Front-Channel Logout 1.0, section 2).
    ///
    /// - Effect of `ClientApp.frontchannelLogoutSessionRequired`: The address in the frame names issuer and session.
    async fn front_channel_logout_contains_sid_if_required(world: World) {
        let home = SignInApp::with(&world, json!({ "frontchannelLogoutUri": "https://ledger.example/logout" })).await;
        for required in [false, true] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "frontchannelLogoutSessionRequired": required })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            let done = sign_out(&mut browser, "").await;
            let sid = claims(&tokens["id_token"])["sid"].as_str().unwrap().to_owned();
            assert!(done.html.contains("<iframe"), "{}", done.html);
            assert_eq!(done.html.contains(&sid), required, "{}", done.html);
        }
    }

    /// ClientApp.backchannelLogoutSessionRequired: the token always contains the session, which is valid for both values
    /// (OpenID Connect Back-Channel Logout 1.0, section 2.4).
    ///
    /// - Effect of `ClientApp.backchannelLogoutSessionRequired`: The logout token names the session; it does so in any case.
    async fn logout_tokens_always_contain_sid(world: World) {
        let (address, heard) = receiver(vec![200, 200]);
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": address })).await;
        for required in [false, true] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "backchannelLogoutSessionRequired": required })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            sign_out(&mut browser, "").await;
            assert_eq!(notify_apps(&world, 0).await, (1, 0));
            let posted = heard.recv().unwrap();
            let logout_claims = claims(&json!(posted.split_once("logout_token=").unwrap().1));
            assert_eq!(logout_claims["sid"], claims(&tokens["id_token"])["sid"], "{required}");
        }
    }

    /// ClientApp.logoutConsent
    ///
    /// - Effect of `ClientApp.logoutConsent`: With `Explicit` people confirm before they are signed out.
    async fn logout_consent_requires_a_confirmation(world: World) {
        let home = SignInApp::new(&world).await;
        for (consent, is_asked) in [("Explicit", true), ("Implicit", false)] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "logoutConsent": consent })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            let hint = tokens["id_token"].as_str().unwrap();
            let page = browser.open(&format!("/connect/endsession?id_token_hint={hint}")).await;
            assert_eq!(page.html.contains("Sign out?"), is_asked, "{consent}: {}", page.html);
            let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "code").is_some(), is_asked, "{consent}: {silent}");
        }
    }

    /// Of several accounts only the given one is signed out.
    async fn signing_out_of_one_account_leaves_the_others(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let bob = world.user("bob").await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&bob)));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        browser.sign_in(&page, "bob", PASSWORD).await;
        let hint = tokens["id_token"].as_str().unwrap();
        let page = browser.open(&format!("/connect/endsession?id_token_hint={hint}")).await;
        assert!(page.html.contains("You are signed out"), "{}", page.html);
        let ended: Vec<bool> = world
            .all("SignInSession")
            .await
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["endedOn"].is_string())
            .collect();
        assert_eq!(ended, [true, false]);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
    }

    /// A second tab signs out after the first: there is no question.
    async fn a_sign_out_without_a_session_asks_nothing(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let hint = tokens["id_token"].as_str().unwrap();
        let back = "post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye&state=s-2";
        let address = format!("/connect/endsession?id_token_hint={hint}&{back}");
        for _ in 0..2 {
            let left = browser.open(&address).await.left;
            assert_eq!(left.as_deref(), Some("https://app.example/bye?state=s-2"));
        }
        let page = browser.open("/connect/endsession").await;
        assert!(page.html.contains("You are signed out"), "{}", page.html);
        // a cross-site request contains no cookies, and removes none
        let answer = Browser::new(&world).open_with(&address, &[]).await;
        let taken = answer.headers.get_all("set-cookie").iter().any(|line| line.to_str().unwrap().contains("session"));
        assert!(!taken, "{:?}", answer.headers);
    }

    /// The answer to stay signed in shows a page, and ends nothing.
    async fn staying_signed_in_ends_nothing(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = tokens(&world, &home).await;
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        let stayed = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "deny")], &[]).await;
        assert!(stayed.html.contains("You are still signed in"), "{}", stayed.html);
        let sessions = world.admin.get(&format!("{BASE}/SignInSession")).await.is(200).json();
        assert_eq!(sessions[0]["endedOn"], json!(null));
    }
}
