//! Reading one user by id or by login name.

use std::sync::Arc;

use super::{Bench, always};
use crate::{
    fault::Result,
    load::Maker,
    people,
    target::{Engine, Target, USERS},
};

/// The path of a user, by number.
type Path = fn(u64) -> String;

fn maker(target: Target, users: u64, path: Path) -> Maker {
    Arc::new(move |random, out| target.write("GET", &path(random.below(users)), b"", out))
}

fn by_id(number: u64) -> String {
    format!("{USERS}/{}", people::user_id(number))
}

fn by_login_name(number: u64) -> String {
    format!("{USERS}/loginname/{}", people::login_name(number))
}

/// Reads random users, from few and from many connections.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let cases: [(&str, usize, Path); 4] = [
        ("read by id, 16 clients", 16, by_id),
        ("read by id, 64 clients", 64, by_id),
        ("read by login name, 16 clients", 16, by_login_name),
        ("read by login name, 64 clients", 64, by_login_name),
    ];
    for (name, connections, path) in cases {
        let length = bench.length_of(&path(bench.users - 1)).await?;
        let users = bench.users;
        let makers: Vec<Maker> = bench
            .targets()
            .into_iter()
            .map(|target| match target.engine {
                Engine::Bare => always(target.request("GET", &format!("/{length}"), b"")),
                _ => maker(target, users, path),
            })
            .collect();
        bench.compare(name, bench.plan(connections, 200), &makers).await?;
    }
    Ok(())
}
