//! People sign in: a code by a session and its tokens, passwords, look-ups of sessions, the page, refreshing. All run on
//! servers of their own, where every user can sign in and has a session, and at oidc-provider beside them.

pub mod code;
pub mod look_up;
pub mod page;
pub mod password;
pub mod refresh;
pub mod rules;
mod site;

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;

use self::site::{Place, Site};
use super::{
    Bench,
    administrators::{repeated, share},
    measured,
};
use crate::{
    cluster::Cluster,
    fault::{Result, fault},
    load::{self, Actor, Maker, Plan},
    peers::oidc_provider::Installed,
    process,
    results::Figures,
    seed::Seeds,
    server::{Recipe, Server},
    target::Engine,
};

/// A server, in one process or several that share its users.
pub struct Contestant {
    engine: Engine,
    servers: Vec<Server>,
    sites: Vec<Arc<Site>>,
}

/// Runs all of them on each server in turn.
pub async fn run(bench: &mut Bench, seeds: &Seeds, peer: Option<&Installed>) -> Result<()> {
    let (mut all, mut cluster) = (Vec::new(), None);
    for recipe in bench.recipes.clone() {
        all.push(ours((bench.users, bench.users), seeds, (&recipe, "sign-in"), &mut cluster).await?);
    }
    if let Some(peer) = peer {
        all.push(foreign(bench.users, peer).await?);
    }
    code::run(bench, &all).await?;
    password::run(bench, &all).await?;
    look_up::run(bench, &all).await?;
    page::run(bench, &all).await?;
    refresh::run(bench, &all).await?;
    let mut stopped = Ok(());
    for server in all.into_iter().flat_map(|one| one.servers) {
        // the peer ends when it is dropped
        if server.target.engine != Engine::OidcProvider {
            stopped = stopped.and(server.stop());
        }
    }
    stopped.and(cluster.map_or(Ok(()), Cluster::stop))
}

/// A server of ours with so many users, of whom the first few sign in, on the engine of a recipe.
async fn ours(
    (users, visitors): (u64, u64),
    seeds: &Seeds,
    (like, name): (&Recipe, &str),
    cluster: &mut Option<Cluster>,
) -> Result<Contestant> {
    let name = format!("{users}/{}-{name}", like.engine.name());
    let recipe = if like.engine == Engine::Sqlite {
        Recipe::sqlite(&like.program, &seeds.sqlite_for_sign_in(users, &name).await?)
    } else {
        let (made, files) = seeds.postgres_for_sign_in(users, &name).await?;
        seeds.on(cluster.insert(made), &files)?
    };
    let server = recipe.start().await?;
    let site = Site::ours(server.target.clone(), visitors).await?;
    Ok(Contestant { engine: recipe.engine, servers: vec![server], sites: vec![Arc::new(site)] })
}

async fn foreign(users: u64, peer: &Installed) -> Result<Contestant> {
    let servers = peer.start(users).await?;
    let shares = servers.len() as u64;
    let site = |(share, server): (u64, &Server)| Site::foreign(server.target.clone(), users, (share, shares));
    let sites = (0..).zip(&servers).map(site).map(Arc::new).collect();
    Ok(Contestant { engine: Engine::OidcProvider, servers, sites })
}

/// Puts a server under load by clients, which are divided among its processes and made before.
async fn load<A: Actor>(
    bench: &Bench,
    at: &Contestant,
    clients: usize,
    make: impl AsyncFn(Arc<Site>, Place) -> Result<A>,
) -> Result<Figures> {
    let of = clients.div_ceil(at.sites.len());
    let mut loads = Vec::new();
    for site in &at.sites {
        let mut actors = Vec::new();
        for number in 0..of {
            actors.push(make(Arc::clone(site), Place { number, of }).await?);
        }
        loads.push((site, actors));
    }
    let first = at.sites.first().ok_or_else(|| fault("a server without a process"))?;
    let is_on_postgres = at.engine == Engine::Postgres;
    let before = if is_on_postgres { Some(repeated(&first.target).await?) } else { None };
    let plan = bench.plan(of, load::SUCCESS);
    let under = loads.into_iter().map(|(site, actors)| load::drive(&site.target, plan, actors));
    let mut outcomes = try_join_all(under).await?.into_iter();
    let mut outcome = outcomes.next().ok_or_else(|| fault("a server without a process"))?;
    outcomes.for_each(|other| outcome.add(other));
    let mut told = measured(&first.target, &outcome);
    if let Some(before) = before {
        told.insert("repeated_percent".to_owned(), share(&[before], &[repeated(&first.target).await?]));
    }
    let resident = at.sites.iter().map(|site| process::memory(site.target.process).resident).sum::<u64>();
    told.insert("rss_mib".to_owned(), resident as f64 / 1024.0);
    Ok(told)
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
    bench.note(workload, bare.engine.name(), round, measured(&bare, &outcome));
    Ok(())
}

/// How often a second some threads do work that does nothing else.
async fn alone(threads: usize, time: Duration, work: impl Fn() + Send + Sync + 'static) -> Result<f64> {
    let counted = tokio::task::spawn_blocking(move || {
        let one = || {
            let (begin, mut count) = (Instant::now(), 0_u32);
            while begin.elapsed() < time {
                work();
                count += 1;
            }
            f64::from(count) / begin.elapsed().as_secs_f64()
        };
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or(0.0)).sum()
        })
    });
    Ok(counted.await?)
}
