//! What giving events their positions takes from those who write, and how long it takes where it was away.

use std::time::{Duration, Instant};

use super::{feed_behind, now};
use crate::{
    fault::{Result, fault},
    load::{self, Plan},
    peers,
    results::{Figures, figures},
    server::sqlite_file,
    target::{Engine, Target, USERS},
    workloads::{Bench, create, measured},
};

/// Creates while nobody gives events positions; the rate with that is [`create::NAME`]'s own.
pub const UNPLACED: &str = "create, 64 clients, events are not placed";
/// Events that came while nobody placed any.
pub const ABSENT: &str = "100,000 events placed and read after an absence";

/// How many events wait.
const WAITING: u64 = 100_000;
/// How long a process relies on a lease that it cannot renew, and a second more.
const HELD: Duration = Duration::from_secs(5);
/// How long placing may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs statements beside the server of an engine.
async fn write(bench: &Bench, engine: Engine, statements: &[String]) -> Result<()> {
    match (engine, &bench.sqlite, &bench.postgres) {
        (Engine::Sqlite, Some((folder, _)), _) => peers::sqlite::run_all(&sqlite_file(folder), statements),
        (Engine::Postgres, _, Some(url)) => peers::postgres::run_all(url, statements).await,
        _ => Err(fault("an engine without a database")),
    }
}

/// Creates while somebody else holds the lease of placing, on PostgreSQL: on the embedded engine there is no other process
/// that could.
pub async fn unplaced(bench: &Bench, target: &Target, plan: Plan, quiet: f64) -> Result<Figures> {
    let until = |until: &str| {
        vec![format!("UPDATE job_lease SET holder = NULL, until = {until} WHERE name = 'placing'")]
    };
    write(bench, target.engine, &until("9000000000000")).await?;
    tokio::time::sleep(HELD).await;
    let outcome = load::run(target, plan, &create::maker(target.clone())).await?;
    write(bench, target.engine, &until("0")).await?;
    placed(target).await?;
    let mut told = measured(target, &outcome);
    told.insert("placed_to_rate".into(), quiet / outcome.rate());
    Ok(told)
}

/// Waits until all that came before is placed: the answer waits for that no longer than two seconds.
async fn placed(target: &Target) -> Result<()> {
    let begin = Instant::now();
    while let Err(error) = now(target).await {
        if begin.elapsed() > PATIENCE {
            return Err(error);
        }
    }
    Ok(())
}

/// Copies of an event of the default store, with the numbers after it, that wait to be placed.
fn statements() -> [String; 2] {
    let numbers = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {WAITING}), \
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

/// Lets very many events wait, as if nobody had placed any for a while: how long until all have their positions, and until a
/// reader has read them.
pub async fn absent(bench: &Bench, target: &Target) -> Result<Figures> {
    target.call("POST", USERS, create::body().as_bytes(), 201).await?;
    let after = now(target).await?;
    write(bench, target.engine, &statements()).await?;
    let begin = Instant::now();
    placed(target).await?;
    let placed = begin.elapsed().as_secs_f64();
    let read = feed_behind(target, &format!("&after={after}")).await?;
    if read < WAITING {
        return Err(fault(format!("a reader got {read} events")));
    }
    Ok(figures([("placed_seconds", placed), ("read_seconds", begin.elapsed().as_secs_f64())]))
}
