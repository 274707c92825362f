//! Starting a server, and leaving it idle.

use std::time::Duration;

use super::Bench;
use crate::{
    fault::Result,
    process,
    results::figures,
    server::{Server, ServerConfig},
};

/// How long an idle server is watched.
const IDLE: Duration = Duration::from_secs(5);

/// Starts a server several times; the last one keeps running.
pub async fn run(bench: &mut Bench, config: &ServerConfig) -> Result<Server> {
    // a server checks the whole file of a copied database once, at its first start on it
    config.start().await?.stop()?;
    let mut round = 0;
    loop {
        let server = config.start().await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let process = server.target.process;
        let memory = process::memory(process);
        let before = process::cpu(process);
        tokio::time::sleep(IDLE).await;
        let used = process::cpu(process).saturating_sub(before);
        let values = figures([
            ("ready_ms", server.ready_after.as_secs_f64() * 1e3),
            ("rss_mib", memory.resident as f64 / 1024.0),
            ("anonymous_mib", memory.anonymous as f64 / 1024.0),
            ("idle_cpu_percent", used.as_secs_f64() / IDLE.as_secs_f64() * 100.0),
        ]);
        bench.record("start and idle", config.engine.name(), round, values);
        round += 1;
        if round >= bench.rounds {
            return Ok(server);
        }
        server.stop()?;
    }
}
