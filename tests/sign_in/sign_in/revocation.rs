//! Nothing of a person is accepted after a sign-out, a permanent lock, an erasure or a reset, at every
//! process, from the first request after the response (sections 5, 9 and 13).

use chancery_testkit::{Client, World, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp, browser::Browser, change, encode, first, fleet::Fleet, parameter, relate,
};
use crate::id;

const OFFLINE: (&str, &str) = ("scope", "openid profile offline_access");
const SILENT: (&str, &str) = ("prompt", "none");

/// Session, codes and tokens of one sign-in.
struct Credentials {
    browser: Browser,
    /// Tokens of the session, and tokens with `offline_access`.
    tokens: [Value; 2],
    /// Unused codes, one of each kind.
    codes: [String; 2],
}

fn code(left: &str) -> String {
    parameter(left, "code").unwrap_or_else(|| panic!("no code in {left}"))
}

fn access_token(tokens: &Value) -> &str {
    tokens["access_token"].as_str().unwrap()
}

async fn is_accepted(caller: &Client, tokens: &Value) -> bool {
    caller.with_token(access_token(tokens)).get("/connect/userinfo").await.status == 200
}

/// Signs in, and uses everything once at each process, so that caches are filled.
async fn sign_in(fleet: &Fleet, home: &SignInApp, name: &str) -> Credentials {
    let mut browser = fleet.browser(0);
    let page = browser.open(&home.request(&[])).await;
    let answer = browser.sign_in(&page, name, PASSWORD).await;
    let plain = home.redeem_at(fleet.caller(0), &code(&answer), &[]).await.is(200).json();
    let mut later =
        async |more: &[(&str, &str)]| code(&browser.open(&home.request(more)).await.left.unwrap());
    let away = later(&[OFFLINE]).await;
    let away = home.redeem_at(fleet.caller(1), &away, &[]).await.is(200).json();
    let codes = [later(&[]).await, later(&[OFFLINE]).await];
    let tokens = [plain, away];
    for (number, caller) in fleet.callers().iter().enumerate() {
        for one in &tokens {
            assert!(is_accepted(caller, one).await);
        }
        let token = tokens[1]["refresh_token"].as_str().unwrap();
        home.refresh_at(caller, token).await.expect(200);
        assert!(
            fleet
                .moved(&browser, number)
                .open(&home.request(&[SILENT]))
                .await
                .left
                .unwrap()
                .contains("code=")
        );
    }
    Credentials { browser, tokens, codes }
}

/// Asserts that nothing of it is accepted at any process; each `offset` begins with another item. Tokens with
/// `offline_access` outlast a sign-out only.
async fn assert_revoked(
    fleet: &Fleet,
    home: &SignInApp,
    credentials: &Credentials,
    (offset, outlasts): (usize, bool),
) {
    // the other process first: it has to learn of the change that the world's own process made
    for process in (0..fleet.callers().len()).rev() {
        let caller = fleet.caller(process);
        for part in 0..4 {
            match (offset + part) % 4 {
                0 => {
                    let left = fleet
                        .moved(&credentials.browser, process)
                        .open(&home.request(&[SILENT]))
                        .await
                        .left
                        .unwrap();
                    let is_refused =
                        parameter(&left, "error").is_some() && parameter(&left, "code").is_none();
                    assert!(is_refused, "the session: {left}");
                }
                1 => {
                    assert!(!is_accepted(caller, &credentials.tokens[0]).await, "the access token");
                    assert_eq!(is_accepted(caller, &credentials.tokens[1]).await, outlasts);
                }
                2 => {
                    for code in &credentials.codes {
                        let refused = home.redeem_at(caller, code, &[]).await.is(400).json();
                        assert_eq!(refused["error"], json!("invalid_grant"), "the code");
                    }
                }
                _ => {
                    let shown = home
                        .refresh_at(caller, credentials.tokens[1]["refresh_token"].as_str().unwrap())
                        .await;
                    assert_eq!(shown.status == 200, outlasts, "the refresh token");
                }
            }
        }
    }
}

async fn person(world: &World, name: &str) -> Value {
    let user = json!({ "loginName": name, "emailAddress": format!("{name}@example.com") });
    let user = world.admin.post(&world.path("/User"), user).await.is(201).json();
    reset(world, &user, PASSWORD).await;
    user
}

async fn reset(world: &World, user: &Value, password: &str) {
    let path = world.path(&format!("/User/{}/password/reset", id(user)));
    world.admin.post(&path, json!({ "newPassword": password })).await.expect(200);
}

async fn lock(world: &World, user: &Value, is_locked: bool) {
    let path = world.path(&format!("/User/{}/state", id(user)));
    world.admin.post(&path, json!({ "isUserLocked": is_locked })).await.expect(200);
}

/// Ends all sessions and grants of the platform user.
async fn sign_out_everywhere(world: &World, name: &str) {
    let filter = encode(&format!("emailAddress eq \"{name}@example.com\""));
    let person = first(world, &format!("/ApplicationUser?filter={filter}")).await;
    world
        .admin
        .post(&format!("{BASE}/ApplicationUser/{}/signout", id(&person)), json!(null))
        .await
        .expect(204);
}

/// Signs out on the page.
async fn sign_out(mut browser: Browser) {
    let page = browser.open("/connect/endsession").await;
    let csrf = page.field("csrf");
    let done = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
    assert!(done.html.contains("You are signed out"), "{}", done.html);
}

on_both_engines! {
    /// Section 9: by the page. Tokens with `offline_access` remain, as intended.
    async fn a_sign_out_takes_effect_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for offset in 0..4 {
            let credentials = sign_in(&fleet, &home, "ann").await;
            sign_out(fleet.moved(&credentials.browser, 0)).await;
            assert_revoked(&fleet, &home, &credentials, (offset, true)).await;
        }
    }

    /// Section 19: by an administrator, which also ends `offline_access`.
    async fn a_sign_out_by_an_administrator_takes_effect_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for offset in 0..4 {
            let credentials = sign_in(&fleet, &home, "ann").await;
            sign_out_everywhere(&world, "ann").await;
            assert_revoked(&fleet, &home, &credentials, (offset, false)).await;
        }
    }

    /// Section 13: a permanent lock, also after it is lifted.
    async fn a_lock_takes_effect_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for offset in 0..4 {
            let credentials = sign_in(&fleet, &home, "ann").await;
            lock(&world, &home.user, true).await;
            assert_revoked(&fleet, &home, &credentials, (offset, false)).await;
            lock(&world, &home.user, false).await;
            assert_revoked(&fleet, &home, &credentials, (offset, false)).await;
        }
    }

    /// Section 13: a reset of the password.
    async fn a_reset_takes_effect_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for offset in 0..4 {
            let credentials = sign_in(&fleet, &home, "ann").await;
            reset(&world, &home.user, PASSWORD).await;
            assert_revoked(&fleet, &home, &credentials, (offset, false)).await;
        }
    }

    /// Section 13: an erasure.
    async fn an_erasure_takes_effect_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for offset in 0..4 {
            let name = format!("erased{offset}");
            let user = person(&world, &name).await;
            let credentials = sign_in(&fleet, &home, &name).await;
            world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!(null)).await.expect(204);
            assert_revoked(&fleet, &home, &credentials, (offset, false)).await;
        }
    }

    /// Sections 2 and 5: entities that an administrator disables, or takes from the app; after they are enabled again, everything that
    /// was not revoked is accepted again.
    async fn disabled_entities_are_refused_on_every_process(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        let application = format!("/ClientApp/{}", id(&home.app));
        let tenant = format!("/Tenant/{}", home.tenant);
        for (path, member) in [(&application, "enabled"), (&tenant, "isActive")] {
            let credentials = sign_in(&fleet, &home, "ann").await;
            change(&world, path, json!({ member: false })).await;
            for (process, caller) in fleet.callers().iter().enumerate().rev() {
                for tokens in &credentials.tokens {
                    assert!(!is_accepted(caller, tokens).await, "the access token, {path}");
                }
                let refreshed = home.refresh_at(caller, credentials.tokens[1]["refresh_token"].as_str().unwrap()).await;
                assert!([400, 401].contains(&refreshed.status.as_u16()), "the refresh token, {path}: {}", refreshed.status);
                let redeemed = home.redeem_at(caller, &credentials.codes[0], &[]).await;
                assert!([400, 401].contains(&redeemed.status.as_u16()), "the code, {path}: {}", redeemed.status);
                let silent = fleet.moved(&credentials.browser, process).open(&home.request(&[SILENT])).await;
                assert!(silent.left.is_none_or(|left| !left.contains("code=")), "the session, {path}");
            }
            change(&world, path, json!({ member: true })).await;
            for tokens in &credentials.tokens {
                assert!(is_accepted(fleet.caller(1), tokens).await, "{path}");
            }
        }
        let credentials = sign_in(&fleet, &home, "ann").await;
        relate(&world, &format!("{application}/tenants"), &[]).await;
        for caller in fleet.callers() {
            assert!(!is_accepted(caller, &credentials.tokens[0]).await, "the app serves in no tenant");
        }
    }

    /// A sign-out during redemptions and requests for new codes: whatever was issued meanwhile ends with
    /// the session.
    async fn a_sign_out_wins_over_concurrent_redemptions(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        let mut raced = 0;
        for _ in 0..6 {
            let mut browser = fleet.browser(0);
            let page = browser.open(&home.request(&[])).await;
            let mut codes = vec![code(&browser.sign_in(&page, "ann", PASSWORD).await)];
            for _ in 0..7 {
                codes.push(code(&browser.open(&home.request(&[])).await.left.unwrap()));
            }
            let redemptions = join_all(codes.iter().enumerate().map(|(number, code)| home.redeem_at(fleet.caller(number), code, &[])));
            let requests = join_all((0..8).map(|number| {
                let (mut browser, home, fleet) = (fleet.moved(&browser, number), &home, &fleet);
                async move {
                    let left = browser.open(&home.request(&[SILENT])).await.left.unwrap();
                    let code = parameter(&left, "code")?;
                    Some((code.clone(), home.redeem_at(fleet.caller(number + 1), &code, &[]).await))
                }
            }));
            let ((), redeemed, requested) = tokio::join!(sign_out(fleet.moved(&browser, 0)), redemptions, requests);
            let shown = codes.iter().cloned().zip(redeemed).chain(requested.into_iter().flatten());
            for (code, answer) in shown {
                let tokens = (answer.status == 200).then(|| answer.json());
                raced += usize::from(tokens.is_some());
                for caller in fleet.callers() {
                    if let Some(tokens) = &tokens {
                        assert!(!is_accepted(caller, tokens).await, "a living token");
                    }
                    home.redeem_at(caller, &code, &[]).await.expect(400);
                }
            }
        }
        assert!(raced > 0, "no request came before a sign-out");
    }

    /// An administrator signs a person out while apps refresh: every chain of refresh tokens ends.
    async fn a_sign_out_wins_over_concurrent_refreshes(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true })).await;
        let fleet = Fleet::of(&world);
        for _ in 0..4 {
            let mut browser = fleet.browser(0);
            let page = browser.open(&home.request(&[OFFLINE])).await;
            let mut codes = vec![code(&browser.sign_in(&page, "ann", PASSWORD).await)];
            for _ in 0..7 {
                codes.push(code(&browser.open(&home.request(&[OFFLINE])).await.left.unwrap()));
            }
            let chains = join_all(codes.iter().enumerate().map(|(number, code)| {
                let (home, fleet) = (&home, &fleet);
                async move {
                    let mut got = Vec::new();
                    let mut answer = home.redeem_at(fleet.caller(number), code, &[]).await;
                    // each refresh uses the token of the one before, until it is refused
                    while answer.status == 200 && got.len() < 10_000 {
                        let tokens = answer.json();
                        let token = tokens["refresh_token"].as_str().unwrap();
                        answer = home.refresh_at(fleet.caller(number + got.len()), token).await;
                        got.push(tokens);
                    }
                    assert_eq!(answer.is(400).json()["error"], json!("invalid_grant"));
                    got
                }
            }));
            let (chains, ()) = tokio::join!(chains, sign_out_everywhere(&world, "ann"));
            for newest in chains.iter().filter_map(|chain| chain.last()) {
                for caller in fleet.callers() {
                    assert!(!is_accepted(caller, newest).await, "a living token");
                    home.refresh_at(caller, newest["refresh_token"].as_str().unwrap()).await.expect(400);
                }
            }
        }
    }

    /// A password that is verified during a reset or a lock of the person gives no session that lasts
    /// longer than the response to it.
    async fn a_pending_sign_in_ends_with_a_reset_or_lock(world: World) {
        let home = SignInApp::new(&world).await;
        let fleet = Fleet::of(&world);
        for round in 0..6 {
            let typing = join_all((0..4).map(|number| {
                let (mut browser, home) = (fleet.browser(number), &home);
                async move {
                    let page = browser.open(&home.request(&[])).await;
                    let next = browser.type_password(&page, "ann", PASSWORD).await;
                    let is_in = next.answer.header("refresh").is_some();
                    let answer = if is_in { browser.continue_to_app(&next).await } else { String::new() };
                    (browser, parameter(&answer, "code"))
                }
            }));
            let ending = async {
                if round % 2 == 0 {
                    reset(&world, &home.user, "five quiet brown owls").await;
                } else {
                    lock(&world, &home.user, true).await;
                }
            };
            let (typed, ()) = tokio::join!(typing, ending);
            lock(&world, &home.user, false).await;
            for (number, (browser, code)) in typed.into_iter().enumerate() {
                let left = fleet.moved(&browser, number + 1).open(&home.request(&[SILENT])).await.left.unwrap();
                assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"), "round {round}: {left}");
                if let Some(code) = code {
                    home.redeem_at(fleet.caller(number + 1), &code, &[]).await.expect(400);
                }
            }
            reset(&world, &home.user, PASSWORD).await;
        }
    }
}
