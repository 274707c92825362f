//! All users: in pages by cursor, and single pages anywhere among them.

use std::{sync::Arc, time::Instant};

use super::{Bench, By, HOME, Site};
use crate::{
    client::Client,
    fault::{Result, fault},
    load::{self, Maker},
    process,
    results::{Figures, figures},
    target::{Target, USERS},
    workloads::{measured, page},
};

/// A page anywhere.
pub const PAGE: &str = "SCIM, page of 100 by cursor, 1 client";
/// All pages one after another.
pub const IMPORT: &str = "SCIM, import by cursor, pages of 1,000";

const WHOLE: usize = 1000;
const SMALL: usize = 100;
/// How many bytes of an answer have what it tells before the users.
const HEAD: usize = 2048;

/// Reads all users by both interfaces, and then pages behind the cursors that were found.
pub async fn run(bench: &mut Bench, site: &Site, round: u64) -> Result<()> {
    for by in site.both() {
        let target = site.target(by);
        let (told, cursors) = import(target, by, bench.users).await?;
        bench.note(IMPORT, by.name(), round, told);
        let of_maker = target.clone();
        let maker: Maker = Arc::new(move |chance, out| {
            let place = usize::try_from(chance.below(cursors.len() as u64)).unwrap_or(0);
            let cursor = cursors.get(place).map_or("", String::as_str);
            of_maker.write("GET", &path(by, SMALL, cursor), b"", out);
        });
        let outcome = load::run(target, bench.plan(1, 200), &maker).await?;
        bench.note(PAGE, by.name(), round, measured(target, &outcome));
    }
    Ok(())
}

/// The path of a page behind a cursor; an empty one is the beginning.
fn path(by: By, count: usize, cursor: &str) -> String {
    match by {
        By::Scim(_) => format!("{HOME}/Users?count={count}&cursor={cursor}"),
        By::Version2(_) if cursor.is_empty() => format!("{USERS}?count={count}"),
        By::Version2(_) => format!("{USERS}?count={count}&cursor={cursor}"),
    }
}

/// Reads all users: what it took, and the cursors on the way.
async fn import(target: &Target, by: By, users: u64) -> Result<(Figures, Vec<String>)> {
    let mut client = Client::connect(target.address).await?;
    process::forget_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (mut cursors, mut bytes) = (vec![String::new()], 0);
    loop {
        let cursor = cursors.last().map_or("", String::as_str);
        let answer = target.call_on(&mut client, "GET", &path(by, WHOLE, cursor), b"", 200).await?;
        bytes += answer.len();
        let next = match by {
            By::Scim(_) => next(&answer),
            By::Version2(_) => page::next(&client),
        };
        let Some(next) = next else { break };
        cursors.push(next);
    }
    let seconds = begin.elapsed().as_secs_f64();
    // the last page may have less
    let read = cursors.len() * WHOLE;
    if (read as u64) < users {
        return Err(fault(format!("{} gave {read} of {users} users", by.name())));
    }
    let after = target.usage();
    let used = after.server.saturating_sub(used.server).as_secs_f64();
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let told = figures([
        ("seconds", seconds),
        ("us_user", seconds * 1e6 / read as f64),
        ("cpu_us", used * 1e6 / read as f64),
        ("mb", bytes as f64 / 1e6),
        ("grown_mib", grown as f64 / 1024.0),
    ]);
    Ok((told, cursors))
}

/// The cursor behind a page of SCIM, if others follow.
fn next(answer: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(answer.get(..HEAD).unwrap_or(answer));
    let (_, rest) = head.split_once("\"nextCursor\":\"")?;
    rest.split('"').next().map(str::to_owned)
}
