//! A group with many members: read it, add one, replace the set with one in a hundred changed.

use std::time::{Duration, Instant};

use super::Bench;
use crate::{
    client::Client,
    fault::Result,
    people, process,
    results::{Figures, figures},
    target::{GROUPS, Target},
};

/// The large group.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let members = people::big_group(bench.users);
    let group = format!("{GROUPS}/{}", people::group_id(people::BIG_GROUP));
    for round in 0..bench.rounds {
        for target in bench.engines() {
            let engine = target.engine.name();
            let mut client = Client::connect(target.address).await?;
            let told = timed(&target, &mut client, "GET", &group, b"", 200, members).await?;
            bench.note("group, read", engine, round, told);
            // a user who is not in it, where there is one
            let outside = if bench.users > members { members + 1 + round } else { round };
            let one = related([outside].into_iter());
            let path = format!("{group}/users");
            let told = timed(&target, &mut client, "POST", &path, one.as_bytes(), 202, members).await?;
            bench.note("group, add one", engine, round, told);
            let told = timed(&target, &mut client, "DELETE", &path, one.as_bytes(), 202, members).await?;
            bench.note("group, remove one", engine, round, told);
            let changed = members / 100;
            // one member in a hundred is removed and, where there are other users, as many are added
            let kept = (0..members).filter(|user| user % 100 != round % 100);
            let others = (0..changed).map(|user| bench.users - 1 - user).filter(|user| *user >= members);
            let set = related(kept.chain(others));
            let told = timed(&target, &mut client, "PUT", &path, set.as_bytes(), 202, members).await?;
            bench.note("group, replace with 1 % changed", engine, round, told);
            let told = timed(&target, &mut client, "PUT", &path, set.as_bytes(), 202, members).await?;
            bench.note("group, replace with none changed", engine, round, told);
            let all = related(0..members);
            target.call_on(&mut client, "PUT", &path, all.as_bytes(), 202).await?;
        }
    }
    Ok(())
}

fn related(users: impl Iterator<Item = u64>) -> String {
    let ids: Vec<String> = users.map(|user| format!("\"{}\"", people::user_id(user))).collect();
    format!("{{\"relatedIds\":[{}]}}", ids.join(","))
}

async fn timed(
    target: &Target,
    client: &mut Client,
    method: &str,
    path: &str,
    body: &[u8],
    expect: u16,
    members: u64,
) -> Result<Figures> {
    process::forget_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (mut answer, mut times, mut head) = (Vec::new(), 0_u32, Duration::ZERO);
    // requests that change nothing are repeated for a while
    while times == 0 || (method == "GET" && begin.elapsed() < Duration::from_millis(400)) {
        let sent = Instant::now();
        answer = target.call_on(client, method, path, body, expect).await?;
        head = client.head_at - sent;
        times += 1;
    }
    let seconds = begin.elapsed().as_secs_f64() / f64::from(times);
    let after = target.usage();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(times);
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let mut told = figures([
        ("ms", seconds * 1e3),
        ("head_ms", head.as_secs_f64() * 1e3),
        ("us_member", seconds * 1e6 / members as f64),
        ("answer_mb", answer.len() as f64 / 1e6),
        ("cpu_ms", each(after.server.saturating_sub(used.server))),
        ("grown_mib", grown as f64 / 1024.0),
    ]);
    if target.postmaster.is_some() {
        told.insert("db_cpu_ms".into(), each(after.database.saturating_sub(used.database)));
    }
    Ok(told)
}
