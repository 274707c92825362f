//! Administrators at work in parallel: 64 of them create apps, secrets, options, instances and users, and
//! change memberships, mixed. Almost every one of these changes raises the security epoch.
//!
//! For comparison the engine alone writes the same mix without rules, row for row as the server wrote it:
//! what each change creates (an instance comes with its options) with all audit entries and events. On
//! `PostgreSQL` the clients are also divided between two processes.

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

use super::{Bench, create, measured};
use crate::{
    clock,
    fault::{Result, fault},
    load::{self, Maker, Plan},
    peers::{self, changes::Change},
    people::{self, Chance},
    results::{Figures, figures},
    server::{Recipe, figure, sqlite_file},
    target::{Engine, GROUPS, Target, USERS},
};

/// The workload's name.
pub const NAME: &str = "administrators in parallel, 64 clients";
/// The name of the same workload with two processes.
pub const TWO: &str = "administrators in parallel, 64 clients, two processes";

const BASE: &str = "/api/management/v2";
/// The number of groups whose members change, and of users added to and removed from each.
const SETS: usize = 16;
const MEMBERS: usize = 32;
/// The number of kinds of changes.
const KINDS: u64 = 6;

/// The targets of changes on one engine.
struct Made {
    app: Value,
    tenant: Value,
    kind: Value,
    groups: Vec<String>,
    /// Whether each user is in each group, assuming that the last request succeeded.
    members: Vec<AtomicBool>,
}

async fn call(target: &Target, method: &str, path: &str, body: &Value, expect: u16) -> Result<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Ok(serde_json::from_slice(&target.call(method, path, &body, expect).await?)?)
}

fn named(items: &Value, name: &str) -> Result<Value> {
    let found = items.as_array().into_iter().flatten().find(|item| item.get("name") == Some(&json!(name)));
    found.cloned().ok_or_else(|| fault(format!("there is no {name}")))
}

fn id(item: &Value) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}

async fn make(target: &Target) -> Result<Made> {
    let all =
        async |resource: &str| call(target, "GET", &format!("{BASE}/{resource}"), &Value::Null, 200).await;
    let (tenant, kind) =
        (named(&all("Tenant").await?, "Default")?, named(&all("IdpType").await?, "UserStore")?);
    let mut groups = Vec::new();
    for _ in 0..SETS {
        let group = json!({ "name": format!("administrators {}", next()) });
        let group = call(target, "POST", GROUPS, &group, 201).await?;
        groups.push(format!("{GROUPS}/{}/users", id(&group)));
    }
    let members = (0..SETS * MEMBERS).map(|_| AtomicBool::new(false)).collect();
    Ok(Made { app: Value::Null, tenant, kind, groups, members })
}

/// A number that was not used before.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let _ = NEXT.compare_exchange(0, clock::now_micros(), Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Made {
    /// The change of a kind: method, path, body.
    fn change(&self, kind: u64, chance: &mut Chance) -> (&'static str, String, String) {
        let name = format!("a{}", next());
        let (path, body) = match kind {
            0 => (format!("{BASE}/ClientApp"), json!({ "name": name })),
            1 => (format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": self.app.get("id") })),
            2 => (
                format!("{BASE}/Option"),
                json!({ "name": name, "value": "1", "applyToTenantId": self.tenant.get("id") }),
            ),
            3 => (
                format!("{BASE}/IdpInstance"),
                json!({ "name": name, "idpTypeId": self.kind.get("id"),
                    "subscriptionId": self.tenant.get("subscriptionId") }),
            ),
            4 => return ("POST", USERS.to_owned(), create::body()),
            _ => return self.membership(chance),
        };
        ("POST", path, body.to_string())
    }

    /// Adds a user to a group, or removes a member.
    fn membership(&self, chance: &mut Chance) -> (&'static str, String, String) {
        let place = usize::try_from(chance.below(self.members.len() as u64)).unwrap_or(0);
        let was = self.members.get(place).is_some_and(|is| is.fetch_not(Ordering::Relaxed));
        let path = self.groups.get(place % SETS).cloned().unwrap_or_default();
        let user = people::user_id((place / SETS) as u64);
        let body = json!({ "relatedIds": [user] }).to_string();
        (if was { "DELETE" } else { "POST" }, path, body)
    }
}

/// Requests a change of a random kind.
fn maker(made: &Arc<Made>, target: &Target) -> Maker {
    let (made, target) = (Arc::clone(made), target.clone());
    Arc::new(move |chance: &mut Chance, out: &mut Vec<u8>| {
        let kind = chance.below(KINDS);
        let (method, path, body) = made.change(kind, chance);
        target.write(method, &path, body.as_bytes(), out);
    })
}

/// The database of one engine.
enum Rows {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Rows {
    async fn ends(&self) -> Result<Vec<i64>> {
        match self {
            Self::Sqlite(file) => peers::sqlite::ends(file),
            Self::Postgres(url) => peers::postgres::ends(url).await,
        }
    }

    async fn change_since(&self, ends: &[i64]) -> Result<Change> {
        match self {
            Self::Sqlite(file) => peers::sqlite::change_since(file, ends),
            Self::Postgres(url) => peers::postgres::change_since(url, ends).await,
        }
    }
}

/// Makes one change of each kind, and reads back the rows that it wrote.
async fn learn(target: &Target, made: &mut Made, rows: &Rows) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for kind in 0..KINDS - 1 {
        let ends = rows.ends().await?;
        let (method, path, body) = made.change(kind, &mut Chance::new(0));
        let item: Value = serde_json::from_slice(&target.call(method, &path, body.as_bytes(), 201).await?)?;
        if kind == 0 {
            made.app = item;
        }
        changes.push(rows.change_since(&ends).await?);
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
    let mut all = Vec::new();
    for target in bench.engines() {
        let rows = match (target.engine, &bench.sqlite, &bench.postgres) {
            (Engine::Sqlite, Some((folder, _)), _) => Rows::Sqlite(sqlite_file(folder)),
            (Engine::Postgres, _, Some(url)) => Rows::Postgres(url.clone()),
            _ => return Err(fault("an engine without a database")),
        };
        let mut made = make(&target).await?;
        let changes = learn(&target, &mut made, &rows).await?;
        all.push((target, Arc::new(made), changes));
    }
    let plan = bench.plan(64, load::SUCCESS);
    for round in 0..bench.rounds {
        for (target, made, _) in &all {
            let told = one(target, made, plan).await?;
            bench.note(NAME, target.engine.name(), round, told);
            if target.engine == Engine::Postgres {
                two(bench, target, made, round).await?;
            }
        }
    }
    // last: they write so much at once that the servers' plans, made for small tables, no longer fit
    for round in 0..bench.rounds {
        for (target, _, changes) in &all {
            alone(bench, target.engine, changes, round).await?;
        }
    }
    Ok(())
}

async fn one(target: &Target, made: &Arc<Made>, plan: Plan) -> Result<Figures> {
    let before = repeated(target).await?;
    let outcome = load::run(target, plan, &maker(made, target)).await?;
    let after = repeated(target).await?;
    let mut told = measured(target, &outcome);
    told.entry("refused".to_owned()).or_insert(0.0);
    told.insert("repeated_percent".to_owned(), share(&[before], &[after]));
    Ok(told)
}

/// Runs with half of the clients at a second process.
async fn two(bench: &mut Bench, first: &Target, made: &Arc<Made>, round: u64) -> Result<()> {
    let second = beside(bench.recipe(Engine::Postgres)?)?.start().await?;
    let plan = bench.plan(32, load::SUCCESS);
    let targets = [first, &second.target];
    let before = [repeated(first).await?, repeated(&second.target).await?];
    let makers = targets.map(|target| maker(made, target));
    let (mine, other) =
        tokio::join!(load::run(first, plan, &makers[0]), load::run(&second.target, plan, &makers[1]));
    let after = [repeated(first).await?, repeated(&second.target).await?];
    let mut outcome = mine?;
    outcome.add(other?);
    let mut told = measured(first, &outcome);
    told.entry("refused".to_owned()).or_insert(0.0);
    told.insert("repeated_percent".to_owned(), share(&before, &after));
    bench.note(TWO, first.engine.name(), round, told);
    second.stop()
}

/// Starts one more process on the same database, with the same master key.
pub fn beside(recipe: &Recipe) -> Result<Recipe> {
    let folder = recipe.folder.join("second");
    fs::create_dir_all(&folder)?;
    fs::copy(recipe.folder.join("master.key"), folder.join("master.key"))?;
    Ok(Recipe { folder, ..recipe.clone() })
}

/// The commits and the repetitions of transactions since a process began.
pub async fn repeated(target: &Target) -> Result<(f64, f64)> {
    Ok((figure(target, "chancery_store_commits").await?, figure(target, "chancery_store_retries").await?))
}

/// The repetitions for each hundred commits.
pub fn share(before: &[(f64, f64)], after: &[(f64, f64)]) -> f64 {
    let grown = |of: fn(&(f64, f64)) -> f64| -> f64 {
        after.iter().map(of).sum::<f64>() - before.iter().map(of).sum::<f64>()
    };
    100.0 * grown(|figure| figure.1) / grown(|figure| figure.0)
}

/// Writes the same rows by the engine alone.
async fn alone(bench: &mut Bench, engine: Engine, changes: &[Change], round: u64) -> Result<()> {
    let (time, changes) = (bench.time, Arc::new(changes.to_vec()));
    let rate = match (engine, bench.sqlite.clone(), bench.postgres.clone()) {
        (Engine::Sqlite, Some((_, file)), _) => {
            let peer = move || peers::sqlite::Peer::open(&file, Vec::new())?.change(&changes, time);
            tokio::task::spawn_blocking(peer).await??
        }
        (_, _, Some(url)) => awaited(&url, &changes, time).await?,
        _ => return Ok(()),
    };
    let name = if engine == Engine::Sqlite { "sqlite alone" } else { "postgres alone" };
    bench.note(NAME, name, round, figures([("rate", rate)]));
    Ok(())
}

/// Awaits each statement, on as many connections as the server has: changes a second.
async fn awaited(url: &str, changes: &Arc<Vec<Change>>, time: Duration) -> Result<f64> {
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
