//! A server that is killed while people confirm their sign-ins: no recovery code is accepted twice, and whoever was admitted is
//! signed in (sections 13 and 22).

use std::collections::BTreeMap;

use chancery_testkit::{Client, Database, Engine};
use serde_json::{Value, json};
use tokio::{sync::mpsc::Sender, task::JoinSet};

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    encode,
    fleet::RandomNumbers,
    killed::{PUBLIC_URL, Server},
    parameter,
    second_factor::{between, code_of},
};
use crate::id;

const WORKERS: usize = 6;
const ROUNDS: usize = 2;
/// What precedes the factor in the choice of a recovery code.
const RECOVERY: &str = "value=\"recovery:";

/// Responses that a person has when the server is gone.
#[derive(Default)]
struct ClientState {
    name: String,
    /// Accepted codes, each with the cookies of that browser.
    used: Vec<(String, BTreeMap<String, String>)>,
    /// The code whose response was lost.
    lost: Option<String>,
}

/// Submits a name and the password; `None` when the server is gone.
async fn enter_password(browser: &mut Browser, home: &SignInApp, name: &str) -> Option<Page> {
    let page = browser.try_open(&home.request(&[])).await?;
    let csrf = page.field("csrf");
    let typed = [("csrf", csrf.as_str()), ("username", name), ("password", PASSWORD)];
    browser.try_post(&page.action(), &typed, &[]).await
}

/// Submits a recovery code after the password; returns whether the code was sent, and whether it was accepted: `None` when the
/// server is gone. A code that was not sent is not used up. Who has used all codes is not asked for one.
async fn confirm(
    browser: &mut Browser,
    home: &SignInApp,
    (name, code): (&str, &str),
) -> (bool, Option<bool>) {
    let Some(page) = enter_password(browser, home, name).await else { return (false, None) };
    if !page.html.contains(RECOVERY) {
        return (false, Some(false));
    }
    let choice = format!("recovery:{}", between(&page.html, RECOVERY, "\""));
    let csrf = page.field("csrf");
    let chosen = [("csrf", csrf.as_str()), ("choice", choice.as_str())];
    let Some(page) = browser.try_post(&page.action(), &chosen, &[]).await else { return (false, None) };
    let csrf = page.field("csrf");
    let next = browser.try_post(&page.action(), &[("csrf", &csrf), ("code", code)], &[]).await;
    (true, next.map(|next| next.answer.header("refresh").is_some()))
}

/// Signs in with one recovery code after the other, until the server is gone.
async fn work(
    home: SignInApp,
    caller: Client,
    (name, codes): (String, Vec<String>),
    progress: Sender<()>,
) -> ClientState {
    let mut state = ClientState { name, ..ClientState::default() };
    for code in codes {
        let mut browser = Browser::of(&caller, PUBLIC_URL);
        match confirm(&mut browser, &home, (&state.name, &code)).await {
            (_, Some(is_in)) => assert!(is_in, "a code that was never shown"),
            (was_shown, None) => {
                state.lost = was_shown.then_some(code);
                return state;
            }
        }
        state.used.push((code, browser.cookies));
        let _ = progress.try_send(());
    }
    state
}

/// Creates a person of the default store with an authenticator; returns the recovery codes.
async fn person(server: &Server, home: &SignInApp, name: &str) -> Vec<String> {
    let people = "/api/userstore/v2/default/administration/User";
    let user = server.admin.post(people, json!({ "loginName": name })).await.is(201).json();
    let reset = format!("{people}/{}/password/reset", id(&user));
    server.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
    let mut browser = Browser::of(&server.caller, PUBLIC_URL);
    let page = enter_password(&mut browser, home, name).await.unwrap();
    let secret = between(&page.html, "class=\"secret\"><code>", "<").to_owned();
    let shown = browser.submit(&page, &[("code", &code_of(&secret, 0))]).await;
    let codes = shown.html.split("<li><code>").skip(1);
    codes.map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
}

async fn set(server: &Server, filter: &str, value: &str) {
    let path = format!("{BASE}/Option?filter={}", encode(filter));
    let option = server.admin.get(&path).await.is(200).json()[0].clone();
    let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
    server.admin.patch(&format!("{BASE}/Option/{}", id(&option)), body).await.expect(202);
}

/// Makes every sign-in require an authenticator, and disables what would interrupt it.
async fn prepare(server: &Server, home: &SignInApp) {
    let first = async |path: &str| server.admin.get(&format!("{BASE}{path}")).await.is(200).json()[0].clone();
    let instance = first("/IdpInstance").await;
    for (name, value) in
        [("LoginThrottlingEnabled", "false"), ("TemporaryLockEnabled", "false"), ("PasskeyEnabled", "false")]
    {
        let of = format!("applyToIdpInstanceId eq \"{}\" and name eq \"{name}\"", id(&instance));
        set(server, &of, value).await;
    }
    let types: Value = server.admin.get(&format!("{BASE}/IdpType")).await.is(200).json();
    let totp = types.as_array().unwrap().iter().find(|one| one["name"] == json!("totp")).unwrap();
    let body = json!({ "name": "Authenticator", "idpTypeId": totp["id"] });
    let factor = server.admin.post(&format!("{BASE}/MfaInstance"), body).await.is(201).json();
    for (path, related) in [
        (format!("/Tenant/{}/mfainstances", home.tenant), &factor),
        (format!("/ClientApp/{}/mfainstances", id(&home.app)), &factor),
    ] {
        let body = json!({ "relatedIds": [related["id"]] });
        server.admin.put(&format!("{BASE}{path}"), body).await.expect(202);
    }
}

fn copy_of(home: &SignInApp) -> SignInApp {
    SignInApp {
        app: home.app.clone(),
        tenant: home.tenant.clone(),
        secret: home.secret.clone(),
        user: home.user.clone(),
    }
}

/// Verifies everything that was answered before a kill.
async fn verify(server: &Server, home: &SignInApp, state: &ClientState) {
    for (_, cookies) in &state.used {
        let mut browser = Browser::of(&server.caller, PUBLIC_URL);
        browser.cookies.clone_from(cookies);
        let left = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&left, "code").is_some(), "who was let in is signed in: {left}");
    }
    let again = async |code: &str| {
        let mut browser = Browser::of(&server.caller, PUBLIC_URL);
        confirm(&mut browser, home, (&state.name, code)).await.1.unwrap()
    };
    if let Some(code) = &state.lost {
        // used, or still valid: in no case valid twice
        again(code).await;
        assert!(!again(code).await, "{code}");
    }
    if let Some((code, _)) = state.used.last() {
        assert!(!again(code).await, "{code}");
    }
}

async fn kill_while_people_confirm(engine: Engine, processes: usize) {
    let database = Database::create(engine);
    let mut servers = vec![Server::start(&database).await];
    let home = SignInApp::created_by(&servers[0].admin, json!({})).await;
    prepare(&servers[0], &home).await;
    let mut dice = RandomNumbers(11);
    for round in 0..ROUNDS {
        let mut people = Vec::new();
        for worker in 0..WORKERS {
            let name = format!("w{round}x{worker}");
            people.push((name.clone(), person(&servers[0], &home, &name).await));
        }
        while servers.len() < processes {
            servers.push(Server::start(&database).await);
        }
        let (progress, mut observed) = tokio::sync::mpsc::channel(10_000);
        let mut workers = JoinSet::new();
        for (worker, person) in people.into_iter().enumerate() {
            let caller = servers[worker % processes].caller.clone();
            workers.spawn(work(copy_of(&home), caller, person, progress.clone()));
        }
        for _ in 0..12 + dice.below(20) {
            observed.recv().await.unwrap();
        }
        for server in &mut servers {
            server.process.kill();
        }
        let states = workers.join_all().await;
        assert!(states.iter().any(|one| !one.used.is_empty()));
        servers = vec![Server::start(&database).await];
        for one in &states {
            verify(&servers[0], &home, one).await;
        }
    }
}

/// A person who was admitted by a recovery code is signed in after a kill, and no code is accepted twice.
#[test]
fn no_recovery_code_is_accepted_twice_sqlite() {
    tokio::runtime::Runtime::new().unwrap().block_on(kill_while_people_confirm(Engine::Sqlite, 1));
}

/// The same with two processes, both of which are killed.
#[test]
fn no_recovery_code_is_accepted_twice_with_two_processes_on_postgres() {
    tokio::runtime::Runtime::new().unwrap().block_on(kill_while_people_confirm(Engine::Postgres, 2));
}
