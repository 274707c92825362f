//! Members of groups: one added, a hundred added, ten thousand replaced, and many clients at one group.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, By, HOME, Site, call, measured, text};
use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    histogram::Histogram,
    load::{self, Actor, Done},
    peers, people,
    results::{Figures, figures},
    server::sqlite_file,
    target::{Engine, GROUPS, Target},
    workloads::administrators::{repeated, share},
};

/// Adding a member to groups of so many.
pub const ADD_ONE: [(u64, &str); 4] = [
    (1000, "SCIM, add 1 to 1,000 members"),
    (10_000, "SCIM, add 1 to 10,000 members"),
    (100_000, "SCIM, add 1 to 100,000 members"),
    (1_000_000, "SCIM, add 1 to 1,000,000 members"),
];
/// Adding many members at once.
pub const ADD_MANY: &str = "SCIM, add 100 to 10,000 members";
/// Telling all members anew, of whom few are others.
pub const REPLACE: &str = "SCIM, replace 10,000 members, 10 of them others";
/// Many clients, each of whom adds and removes its own user.
pub const TOGETHER: &str = "SCIM, 32 clients, each its own user, one group of 10,000";
/// The same at a group that has no other members, of which answers show all.
pub const TOGETHER_FEW: &str = "SCIM, 32 clients, each its own user, one empty group";

const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
/// The members of the group that is changed as a whole.
const LARGE: u64 = 10_000;
/// How many of them are others.
const OTHERS: usize = 10;
const CLIENTS: usize = 32;
/// The most members of a group that version 2, which answers with all, is measured with.
const MOST_ANSWERED: u64 = 100_000;

/// Makes an empty group, and those that there are users for. Their members are written straight into the database.
pub async fn make(bench: &Bench, directory: &Target) -> Result<Vec<(u64, String)>> {
    let mut groups = Vec::new();
    let sizes = ADD_ONE.iter().map(|(size, _)| *size).filter(|size| *size <= bench.users);
    for size in std::iter::once(0).chain(sizes) {
        let name = format!("scim {size} {}", clock::now_micros());
        let made =
            call(directory, "POST", &format!("{HOME}/Groups"), &json!({ "displayName": name }), 201).await?;
        groups.push((size, text(&made, "id").to_owned()));
        let fill = format!(
            "INSERT INTO group_member (group_rid, user_rid) SELECT g.rid, u.rid FROM user_group g \
             CROSS JOIN user_account u WHERE g.name_key = '{name}' AND u.rid <= {size}"
        );
        match (directory.engine, &bench.sqlite, &bench.postgres) {
            (Engine::Sqlite, Some((folder, _)), _) => {
                peers::sqlite::run_all(&sqlite_file(folder), &[fill])?;
            }
            (_, _, Some(url)) => {
                peers::postgres::run_all(url, &[fill, "ANALYZE group_member".to_owned()]).await?;
            }
            _ => return Err(fault("an engine without a database")),
        }
    }
    Ok(groups)
}

/// What is done to the members of a group.
#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
    Replace,
}

impl Site {
    /// The request of a change.
    fn change(&self, by: By, group: &str, change: Change, users: &[String]) -> Vec<u8> {
        let (method, path, body) = match by {
            By::Version2(_) => {
                let method = match change {
                    Change::Add => "POST",
                    Change::Remove => "DELETE",
                    Change::Replace => "PUT",
                };
                (method, format!("{GROUPS}/{group}/users"), json!({ "relatedIds": users }))
            }
            By::Scim(_) => {
                let op = match change {
                    Change::Add => "add",
                    Change::Remove => "remove",
                    Change::Replace => "replace",
                };
                let members: Vec<Value> = users.iter().map(|user| json!({ "value": user })).collect();
                let operation = json!({ "op": op, "path": "members", "value": members });
                let body = json!({ "schemas": [PATCH], "Operations": [operation] });
                ("PATCH", format!("{HOME}/Groups/{group}"), body)
            }
        };
        self.target(by).request(method, &path, body.to_string().as_bytes())
    }

    /// The group that was made with so many members.
    fn group(&self, members: u64) -> Option<&str> {
        self.groups.iter().find(|(size, _)| *size == members).map(|(_, group)| group.as_str())
    }

    fn newcomers(&self, count: usize) -> Result<&[String]> {
        self.newcomers.get(..count).ok_or_else(|| fault("there are too few newcomers"))
    }
}

/// Changes groups by both interfaces.
pub async fn run(bench: &mut Bench, site: &Site, round: u64) -> Result<()> {
    for (size, name) in ADD_ONE {
        let Some(group) = site.group(size) else { continue };
        for by in site.both() {
            if matches!(by, By::Scim(_)) || size <= MOST_ANSWERED {
                let told = add(site, by, group, (1, bench.time)).await?;
                bench.note(name, by.name(), round, told);
            }
        }
    }
    for by in site.both() {
        if let Some(group) = site.group(LARGE) {
            let told = add(site, by, group, (100, bench.time)).await?;
            bench.note(ADD_MANY, by.name(), round, told);
            let told = replace(site, by, group, bench.time).await?;
            bench.note(REPLACE, by.name(), round, told);
        }
        for (name, size) in [(TOGETHER, LARGE), (TOGETHER_FEW, 0)] {
            let Some(group) = site.group(size) else { continue };
            let told = together(bench, site, by, group).await?;
            bench.note(name, by.name(), round, told);
        }
    }
    Ok(())
}

/// Sends a request; the bytes of its answer, which is a success.
async fn send(client: &mut Client, request: &[u8], by: By) -> Result<usize> {
    let (status, answer) = client.fetch(request).await?;
    if status / 100 == load::SUCCESS {
        return Ok(answer.len());
    }
    let text: String = String::from_utf8_lossy(&answer).chars().take(400).collect();
    Err(fault(format!("{} answered a change of members {status}: {text}", by.name())))
}

fn told(times: &Histogram, bytes: usize) -> Figures {
    let milli = |time: Duration| time.as_secs_f64() * 1e3;
    figures([
        ("p50_ms", milli(times.per_mille(500))),
        ("p99_ms", milli(times.per_mille(990))),
        ("max_ms", milli(times.longest())),
        ("times", times.total() as f64),
        ("answer_kb", bytes as f64 / 1e3),
    ])
}

/// Adds so many members and removes them again, for a while: how long the additions took.
async fn add(site: &Site, by: By, group: &str, (count, time): (usize, Duration)) -> Result<Figures> {
    let mut client = Client::connect(site.target(by).address).await?;
    let (mut times, mut bytes, begin) = (Histogram::default(), 0, Instant::now());
    let mut sets = site.newcomers.chunks_exact(count).cycle();
    while times.total() == 0 || begin.elapsed() < time {
        let members = sets.next().unwrap_or_default();
        let request = site.change(by, group, Change::Add, members);
        let sent = Instant::now();
        bytes = send(&mut client, &request, by).await?;
        times.add(sent.elapsed());
        send(&mut client, &site.change(by, group, Change::Remove, members), by).await?;
    }
    Ok(told(&times, bytes))
}

/// Tells all members anew, again and again: some are others each time.
async fn replace(site: &Site, by: By, group: &str, time: Duration) -> Result<Figures> {
    let mut client = Client::connect(site.target(by).address).await?;
    let whole: Vec<String> = (0..LARGE).map(|user| people::user_id(user).to_string()).collect();
    let kept = whole.iter().skip(OTHERS);
    let changed: Vec<String> = kept.chain(site.newcomers(OTHERS)?).cloned().collect();
    let requests = [changed, whole].map(|users| site.change(by, group, Change::Replace, &users));
    let (mut times, mut bytes, begin) = (Histogram::default(), 0, Instant::now());
    while times.total() == 0 || begin.elapsed() < time {
        for request in &requests {
            let sent = Instant::now();
            bytes = send(&mut client, request, by).await?;
            times.add(sent.elapsed());
        }
    }
    Ok(told(&times, bytes))
}

/// A client that adds its user to the group, and removes the user the next time.
struct Mover {
    requests: [Vec<u8>; 2],
    is_in: bool,
}

impl Actor for Mover {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let [add, remove] = &self.requests;
        let request = if self.is_in { remove } else { add };
        let mut bytes = 0;
        let status = client.send(request, &mut |piece| bytes += piece.len() as u64).await?;
        if status / 100 != load::SUCCESS {
            return Ok(Done::Bad(format!("status {status}")));
        }
        self.is_in = !self.is_in;
        Ok(Done::Good(bytes))
    }
}

/// Many clients change one group at once.
async fn together(bench: &Bench, site: &Site, by: By, group: &str) -> Result<Figures> {
    let target = site.target(by);
    let users = site.newcomers(CLIENTS)?;
    let requests = |user: &String| {
        let user = std::slice::from_ref(user);
        [Change::Add, Change::Remove].map(|change| site.change(by, group, change, user))
    };
    let movers = users.iter().map(|user| Mover { requests: requests(user), is_in: false }).collect();
    let before = repeated(&site.administrator).await?;
    let outcome = load::drive(target, bench.plan(CLIENTS, load::SUCCESS), movers).await?;
    let after = repeated(&site.administrator).await?;
    let mut client = Client::connect(target.address).await?;
    send(&mut client, &site.change(by, group, Change::Remove, users), by).await?;
    let mut told = measured(target, &outcome);
    told.entry("refused".to_owned()).or_insert(0.0);
    told.insert("repeated_percent".to_owned(), share(&[before], &[after]));
    Ok(told)
}
