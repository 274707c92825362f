//! Directories: what SCIM does to the users and groups of a store, each compared with the same thing done through version
//! 2.

pub mod groups;
pub mod lists;
pub mod users;

use serde_json::{Value, json};

use super::{Bench, create, load_figures};
use crate::{
    clock,
    fault::{Result, fault},
    load::{self, Maker, Plan},
    target::{Engine, Target, USERS},
};

/// The base path of SCIM for the store.
const SCIM_BASE: &str = "/api/scim/v2/default";
const CONFIGURATION: &str = "/api/management/v2";
const STORE: &str = "/api/userstore/v2/default/administration";
/// Options that limit what a directory does, each with its highest value.
const LIMIT_OPTIONS: [(&str, &str); 2] = [("ScimRateLimit", "100000"), ("ScimMassChangeLimit", "1000000")];
/// How many users belong to no group, and are added to groups.
const NEW_USERS: usize = 1000;

/// The interface of an engine's server that a workload uses.
#[derive(Clone, Copy)]
pub enum Interface {
    /// SCIM.
    Scim(Engine),
    /// Version 2 of the user store service.
    Version2(Engine),
}

impl Interface {
    /// Its name in tables: SCIM is measured, and version 2 is its peer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scim(engine) => engine.name(),
            Self::Version2(Engine::Sqlite) => "sqlite version 2",
            Self::Version2(_) => "postgres version 2",
        }
    }

    /// The other interface of the same server.
    pub const fn other(self) -> Self {
        match self {
            Self::Scim(engine) => Self::Version2(engine),
            Self::Version2(engine) => Self::Scim(engine),
        }
    }
}

/// A store on one engine, prepared.
pub struct PreparedStore {
    /// The server, with the token of an administrator who uses version 2.
    administrator: Target,
    /// The server, with the token of a directory that reaches the whole store.
    directory: Target,
    /// The ids of users who belong to no group yet.
    new_users: Vec<String>,
    /// Groups by their number of members.
    groups: Vec<(u64, String)>,
}

impl PreparedStore {
    /// Both interfaces, version 2 first.
    fn interfaces(&self) -> [Interface; 2] {
        let engine = self.administrator.engine;
        [Interface::Version2(engine), Interface::Scim(engine)]
    }

    /// The server, with the token for this interface.
    fn target(&self, interface: Interface) -> &Target {
        match interface {
            Interface::Scim(_) => &self.directory,
            Interface::Version2(_) => &self.administrator,
        }
    }
}

async fn call(target: &Target, method: &str, path: &str, body: &Value, expect: u16) -> Result<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Ok(serde_json::from_slice(&target.call(method, path, &body, expect).await?)?)
}

fn text<'a>(item: &'a Value, member: &str) -> &'a str {
    item.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Creates a directory of the store that reaches all of it, with the highest limits.
async fn create_directory(target: &Target) -> Result<Target> {
    let instances = call(target, "GET", &format!("{CONFIGURATION}/IdpInstance"), &Value::Null, 200).await?;
    let store =
        instances.as_array().into_iter().flatten().find(|instance| text(instance, "name") == "default");
    let store = text(store.ok_or_else(|| fault("there is no store `default`"))?, "id");
    for (name, value) in LIMIT_OPTIONS {
        let filter = format!("applyToIdpInstanceId%20eq%20%22{store}%22%20and%20name%20eq%20%22{name}%22");
        let path = format!("{CONFIGURATION}/Option");
        let options = call(target, "GET", &format!("{path}?filter={filter}"), &Value::Null, 200).await?;
        let option = options.get(0).ok_or_else(|| fault(format!("there is no {name}")))?;
        let body = json!({ "value": value, "concurrencyToken": option.get("concurrencyToken") });
        call(target, "PATCH", &format!("{path}/{}", text(option, "id")), &body, 202).await?;
    }
    let body = json!({ "name": format!("directory {}", clock::now_micros()), "reach": "All" });
    let token = call(target, "POST", &format!("{STORE}/ScimToken"), &body, 201).await?;
    Ok(Target { token: text(&token, "token").to_owned(), ..target.clone() })
}

async fn create_users(target: &Target) -> Result<Vec<String>> {
    let users: Vec<String> = (0..NEW_USERS).map(|_| create::body()).collect();
    let body = format!("[{}]", users.join(","));
    let users_created: Value =
        serde_json::from_slice(&target.call("POST", &format!("{USERS}/batch"), body.as_bytes(), 200).await?)?;
    Ok(users_created.as_array().into_iter().flatten().map(|user| text(user, "id").to_owned()).collect())
}

/// Runs on each engine in turn.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let mut stores = Vec::new();
    for target in bench.engines() {
        let directory = create_directory(&target).await?;
        let new_users = create_users(&target).await?;
        let groups = groups::create_groups(bench, &directory).await?;
        stores.push(PreparedStore { administrator: target, directory, new_users, groups });
    }
    for round in 0..bench.rounds {
        for store in &stores {
            users::find(bench, store, round).await?;
            users::read(bench, store, round).await?;
            lists::run(bench, store, round).await?;
            groups::run(bench, store, round).await?;
            users::create(bench, store, round).await?;
        }
    }
    Ok(())
}

/// Runs a load through both interfaces; `maker` makes the requests of each.
async fn compare(
    bench: &mut Bench,
    store: &PreparedStore,
    (name, round): (&str, u64),
    plan: Plan,
    maker: impl Fn(Interface, Target) -> Maker,
) -> Result<()> {
    for interface in store.interfaces() {
        let target = store.target(interface);
        let outcome = load::run(target, plan, &maker(interface, target.clone())).await?;
        bench.record(name, interface.name(), round, load_figures(target, &outcome));
    }
    Ok(())
}
