//! Members of groups: one added, a hundred added, ten thousand replaced, and many clients at one group.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, Interface, PreparedStore, SCIM_BASE, call, load_figures, text};
use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    histogram::Histogram,
    load::{self, ActOutcome, Actor},
    peers, people,
    results::{Figures, figures},
    server::sqlite_file,
    target::{Engine, GROUPS, Target},
    workloads::administrators::{commits_and_retries, retry_percent},
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
/// Replacing the list of members by one that differs in a few.
pub const REPLACE: &str = "SCIM, replace 10,000 members, 10 of them others";
/// Many clients; each adds and removes its own user.
pub const CONCURRENT: &str = "SCIM, 32 clients, each its own user, one group of 10,000";
/// The same with a group that has no other members: each answer contains all members.
pub const CONCURRENT_EMPTY: &str = "SCIM, 32 clients, each its own user, one empty group";

const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
/// The members of the group that is replaced as a whole.
const LARGE: u64 = 10_000;
/// How many of them are replaced by others.
const REPLACED: usize = 10;
const CLIENTS: usize = 32;
/// The largest number of members for which version 2, whose answers contain all members, is measured.
const MAX_ANSWERED: u64 = 100_000;

/// Creates an empty group, and those for which there are enough users. Their members are written straight into the
/// database.
pub async fn create_groups(bench: &Bench, directory: &Target) -> Result<Vec<(u64, String)>> {
    let mut groups = Vec::new();
    let sizes = ADD_ONE.iter().map(|(size, _)| *size).filter(|size| *size <= bench.users);
    for size in std::iter::once(0).chain(sizes) {
        let name = format!("scim {size} {}", clock::now_micros());
        let group =
            call(directory, "POST", &format!("{SCIM_BASE}/Groups"), &json!({ "displayName": name }), 201)
                .await?;
        groups.push((size, text(&group, "id").to_owned()));
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

/// A change of the members of a group.
#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
    Replace,
}

impl PreparedStore {
    /// The request of a change.
    fn change(&self, interface: Interface, group: &str, change: Change, users: &[String]) -> Vec<u8> {
        let (method, path, body) = match interface {
            Interface::Version2(_) => {
                let method = match change {
                    Change::Add => "POST",
                    Change::Remove => "DELETE",
                    Change::Replace => "PUT",
                };
                (method, format!("{GROUPS}/{group}/users"), json!({ "relatedIds": users }))
            }
            Interface::Scim(_) => {
                let op = match change {
                    Change::Add => "add",
                    Change::Remove => "remove",
                    Change::Replace => "replace",
                };
                let members: Vec<Value> = users.iter().map(|user| json!({ "value": user })).collect();
                let operation = json!({ "op": op, "path": "members", "value": members });
                let body = json!({ "schemas": [PATCH], "Operations": [operation] });
                ("PATCH", format!("{SCIM_BASE}/Groups/{group}"), body)
            }
        };
        self.target(interface).request(method, &path, body.to_string().as_bytes())
    }

    /// The group that was created with this many members.
    fn group(&self, members: u64) -> Option<&str> {
        self.groups.iter().find(|(size, _)| *size == members).map(|(_, group)| group.as_str())
    }

    fn new_users(&self, count: usize) -> Result<&[String]> {
        self.new_users.get(..count).ok_or_else(|| fault("there are too few newcomers"))
    }
}

/// Changes groups through both interfaces.
pub async fn run(bench: &mut Bench, store: &PreparedStore, round: u64) -> Result<()> {
    for (size, name) in ADD_ONE {
        let Some(group) = store.group(size) else { continue };
        for interface in store.interfaces() {
            if matches!(interface, Interface::Scim(_)) || size <= MAX_ANSWERED {
                let values = add(store, interface, group, (1, bench.time)).await?;
                bench.record(name, interface.name(), round, values);
            }
        }
    }
    for interface in store.interfaces() {
        if let Some(group) = store.group(LARGE) {
            let values = add(store, interface, group, (100, bench.time)).await?;
            bench.record(ADD_MANY, interface.name(), round, values);
            let values = replace(store, interface, group, bench.time).await?;
            bench.record(REPLACE, interface.name(), round, values);
        }
        for (name, size) in [(CONCURRENT, LARGE), (CONCURRENT_EMPTY, 0)] {
            let Some(group) = store.group(size) else { continue };
            let values = change_concurrently(bench, store, interface, group).await?;
            bench.record(name, interface.name(), round, values);
        }
    }
    Ok(())
}

/// Sends a request that must succeed; returns the number of bytes of its answer.
async fn send(client: &mut Client, request: &[u8], interface: Interface) -> Result<usize> {
    let (status, answer) = client.fetch(request).await?;
    if status / 100 == load::SUCCESS {
        return Ok(answer.len());
    }
    let text: String = String::from_utf8_lossy(&answer).chars().take(400).collect();
    Err(fault(format!("{} answered a change of members {status}: {text}", interface.name())))
}

fn time_figures(latencies: &Histogram, bytes: usize) -> Figures {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    figures([
        ("p50_ms", milliseconds(latencies.per_mille(500))),
        ("p99_ms", milliseconds(latencies.per_mille(990))),
        ("max_ms", milliseconds(latencies.longest())),
        ("times", latencies.total() as f64),
        ("answer_kb", bytes as f64 / 1e3),
    ])
}

/// Adds this many members and removes them again, for a while; measures the additions.
async fn add(
    store: &PreparedStore,
    interface: Interface,
    group: &str,
    (count, time): (usize, Duration),
) -> Result<Figures> {
    let mut client = Client::connect(store.target(interface).address).await?;
    let (mut latencies, mut bytes, begin) = (Histogram::default(), 0, Instant::now());
    let mut sets = store.new_users.chunks_exact(count).cycle();
    while latencies.total() == 0 || begin.elapsed() < time {
        let members = sets.next().unwrap_or_default();
        let request = store.change(interface, group, Change::Add, members);
        let sent = Instant::now();
        bytes = send(&mut client, &request, interface).await?;
        latencies.add(sent.elapsed());
        send(&mut client, &store.change(interface, group, Change::Remove, members), interface).await?;
    }
    Ok(time_figures(&latencies, bytes))
}

/// Replaces all members again and again: some are different each time.
async fn replace(
    store: &PreparedStore,
    interface: Interface,
    group: &str,
    time: Duration,
) -> Result<Figures> {
    let mut client = Client::connect(store.target(interface).address).await?;
    let original: Vec<String> = (0..LARGE).map(|user| people::user_id(user).to_string()).collect();
    let unchanged = original.iter().skip(REPLACED);
    let changed: Vec<String> = unchanged.chain(store.new_users(REPLACED)?).cloned().collect();
    let requests = [changed, original].map(|users| store.change(interface, group, Change::Replace, &users));
    let (mut latencies, mut bytes, begin) = (Histogram::default(), 0, Instant::now());
    while latencies.total() == 0 || begin.elapsed() < time {
        for request in &requests {
            let sent = Instant::now();
            bytes = send(&mut client, request, interface).await?;
            latencies.add(sent.elapsed());
        }
    }
    Ok(time_figures(&latencies, bytes))
}

/// A client that adds its user to the group, and removes the user the next time.
struct MembershipToggler {
    requests: [Vec<u8>; 2],
    is_member: bool,
}

impl Actor for MembershipToggler {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let [add, remove] = &self.requests;
        let request = if self.is_member { remove } else { add };
        let mut bytes = 0;
        let status = client.send(request, &mut |chunk| bytes += chunk.len() as u64).await?;
        if status / 100 != load::SUCCESS {
            return Ok(ActOutcome::Unexpected(format!("status {status}")));
        }
        self.is_member = !self.is_member;
        Ok(ActOutcome::Expected(bytes))
    }
}

/// Many clients change one group at once.
async fn change_concurrently(
    bench: &Bench,
    store: &PreparedStore,
    interface: Interface,
    group: &str,
) -> Result<Figures> {
    let target = store.target(interface);
    let users = store.new_users(CLIENTS)?;
    let requests = |user: &String| {
        let user = std::slice::from_ref(user);
        [Change::Add, Change::Remove].map(|change| store.change(interface, group, change, user))
    };
    let togglers =
        users.iter().map(|user| MembershipToggler { requests: requests(user), is_member: false }).collect();
    let before = commits_and_retries(&store.administrator).await?;
    let outcome = load::drive(target, bench.plan(CLIENTS, load::SUCCESS), togglers).await?;
    let after = commits_and_retries(&store.administrator).await?;
    let mut client = Client::connect(target.address).await?;
    send(&mut client, &store.change(interface, group, Change::Remove, users), interface).await?;
    let mut values = load_figures(target, &outcome);
    values.entry("refused".to_owned()).or_insert(0.0);
    values.insert("repeated_percent".to_owned(), retry_percent(&[before], &[after]));
    Ok(values)
}
