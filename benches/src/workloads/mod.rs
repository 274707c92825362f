//! The workloads.

pub mod administrators;
pub mod batch;
pub mod create;
pub mod events;
pub mod group;
pub mod keycloak;
pub mod list;
pub mod management;
pub mod page;
pub mod password;
pub mod read;
pub mod scim;
pub mod sign_in;
pub mod start;
pub mod update;

use std::{
    num::NonZero,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    fault::{Result, fault},
    load::{self, Maker, Outcome, Plan},
    process,
    results::{Figures, Results, figures},
    server::{Server, ServerConfig},
    target::{Engine, Target},
};

/// The context of a workload: the servers, all with the same number of users.
pub struct Bench {
    /// The number of seeded users.
    pub users: u64,
    /// The measured time of one run.
    pub time: Duration,
    /// The number of rounds.
    pub rounds: u64,
    /// The configurations of the Chancery servers.
    pub configs: Vec<ServerConfig>,
    /// The running servers, the bare one first.
    pub servers: Vec<Server>,
    /// The folder of the server on the embedded engine, and a seeded database for its peer.
    pub sqlite: Option<(PathBuf, PathBuf)>,
    /// The connection string of `PostgreSQL`.
    pub postgres: Option<String>,
    /// The results.
    pub results: Results,
}

impl Bench {
    /// The targets of all running servers.
    pub fn targets(&self) -> Vec<Target> {
        self.servers.iter().map(|server| server.target.clone()).collect()
    }

    /// The targets of the Chancery servers.
    pub fn engines(&self) -> Vec<Target> {
        self.targets().into_iter().filter(|target| target.engine != Engine::Bare).collect()
    }

    /// The configuration of an engine's server.
    pub fn config(&self, engine: Engine) -> Result<&ServerConfig> {
        let config = self.configs.iter().find(|config| config.engine == engine);
        config.ok_or_else(|| fault(format!("there is no {}", engine.name())))
    }

    /// Records a run.
    pub fn record(&mut self, workload: &str, engine: &str, round: u64, figures: Figures) {
        self.results.add(workload, engine, self.users, round, figures);
    }

    /// A plan with this many connections.
    pub fn plan(&self, connections: usize, expect: u16) -> Plan {
        let warm_up = Duration::from_millis(400);
        Plan { connections, warm_up, time: self.time, expect, interval: Duration::from_secs(5) }
    }

    /// Runs a load on every server in turn, round after round. The makers are in the order of
    /// [`Bench::targets`].
    pub async fn compare(&mut self, workload: &str, plan: Plan, makers: &[Maker]) -> Result<()> {
        for round in 0..self.rounds {
            for (target, maker) in self.targets().iter().zip(makers) {
                let outcome = load::run(target, plan, maker).await?;
                self.record(workload, target.engine.name(), round, load_figures(target, &outcome));
            }
        }
        Ok(())
    }

    /// Sends one call to the first engine; returns the length of its answer.
    pub async fn length_of(&self, path: &str) -> Result<usize> {
        let engines = self.engines();
        let target = engines.first().ok_or_else(|| fault("there is no engine to measure"))?;
        Ok(target.call("GET", path, b"", 200).await?.len())
    }
}

/// The figures of every load.
pub fn load_figures(target: &Target, outcome: &Outcome) -> Figures {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / outcome.latencies.total() as f64;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut values = figures([
        ("rate", outcome.rate()),
        ("cpu_us", each(outcome.used.server)),
        ("p50_ms", milliseconds(outcome.latencies.per_mille(500))),
        ("p99_ms", milliseconds(outcome.latencies.per_mille(990))),
        (
            "p99_to_p50",
            outcome.latencies.per_mille(990).as_secs_f64() / outcome.latencies.per_mille(500).as_secs_f64(),
        ),
        ("max_ms", milliseconds(outcome.latencies.longest())),
        ("rss_mib", process::memory(target.process).resident as f64 / 1024.0),
    ]);
    if target.postmaster.is_some() {
        values.insert("db_cpu_us".into(), each(outcome.used.database));
    }
    if outcome.unexpected > 0 {
        let first_unexpected = outcome.first_unexpected.as_deref().unwrap_or_default();
        eprintln!("         {} refused, the first with {first_unexpected}", outcome.unexpected);
        values.insert("refused".into(), outcome.unexpected as f64);
    }
    values
}

/// The processor time of server and database for each operation, in microseconds.
pub const COST: &str = "all_cpu_us";

/// The figures of a load with [`COST`].
fn with_cost(mut values: Figures) -> Figures {
    let cost = ["cpu_us", "db_cpu_us"].iter().filter_map(|name| values.get(*name)).sum();
    values.insert(COST.to_owned(), cost);
    values
}

/// A maker that always writes the same request.
pub fn always(request: Vec<u8>) -> Maker {
    std::sync::Arc::new(move |_, out| out.extend_from_slice(&request))
}

/// Runs an operation on this many threads that do nothing else; returns how often a second.
async fn rate_alone(
    threads: usize,
    time: Duration,
    operation: impl Fn() + Send + Sync + 'static,
) -> Result<f64> {
    let rate = tokio::task::spawn_blocking(move || {
        let count_on_thread = || {
            let (begin, mut count) = (Instant::now(), 0_u32);
            while begin.elapsed() < time {
                operation();
                count += 1;
            }
            f64::from(count) / begin.elapsed().as_secs_f64()
        };
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(count_on_thread)).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or(0.0)).sum()
        })
    });
    Ok(rate.await?)
}

/// The number of processors.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
