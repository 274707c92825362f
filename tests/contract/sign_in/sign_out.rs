//! Signing out, as the client apps learn of it: in the browser, and by their back channel.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
};

use chancery_fetch::Policy;
use chancery_record::Timestamp;
use chancery_testkit::{PATIENCE, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Home, PASSWORD, browser::Browser, change, claims, parameter};
use crate::{id, mail::calling_this_machine};

/// A client app's back channel: answers each post with a status, and hands over what was posted.
pub fn receiver(statuses: Vec<u16>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/logout", listener.local_addr().unwrap());
    let (told, heard) = channel();
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
            told.send(String::from_utf8(posted).unwrap()).unwrap();
        }
    });
    (address, heard)
}

/// Signs in, and gives the app its tokens.
async fn tokens(world: &World, home: &Home) -> (Browser, Value) {
    let (browser, answer) = home.sign_in(world).await;
    let tokens = home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
    (browser, tokens)
}

/// Signs out by the page.
async fn leave(browser: &mut Browser, query: &str) -> super::browser::Page {
    let page = browser.open(&format!("/connect/endsession{query}")).await;
    let csrf = page.field("csrf");
    browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await
}

pub async fn tell(world: &World, minutes: i64) -> (usize, usize) {
    let policy =
        Policy { networks: "127.0.0.0/8".parse().unwrap(), plain_loopback: true, ..Policy::default() };
    let now = chancery_web::now();
    let permission = world.app.context.outbound.permission().unwrap();
    let told =
        world.app.tell_sign_outs(permission, &policy, Timestamp(now.0 + minutes * 60_000)).await.unwrap();
    (told.delivered, told.failed)
}

async fn waiting(world: &World) -> Value {
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
    /// The server's own job calls http on this machine, where the operator names it.
    async fn the_job_calls_this_machine_where_it_is_named(world: World) {
        let (address, heard) = receiver(vec![200]);
        let home = Home::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let (mut browser, _) = tokens(&world, &home).await;
        leave(&mut browser, "").await;
        let told = tokio::task::spawn_blocking(move || heard.recv_timeout(PATIENCE)).await.unwrap();
        assert!(told.unwrap().contains("logout_token="));
    }
}

on_both_engines! {
    /// Section 2: a request may be posted because its hint is long. No browser and no proxy has to take it as an address.
    async fn a_long_hint_makes_no_long_address(world: World) {
        let home = Home::with(&world, json!({ "logoutConsent": "Implicit" })).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let form = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
        let ask = async |hint: &str, more: &str| {
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
        // one that says nothing is none, and the person is asked
        let next = ask(&"x".repeat(12_000), "").await;
        let page = browser.open(&next).await;
        assert!(page.html.contains("Sign out?") && page.field("csrf").len() > 20, "{}", page.html);
        // what a good one says counts at the issuer that it is of
        let next = ask(tokens["id_token"].as_str().unwrap(), &"y".repeat(12_000)).await;
        let elsewhere = browser.open(&format!("/t/{}{next}", home.tenant)).await;
        assert!(elsewhere.html.contains("Sign out?"), "{}", elsewhere.html);
        assert_eq!(browser.open(&next).await.left.as_deref(), Some("https://app.example/bye?state=s-1"));
        assert!(browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap().contains("login_required"));
    }

    /// OpenID Connect Back-Channel Logout 1.0: a token for each try, until the app has it.
    async fn apps_are_told_by_their_back_channel(world: World) {
        let (address, heard) = receiver(vec![500, 200]);
        let home = Home::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        assert_eq!(tell(&world, 0).await, (0, 0));
        leave(&mut browser, "").await;
        assert_eq!(tell(&world, 0).await, (0, 1));
        assert_eq!(tell(&world, 0).await, (0, 0), "it rests");
        assert_eq!(tell(&world, 1).await, (1, 0), "within 90 seconds");
        assert_eq!(tell(&world, 60).await, (0, 0), "once");
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
        assert_eq!(waiting(&world).await, json!(["0", "0"]));
    }

    /// An app that cannot be told within an hour is given up, and counted.
    async fn an_app_that_hangs_is_given_up(world: World) {
        let home = Home::with(&world, json!({ "backchannelLogoutUri": "http://127.0.0.1:9/" })).await;
        let (mut browser, _) = tokens(&world, &home).await;
        leave(&mut browser, "").await;
        for minutes in [0, 30, 60] {
            assert_eq!(tell(&world, minutes).await, (0, 1), "{minutes}");
        }
        assert_eq!(waiting(&world).await, json!(["1", "1"]));
        assert_eq!(tell(&world, 120).await, (0, 0));
    }

    /// Apps are told however a session ends: here by an administrator who locks the person.
    async fn apps_are_told_of_every_end(world: World) {
        let (address, heard) = receiver(vec![204, 204]);
        let home = Home::with(&world, json!({ "backchannelLogoutUri": address })).await;
        let locked = world.path(&format!("/User/{}/state", id(&home.user)));
        tokens(&world, &home).await;
        world.admin.post(&locked, json!({ "isUserLocked": true })).await.expect(200);
        assert_eq!(tell(&world, 0).await, (1, 0));
        world.admin.post(&locked, json!({ "isUserLocked": false })).await.expect(200);
        tokens(&world, &home).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&home.user))), json!(null)).await.expect(204);
        assert_eq!(tell(&world, 0).await, (1, 0));
        assert!(heard.recv().unwrap().contains("logout_token=") && heard.recv().is_ok());
    }

    /// OpenID Connect Front-Channel Logout 1.0: a frame for each app, named in the page's policy, and a link back.
    async fn apps_are_told_in_the_browser(world: World) {
        let uri = "https://ledger.example/logout?x=1";
        let members = json!({ "frontchannelLogoutUri": uri, "frontchannelLogoutSessionRequired": true });
        let home = Home::with(&world, members).await;
        let (mut browser, tokens) = tokens(&world, &home).await;
        let back = "post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye";
        let done = leave(&mut browser, &format!("?client_id={}&{back}", id(&home.app))).await;
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
    async fn the_address_in_the_frame_names_the_session_where_the_app_requires_it(world: World) {
        let home = Home::with(&world, json!({ "frontchannelLogoutUri": "https://ledger.example/logout" })).await;
        for required in [false, true] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "frontchannelLogoutSessionRequired": required })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            let done = leave(&mut browser, "").await;
            let sid = claims(&tokens["id_token"])["sid"].as_str().unwrap().to_owned();
            assert!(done.html.contains("<iframe"), "{}", done.html);
            assert_eq!(done.html.contains(&sid), required, "{}", done.html);
        }
    }

    /// ClientApp.backchannelLogoutSessionRequired: the session is named whether it is required or not, since a logout token that
    /// names it is right for both (OpenID Connect Back-Channel Logout 1.0, section 2.4).
    async fn a_logout_token_names_the_session_whether_the_app_requires_it_or_not(world: World) {
        let (address, heard) = receiver(vec![200, 200]);
        let home = Home::with(&world, json!({ "backchannelLogoutUri": address })).await;
        for required in [false, true] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "backchannelLogoutSessionRequired": required })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            leave(&mut browser, "").await;
            assert_eq!(tell(&world, 0).await, (1, 0));
            let posted = heard.recv().unwrap();
            let told = claims(&json!(posted.split_once("logout_token=").unwrap().1));
            assert_eq!(told["sid"], claims(&tokens["id_token"])["sid"], "{required}");
        }
    }

    /// ClientApp.logoutConsent
    async fn people_are_asked_before_they_are_signed_out_where_the_app_says_so(world: World) {
        let home = Home::new(&world).await;
        for (consent, asks) in [("Explicit", true), ("Implicit", false)] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "logoutConsent": consent })).await;
            let (mut browser, tokens) = tokens(&world, &home).await;
            let hint = tokens["id_token"].as_str().unwrap();
            let page = browser.open(&format!("/connect/endsession?id_token_hint={hint}")).await;
            assert_eq!(page.html.contains("Sign out?"), asks, "{consent}: {}", page.html);
            let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "code").is_some(), asks, "{consent}: {silent}");
        }
    }

    /// Of several accounts only the one that is meant ends.
    async fn another_account_stays(world: World) {
        let home = Home::new(&world).await;
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

    /// A second tab signs out after the first: there is nothing to ask.
    async fn who_is_not_signed_in_is_not_asked(world: World) {
        let home = Home::new(&world).await;
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
        // a request of another site's brings no cookies, and takes none
        let answer = Browser::new(&world).open_with(&address, &[]).await;
        let taken = answer.headers.get_all("set-cookie").iter().any(|line| line.to_str().unwrap().contains("session"));
        assert!(!taken, "{:?}", answer.headers);
    }

    /// Staying signed in is a page of its own, and ends nothing.
    async fn a_person_may_stay(world: World) {
        let home = Home::new(&world).await;
        let (mut browser, _) = tokens(&world, &home).await;
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        let stayed = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "deny")], &[]).await;
        assert!(stayed.html.contains("You are still signed in"), "{}", stayed.html);
        let sessions = world.admin.get(&format!("{BASE}/SignInSession")).await.is(200).json();
        assert_eq!(sessions[0]["endedOn"], json!(null));
    }
}
