//! Looking a session up: `prompt=none` with response type `none`, which finds session and person and issues nothing.

use std::sync::Arc;

use super::{
    Bench, ServerGroup, load, load_bare,
    site::{Site, Slot},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::Result,
    load::{ActOutcome, Actor, random},
    people::Random,
};

/// The workload's name.
pub const NAME: &str = "session look-up, 16 clients";

const CLIENTS: usize = 16;

struct Visitor {
    site: Arc<Site>,
    slot: Slot,
    browser: Browser,
    random: Random,
    request: String,
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let user = self.site.user(self.slot, &mut self.random);
        self.site.set_session(&mut self.browser, user);
        let response = self.browser.open(client, &self.request).await?;
        let is_known = response.parameter("state").is_some() && response.parameter("error").is_none();
        Ok(if is_known { ActOutcome::Expected(0) } else { ActOutcome::Unexpected(response.describe()) })
    }
}

/// Runs on each server in turn, with the bare server before.
pub async fn run(bench: &mut Bench, groups: &[ServerGroup]) -> Result<()> {
    for round in 0..bench.rounds {
        load_bare(bench, NAME, round, (CLIENTS, 0)).await?;
        for group in groups {
            let create_visitor = async |site: Arc<Site>, slot: Slot| {
                let parameters = [("response_type", "none"), ("scope", "openid"), ("prompt", "none")];
                let (browser, request) = (Browser::new(site.target.address), site.usual.request(&parameters));
                Ok(Visitor { site, slot, browser, random: random(slot.number), request })
            };
            let values = load(bench, group, CLIENTS, create_visitor).await?;
            bench.record(NAME, group.engine.name(), round, values);
        }
    }
    Ok(())
}
