//! A browser without a session: the page, a name and a password, a code. Beside it the hash alone.
//!
//! Nobody is refused for being too many: each client has users of its own, so that no user has two attempts at once,
//! and the server's limit of wrong proofs from one address is high (`server.rs`). In force are the lockout, the limit
//! itself, the lanes of the database, and that passwords are hashed on one processor less than there are.

use std::sync::Arc;

use chancery_credential::hash::{Parameters, hash, verify};
use chancery_record::Secret;

use super::{
    Bench, Contestant, alone, load,
    site::{Place, Site},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Doing as _, Result},
    load::{Actor, Done, chance},
    people::{self, Chance},
    results::figures,
};

/// The workload's name.
pub const NAME: &str = "password sign-in, 64 clients";

const CLIENTS: usize = 64;

struct Visitor {
    site: Arc<Site>,
    place: Place,
    chance: Chance,
    request: String,
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let name = people::login_name(self.site.user(self.place, &mut self.chance));
        let mut browser = Browser::new(self.site.target.address);
        let page = browser.open(client, &self.request).await?;
        let Some((action, form)) = page.filled(&[("username", &name), ("password", people::PASSWORD)]) else {
            return Ok(Done::Bad(format!("no form: {}", page.told())));
        };
        let arrived = browser.post(client, &action, &form).await?;
        Ok(if arrived.parameter("code").is_some() { Done::Good(0) } else { Done::Bad(arrived.told()) })
    }
}

/// Verifies the password on so many threads that do nothing else: how often a second.
async fn bare(bench: &Bench, threads: usize) -> Result<f64> {
    let password = Secret::new(people::PASSWORD);
    let kept = hash(&password, &Parameters::default()).doing("a password")?;
    let verified = move || {
        std::hint::black_box(verify(&kept, &password, &Parameters::default()));
    };
    alone(threads, bench.time, verified).await
}

/// Runs on each server in turn. The bare hash runs before each round, on as many processors as the server hashes on,
/// and on all.
pub async fn run(bench: &mut Bench, all: &[Contestant]) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let lanes = processors.saturating_sub(1).max(1);
    for round in 0..bench.rounds {
        for (threads, name) in [(lanes, "hash alone"), (processors, "hash on all")] {
            let rate = bare(bench, threads).await?;
            bench.note(NAME, name, round, figures([("rate", rate), ("threads", threads as f64)]));
        }
        for one in all {
            let make = async |site: Arc<Site>, place: Place| {
                let request = site.usual.code_request("openid");
                Ok(Visitor { site, place, chance: chance(place.number), request })
            };
            let told = load(bench, one, CLIENTS, make).await?;
            bench.note(NAME, one.engine.name(), round, told);
        }
    }
    Ok(())
}
