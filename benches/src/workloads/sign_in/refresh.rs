//! Refreshing: each client has a grant of its own, and shows the refresh token that it got last.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Bench, Contestant, load,
    site::{Place, Site},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Doing as _, Result, fault},
    load::{Actor, Done, chance},
};

/// The workload's name.
pub const NAME: &str = "refresh, 64 clients";

const CLIENTS: usize = 64;
const SCOPE: &str = "openid offline_access";

struct Holder {
    site: Arc<Site>,
    token: String,
}

/// The refresh token of a token answer.
fn token_in(body: &[u8]) -> Result<Option<String>> {
    let answer: Value = serde_json::from_slice(body).doing("a token answer")?;
    Ok(answer.get("refresh_token").and_then(Value::as_str).map(str::to_owned))
}

/// The refresh token that a person's sign-in by a session gives the app; `None` where the server gives none.
async fn first(site: &Site, place: Place) -> Result<Option<String>> {
    let mut client = Client::connect(site.target.address).await?;
    let mut browser = Browser::new(site.target.address);
    site.lend_session(&mut browser, site.user(place, &mut chance(place.number)));
    let arrived = browser.open(&mut client, &site.public.code_request(SCOPE)).await?;
    let code = arrived.parameter("code").ok_or_else(|| fault(format!("no code: {}", arrived.told())))?;
    let (status, body) = site.redeem(&mut client, &site.public, code).await?;
    if status == 200 { token_in(&body) } else { Err(fault(format!("no tokens: status {status}"))) }
}

impl Actor for Holder {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let (status, body) = self.site.refresh(client, &self.site.public, &self.token).await?;
        if status != 200 {
            return Ok(Done::Bad(format!("status {status}")));
        }
        if let Some(next) = token_in(&body)? {
            self.token = next;
        }
        Ok(Done::Good(body.len() as u64))
    }
}

/// Runs on each server in turn that gives refresh tokens.
pub async fn run(bench: &mut Bench, all: &[Contestant]) -> Result<()> {
    let mut serving = Vec::new();
    for one in all {
        let site = one.sites.first().ok_or_else(|| fault("a server without a process"))?;
        if first(site, Place { number: 0, of: 1 }).await?.is_some() {
            serving.push(one);
        } else {
            let name = one.engine.name();
            eprintln!(
                "{NAME}: left out on {name}, whose answer to the scope \"{SCOPE}\" has no refresh_token"
            );
        }
    }
    for round in 0..bench.rounds {
        for one in &serving {
            let make = async |site: Arc<Site>, place: Place| {
                let token = first(&site, place).await?.ok_or_else(|| fault("no refresh token"))?;
                Ok(Holder { site, token })
            };
            let told = load(bench, one, CLIENTS, make).await?;
            bench.note(NAME, one.engine.name(), round, told);
        }
    }
    Ok(())
}
