//! Durable creates from 64 connections, and the same rows written by the engine alone with one commit for each.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Bench, always, load_figures};
use crate::{
    clock,
    fault::Result,
    load::{self, Maker},
    peers,
    people::{self, Person},
    process,
    results::{Figures, Timeline, figures},
    server::sqlite_file,
    target::{Engine, Target, USERS},
};

/// The workload's name.
pub const NAME: &str = "create, 64 clients";
/// The name of the workload of the disk alone.
pub const DISK: &str = "disk, 4 KiB overwrite and fdatasync";
/// The connections to `PostgreSQL` that the server and its peer use.
pub const LANES: u64 = 16;

/// A number that no earlier call returned, in this run or one before.
pub fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let _ = NEXT.compare_exchange(0, clock::now_micros(), Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One more user.
pub fn new_person() -> Person {
    people::new_person(next())
}

/// The body of one more user.
pub fn body() -> String {
    new_person().json()
}

/// Requests one more user each time.
pub fn maker(target: Target) -> Maker {
    Arc::new(move |_, out| target.write("POST", USERS, body().as_bytes(), out))
}

/// Overwrites one page of a file with an fsync each time, for a second; returns how often.
fn disk_rate(folder: &Path) -> Result<f64> {
    let path = folder.join("disk.probe");
    let mut file = fs::File::create(&path)?;
    file.write_all(&vec![1; 1 << 20])?;
    file.sync_all()?;
    let (begin, mut count) = (Instant::now(), 0_u32);
    while begin.elapsed() < Duration::from_secs(1) {
        file.seek(SeekFrom::Start(u64::from(count % 256) * 4096))?;
        file.write_all(&[u8::try_from(count % 251)?; 4096])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / begin.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}

/// Creates users.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let engines = bench.engines();
    let mut length = 0;
    for target in &engines {
        // the rows that the peers repeat
        length = target.call("POST", USERS, body().as_bytes(), 201).await?.len();
    }
    let plan = bench.plan(64, 201);
    for round in 0..bench.rounds {
        if let Some((_, file)) = bench.sqlite.clone() {
            let rate =
                tokio::task::spawn_blocking(move || disk_rate(file.parent().unwrap_or(&file))).await??;
            bench.record(DISK, "disk", round, figures([("rate", rate), ("ms", 1e3 / rate)]));
        }
        for target in bench.targets() {
            let maker = match target.engine {
                Engine::Bare => always(target.request("POST", &format!("/{length}"), body().as_bytes())),
                _ => maker(target.clone()),
            };
            let outcome = load::run(&target, plan, &maker).await?;
            let mut values = load_figures(&target, &outcome);
            if let (Engine::Sqlite, Some((folder, _))) = (target.engine, &bench.sqlite) {
                values.insert("wal_mib".into(), log_size(folder));
            }
            bench.record(NAME, target.engine.name(), round, values);
        }
        run_alone(bench, round).await?;
    }
    Ok(())
}

/// Writes the same rows with the engines alone.
async fn run_alone(bench: &mut Bench, round: u64) -> Result<()> {
    if let Some((folder, file)) = bench.sqlite.clone() {
        let (time, process) = (bench.time, std::process::id());
        let before = process::cpu(process);
        let alone = tokio::task::spawn_blocking(move || {
            let templates = peers::sqlite::templates(&sqlite_file(&folder))?;
            peers::sqlite::Peer::open(&file, templates)?.create(time)
        });
        let rate = alone.await??;
        let used = process::cpu(process).saturating_sub(before).as_secs_f64();
        let each = used * 1e6 / (rate * time.as_secs_f64());
        bench.record(NAME, "sqlite alone", round, figures([("rate", rate), ("cpu_us", each)]));
    }
    if let Some(url) = bench.postgres.clone() {
        let database = bench.engines().iter().find_map(|target| target.postmaster).unwrap_or(0);
        let process = std::process::id();
        let before = (process::cpu(process), process::cpu_of_family(database));
        let (count, seconds) = create_one_by_one(&url, bench.time).await?;
        let each =
            |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e6 / count;
        let values = figures([
            ("rate", count / seconds),
            ("cpu_us", each(process::cpu(process), before.0)),
            ("db_cpu_us", each(process::cpu_of_family(database), before.1)),
        ]);
        bench.record(NAME, "postgres alone", round, values);
    }
    Ok(())
}

/// Awaits the statements of a create one by one, on as many connections as the server has; returns how many creates it
/// made in how many seconds.
async fn create_one_by_one(url: &str, time: Duration) -> Result<(f64, f64)> {
    let templates = peers::postgres::templates(url).await?;
    let mut peers = Vec::new();
    for _ in 0..LANES {
        peers.push(peers::postgres::Peer::open(url, &templates).await?);
    }
    let begin = Instant::now();
    let lanes = peers.into_iter().zip(0..);
    let lanes: Vec<_> =
        lanes.map(|(peer, lane)| tokio::spawn(async move { peer.create(time, lane).await })).collect();
    let mut count = 0;
    for lane in lanes {
        count += lane.await??;
    }
    Ok((f64::from(count), begin.elapsed().as_secs_f64()))
}

fn log_size(folder: &Path) -> f64 {
    let path = format!("{}-wal", sqlite_file(folder).display());
    fs::metadata(path).map_or(0.0, |log| log.len() as f64 / f64::from(1 << 20))
}

/// Runs a constant load for long: how rate, latency, log and memory develop.
pub async fn sustained(bench: &mut Bench, time: Duration) -> Result<()> {
    for target in bench.engines() {
        let plan = load::Plan { time, ..bench.plan(64, 201) };
        let folder = bench.sqlite.as_ref().map(|(folder, _)| folder.clone());
        let folder = folder.filter(|_| target.engine == Engine::Sqlite);
        let memory_and_log = tokio::spawn(watch_memory_and_log(target.clone(), folder, plan));
        let outcome = load::run(&target, plan, &maker(target.clone())).await?;
        let memory_and_log = memory_and_log.await?;
        let seconds = plan.interval.as_secs_f64();
        let mut intervals = Vec::new();
        for (index, latencies) in outcome.timeline.iter().enumerate() {
            let milli = |time: Duration| time.as_secs_f64() * 1e3;
            let mut interval = memory_and_log.get(index).cloned().unwrap_or_default();
            interval.extend(figures([
                ("second", index as f64 * seconds),
                ("rate", latencies.total() as f64 / seconds),
                ("p50_ms", milli(latencies.per_mille(500))),
                ("p99_ms", milli(latencies.per_mille(990))),
                ("max_ms", milli(latencies.longest())),
            ]));
            intervals.push(interval);
        }
        let rate = |intervals: &[Figures]| {
            let rates: Vec<f64> =
                intervals.iter().filter_map(|interval| interval.get("rate").copied()).collect();
            rates.iter().sum::<f64>() / rates.len().max(1) as f64
        };
        let fifth = (intervals.len() / 5).max(1);
        let mut values = load_figures(&target, &outcome);
        let last = rate(intervals.get(intervals.len() - fifth..).unwrap_or_default());
        values.insert("last_to_first".into(), last / rate(intervals.get(..fifth).unwrap_or_default()));
        let maximum = |name: &str| {
            intervals.iter().filter_map(|interval| interval.get(name)).fold(0.0, |a: f64, b| a.max(*b))
        };
        values.insert("wal_mib".into(), maximum("wal_mib"));
        bench.record(&format!("create, {} s", time.as_secs()), target.engine.name(), 0, values);
        bench.results.add_timeline(Timeline {
            engine: target.engine.name().to_owned(),
            users: bench.users,
            intervals,
        });
    }
    Ok(())
}

/// The greatest size of log and memory in each interval of a load.
async fn watch_memory_and_log(
    target: Target,
    folder: Option<std::path::PathBuf>,
    plan: load::Plan,
) -> Vec<Figures> {
    tokio::time::sleep(plan.warm_up).await;
    let begin = Instant::now();
    let mut intervals: Vec<Figures> = Vec::new();
    while begin.elapsed() < plan.time {
        let index = usize::try_from(begin.elapsed().as_secs() / plan.interval.as_secs().max(1)).unwrap_or(0);
        intervals.resize_with(index + 1, Figures::new);
        if let Some(interval) = intervals.get_mut(index) {
            let resident = process::memory(target.process).resident as f64 / 1024.0;
            let mut now = vec![("rss_mib", resident)];
            now.extend(folder.as_ref().map(|folder| ("wal_mib", log_size(folder))));
            for (name, value) in now {
                let maximum = interval.entry(name.to_owned()).or_insert(0.0);
                *maximum = maximum.max(value);
            }
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    intervals
}
