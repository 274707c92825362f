//! The workloads.

pub mod administrators;
pub mod batch;
pub mod create;
pub mod events;
pub mod group;
pub mod list;
pub mod management;
pub mod page;
pub mod password;
pub mod read;
pub mod scim;
pub mod sign_in;
pub mod start;

use std::{path::PathBuf, time::Duration};

use crate::{
    fault::{Result, fault},
    load::{self, Maker, Outcome, Plan},
    process,
    results::{Figures, Results, figures},
    server::{Recipe, Server},
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
    pub recipes: Vec<Recipe>,
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
    pub fn recipe(&self, engine: Engine) -> Result<&Recipe> {
        let found = self.recipes.iter().find(|recipe| recipe.engine == engine);
        found.ok_or_else(|| fault(format!("there is no {}", engine.name())))
    }

    /// Records a run.
    pub fn note(&mut self, workload: &str, engine: &str, round: u64, figures: Figures) {
        self.results.add(workload, engine, self.users, round, figures);
    }

    /// A plan with this many connections.
    pub fn plan(&self, connections: usize, expect: u16) -> Plan {
        let warm_up = Duration::from_millis(400);
        Plan { connections, warm_up, time: self.time, expect, piece: Duration::from_secs(5) }
    }

    /// Runs a load on every server in turn, round after round. The makers are in the order of
    /// [`Bench::targets`].
    pub async fn compare(&mut self, workload: &str, plan: Plan, makers: &[Maker]) -> Result<()> {
        for round in 0..self.rounds {
            for (target, maker) in self.targets().iter().zip(makers) {
                let outcome = load::run(target, plan, maker).await?;
                self.note(workload, target.engine.name(), round, measured(target, &outcome));
            }
        }
        Ok(())
    }

    /// Sends one call to the first engine: the length of its answer.
    pub async fn length_of(&self, path: &str) -> Result<usize> {
        let engines = self.engines();
        let target = engines.first().ok_or_else(|| fault("there is no engine to measure"))?;
        Ok(target.call("GET", path, b"", 200).await?.len())
    }
}

/// The figures of every load.
pub fn measured(target: &Target, outcome: &Outcome) -> Figures {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / outcome.latencies.total() as f64;
    let milli = |time: Duration| time.as_secs_f64() * 1e3;
    let mut told = figures([
        ("rate", outcome.rate()),
        ("cpu_us", each(outcome.used.server)),
        ("p50_ms", milli(outcome.latencies.per_mille(500))),
        ("p99_ms", milli(outcome.latencies.per_mille(990))),
        (
            "p99_to_p50",
            outcome.latencies.per_mille(990).as_secs_f64() / outcome.latencies.per_mille(500).as_secs_f64(),
        ),
        ("max_ms", milli(outcome.latencies.longest())),
        ("rss_mib", process::memory(target.process).resident as f64 / 1024.0),
    ]);
    if target.postmaster.is_some() {
        told.insert("db_cpu_us".into(), each(outcome.used.database));
    }
    if outcome.refused > 0 {
        let refusal = outcome.refusal.as_deref().unwrap_or_default();
        eprintln!("         {} refused, the first with {refusal}", outcome.refused);
        told.insert("refused".into(), outcome.refused as f64);
    }
    told
}

/// A maker that always writes the same request.
pub fn always(request: Vec<u8>) -> Maker {
    std::sync::Arc::new(move |_, out| out.extend_from_slice(&request))
}
