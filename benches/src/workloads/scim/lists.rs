//! All users: in pages by cursor, and single pages anywhere among them.

use std::{sync::Arc, time::Instant};

use super::{Bench, Interface, PreparedStore, SCIM_BASE};
use crate::{
    client::Client,
    fault::{Result, fault},
    load::{self, Maker},
    process,
    results::{Figures, figures},
    target::{Target, USERS},
    workloads::{load_figures, page},
};

/// A page at a random place.
pub const PAGE: &str = "SCIM, page of 100 by cursor, 1 client";
/// All pages, one after another.
pub const IMPORT: &str = "SCIM, import by cursor, pages of 1,000";

const LARGE_PAGE: usize = 1000;
const SMALL_PAGE: usize = 100;
/// How many bytes of an answer contain what stands before the users.
const HEAD_BYTES: usize = 2048;

/// Reads all users through both interfaces, then pages after the cursors that were found.
pub async fn run(bench: &mut Bench, store: &PreparedStore, round: u64) -> Result<()> {
    for interface in store.interfaces() {
        let target = store.target(interface);
        let (values, cursors) = import(target, interface, bench.users).await?;
        bench.record(IMPORT, interface.name(), round, values);
        let target_of_maker = target.clone();
        let maker: Maker = Arc::new(move |random, out| {
            let index = usize::try_from(random.below(cursors.len() as u64)).unwrap_or(0);
            let cursor = cursors.get(index).map_or("", String::as_str);
            target_of_maker.write("GET", &path(interface, SMALL_PAGE, cursor), b"", out);
        });
        let outcome = load::run(target, bench.plan(1, 200), &maker).await?;
        bench.record(PAGE, interface.name(), round, load_figures(target, &outcome));
    }
    Ok(())
}

/// The path of a page after a cursor; an empty cursor is the beginning.
fn path(interface: Interface, count: usize, cursor: &str) -> String {
    match interface {
        Interface::Scim(_) => format!("{SCIM_BASE}/Users?count={count}&cursor={cursor}"),
        Interface::Version2(_) if cursor.is_empty() => format!("{USERS}?count={count}"),
        Interface::Version2(_) => format!("{USERS}?count={count}&cursor={cursor}"),
    }
}

/// Reads all users; returns the figures and the cursors on the way.
async fn import(target: &Target, interface: Interface, users: u64) -> Result<(Figures, Vec<String>)> {
    let mut client = Client::connect(target.address).await?;
    process::reset_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (mut cursors, mut bytes) = (vec![String::new()], 0);
    loop {
        let cursor = cursors.last().map_or("", String::as_str);
        let answer =
            target.call_on(&mut client, "GET", &path(interface, LARGE_PAGE, cursor), b"", 200).await?;
        bytes += answer.len();
        let next_cursor = match interface {
            Interface::Scim(_) => next_cursor(&answer),
            Interface::Version2(_) => page::next_cursor(&client),
        };
        let Some(next_cursor) = next_cursor else { break };
        cursors.push(next_cursor);
    }
    let seconds = begin.elapsed().as_secs_f64();
    // the last page may have fewer users
    let read = cursors.len() * LARGE_PAGE;
    if (read as u64) < users {
        return Err(fault(format!("{} gave {read} of {users} users", interface.name())));
    }
    let after = target.usage();
    let used = after.server.saturating_sub(used.server).as_secs_f64();
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let values = figures([
        ("seconds", seconds),
        ("us_user", seconds * 1e6 / read as f64),
        ("cpu_us", used * 1e6 / read as f64),
        ("mb", bytes as f64 / 1e6),
        ("grown_mib", grown as f64 / 1024.0),
    ]);
    Ok((values, cursors))
}

/// The cursor after a page of SCIM, if others follow.
fn next_cursor(answer: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(answer.get(..HEAD_BYTES).unwrap_or(answer));
    let (_, rest) = head.split_once("\"nextCursor\":\"")?;
    rest.split('"').next().map(str::to_owned)
}
