//! The page where a name and a password are typed.

use std::sync::Arc;

use super::{
    Bench, ServerGroup, load, load_bare,
    site::{Site, Slot},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Result, fault},
    load::{ActOutcome, Actor},
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
            return Err(fault(format!("no page at {}: {}", site.target.engine.name(), page.describe())));
        }
        Ok(Self { browser, address: page.address, length: page.text.len() })
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let page = self.browser.open(client, &self.address).await?;
        let is_sign_in_page = page.status == 200 && !page.is_external && page.address == self.address;
        Ok(if is_sign_in_page {
            ActOutcome::Expected(page.text.len() as u64)
        } else {
            ActOutcome::Unexpected(page.describe())
        })
    }
}

/// Runs on each server in turn, with the bare server before.
pub async fn run(bench: &mut Bench, groups: &[ServerGroup]) -> Result<()> {
    let site = groups
        .first()
        .and_then(|group| group.sites.first())
        .ok_or_else(|| fault("there is nothing to measure"))?;
    let length = Visitor::new(Arc::clone(site)).await?.length;
    for round in 0..bench.rounds {
        load_bare(bench, NAME, round, (CLIENTS, length)).await?;
        for group in groups {
            let create_visitor = async |site: Arc<Site>, _: Slot| Visitor::new(site).await;
            let values = load(bench, group, CLIENTS, create_visitor).await?;
            bench.record(NAME, group.engine.name(), round, values);
        }
    }
    Ok(())
}
