//! What the assignment of positions to events takes from writers, and how long it takes to catch up.

use std::time::{Duration, Instant};

use super::{now, read_feed_after};
use crate::{
    fault::{Result, fault},
    load::{self, Plan},
    peers,
    results::{Figures, figures},
    server::sqlite_file,
    target::{Engine, Target, USERS},
    workloads::{Bench, create, load_figures},
};

/// Creates while no process assigns positions; the rate with positions is that of [`create::NAME`].
pub const WITHOUT_POSITIONS: &str = "create, 64 clients, events are not placed";
/// Events that arrived while no process assigned positions.
pub const CATCH_UP: &str = "100,000 events placed and read after an absence";

/// How many events wait for positions.
const PENDING: u64 = 100_000;
/// How long a process relies on a lease that it cannot renew, and a second more.
const LEASE_TIME: Duration = Duration::from_secs(5);
/// How long the assignment of positions may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs statements on the database of an engine while its server runs.
async fn run_statements(bench: &Bench, engine: Engine, statements: &[String]) -> Result<()> {
    match (engine, &bench.sqlite, &bench.postgres) {
        (Engine::Sqlite, Some((folder, _)), _) => peers::sqlite::run_all(&sqlite_file(folder), statements),
        (Engine::Postgres, _, Some(url)) => peers::postgres::run_all(url, statements).await,
        _ => Err(fault("an engine without a database")),
    }
}

/// Creates users while another process holds the lease for assigning positions. PostgreSQL only: the embedded engine
/// has one process.
pub async fn without_positions(
    bench: &Bench,
    target: &Target,
    plan: Plan,
    baseline_rate: f64,
) -> Result<Figures> {
    let set_lease_until = |until: &str| {
        vec![format!("UPDATE job_lease SET holder = NULL, until = {until} WHERE name = 'placing'")]
    };
    run_statements(bench, target.engine, &set_lease_until("9000000000000")).await?;
    tokio::time::sleep(LEASE_TIME).await;
    let outcome = load::run(target, plan, &create::maker(target.clone())).await?;
    run_statements(bench, target.engine, &set_lease_until("0")).await?;
    wait_for_positions(target).await?;
    let mut values = load_figures(target, &outcome);
    values.insert("placed_to_rate".into(), baseline_rate / outcome.rate());
    Ok(values)
}

/// Waits until all earlier events have positions: a single answer waits for that no longer than two seconds.
async fn wait_for_positions(target: &Target) -> Result<()> {
    let begin = Instant::now();
    while let Err(error) = now(target).await {
        if begin.elapsed() > TIMEOUT {
            return Err(error);
        }
    }
    Ok(())
}

/// Copies of an event of the default store, with the numbers after it, that wait for positions.
fn statements() -> [String; 2] {
    let numbers = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PENDING}), \
         o AS (SELECT * FROM outbox_event WHERE store > 0 ORDER BY id DESC LIMIT 1)"
    );
    [
        format!("INSERT INTO event_pending (trail, event) {numbers} SELECT o.store, o.id + n.i FROM n, o"),
        format!(
            "INSERT INTO outbox_event (id, store, envelope, traceparent, customer_id, subscription_id, tenant_id, idp_instance_id) \
             {numbers} SELECT o.id + n.i, o.store, o.envelope, o.traceparent, o.customer_id, o.subscription_id, o.tenant_id, \
             o.idp_instance_id FROM n, o"
        ),
    ]
}

/// Makes very many events wait, as if no process had assigned positions for a while: how long until all have positions,
/// and until a reader has read them.
pub async fn catch_up(bench: &Bench, target: &Target) -> Result<Figures> {
    target.call("POST", USERS, create::body().as_bytes(), 201).await?;
    let after = now(target).await?;
    run_statements(bench, target.engine, &statements()).await?;
    let begin = Instant::now();
    wait_for_positions(target).await?;
    let seconds_to_positions = begin.elapsed().as_secs_f64();
    let events_read = read_feed_after(target, &format!("&after={after}")).await?;
    if events_read < PENDING {
        return Err(fault(format!("a reader got {events_read} events")));
    }
    Ok(figures([("placed_seconds", seconds_to_positions), ("read_seconds", begin.elapsed().as_secs_f64())]))
}
