//! All users with their groups in one answer.

use std::time::{Duration, Instant};

use super::Bench;
use crate::{
    client::Client,
    fault::{Result, fault},
    peers, process,
    results::{Figures, figures},
    target::{Engine, Target, USERS},
};

/// The minimum time for which the list is read.
const MIN_TIME: Duration = Duration::from_millis(700);

/// Reads the complete list, compared with the engine alone reading the same rows.
pub async fn run(bench: &mut Bench) -> Result<()> {
    const NAME: &str = "list all users";
    for round in 0..bench.rounds {
        for target in bench.engines() {
            let values = list(&target, bench.users).await?;
            bench.record(NAME, target.engine.name(), round, values);
            match target.engine {
                Engine::Sqlite => {
                    if let Some((_, file)) = bench.sqlite.clone() {
                        let read = tokio::task::spawn_blocking(move || -> Result<Vec<_>> {
                            let (peer, begin) =
                                (peers::sqlite::Peer::open(&file, Vec::new())?, Instant::now());
                            let mut read = Vec::new();
                            while begin.elapsed() < MIN_TIME {
                                read.push(peer.list()?);
                            }
                            Ok(read)
                        });
                        let values = alone_figures(&read.await??);
                        bench.record(NAME, "sqlite alone", round, values);
                    }
                }
                Engine::Postgres => {
                    if let Some(url) = bench.postgres.clone() {
                        let peer = peers::postgres::Peer::open(&url, &[]).await?;
                        let (begin, mut read) = (Instant::now(), Vec::new());
                        while begin.elapsed() < MIN_TIME {
                            read.push(peer.list().await?);
                        }
                        let values = alone_figures(&read);
                        bench.record(NAME, "postgres alone", round, values);
                    }
                }
                Engine::Bare | Engine::OidcProvider | Engine::Keycloak => {}
            }
        }
    }
    Ok(())
}

fn alone_figures(read: &[(u64, u64, Duration)]) -> Figures {
    let seconds: f64 = read.iter().map(|(.., time)| time.as_secs_f64()).sum();
    let sum_of = |part: fn(&(u64, u64, Duration)) -> u64| read.iter().map(part).sum::<u64>() as f64;
    figures([
        ("seconds", seconds / read.len().max(1) as f64),
        ("rows", sum_of(|(users, ..)| *users) / seconds),
        ("mb", sum_of(|(_, bytes, _)| *bytes) / seconds / 1e6),
    ])
}

/// Reads the list repeatedly for a while, because reading a short one is over at once.
async fn list(target: &Target, users: u64) -> Result<Figures> {
    let mut client = Client::connect(target.address).await?;
    let request = target.request("GET", USERS, b"");
    process::reset_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (mut bytes, mut repetitions, mut first_byte) = (0_u64, 0_u32, 0.0);
    while begin.elapsed() < MIN_TIME {
        let mut last = None;
        let mut count = |chunk: &[u8]| {
            bytes += chunk.len() as u64;
            last = chunk.last().copied();
        };
        let sent = Instant::now();
        let status = client.send(&request, &mut count).await?;
        if status != 200 || last != Some(b']') {
            return Err(fault(format!("the list answered {status} and {bytes} bytes")));
        }
        repetitions += 1;
        first_byte = (client.head_at - sent).as_secs_f64() * 1e3;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let after = target.usage();
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let rows = users as f64 * f64::from(repetitions);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / rows;
    let mut values = figures([
        ("seconds", seconds / f64::from(repetitions)),
        ("rows", rows / seconds),
        ("mb", bytes as f64 / seconds / 1e6),
        ("cpu_us", each(after.server.saturating_sub(used.server))),
        ("grown_mib", grown as f64 / 1024.0),
        ("first_byte_ms", first_byte),
    ]);
    if target.postmaster.is_some() {
        values.insert("db_cpu_us".into(), each(after.database.saturating_sub(used.database)));
    }
    Ok(values)
}
