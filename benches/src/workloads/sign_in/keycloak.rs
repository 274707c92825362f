//! What people cost who sign in by a password, and apps that refresh, beside Keycloak on PostgreSQL.

use std::sync::Arc;

use super::{Bench, ServerGroup, Site, password, refresh, start_chancery};
use crate::{
    cluster::Cluster,
    fault::Result,
    peers::keycloak::VISITORS,
    seed::Seeds,
    target::{Engine, Target},
    workloads::{
        keycloak::{CLIENTS, WARM_UPS},
        with_cost,
    },
};

/// Signing in by a password, to a code.
pub const PASSWORD: &str = "beside Keycloak: password sign-in, 16 clients";
/// Refreshing the tokens of a confidential app; ID tokens are signed by ES256 on both.
pub const REFRESH: &str = "beside Keycloak: refresh, 16 clients";

/// Runs on Keycloak and on each engine in turn.
pub async fn run(bench: &mut Bench, seeds: &Seeds, keycloak: &Target) -> Result<()> {
    let visitors = VISITORS.min(bench.users);
    let site = Arc::new(Site::keycloak(keycloak.clone(), visitors));
    let mut groups = vec![ServerGroup { engine: Engine::Keycloak, servers: Vec::new(), sites: vec![site] }];
    let mut cluster = None;
    for config in bench.configs.clone() {
        let numbers = (bench.users, visitors);
        groups.push(start_chancery(numbers, seeds, (&config, "sign-in"), &mut cluster).await?);
    }
    for group in &groups {
        for _ in 0..WARM_UPS {
            password::load_by_visitors(bench, group, CLIENTS).await?;
            refresh::load_by_holders(bench, group, CLIENTS, |site| site.elliptic.clone()).await?;
        }
    }
    for round in 0..bench.rounds {
        for group in &groups {
            let values = password::load_by_visitors(bench, group, CLIENTS).await?;
            bench.record(PASSWORD, group.engine.name(), round, with_cost(values));
        }
        for group in &groups {
            let values =
                refresh::load_by_holders(bench, group, CLIENTS, |site| site.elliptic.clone()).await?;
            bench.record(REFRESH, group.engine.name(), round, with_cost(values));
        }
    }
    for server in groups.into_iter().flat_map(|group| group.servers) {
        server.stop()?;
    }
    cluster.map_or(Ok(()), Cluster::stop)
}
