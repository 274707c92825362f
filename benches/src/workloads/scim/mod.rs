//! Directories: what SCIM does to the users and groups of a store, each beside the same thing done through version 2
//! (`7-scim.md`, section 11).

pub mod groups;
pub mod lists;
pub mod users;

use serde_json::{Value, json};

use super::{Bench, create, measured};
use crate::{
    clock,
    fault::{Result, fault},
    load::{self, Maker, Plan},
    target::{Engine, Target, USERS},
};

/// The address of the store's home.
const HOME: &str = "/api/scim/v2/default";
const CONFIGURATION: &str = "/api/management/v2";
const STORE: &str = "/api/userstore/v2/default/administration";
/// Options that bound what a directory does, each as high as it can be.
const BOUNDS: [(&str, &str); 2] = [("ScimRateLimit", "100000"), ("ScimMassChangeLimit", "1000000")];
/// How many users are not in the groups, and are added to them.
const NEWCOMERS: usize = 1000;

/// By which interface of an engine's server something is done.
#[derive(Clone, Copy)]
pub enum By {
    /// By SCIM.
    Scim(Engine),
    /// By version 2 of the user store service.
    Version2(Engine),
}

impl By {
    /// Its name in tables: SCIM is what is measured, and version 2 a peer.
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
pub struct Site {
    /// The server, for an administrator who uses version 2.
    administrator: Target,
    /// The server, for a directory that reaches the whole store.
    directory: Target,
    /// The ids of users who are in no group yet.
    newcomers: Vec<String>,
    /// Groups by their number of members.
    groups: Vec<(u64, String)>,
}

impl Site {
    /// Both interfaces, version 2 first.
    fn both(&self) -> [By; 2] {
        let engine = self.administrator.engine;
        [By::Version2(engine), By::Scim(engine)]
    }

    /// The server, for who uses this interface.
    fn target(&self, by: By) -> &Target {
        match by {
            By::Scim(_) => &self.directory,
            By::Version2(_) => &self.administrator,
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

/// A directory of the store that reaches all of it, and may do as much as it wants.
async fn directory(target: &Target) -> Result<Target> {
    let all = call(target, "GET", &format!("{CONFIGURATION}/IdpInstance"), &Value::Null, 200).await?;
    let store = all.as_array().into_iter().flatten().find(|one| text(one, "name") == "default");
    let store = text(store.ok_or_else(|| fault("there is no store `default`"))?, "id");
    for (name, value) in BOUNDS {
        let filter = format!("applyToIdpInstanceId%20eq%20%22{store}%22%20and%20name%20eq%20%22{name}%22");
        let path = format!("{CONFIGURATION}/Option");
        let found = call(target, "GET", &format!("{path}?filter={filter}"), &Value::Null, 200).await?;
        let option = found.get(0).ok_or_else(|| fault(format!("there is no {name}")))?;
        let body = json!({ "value": value, "concurrencyToken": option.get("concurrencyToken") });
        call(target, "PATCH", &format!("{path}/{}", text(option, "id")), &body, 202).await?;
    }
    let body = json!({ "name": format!("directory {}", clock::now_micros()), "reach": "All" });
    let made = call(target, "POST", &format!("{STORE}/ScimToken"), &body, 201).await?;
    Ok(Target { token: text(&made, "token").to_owned(), ..target.clone() })
}

async fn newcomers(target: &Target) -> Result<Vec<String>> {
    let users: Vec<String> = (0..NEWCOMERS).map(|_| create::body()).collect();
    let body = format!("[{}]", users.join(","));
    let made: Value =
        serde_json::from_slice(&target.call("POST", &format!("{USERS}/batch"), body.as_bytes(), 200).await?)?;
    Ok(made.as_array().into_iter().flatten().map(|user| text(user, "id").to_owned()).collect())
}

/// Runs on each engine in turn.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let mut sites = Vec::new();
    for target in bench.engines() {
        let directory = directory(&target).await?;
        let newcomers = newcomers(&target).await?;
        let groups = groups::make(bench, &directory).await?;
        sites.push(Site { administrator: target, directory, newcomers, groups });
    }
    for round in 0..bench.rounds {
        for site in &sites {
            users::find(bench, site, round).await?;
            users::read(bench, site, round).await?;
            lists::run(bench, site, round).await?;
            groups::run(bench, site, round).await?;
            users::create(bench, site, round).await?;
        }
    }
    Ok(())
}

/// Runs a load by both interfaces, with what makes each one's requests.
async fn compare(
    bench: &mut Bench,
    site: &Site,
    (name, round): (&str, u64),
    plan: Plan,
    maker: impl Fn(By, Target) -> Maker,
) -> Result<()> {
    for by in site.both() {
        let target = site.target(by);
        let outcome = load::run(target, plan, &maker(by, target.clone())).await?;
        bench.note(name, by.name(), round, measured(target, &outcome));
    }
    Ok(())
}
