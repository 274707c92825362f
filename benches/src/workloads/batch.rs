//! Ten thousand users in one atomic request, and how long single writers wait meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Bench, create};
use crate::{
    client::Client,
    fault::Result,
    histogram::Histogram,
    peers, process,
    results::{Figures, figures},
    server::sqlite_file,
    target::{Engine, Target, USERS},
};

/// The workload's name.
pub const NAME: &str = "batch of 10,000";
/// The name of the same workload with single writers at the same time.
pub const WITH_WRITERS: &str = "batch of 10,000 beside 4 writers";
const SIZE: usize = 10_000;
const WRITERS: usize = 4;

/// Runs batches: first alone, compared with the engine alone, then together with single writers.
pub async fn run(bench: &mut Bench) -> Result<()> {
    for target in bench.engines() {
        target.call("POST", USERS, create::body().as_bytes(), 201).await?;
    }
    for round in 0..bench.rounds {
        for target in bench.engines() {
            let values = batch(&target).await?;
            bench.record(NAME, target.engine.name(), round, values);
            let duration = alone(bench, target.engine).await?;
            if let Some(duration) = duration {
                let seconds = duration.as_secs_f64();
                let values = figures([("seconds", seconds), ("rows", SIZE as f64 / seconds)]);
                bench.record(NAME, &format!("{} alone", target.engine.name()), round, values);
            }
            let values = with_writers(&target).await?;
            bench.record(WITH_WRITERS, target.engine.name(), round, values);
        }
    }
    Ok(())
}

async fn batch(target: &Target) -> Result<Figures> {
    let users: Vec<String> = (0..SIZE).map(|_| create::body()).collect();
    let body = format!("[{}]", users.join(","));
    let path = format!("{USERS}/batch");
    let request = target.request("POST", &path, body.as_bytes());
    let mut client = Client::connect(target.address).await?;
    process::reset_peak(target.process);
    let memory = process::memory(target.process);
    let (used, begin) = (target.usage(), Instant::now());
    let (status, answer) = client.fetch(&request).await?;
    let seconds = begin.elapsed().as_secs_f64();
    if status != 200 {
        let text: String = String::from_utf8_lossy(&answer).chars().take(400).collect();
        return Err(crate::fault::fault(format!("the batch answered {status}: {text}")));
    }
    let after = target.usage();
    let grown = process::memory(target.process).peak.saturating_sub(memory.resident);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / SIZE as f64;
    let mut values = figures([
        ("seconds", seconds),
        ("rows", SIZE as f64 / seconds),
        ("cpu_us", each(after.server.saturating_sub(used.server))),
        ("grown_mib", grown as f64 / 1024.0),
    ]);
    if target.postmaster.is_some() {
        values.insert("db_cpu_us".into(), each(after.database.saturating_sub(used.database)));
    }
    Ok(values)
}

/// Writes the same rows in one transaction with the engine alone.
async fn alone(bench: &Bench, engine: Engine) -> Result<Option<Duration>> {
    match (engine, bench.sqlite.clone(), &bench.postgres) {
        (Engine::Sqlite, Some((folder, file)), _) => {
            let duration = tokio::task::spawn_blocking(move || {
                let templates = peers::sqlite::templates(&sqlite_file(&folder))?;
                peers::sqlite::Peer::open(&file, templates)?.batch(SIZE)
            });
            Ok(Some(duration.await??))
        }
        (Engine::Postgres, _, Some(url)) => {
            let templates = peers::postgres::templates(url).await?;
            Ok(Some(peers::postgres::Peer::open(url, &templates).await?.batch(SIZE).await?))
        }
        _ => Ok(None),
    }
}

/// Sends a batch while others write single users: how long it took, and the longest wait of a writer.
async fn with_writers(target: &Target) -> Result<Figures> {
    let is_finished = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..WRITERS).map(|_| tokio::spawn(write(target.clone(), Arc::clone(&is_finished)))).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let values = batch(target).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    is_finished.store(true, Ordering::Relaxed);
    let (mut latencies, mut unexpected) = (Histogram::default(), 0);
    for writer in writers {
        let (of_writer, unexpected_of_writer) = writer.await??;
        latencies.merge(&of_writer);
        unexpected += unexpected_of_writer;
    }
    let seconds = values?.get("seconds").copied().unwrap_or(0.0);
    let longest_wait = latencies.longest().as_secs_f64();
    Ok(figures([
        ("seconds", seconds),
        ("longest_wait", longest_wait),
        ("wait_to_batch", longest_wait / seconds),
        ("single_writes", latencies.total() as f64),
        ("refused", f64::from(unexpected)),
    ]))
}

async fn write(target: Target, is_finished: Arc<AtomicBool>) -> Result<(Histogram, u32)> {
    let mut client = Client::connect(target.address).await?;
    let (mut latencies, mut unexpected) = (Histogram::default(), 0);
    while !is_finished.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let request = target.request("POST", USERS, create::body().as_bytes());
        let (status, _) = client.fetch(&request).await?;
        if status == 201 {
            latencies.add(begin.elapsed());
        } else {
            unexpected += 1;
        }
    }
    Ok((latencies, unexpected))
}
