//! Administrators at work in parallel: 64 of them make apps, secrets, options, instances and users, and
//! change memberships, mixed. Almost each of these changes what rights others are looked up by.
//!
//! Beside them the engine alone writes what a user's creation writes, row for row, without a rule: an item,
//! its audit entry and event, which each of the mixed writes leaves, too.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{Bench, create, measured};
use crate::{
    clock,
    fault::{Result, fault},
    load::{self, Maker},
    people::Chance,
    target::{Target, USERS},
};

/// The workload's name.
pub const NAME: &str = "administrators in parallel, 64 clients";

const BASE: &str = "/api/management/v2";
const GROUPS: &str = "/api/userstore/v2/default/administration/Group";

/// What is written to on one engine.
struct Made {
    target: Target,
    app: Value,
    tenant: Value,
    kind: Value,
    groups: Vec<String>,
    user: Value,
}

/// How many groups have members added and removed.
const SETS: usize = 16;

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

async fn make(target: Target) -> Result<Made> {
    let all =
        async |resource: &str| call(&target, "GET", &format!("{BASE}/{resource}"), &Value::Null, 200).await;
    let (tenant, kind) =
        (named(&all("Tenant").await?, "Default")?, named(&all("IdpType").await?, "UserStore")?);
    let app = json!({ "name": format!("administrators {}", next()) });
    let app = call(&target, "POST", &format!("{BASE}/ClientApp"), &app, 201).await?;
    let user: Value = serde_json::from_str(&create::body())?;
    let user = call(&target, "POST", USERS, &user, 201).await?;
    let mut groups = Vec::new();
    for _ in 0..SETS {
        let group = json!({ "name": format!("administrators {}", next()) });
        let group = call(&target, "POST", GROUPS, &group, 201).await?;
        groups.push(format!("{GROUPS}/{}/users", id(&group)));
    }
    Ok(Made { target, app, tenant, kind, groups, user })
}

/// A number that nothing had before.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let _ = NEXT.compare_exchange(0, clock::now_micros(), Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Asks for one of the writes, by chance.
fn maker(made: Arc<Made>) -> Maker {
    Arc::new(move |chance: &mut Chance, out: &mut Vec<u8>| {
        let name = format!("a{}", next());
        let (path, body) = match chance.below(6) {
            0 => (format!("{BASE}/ClientApp"), json!({ "name": name })),
            1 => (format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": made.app.get("id") })),
            2 => (
                format!("{BASE}/Option"),
                json!({ "name": name, "value": "1", "applyToTenantId": made.tenant.get("id") }),
            ),
            3 => (
                format!("{BASE}/IdpInstance"),
                json!({ "name": name, "idpTypeId": made.kind.get("id"),
                    "subscriptionId": made.tenant.get("subscriptionId") }),
            ),
            4 => {
                let place = usize::try_from(chance.below(SETS as u64)).unwrap_or(0);
                let path = made.groups.get(place).cloned().unwrap_or_default();
                (path, json!({ "relatedIds": [made.user.get("id")] }))
            }
            _ => return made.target.write("POST", USERS, create::body().as_bytes(), out),
        };
        made.target.write("POST", &path, body.to_string().as_bytes(), out);
    })
}

/// On each engine in turn.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let mut all = Vec::new();
    for target in bench.engines() {
        all.push(Arc::new(make(target).await?));
    }
    let plan = bench.plan(64, load::SUCCESS);
    for round in 0..bench.rounds {
        for made in &all {
            let outcome = load::run(&made.target, plan, &maker(Arc::clone(made))).await?;
            let mut told = measured(&made.target, &outcome);
            told.entry("refused".to_owned()).or_insert(0.0);
            bench.note(NAME, made.target.engine.name(), round, told);
        }
        create::alone(bench, NAME, round).await?;
    }
    Ok(())
}
