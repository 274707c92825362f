//! Very many stored events: whether changes get positions and are delivered as before, and what reading the metrics
//! takes.

use std::time::Instant;

use super::measure_lag;
use crate::{
    fault::Result,
    histogram::Histogram,
    peers,
    target::{Engine, Target},
    workloads::{Bench, create},
};

/// How far readers lag behind a change while this many events are stored.
pub const NAME: &str = "events behind a change, 10,000,000 kept";
/// How many there are.
const STORED: u64 = 10_000_000;
/// How often the metrics are read.
const SCRAPES: u64 = 50;

/// Copies of an event of the default store, with numbers of the day before, at the next positions of its trail.
fn statements() -> [String; 3] {
    let trail = "SELECT trail FROM event_trail WHERE trail > 0 ORDER BY placed DESC LIMIT 1";
    let numbers = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {STORED}), \
         o AS (SELECT * FROM outbox_event WHERE store = ({trail}) ORDER BY id DESC LIMIT 1)"
    );
    // a day before, in microseconds
    let number = "o.id - 86400000000 + n.i";
    [
        format!(
            "INSERT INTO outbox_event (id, store, envelope, traceparent, customer_id, subscription_id, tenant_id, idp_instance_id) \
             {numbers} SELECT {number}, o.store, o.envelope, o.traceparent, o.customer_id, o.subscription_id, o.tenant_id, \
             o.idp_instance_id FROM n, o"
        ),
        format!(
            "INSERT INTO event_place (trail, position, event) {numbers} SELECT t.trail, t.placed + n.i, {number} \
             FROM n, o, event_trail t WHERE t.trail = o.store"
        ),
        format!("UPDATE event_trail SET placed = placed + {STORED} WHERE trail = ({trail})"),
    ]
}

/// Runs on each engine once: the database is not the same afterwards.
pub async fn run(bench: &mut Bench) -> Result<()> {
    for target in bench.engines() {
        // the event that is copied
        target.call("POST", crate::target::USERS, create::body().as_bytes(), 201).await?;
        super::now(&target).await?;
        match (target.engine, &bench.sqlite, &bench.postgres) {
            (Engine::Sqlite, Some((folder, _)), _) => {
                peers::sqlite::run_all(&crate::server::sqlite_file(folder), &statements())?;
            }
            (Engine::Postgres, _, Some(url)) => peers::postgres::run_all(url, &statements()).await?,
            _ => continue,
        }
        let mut values = measure_lag(&[&target], bench.time).await?;
        let scrapes = scrape(&target).await?;
        values.insert("metrics_p50_ms".into(), scrapes.per_mille(500).as_secs_f64() * 1e3);
        values.insert("metrics_p99_ms".into(), scrapes.per_mille(990).as_secs_f64() * 1e3);
        bench.record(NAME, target.engine.name(), 0, values);
    }
    Ok(())
}

async fn scrape(target: &Target) -> Result<Histogram> {
    let mut times = Histogram::default();
    for _ in 0..SCRAPES {
        let begin = Instant::now();
        target.call("GET", "/metrics", b"", 200).await?;
        times.add(begin.elapsed());
    }
    Ok(times)
}
