//! Administrators at work in parallel: 64 of them create apps, secrets, scopes, instances and users, and
//! change memberships, mixed. Almost every one of these changes raises the security epoch.
//!
//! For comparison the engine alone writes the same mix without rules, row for row as the server wrote it: what each
//! change creates (an instance comes with its options), with all audit entries and events. On `PostgreSQL` the clients
//! are also divided between two processes.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{Bench, create, load_figures};
use crate::{
    clock,
    fault::{Result, fault},
    load::{self, Maker, Plan},
    peers::{self, changes::Change},
    people::{self, Random},
    results::{Figures, figures},
    server::{ServerConfig, metric, sqlite_file},
    target::{Engine, GROUPS, Target, USERS},
};

/// The workload's name.
pub const NAME: &str = "administrators in parallel, 64 clients";
/// The name of the same workload with two processes.
pub const TWO_PROCESSES: &str = "administrators in parallel, 64 clients, two processes";

const BASE: &str = "/api/management/v2";
/// The number of groups whose members change, and of users added to and removed from each.
const GROUP_COUNT: usize = 16;
const MEMBERS_PER_GROUP: usize = 32;
/// The number of client apps that get secrets and scopes. A client app has at most 1,000 of each.
const APP_COUNT: u64 = 64;
/// The number of instances that exist before, each with its options.
const INSTANCE_COUNT: u64 = 64;
/// The number of kinds of changes.
const KINDS: u64 = 6;

/// What the changes on one engine refer to.
struct Fixture {
    apps: Vec<Value>,
    tenant: Value,
    idp_type: Value,
    groups: Vec<String>,
    /// Whether each user is in each group, assuming that the last request succeeded.
    members: Vec<AtomicBool>,
}

async fn call(target: &Target, method: &str, path: &str, body: &Value, expect: u16) -> Result<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Ok(serde_json::from_slice(&target.call(method, path, &body, expect).await?)?)
}

fn find_by_name(items: &Value, name: &str) -> Result<Value> {
    let item_found =
        items.as_array().into_iter().flatten().find(|item| item.get("name") == Some(&json!(name)));
    item_found.cloned().ok_or_else(|| fault(format!("there is no {name}")))
}

fn id(item: &Value) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}

async fn make_fixture(target: &Target) -> Result<Fixture> {
    let all =
        async |resource: &str| call(target, "GET", &format!("{BASE}/{resource}"), &Value::Null, 200).await;
    let (tenant, idp_type) =
        (find_by_name(&all("Tenant").await?, "Default")?, find_by_name(&all("IdpType").await?, "UserStore")?);
    let mut groups = Vec::new();
    for _ in 0..GROUP_COUNT {
        let group = json!({ "name": format!("administrators {}", next()) });
        let group = call(target, "POST", GROUPS, &group, 201).await?;
        groups.push(format!("{GROUPS}/{}/users", id(&group)));
    }
    let mut apps = Vec::new();
    for _ in 0..APP_COUNT {
        let app = json!({ "name": format!("app {}", next()) });
        apps.push(call(target, "POST", &format!("{BASE}/ClientApp"), &app, 201).await?);
    }
    let members = (0..GROUP_COUNT * MEMBERS_PER_GROUP).map(|_| AtomicBool::new(false)).collect();
    let fixture = Fixture { apps, tenant, idp_type, groups, members };
    for _ in 0..INSTANCE_COUNT {
        let (method, path, body) = fixture.change(3, &[], &mut Random::new(0));
        target.call(method, &path, body.as_bytes(), 201).await?;
    }
    Ok(fixture)
}

/// A number that was not used before.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let _ = NEXT.compare_exchange(0, clock::now_micros(), Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Fixture {
    /// The change of a kind, where it is about a client app of one of these: method, path, body.
    fn change(
        &self,
        change_kind: u64,
        apps: &[Value],
        random: &mut Random,
    ) -> (&'static str, String, String) {
        let name = format!("a{}", next());
        let index = usize::try_from(random.below(apps.len().max(1) as u64)).unwrap_or(0);
        let app = apps.get(index).and_then(|app| app.get("id"));
        let (path, body) = match change_kind {
            0 => (format!("{BASE}/ClientApp"), json!({ "name": name })),
            1 => (format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": app })),
            2 => (format!("{BASE}/ClientAppScope"), json!({ "key": name, "clientAppId": app })),
            3 => (
                format!("{BASE}/IdpInstance"),
                json!({ "name": name, "idpTypeId": self.idp_type.get("id"),
                    "subscriptionId": self.tenant.get("subscriptionId") }),
            ),
            4 => return ("POST", USERS.to_owned(), create::body()),
            _ => return self.membership(random),
        };
        ("POST", path, body.to_string())
    }

    /// Adds a user to a group, or removes a member.
    fn membership(&self, random: &mut Random) -> (&'static str, String, String) {
        let index = usize::try_from(random.below(self.members.len() as u64)).unwrap_or(0);
        let was_member = self.members.get(index).is_some_and(|is| is.fetch_not(Ordering::Relaxed));
        let path = self.groups.get(index % GROUP_COUNT).cloned().unwrap_or_default();
        let user = people::user_id((index / GROUP_COUNT) as u64);
        let body = json!({ "relatedIds": [user] }).to_string();
        (if was_member { "DELETE" } else { "POST" }, path, body)
    }
}

/// Requests a change of a random kind.
fn maker(fixture: &Arc<Fixture>, target: &Target) -> Maker {
    let (fixture, target) = (Arc::clone(fixture), target.clone());
    Arc::new(move |random: &mut Random, out: &mut Vec<u8>| {
        let change_kind = random.below(KINDS);
        let (method, path, body) = fixture.change(change_kind, &fixture.apps, random);
        target.write(method, &path, body.as_bytes(), out);
    })
}

/// The database of one engine.
enum Rows {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Rows {
    async fn last_numbers(&self) -> Result<Vec<i64>> {
        match self {
            Self::Sqlite(file) => peers::sqlite::last_numbers(file),
            Self::Postgres(url) => peers::postgres::last_numbers(url).await,
        }
    }

    async fn change_since(&self, last_numbers: &[i64]) -> Result<Change> {
        match self {
            Self::Sqlite(file) => peers::sqlite::change_since(file, last_numbers),
            Self::Postgres(url) => peers::postgres::change_since(url, last_numbers).await,
        }
    }
}

/// Makes one change of each kind, and reads back the rows that the server wrote for it.
async fn record_changes(target: &Target, fixture: &Fixture, rows: &Rows) -> Result<Vec<Change>> {
    let (mut changes, mut apps) = (Vec::new(), Vec::new());
    for kind in 0..KINDS - 1 {
        let last_numbers = rows.last_numbers().await?;
        let (method, path, body) = fixture.change(kind, &apps, &mut Random::new(0));
        let created = target.call(method, &path, body.as_bytes(), 201).await?;
        if kind == 0 {
            // the engine alone has no other app
            apps.push(serde_json::from_slice(&created)?);
        }
        changes.push(rows.change_since(&last_numbers).await?);
    }
    let user = changes.last().ok_or_else(|| fault("there are no changes"))?.clone();
    // each kind is listed twice; adding and removing a member are the two halves of one kind
    let memberships = [false, true].map(|removes| Change::membership(&user, removes));
    let mut all: Vec<Change> = changes.iter().flat_map(|change| [change.clone(), change.clone()]).collect();
    all.extend(memberships);
    Ok(all)
}

/// Runs on each engine in turn.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let mut targets = Vec::new();
    for target in bench.engines() {
        let rows = match (target.engine, &bench.sqlite, &bench.postgres) {
            (Engine::Sqlite, Some((folder, _)), _) => Rows::Sqlite(sqlite_file(folder)),
            (Engine::Postgres, _, Some(url)) => Rows::Postgres(url.clone()),
            _ => return Err(fault("an engine without a database")),
        };
        let fixture = make_fixture(&target).await?;
        let changes = record_changes(&target, &fixture, &rows).await?;
        if let Rows::Postgres(url) = &rows {
            // as the server's own job does within a minute: until then it plans for the tables of an empty installation
            peers::postgres::run_all(url, &["ANALYZE".to_owned()]).await?;
        }
        targets.push((target, Arc::new(fixture), changes));
    }
    let plan = bench.plan(64, load::SUCCESS);
    for round in 0..bench.rounds {
        for (target, fixture, _) in &targets {
            let values = run_one(target, fixture, plan).await?;
            bench.record(NAME, target.engine.name(), round, values);
            if target.engine == Engine::Postgres {
                run_two(bench, target, fixture, round).await?;
            }
        }
    }
    // last: they write so much at once that the servers' plans, made for small tables, no longer fit
    for round in 0..bench.rounds {
        for (target, _, changes) in &targets {
            run_alone(bench, target.engine, changes, round).await?;
        }
    }
    Ok(())
}

async fn run_one(target: &Target, fixture: &Arc<Fixture>, plan: Plan) -> Result<Figures> {
    let before = commits_and_retries(target).await?;
    let outcome = load::run(target, plan, &maker(fixture, target)).await?;
    let after = commits_and_retries(target).await?;
    let mut values = load_figures(target, &outcome);
    values.entry("refused".to_owned()).or_insert(0.0);
    values.insert("repeated_percent".to_owned(), retry_percent(&[before], &[after]));
    Ok(values)
}

/// Runs with half of the clients at a second process.
async fn run_two(bench: &mut Bench, first: &Target, fixture: &Arc<Fixture>, round: u64) -> Result<()> {
    let second = second_config(bench.config(Engine::Postgres)?)?.start().await?;
    let plan = bench.plan(32, load::SUCCESS);
    let targets = [first, &second.target];
    let before = [commits_and_retries(first).await?, commits_and_retries(&second.target).await?];
    let makers = targets.map(|target| maker(fixture, target));
    let (first_outcome, second_outcome) =
        tokio::join!(load::run(first, plan, &makers[0]), load::run(&second.target, plan, &makers[1]));
    let after = [commits_and_retries(first).await?, commits_and_retries(&second.target).await?];
    let mut outcome = first_outcome?;
    outcome.add(second_outcome?);
    let mut values = load_figures(first, &outcome);
    values.entry("refused".to_owned()).or_insert(0.0);
    values.insert("repeated_percent".to_owned(), retry_percent(&before, &after));
    bench.record(TWO_PROCESSES, first.engine.name(), round, values);
    second.stop()
}

/// The configuration of one more process on the same database, with the same master key.
pub fn second_config(config: &ServerConfig) -> Result<ServerConfig> {
    let folder = config.folder.join("second");
    fs::create_dir_all(&folder)?;
    fs::copy(config.folder.join("master.key"), folder.join("master.key"))?;
    Ok(ServerConfig { folder, ..config.clone() })
}

/// The numbers of commits and of transaction retries since a process began.
pub async fn commits_and_retries(target: &Target) -> Result<(f64, f64)> {
    Ok((metric(target, "chancery_store_commits").await?, metric(target, "chancery_store_retries").await?))
}

/// The retries for each hundred commits.
pub fn retry_percent(before: &[(f64, f64)], after: &[(f64, f64)]) -> f64 {
    let increase = |of: fn(&(f64, f64)) -> f64| -> f64 {
        after.iter().map(of).sum::<f64>() - before.iter().map(of).sum::<f64>()
    };
    100.0 * increase(|pair| pair.1) / increase(|pair| pair.0)
}

/// Writes the same rows with the engine alone.
async fn run_alone(bench: &mut Bench, engine: Engine, changes: &[Change], round: u64) -> Result<()> {
    let (time, changes) = (bench.time, Arc::new(changes.to_vec()));
    let rate = match (engine, bench.sqlite.clone(), bench.postgres.clone()) {
        (Engine::Sqlite, Some((_, file)), _) => {
            let peer = move || peers::sqlite::Peer::open(&file, Vec::new())?.change(&changes, time);
            tokio::task::spawn_blocking(peer).await??
        }
        (_, _, Some(url)) => sequential_rate(&url, &changes, time).await?,
        _ => return Ok(()),
    };
    let name = if engine == Engine::Sqlite { "sqlite alone" } else { "postgres alone" };
    bench.record(NAME, name, round, figures([("rate", rate)]));
    Ok(())
}

/// Awaits each statement, on as many connections as the server has; returns the changes a second.
async fn sequential_rate(url: &str, changes: &Arc<Vec<Change>>, time: Duration) -> Result<f64> {
    let lanes: Vec<_> = (0..create::LANES)
        .map(|lane| {
            let (url, changes) = (url.to_owned(), Arc::clone(changes));
            tokio::spawn(async move { peers::postgres::change(&url, &changes, time, lane).await })
        })
        .collect();
    let mut count = 0;
    for lane in lanes {
        count += lane.await??;
    }
    Ok(f64::from(count) / time.as_secs_f64())
}
