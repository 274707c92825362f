//! The page where a name and a password are typed.

use std::sync::Arc;

use super::{
    Bench, Contestant, load, load_bare,
    site::{Place, Site},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Result, fault},
    load::{Actor, Done},
};

/// The workload's name.
pub const NAME: &str = "sign-in page, 16 clients";

const CLIENTS: usize = 16;

/// A browser whose sign-in is under way, and the address of its page.
struct Visitor {
    browser: Browser,
    address: String,
    length: usize,
}

impl Visitor {
    async fn new(site: Arc<Site>) -> Result<Self> {
        let mut client = Client::connect(site.target.address).await?;
        let mut browser = Browser::new(site.target.address);
        let page = browser.open(&mut client, &site.usual.code_request("openid")).await?;
        if page.filled(&[]).is_none() {
            return Err(fault(format!("no page at {}: {}", site.target.engine.name(), page.told())));
        }
        Ok(Self { browser, address: page.address, length: page.text.len() })
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let page = self.browser.open(client, &self.address).await?;
        let is_there = page.status == 200 && !page.is_elsewhere && page.address == self.address;
        Ok(if is_there { Done::Good(page.text.len() as u64) } else { Done::Bad(page.told()) })
    }
}

/// Runs on each server in turn, with the bare server before.
pub async fn run(bench: &mut Bench, all: &[Contestant]) -> Result<()> {
    let site =
        all.first().and_then(|one| one.sites.first()).ok_or_else(|| fault("there is nothing to measure"))?;
    let length = Visitor::new(Arc::clone(site)).await?.length;
    for round in 0..bench.rounds {
        load_bare(bench, NAME, round, (CLIENTS, length)).await?;
        for one in all {
            let make = async |site: Arc<Site>, _: Place| Visitor::new(site).await;
            let told = load(bench, one, CLIENTS, make).await?;
            bench.note(NAME, one.engine.name(), round, told);
        }
    }
    Ok(())
}
