//! Looking a session up: `prompt=none` with response type `none`, which finds session and person, and gives nothing.

use std::sync::Arc;

use super::{
    Bench, Contestant, load, load_bare,
    site::{Place, Site},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::Result,
    load::{Actor, Done, chance},
    people::Chance,
};

/// The workload's name.
pub const NAME: &str = "session look-up, 16 clients";

const CLIENTS: usize = 16;

struct Visitor {
    site: Arc<Site>,
    place: Place,
    browser: Browser,
    chance: Chance,
    request: String,
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let user = self.site.user(self.place, &mut self.chance);
        self.site.lend_session(&mut self.browser, user);
        let arrived = self.browser.open(client, &self.request).await?;
        let is_known = arrived.parameter("state").is_some() && arrived.parameter("error").is_none();
        Ok(if is_known { Done::Good(0) } else { Done::Bad(arrived.told()) })
    }
}

/// Runs on each server in turn, with the bare server before.
pub async fn run(bench: &mut Bench, all: &[Contestant]) -> Result<()> {
    for round in 0..bench.rounds {
        load_bare(bench, NAME, round, (CLIENTS, 0)).await?;
        for one in all {
            let make = async |site: Arc<Site>, place: Place| {
                let asked = [("response_type", "none"), ("scope", "openid"), ("prompt", "none")];
                let (browser, request) = (Browser::new(site.target.address), site.usual.request(&asked));
                Ok(Visitor { site, place, browser, chance: chance(place.number), request })
            };
            let told = load(bench, one, CLIENTS, make).await?;
            bench.note(NAME, one.engine.name(), round, told);
        }
    }
    Ok(())
}
