//! A server that is killed while people sign in: what was answered is stored, and nothing is accepted twice (sections 18 and
//! 22).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chancery_testkit::{Client, Database, Engine, Process, SECRET};
use http::Method;
use serde_json::{Value, json};
use tokio::{sync::mpsc::Sender, task::JoinSet};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, fleet::RandomNumbers, parameter};
use crate::{each, free_address, id};

const WORKERS: usize = 8;
const ROUNDS: usize = 2;
const OFFLINE: (&str, &str) = ("scope", "openid profile offline_access");
/// The same for all processes: otherwise tokens would have another issuer after a restart.
pub const PUBLIC_URL: &str = "http://localhost";

pub struct Server {
    pub process: Process,
    pub caller: Client,
    pub admin: Client,
}

impl Server {
    pub async fn start(database: &Database) -> Self {
        let listen = free_address();
        let environment = [
            ("CHANCERY_LISTEN", listen.as_str()),
            ("CHANCERY_PUBLIC_URL", PUBLIC_URL),
            ("CHANCERY_PUBLIC_RATE_LIMIT", "off"),
            ("CHANCERY_FAILED_SIGN_INS", "off"),
            ("CHANCERY_ROOT_CLIENT_SECRET", SECRET),
        ];
        let process = Process::start_configured(database, &environment);
        let caller = Client::anonymous(&format!("http://{listen}"));
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
        let token = caller.ask_for_token(&form).await.is(200).json();
        let admin = caller.with_token(token["access_token"].as_str().unwrap());
        Self { process, caller, admin }
    }

    async fn all(&self, resource: &str) -> Value {
        self.admin.get(&format!("{BASE}/{resource}")).await.is(200).json()
    }

    async fn accepts(&self, tokens: &Value) -> bool {
        let bearer = self.caller.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.status == 200
    }

    /// The tokens for a code or a refresh token, if it is accepted.
    async fn tokens(&self, form: &str) -> Option<Value> {
        let answer = self.caller.ask_for_token(form).await;
        if answer.status == 200 {
            return Some(answer.json());
        }
        assert_eq!(answer.is(400).json()["error"], json!("invalid_grant"));
        None
    }
}

/// Responses that a client has when its server is gone.
#[derive(Default)]
struct ClientState {
    /// The cookies of browsers that were signed in.
    sessions: Vec<BTreeMap<String, String>>,
    /// Codes that were not redeemed.
    fresh: Vec<String>,
    /// Codes whose token response was lost.
    lost: Vec<String>,
    /// Codes with all tokens that were issued for them and for their refresh tokens, the newest last.
    grants: Vec<(String, Vec<Value>)>,
}

/// Sends a form to the token endpoint; `None` when the server is gone.
async fn request_tokens(caller: &Client, form: String) -> Option<Value> {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = caller.try_send(Method::POST, "/connect/token", &headers, form.into_bytes()).await?;
    Some(answer.is(200).json())
}

/// Signs in with a password; returns the code.
async fn sign_in(browser: &mut Browser, request: &str, name: &str) -> Option<String> {
    let page = browser.try_open(request).await?;
    let csrf = page.field("csrf");
    let typed = [("csrf", csrf.as_str()), ("username", name), ("password", PASSWORD)];
    let next = browser.try_post(&page.action(), &typed, &[]).await?;
    let left = browser.try_open(&next.redirect_target()).await?.left.unwrap();
    parameter(&left, "code")
}

/// Signs in, redeems and refreshes, until the server is gone.
async fn work(home: Arc<SignInApp>, caller: Client, worker: usize, progress: Sender<()>) -> ClientState {
    let (mut dice, mut state) = (RandomNumbers(worker as u64), ClientState::default());
    let request = home.request(&[OFFLINE]);
    let name = format!("w{worker}");
    loop {
        let mut browser = Browser::of(&caller, PUBLIC_URL);
        let mut code = sign_in(&mut browser, &request, &name).await;
        if browser.cookies.keys().any(|name| name.ends_with("session")) {
            state.sessions.push(browser.cookies.clone());
        }
        for _ in 0..2 + dice.below(3) {
            let Some(shown) = code.take() else { return state };
            let _ = progress.try_send(());
            if dice.below(4) == 0 {
                state.fresh.push(shown);
            } else {
                let Some(tokens) = request_tokens(&caller, home.redemption_form(&shown, &[])).await else {
                    state.lost.push(shown);
                    return state;
                };
                state.grants.push((shown, vec![tokens]));
                let _ = progress.try_send(());
                for _ in 0..dice.below(4) {
                    let (_, answered) = state.grants.last_mut().unwrap();
                    let newest = answered.last().unwrap()["refresh_token"].as_str().unwrap();
                    let Some(next) = request_tokens(&caller, home.refresh_form(newest)).await else {
                        return state;
                    };
                    answered.push(next);
                    let _ = progress.try_send(());
                }
            }
            let Some(page) = browser.try_open(&request).await else { return state };
            code = page.left.and_then(|left| parameter(&left, "code"));
        }
    }
}

/// Verifies everything that was answered before a kill.
async fn verify(server: &Server, home: &SignInApp, state: &ClientState) {
    for cookies in &state.sessions {
        let mut browser = Browser::of(&server.caller, PUBLIC_URL);
        browser.cookies.clone_from(cookies);
        let left = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&left, "code").is_some(), "a session that was answered: {left}");
    }
    for (code, answered) in &state.grants {
        for tokens in answered {
            assert!(server.accepts(tokens).await, "a token that was answered");
        }
        let newest = answered.last().unwrap()["refresh_token"].as_str().unwrap();
        // if the answer with its successor was lost, it is within the leeway
        let next = server.tokens(&home.refresh_form(newest)).await;
        let next = next.unwrap_or_else(|| panic!("a refresh token that was answered"));
        assert!(server.accepts(&next).await);
        assert!(server.tokens(&home.redemption_form(code, &[])).await.is_none(), "a code is good once");
        assert!(!server.accepts(&next).await, "and what it gave ends when it is shown again");
    }
    for code in &state.fresh {
        let got = server.tokens(&home.redemption_form(code, &[])).await;
        let got = got.unwrap_or_else(|| panic!("a code that was answered"));
        assert!(server.accepts(&got).await);
        assert!(server.tokens(&home.redemption_form(code, &[])).await.is_none());
    }
    for code in &state.lost {
        // used, or still valid: in no case valid twice
        let _ = server.tokens(&home.redemption_form(code, &[])).await;
        assert!(server.tokens(&home.redemption_form(code, &[])).await.is_none());
    }
}

/// Sessions exist only with their records, and people only with their audit entries.
async fn assert_consistent(server: &Server, sessions: usize) {
    let stored_sessions = server.all("SignInSession?count=1000").await;
    let records = server.all("SignInRecord?count=1000").await;
    let signed_in =
        records.as_array().unwrap().iter().filter(|record| record["outcome"] == json!("SignedIn"));
    let of_records: BTreeSet<&str> = signed_in.map(|record| record["sessionId"].as_str().unwrap()).collect();
    let of_sessions: BTreeSet<&str> = each(&stored_sessions, "id").into_iter().collect();
    assert_eq!(of_records, of_sessions);
    assert!(of_sessions.len() >= sessions);
    let people = server.all("ApplicationUser").await;
    let trail = server.all("CustomAuditTrail?count=1000").await;
    let created: Vec<&str> = trail
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["area"] == json!("ApplicationUser"))
        .map(|entry| entry["primaryKey"].as_str().unwrap())
        .collect();
    let known: BTreeSet<&str> = each(&people, "id").into_iter().collect();
    assert_eq!((created.len(), created.into_iter().collect::<BTreeSet<_>>()), (known.len(), known));
}

/// Loads servers, kills them during the load, and verifies the state after a restart.
async fn kill_while_people_sign_in(engine: Engine, processes: usize) {
    let database = Database::create(engine);
    let first = Server::start(&database).await;
    let home = SignInApp::created_by(&first.admin, json!({ "isPublic": true })).await;
    let filter = super::encode(&format!(
        "applyToTenantId eq \"{}\" and name eq \"RefreshTokenReuseLeeway\"",
        home.tenant
    ));
    let option = first.all(&format!("Option?filter={filter}")).await[0].clone();
    // a machine may be slow to start a server again
    let leeway = json!({ "value": "00:05:00", "concurrencyToken": option["concurrencyToken"] });
    first.admin.patch(&format!("{BASE}/Option/{}", id(&option)), leeway).await.expect(202);
    // other people in each round: an attempt that the kill left undecided counts as a wrong one, and delays the next one
    for worker in 0..ROUNDS * WORKERS {
        let people = "/api/userstore/v2/default/administration/User";
        let body = json!({ "loginName": format!("w{worker}") });
        let user = first.admin.post(people, body).await.is(201).json();
        let reset = format!("{people}/{}/password/reset", id(&user));
        first.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
    }
    let (home, mut servers, mut dice) = (Arc::new(home), vec![first], RandomNumbers(7));
    let mut sessions = 0;
    for round in 0..ROUNDS {
        while servers.len() < processes {
            servers.push(Server::start(&database).await);
        }
        let (progress, mut observed) = tokio::sync::mpsc::channel(10_000);
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let caller = servers[worker % processes].caller.clone();
            workers.spawn(work(Arc::clone(&home), caller, round * WORKERS + worker, progress.clone()));
        }
        for _ in 0..40 + dice.below(80) {
            observed.recv().await.unwrap();
        }
        for server in &mut servers {
            server.process.kill();
        }
        let states = workers.join_all().await;
        servers = vec![Server::start(&database).await];
        for one in &states {
            verify(&servers[0], &home, one).await;
        }
        sessions += states.iter().map(|one| one.sessions.len()).sum::<usize>();
        assert!(states.iter().any(|one| !one.grants.is_empty()));
        assert_consistent(&servers[0], sessions).await;
    }
}

fn run(engine: Engine, processes: usize) {
    tokio::runtime::Runtime::new().unwrap().block_on(kill_while_people_sign_in(engine, processes));
}

/// Section 22: whatever was answered is valid after a kill, and no code is accepted twice.
#[test]
fn no_answered_token_is_lost_sqlite() {
    run(Engine::Sqlite, 1);
}

/// Section 22: the same with two processes, both of which are killed.
#[test]
fn no_answered_token_is_lost_with_two_processes_on_postgres() {
    run(Engine::Postgres, 2);
}
