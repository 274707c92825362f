//! People sign in: a code by a session and its tokens, passwords, look-ups of sessions, the page, refreshing. All run on
//! servers of their own, where every user can sign in and has a session, and on oidc-provider for comparison.

pub mod code;
pub mod keycloak;
pub mod look_up;
pub mod page;
pub mod password;
pub mod refresh;
pub mod rules;
mod site;

use std::sync::Arc;

use futures_util::future::try_join_all;

use self::site::{Site, Slot};
use super::{
    Bench,
    administrators::{commits_and_retries, retry_percent},
    load_figures,
};
use crate::{
    cluster::Cluster,
    fault::{Result, fault},
    load::{self, Actor, Maker, Plan},
    peers::oidc_provider::Installation,
    process,
    results::Figures,
    seed::Seeds,
    server::{Server, ServerConfig},
    target::Engine,
};

/// A server: one process, or several that share its users.
pub struct ServerGroup {
    engine: Engine,
    servers: Vec<Server>,
    sites: Vec<Arc<Site>>,
}

/// Runs all of the workloads on each server in turn.
pub async fn run(bench: &mut Bench, seeds: &Seeds, peer: Option<&Installation>) -> Result<()> {
    let (mut groups, mut cluster) = (Vec::new(), None);
    for config in bench.configs.clone() {
        groups.push(
            start_chancery((bench.users, bench.users), seeds, (&config, "sign-in"), &mut cluster).await?,
        );
    }
    if let Some(peer) = peer {
        groups.push(start_oidc_provider(bench.users, peer).await?);
    }
    code::run(bench, &groups).await?;
    password::run(bench, &groups).await?;
    look_up::run(bench, &groups).await?;
    page::run(bench, &groups).await?;
    refresh::run(bench, &groups).await?;
    let mut result = Ok(());
    for server in groups.into_iter().flat_map(|group| group.servers) {
        // the peer ends when it is dropped
        if server.target.engine != Engine::OidcProvider {
            result = result.and(server.stop());
        }
    }
    result.and(cluster.map_or(Ok(()), Cluster::stop))
}

/// Starts a Chancery server with this many users, of whom the first `visitors` sign in, on the engine of a configuration.
async fn start_chancery(
    (users, visitors): (u64, u64),
    seeds: &Seeds,
    (template, name): (&ServerConfig, &str),
    cluster: &mut Option<Cluster>,
) -> Result<ServerGroup> {
    let name = format!("{users}/{}-{name}", template.engine.name());
    let config = if template.engine == Engine::Sqlite {
        ServerConfig::sqlite(&template.program, &seeds.sqlite_for_sign_in(users, &name).await?)
    } else {
        let (seeded_cluster, files) = seeds.postgres_for_sign_in(users, &name).await?;
        seeds.config_on(cluster.insert(seeded_cluster), &files)?
    };
    let server = config.start().await?;
    let site = Site::chancery(server.target.clone(), visitors).await?;
    Ok(ServerGroup { engine: config.engine, servers: vec![server], sites: vec![Arc::new(site)] })
}

async fn start_oidc_provider(users: u64, peer: &Installation) -> Result<ServerGroup> {
    let servers = peer.start(users).await?;
    let processes = servers.len() as u64;
    let site = |(index, server): (u64, &Server)| {
        Site::oidc_provider(server.target.clone(), users, (index, processes))
    };
    let sites = (0..).zip(&servers).map(site).map(Arc::new).collect();
    Ok(ServerGroup { engine: Engine::OidcProvider, servers, sites })
}

/// Puts a server under load by clients, which are created before and divided among its processes.
async fn load<A: Actor>(
    bench: &Bench,
    group: &ServerGroup,
    clients: usize,
    create_actor: impl AsyncFn(Arc<Site>, Slot) -> Result<A>,
) -> Result<Figures> {
    let per_process = clients.div_ceil(group.sites.len());
    let mut loads = Vec::new();
    for site in &group.sites {
        let mut actors = Vec::new();
        for number in 0..per_process {
            actors.push(create_actor(Arc::clone(site), Slot { number, count: per_process }).await?);
        }
        loads.push((site, actors));
    }
    let first = group.sites.first().ok_or_else(|| fault("a server without a process"))?;
    let is_on_postgres = group.engine == Engine::Postgres;
    let before = if is_on_postgres { Some(commits_and_retries(&first.target).await?) } else { None };
    let plan = bench.plan(per_process, load::SUCCESS);
    let running = loads.into_iter().map(|(site, actors)| load::drive(&site.target, plan, actors));
    let mut outcomes = try_join_all(running).await?.into_iter();
    let mut outcome = outcomes.next().ok_or_else(|| fault("a server without a process"))?;
    outcomes.for_each(|other| outcome.add(other));
    let mut values = load_figures(&first.target, &outcome);
    if let Some(before) = before {
        values.insert(
            "repeated_percent".to_owned(),
            retry_percent(&[before], &[commits_and_retries(&first.target).await?]),
        );
    }
    let resident = group.sites.iter().map(|site| process::memory(site.target.process).resident).sum::<u64>();
    values.insert("rss_mib".to_owned(), resident as f64 / 1024.0);
    Ok(values)
}

/// Puts the bare server under load by the same request again and again.
async fn load_bare(
    bench: &mut Bench,
    workload: &str,
    round: u64,
    (clients, length): (usize, usize),
) -> Result<()> {
    let Some(bare) = bench.targets().into_iter().find(|target| target.engine == Engine::Bare) else {
        return Ok(());
    };
    let plan: Plan = bench.plan(clients, 200);
    let maker: Maker = super::always(bare.request("GET", &format!("/{length}"), b""));
    let outcome = load::run(&bare, plan, &maker).await?;
    bench.record(workload, bare.engine.name(), round, load_figures(&bare, &outcome));
    Ok(())
}
