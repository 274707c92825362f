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
            let values = measure_request(&target, &mut client, "GET", &group, b"", 200, members).await?;
            bench.record("group, read", engine, round, values);
            // a user who is not a member, if there is one
            let outside = if bench.users > members { members + 1 + round } else { round };
            let one = related([outside].into_iter());
            let path = format!("{group}/users");
            let values =
                measure_request(&target, &mut client, "POST", &path, one.as_bytes(), 202, members).await?;
            bench.record("group, add one", engine, round, values);
            let values =
                measure_request(&target, &mut client, "DELETE", &path, one.as_bytes(), 202, members).await?;
            bench.record("group, remove one", engine, round, values);
            let changed = members / 100;
            // one member in a hundred is removed and, if there are other users, as many are added
            let unchanged = (0..members).filter(|user| user % 100 != round % 100);
            let others = (0..changed).map(|user| bench.users - 1 - user).filter(|user| *user >= members);
            let set = related(unchanged.chain(others));
            let values =
                measure_request(&target, &mut client, "PUT", &path, set.as_bytes(), 202, members).await?;
            bench.record("group, replace with 1 % changed", engine, round, values);
            let values =
                measure_request(&target, &mut client, "PUT", &path, set.as_bytes(), 202, members).await?;
            bench.record("group, replace with none changed", engine, round, values);
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

async fn measure_request(
    target: &Target,
    client: &mut Client,
    method: &str,
    path: &str,
    body: &[u8],
    expect: u16,
    members: u64,
) -> Result<Figures> {
    process::reset_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (mut answer, mut repetitions, mut head) = (Vec::new(), 0_u32, Duration::ZERO);
    // reads are repeated for a while, because they change nothing
    while repetitions == 0 || (method == "GET" && begin.elapsed() < Duration::from_millis(400)) {
        let sent = Instant::now();
        answer = target.call_on(client, method, path, body, expect).await?;
        head = client.head_at - sent;
        repetitions += 1;
    }
    let seconds = begin.elapsed().as_secs_f64() / f64::from(repetitions);
    let after = target.usage();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(repetitions);
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let mut values = figures([
        ("ms", seconds * 1e3),
        ("head_ms", head.as_secs_f64() * 1e3),
        ("us_member", seconds * 1e6 / members as f64),
        ("answer_mb", answer.len() as f64 / 1e6),
        ("cpu_ms", each(after.server.saturating_sub(used.server))),
        ("grown_mib", grown as f64 / 1024.0),
    ]);
    if target.postmaster.is_some() {
        values.insert("db_cpu_ms".into(), each(after.database.saturating_sub(used.database)));
    }
    Ok(values)
}
