//! Refreshing: each client has a grant of its own, and presents the latest refresh token.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Bench, ServerGroup, load,
    site::{App, Site, Slot},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Context as _, Result, fault},
    load::{ActOutcome, Actor, random},
    results::Figures,
    target::Engine,
};

/// The workload's name.
pub const NAME: &str = "refresh, 64 clients";

const CLIENTS: usize = 64;
const SCOPE: &str = "openid offline_access";

struct Holder {
    site: Arc<Site>,
    app: App,
    token: String,
}

/// The refresh token of a token answer.
fn token_in(body: &[u8]) -> Result<Option<String>> {
    let answer: Value = serde_json::from_slice(body).context("a token answer")?;
    Ok(answer.get("refresh_token").and_then(Value::as_str).map(str::to_owned))
}

/// The refresh token that an app gets for a person's sign-in, by a session where the server was seeded with some; `None` if the server
/// issues none.
async fn first_token(site: &Site, app: &App, slot: Slot) -> Result<Option<String>> {
    let mut client = Client::connect(site.target.address).await?;
    let user = site.user(slot, &mut random(slot.number));
    let response = if site.target.engine == Engine::Keycloak {
        // it issues refresh tokens for each session
        site.sign_in(&mut client, &app.code_request("openid"), user).await?
    } else {
        let mut browser = Browser::new(site.target.address);
        site.set_session(&mut browser, user);
        browser.open(&mut client, &app.code_request(SCOPE)).await?
    };
    let code =
        response.parameter("code").ok_or_else(|| fault(format!("no code: {}", response.describe())))?;
    let (status, body) = site.redeem(&mut client, app, code).await?;
    if status == 200 { token_in(&body) } else { Err(fault(format!("no tokens: status {status}"))) }
}

impl Actor for Holder {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let (status, body) = self.site.refresh(client, &self.app, &self.token).await?;
        if status != 200 {
            return Ok(ActOutcome::Unexpected(format!("status {status}")));
        }
        if let Some(next) = token_in(&body)? {
            self.token = next;
        }
        Ok(ActOutcome::Expected(body.len() as u64))
    }
}

/// Puts a server under load by this many holders of refresh tokens, which the app got that `app` names.
pub async fn load_by_holders(
    bench: &Bench,
    group: &ServerGroup,
    clients: usize,
    app: impl Fn(&Site) -> App,
) -> Result<Figures> {
    let create_holder = async |site: Arc<Site>, slot: Slot| {
        let app = app(&site);
        let token = first_token(&site, &app, slot).await?.ok_or_else(|| fault("no refresh token"))?;
        Ok(Holder { site, app, token })
    };
    load(bench, group, clients, create_holder).await
}

/// Runs on each server in turn that issues refresh tokens.
pub async fn run(bench: &mut Bench, groups: &[ServerGroup]) -> Result<()> {
    let mut groups_with_refresh = Vec::new();
    for group in groups {
        let site = group.sites.first().ok_or_else(|| fault("a server without a process"))?;
        if first_token(site, &site.public, Slot { number: 0, count: 1 }).await?.is_some() {
            groups_with_refresh.push(group);
        } else {
            let name = group.engine.name();
            eprintln!(
                "{NAME}: left out on {name}, whose answer to the scope \"{SCOPE}\" has no refresh_token"
            );
        }
    }
    for round in 0..bench.rounds {
        for group in &groups_with_refresh {
            let values = load_by_holders(bench, group, CLIENTS, |site| site.public.clone()).await?;
            bench.record(NAME, group.engine.name(), round, values);
        }
    }
    Ok(())
}
