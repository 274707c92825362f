//! Changes of users from 64 connections: of a nickname, and of the e-mail address, which is protected where a user has roles.

use serde_json::Value;

use super::{Bench, always, create, load_figures};
use crate::{
    client::Client,
    fault::{Context as _, Result, fault},
    load::{self, ActOutcome, Actor},
    people,
    target::{Engine, Target, USERS},
};

/// The connections.
const CLIENTS: usize = 64;
/// The users that each connection changes in turn. No other connection changes them.
const USERS_EACH: u64 = 3;

/// The members of a change, by a number that no earlier change had.
type Members = fn(u64) -> String;

/// A user and the current concurrency token.
struct User {
    path: String,
    token: String,
}

/// A connection that changes its own users.
struct Editor {
    target: Target,
    members: Members,
    users: Vec<User>,
    turn: usize,
}

/// The concurrency token of a user's representation.
fn token_in(body: &[u8]) -> Result<String> {
    let user: Value = serde_json::from_slice(body).context("a user")?;
    let token = user.get("concurrencyToken").and_then(Value::as_str);
    token.map(str::to_owned).ok_or_else(|| fault("a user without a concurrency token"))
}

impl Editor {
    async fn new(target: &Target, number: usize, members: Members) -> Result<Self> {
        let first = number as u64 * USERS_EACH;
        let mut users = Vec::new();
        for user in first..first + USERS_EACH {
            let path = format!("{USERS}/{}", people::user_id(user));
            let token = token_in(&target.call("GET", &path, b"", 200).await?)?;
            users.push(User { path, token });
        }
        Ok(Self { target: target.clone(), members, users, turn: 0 })
    }
}

impl Actor for Editor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let count = self.users.len();
        let user = self.users.get_mut(self.turn % count).ok_or_else(|| fault("no users"))?;
        self.turn += 1;
        let body = format!(r#"{{{},"concurrencyToken":"{}"}}"#, (self.members)(create::next()), user.token);
        let request = self.target.request("PATCH", &user.path, body.as_bytes());
        let (status, answer) = client.fetch(&request).await?;
        if status != 202 {
            return Ok(ActOutcome::Unexpected(format!("status {status}")));
        }
        user.token = token_in(&answer)?;
        Ok(ActOutcome::Expected(answer.len() as u64))
    }
}

fn nickname(number: u64) -> String {
    format!(r#""nickname":"Nick {number}""#)
}

fn email_address(number: u64) -> String {
    format!(r#""emailAddress":"changed-{number}@example.com""#)
}

/// Changes users.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let cases: [(&str, Members); 2] = [
        ("update a nickname, 64 clients", nickname),
        ("update an e-mail address, 64 clients", email_address),
    ];
    for (name, members) in cases {
        let length = bench.length_of(&format!("{USERS}/{}", people::user_id(0))).await?;
        let plan = bench.plan(CLIENTS, 202);
        for round in 0..bench.rounds {
            for target in bench.targets() {
                let outcome = if target.engine == Engine::Bare {
                    let body = format!("{{{}}}", members(0));
                    let request = target.request("PATCH", &format!("/{length}"), body.as_bytes());
                    load::run(&target, plan, &always(request)).await?
                } else {
                    let mut editors = Vec::new();
                    for number in 0..CLIENTS {
                        editors.push(Editor::new(&target, number, members).await?);
                    }
                    load::drive(&target, plan, editors).await?
                };
                bench.record(name, target.engine.name(), round, load_figures(&target, &outcome));
            }
        }
    }
    Ok(())
}
