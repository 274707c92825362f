//! What requests cost beside Keycloak on PostgreSQL: the processor time of server and database for each. Access tokens are signed by
//! ES256 on both.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{Bench, always, create, load_figures};
use crate::{
    client::Client,
    fault::{Context as _, Result, fault},
    load::{self, Maker, SUCCESS},
    peers::keycloak::{self, CLIENT, Keycloak, form_request},
    people,
    target::{Engine, Target, USERS},
};

/// Getting a token for the client app itself.
pub const TOKENS: &str = "beside Keycloak: client credentials, 16 clients";
/// Reading a user by id.
pub const READ: &str = "beside Keycloak: read a user, 16 clients";
/// Finding users by the beginning of a name.
pub const BEGINNING: &str = "beside Keycloak: search by beginning, 16 clients";
/// Creating a user.
pub const CREATE: &str = "beside Keycloak: create, 16 clients";
/// Introspecting an access token.
pub const INTROSPECTION: &str = "beside Keycloak: introspection, 16 clients";
/// All workloads.
pub const ALL: [&str; 5] = [TOKENS, READ, BEGINNING, CREATE, INTROSPECTION];

/// The processor time of server and database for each request, in microseconds.
pub const COST: &str = "all_cpu_us";

const CLIENTS: usize = 16;
/// How often each load runs before it counts: Keycloak's code is compiled while it runs.
const WARM_UPS: usize = 3;
/// The largest number of users: to import more takes longer than the measurement.
const MAX_USERS: u64 = 100_000;

/// A server, and the requests that it gets.
struct Site {
    target: Target,
    loads: Vec<(&'static str, Maker)>,
}

/// Runs on Keycloak and on each engine in turn.
pub async fn run(bench: &mut Bench, distribution: &Path, work: &Path) -> Result<()> {
    if bench.users > MAX_USERS {
        return Ok(());
    }
    let keycloak = Keycloak::start(distribution, work, bench.users).await?;
    let mut sites = vec![site_of_keycloak(keycloak.target(), bench.users).await?];
    for target in bench.engines() {
        sites.push(site(&target, bench.users).await?);
    }
    let plan = bench.plan(CLIENTS, SUCCESS);
    for site in &sites {
        for (_, maker) in site.loads.iter().cycle().take(WARM_UPS * site.loads.len()) {
            load::run(&site.target, plan, maker).await?;
        }
    }
    for round in 0..bench.rounds {
        for (index, name) in ALL.iter().enumerate() {
            for site in &sites {
                let (_, maker) = site.loads.get(index).ok_or_else(|| fault(format!("{name}: no load")))?;
                let outcome = load::run(&site.target, plan, maker).await?;
                let mut values = load_figures(&site.target, &outcome);
                let used = outcome.used.server + outcome.used.database;
                values.insert(COST.into(), used.as_secs_f64() * 1e6 / outcome.latencies.total() as f64);
                bench.record(name, site.target.engine.name(), round, values);
            }
        }
    }
    Ok(())
}

/// The access token of an answer.
async fn token(target: &Target, request: &[u8]) -> Result<String> {
    let (status, answer) = Client::connect(target.address).await?.fetch(request).await?;
    let answer: Value = serde_json::from_slice(&answer).context("a token")?;
    let token = answer.get("access_token").and_then(Value::as_str);
    token.map(str::to_owned).ok_or_else(|| fault(format!("no token: {status} {answer}")))
}

/// The loads of a server, in the order of [`ALL`].
async fn loads(
    target: &Target,
    (token_path, introspection_path): (&str, &str),
    (id, secret): (&str, &str),
    others: [Maker; 3],
) -> Result<Vec<(&'static str, Maker)>> {
    let client = format!("client_id={id}&client_secret={secret}");
    let request = form_request(token_path, &format!("grant_type=client_credentials&{client}"));
    let token = token(target, &request).await?;
    let introspection = form_request(introspection_path, &format!("{client}&token={token}"));
    let [read, beginning, create] = others;
    let makers = [always(request), read, beginning, create, always(introspection)];
    Ok(ALL.into_iter().zip(makers).collect())
}

async fn site(target: &Target, users: u64) -> Result<Site> {
    let base = "/api/management/v2";
    let app =
        json!({ "name": format!("beside Keycloak {}", create::next()), "allowClientCredentialLogin": true });
    let post = async |path: &str, body: Value| -> Result<Value> {
        let answer = target.call("POST", &format!("{base}/{path}"), body.to_string().as_bytes(), 201).await?;
        Ok(serde_json::from_slice(&answer)?)
    };
    let app = post("ClientApp", app).await?;
    let secret = post("ClientAppSecret", json!({ "clientAppId": app.get("id") })).await?;
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let others = [
        by_number(target, users, |number| format!("{USERS}/{}", people::user_id(number))),
        by_number(target, users, |number| format!("{USERS}/search?q={}&count=20", beginning(number))),
        create::maker(target.clone()),
    ];
    let client = (text(&app, "id"), text(&secret, "secret"));
    let paths = ("/connect/token", "/connect/introspect");
    let loads = loads(target, paths, (&client.0, &client.1), others).await?;
    Ok(Site { target: target.clone(), loads })
}

async fn site_of_keycloak(target: &Target, users: u64) -> Result<Site> {
    let own = target.clone();
    let create: Maker = Arc::new(move |_, out| {
        let body = keycloak::user(&create::new_person()).to_string();
        own.write("POST", keycloak::USERS, body.as_bytes(), out);
    });
    let others = [
        by_number(target, users, |number| format!("{}/{}", keycloak::USERS, people::user_id(number))),
        by_number(target, users, |number| {
            format!("{}?search={}*&max=20", keycloak::USERS, beginning(number))
        }),
        create,
    ];
    let introspection = format!("{}/introspect", keycloak::TOKEN);
    let loads = loads(target, (keycloak::TOKEN, &introspection), CLIENT, others).await?;
    Ok(Site { target: target.clone(), loads })
}

/// Requests a path that follows from the number of a random user.
fn by_number(target: &Target, users: u64, path: fn(u64) -> String) -> Maker {
    let target = target.clone();
    Arc::new(move |random, out| target.write("GET", &path(random.below(users)), b"", out))
}

/// The beginning of a user's login name, which few others have.
fn beginning(number: u64) -> String {
    let name = people::login_name(number);
    let end = name.len().saturating_sub(1);
    name.get(..end).unwrap_or_default().to_owned()
}

/// The engines that are compared with Keycloak, with the most that a request may cost of its cost there.
pub const AIMS: [(Engine, &str, Option<f64>); 10] = [
    (Engine::Sqlite, TOKENS, None),
    (Engine::Sqlite, READ, None),
    (Engine::Sqlite, BEGINNING, None),
    (Engine::Sqlite, CREATE, None),
    (Engine::Sqlite, INTROSPECTION, None),
    (Engine::Postgres, TOKENS, None),
    (Engine::Postgres, READ, Some(0.1)),
    (Engine::Postgres, BEGINNING, Some(0.1)),
    (Engine::Postgres, CREATE, Some(0.1)),
    (Engine::Postgres, INTROSPECTION, Some(0.2)),
];
