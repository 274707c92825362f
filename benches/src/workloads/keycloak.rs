//! What requests cost beside Keycloak on PostgreSQL: the processor time of server and database for each, what both use when idle, and
//! the bytes that they keep of a user. Access tokens are signed by ES256 on both.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::{Bench, always, create, load_figures, sign_in, with_cost};
use crate::{
    aims::Bound,
    client::Client,
    fault::{Context as _, Result, fault},
    load::{self, Maker, SUCCESS},
    peers::{
        self,
        keycloak::{self, CLIENT, Keycloak, form_request},
    },
    people,
    results::figures,
    seed::Seeds,
    server::sqlite_file,
    target::{Engine, Target, USERS},
};

/// Getting a token for the client app itself.
pub const TOKENS: &str = "beside Keycloak: client credentials, 16 clients";
/// Reading a user by id.
pub const READ: &str = "beside Keycloak: read a user, 16 clients";
/// Finding users by the beginning of a name.
pub const BEGINNING: &str = "beside Keycloak: search by beginning, 16 clients";
/// Finding users by a part of a name.
pub const INSIDE: &str = "beside Keycloak: search inside a name, 16 clients";
/// Creating a user.
pub const CREATE: &str = "beside Keycloak: create, 16 clients";
/// Introspecting an access token.
pub const INTROSPECTION: &str = "beside Keycloak: introspection, 16 clients";
/// The loads of single requests.
const LOADS: [&str; 6] = [TOKENS, READ, BEGINNING, INSIDE, CREATE, INTROSPECTION];
/// A server without requests.
pub const IDLE: &str = "beside Keycloak: idle";
/// How much the database grows by creates.
pub const STORED: &str = "beside Keycloak: stored";

/// Connections of each load.
pub const CLIENTS: usize = 16;
/// How often each load runs before it counts: Keycloak's code is compiled while it runs.
pub const WARM_UPS: usize = 3;
/// How long idle servers are watched.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// How many users are created to see what they take.
const STORED_USERS: u64 = 16_000;
/// The largest number of users: to import more takes longer than the measurement.
const MAX_USERS: u64 = 100_000;

/// A server, and the requests that it gets.
struct Site {
    target: Target,
    loads: Vec<(&'static str, Maker)>,
}

/// Runs on Keycloak and on each engine in turn.
pub async fn run(bench: &mut Bench, seeds: &Seeds, distribution: &Path, work: &Path) -> Result<()> {
    if bench.users > MAX_USERS {
        return Ok(());
    }
    let keycloak = Keycloak::start(distribution, work, bench.users).await?;
    let mut sites = vec![site_of_keycloak(keycloak.target(), bench.users).await?];
    for target in bench.engines() {
        sites.push(site(&target, bench.users).await?);
    }
    // creates come after all others, which would meet more users where they are faster
    let (creates, others): (Vec<_>, Vec<_>) = LOADS.into_iter().partition(|name| *name == CREATE);
    run_loads(bench, &sites, &others).await?;
    watch_idle(bench, &sites).await?;
    run_loads(bench, &sites, &creates).await?;
    store(bench, &keycloak, &sites).await?;
    sign_in::keycloak::run(bench, seeds, keycloak.target()).await
}

/// Runs loads on each server in turn.
async fn run_loads(bench: &mut Bench, sites: &[Site], names: &[&str]) -> Result<()> {
    let plan = bench.plan(CLIENTS, SUCCESS);
    for site in sites {
        for name in names.iter().cycle().take(WARM_UPS * names.len()) {
            load::run(&site.target, plan, site.load(name)?).await?;
        }
    }
    for round in 0..bench.rounds {
        for name in names {
            for site in sites {
                let outcome = load::run(&site.target, plan, site.load(name)?).await?;
                let values = with_cost(load_figures(&site.target, &outcome));
                bench.record(name, site.target.engine.name(), round, values);
            }
        }
    }
    Ok(())
}

/// Creates users, and records how much each database has grown for one.
async fn store(bench: &mut Bench, keycloak: &Keycloak, sites: &[Site]) -> Result<()> {
    for site in sites {
        let size = async || match (site.target.engine, &bench.sqlite, &bench.postgres) {
            (Engine::Keycloak, ..) => peers::postgres::size(&keycloak.database()).await,
            (Engine::Sqlite, Some((folder, _)), _) => peers::sqlite::size(&sqlite_file(folder)),
            (Engine::Postgres, _, Some(url)) => peers::postgres::size(url).await,
            (engine, ..) => Err(fault(format!("{}: no database", engine.name()))),
        };
        let before = size().await?;
        let create = site.load(CREATE)?;
        try_join_all((0..CLIENTS).map(|number| create_users(&site.target, create, number))).await?;
        let grown = size().await?.saturating_sub(before);
        let values = figures([("kib", grown as f64 / 1024.0 / STORED_USERS as f64)]);
        bench.record(STORED, site.target.engine.name(), 0, values);
    }
    Ok(())
}

/// Creates the share of one client.
async fn create_users(target: &Target, create: &Maker, number: usize) -> Result<()> {
    let mut client = Client::connect(target.address).await?;
    let (mut random, mut request) = (load::random(number), Vec::new());
    for _ in 0..STORED_USERS / CLIENTS as u64 {
        request.clear();
        create(&mut random, &mut request);
        let (status, answer) = client.fetch(&request).await?;
        if status != 201 {
            return Err(fault(format!("a create: {status} {}", String::from_utf8_lossy(&answer))));
        }
    }
    Ok(())
}

/// Records what servers and their databases use while nobody asks anything.
async fn watch_idle(bench: &mut Bench, sites: &[Site]) -> Result<()> {
    let used = |site: &Site| {
        let usage = site.target.usage();
        usage.server + usage.database
    };
    // what was begun before has ended
    tokio::time::sleep(IDLE_TIME).await;
    let before: Vec<Duration> = sites.iter().map(used).collect();
    tokio::time::sleep(IDLE_TIME).await;
    for (site, before) in sites.iter().zip(before) {
        let share = used(site).saturating_sub(before).as_secs_f64() / IDLE_TIME.as_secs_f64();
        bench.record(IDLE, site.target.engine.name(), 0, figures([("cpu_percent", share * 100.0)]));
    }
    Ok(())
}

impl Site {
    fn load(&self, name: &str) -> Result<&Maker> {
        let load = self.loads.iter().find(|(own, _)| *own == name);
        load.map(|(_, maker)| maker).ok_or_else(|| fault(format!("{name}: no load")))
    }
}

/// The access token of an answer.
async fn token(target: &Target, request: &[u8]) -> Result<String> {
    let (status, answer) = Client::connect(target.address).await?.fetch(request).await?;
    let answer: Value = serde_json::from_slice(&answer).context("a token")?;
    let token = answer.get("access_token").and_then(Value::as_str);
    token.map(str::to_owned).ok_or_else(|| fault(format!("no token: {status} {answer}")))
}

/// The loads of a server, in the order of [`LOADS`].
async fn loads(
    target: &Target,
    (token_path, introspection_path): (&str, &str),
    (id, secret): (&str, &str),
    others: [Maker; 4],
) -> Result<Vec<(&'static str, Maker)>> {
    let client = format!("client_id={id}&client_secret={secret}");
    let request = form_request(token_path, &format!("grant_type=client_credentials&{client}"));
    let token = token(target, &request).await?;
    let introspection = form_request(introspection_path, &format!("{client}&token={token}"));
    let [read, beginning, inside, create] = others;
    let makers = [always(request), read, beginning, inside, create, always(introspection)];
    Ok(LOADS.into_iter().zip(makers).collect())
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
        by_number(target, users, |number| {
            format!("{USERS}?filter=loginName%20co%20%22{}%22&count=20", inside(number))
        }),
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
        by_number(target, users, |number| format!("{}?search=*{}*&max=20", keycloak::USERS, inside(number))),
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

/// A part of a user's login name that is neither its beginning nor its end, which few others have.
fn inside(number: u64) -> String {
    let name = people::login_name(number);
    name.get(1..name.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The engines that are compared with Keycloak, with the most that a request may cost of its cost there.
pub const AIMS: [(Engine, &str, Bound); 16] = [
    (Engine::Sqlite, TOKENS, Bound::None),
    (Engine::Sqlite, READ, Bound::None),
    (Engine::Sqlite, BEGINNING, Bound::None),
    (Engine::Sqlite, INSIDE, Bound::None),
    (Engine::Sqlite, CREATE, Bound::None),
    (Engine::Sqlite, INTROSPECTION, Bound::None),
    (Engine::Sqlite, sign_in::keycloak::REFRESH, Bound::None),
    (Engine::Sqlite, sign_in::keycloak::PASSWORD, Bound::None),
    (Engine::Postgres, TOKENS, Bound::None),
    // a twentieth with 100,000 users
    (Engine::Postgres, READ, Bound::BySize(1.0 / 10.0, 1.0 / 40.0)),
    (Engine::Postgres, BEGINNING, Bound::AtMost(1.0 / 10.0)),
    (Engine::Postgres, INSIDE, Bound::AtMost(1.0 / 6.0)),
    (Engine::Postgres, CREATE, Bound::AtMost(1.0 / 10.0)),
    (Engine::Postgres, INTROSPECTION, Bound::AtMost(1.0 / 5.0)),
    (Engine::Postgres, sign_in::keycloak::REFRESH, Bound::AtMost(1.0 / 4.0)),
    (Engine::Postgres, sign_in::keycloak::PASSWORD, Bound::AtMost(1.0 / 2.0)),
];
