//! A browser without a session: the page, a name and a password, a code. Compared with the hash alone.
//!
//! Nobody is refused for too many attempts: each client has its own users, so that no user has two attempts at once, and
//! the server's limit of wrong proofs from one address is high (`server.rs`). In force are the lockout, the limit itself,
//! and the lanes of the database.

use std::sync::Arc;

use chancery_credential::hash::{Parameters, hash, verify};
use chancery_record::Secret;

use super::{
    Bench, ServerGroup, load,
    site::{Site, Slot},
};
use crate::{
    client::Client,
    fault::{Context as _, Result},
    load::{ActOutcome, Actor, random},
    people::{self, Random},
    results::{Figures, figures},
    workloads::{processors, rate_alone},
};

/// The workload's name.
pub const NAME: &str = "password sign-in, 64 clients";

const CLIENTS: usize = 64;

struct Visitor {
    site: Arc<Site>,
    slot: Slot,
    random: Random,
    request: String,
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let user = self.site.user(self.slot, &mut self.random);
        let response = self.site.sign_in(client, &self.request, user).await?;
        Ok(if response.parameter("code").is_some() {
            ActOutcome::Expected(0)
        } else {
            ActOutcome::Unexpected(response.describe())
        })
    }
}

/// Puts a server under load by this many people who sign in.
pub async fn load_by_visitors(bench: &Bench, group: &ServerGroup, clients: usize) -> Result<Figures> {
    let create_visitor = async |site: Arc<Site>, slot: Slot| {
        let request = site.usual.code_request("openid");
        Ok(Visitor { site, slot, random: random(slot.number), request })
    };
    load(bench, group, clients, create_visitor).await
}

/// Verifies the password on this many threads that do nothing else; returns the verifications a second.
async fn hash_rate(bench: &Bench, threads: usize) -> Result<f64> {
    let password = Secret::new(people::PASSWORD);
    let hashed = hash(&password, &Parameters::default()).context("a password")?;
    let verify_once = move || {
        std::hint::black_box(verify(&hashed, &password, &Parameters::default()));
    };
    rate_alone(threads, bench.time, verify_once).await
}

/// Runs on each server in turn. The bare hash runs before each round, on all processors, as in the server.
pub async fn run(bench: &mut Bench, groups: &[ServerGroup]) -> Result<()> {
    let processors = processors();
    for round in 0..bench.rounds {
        let rate = hash_rate(bench, processors).await?;
        bench.record(NAME, "hash alone", round, figures([("rate", rate), ("threads", processors as f64)]));
        for group in groups {
            let values = load_by_visitors(bench, group, CLIENTS).await?;
            bench.record(NAME, group.engine.name(), round, values);
        }
    }
    Ok(())
}
