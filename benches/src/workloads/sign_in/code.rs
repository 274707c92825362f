//! A browser with a session gets a code, and the app redeems it for tokens.

use std::sync::Arc;

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeySize,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
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
    people::Random,
    results::figures,
    workloads::rate_alone,
};

/// The workload's name, with an ID token by RS256 and an access token by ES256: the default of a server.
pub const NAME: &str = "code by session to tokens, 64 clients";
/// The same with both signed by ES256.
pub const ELLIPTIC: &str = "code by session to tokens, ES256, 64 clients";

const CLIENTS: usize = 64;
/// About how many bytes of a token are signed.
const SIGNED: usize = 420;

struct Visitor {
    site: Arc<Site>,
    app: App,
    slot: Slot,
    browser: Browser,
    random: Random,
    request: String,
}

impl Visitor {
    fn new(site: Arc<Site>, slot: Slot, app: App) -> Self {
        let (browser, request) = (Browser::new(site.target.address), app.code_request("openid"));
        Self { site, app, slot, browser, random: random(slot.number), request }
    }
}

impl Visitor {
    /// The answer with tokens, or a description of another response.
    async fn tokens(&mut self, client: &mut Client) -> Result<std::result::Result<Vec<u8>, String>> {
        let user = self.site.user(self.slot, &mut self.random);
        self.site.set_session(&mut self.browser, user);
        let response = self.browser.open(client, &self.request).await?;
        let Some(code) = response.parameter("code") else { return Ok(Err(response.describe())) };
        let (status, body) = self.site.redeem(client, &self.app, code).await?;
        Ok(if status == 200 { Ok(body) } else { Err(format!("tokens: status {status}")) })
    }

    /// Makes sure that the tokens are signed by the algorithms that the workload names.
    async fn check(mut self, id_token: &str) -> Result<()> {
        let mut client = Client::connect(self.site.target.address).await?;
        let answer = self.tokens(&mut client).await?.map_err(fault)?;
        let answer: Value = serde_json::from_slice(&answer).context("a token answer")?;
        for (name, algorithm) in [("id_token", id_token), ("access_token", "ES256")] {
            let token = answer.get(name).and_then(Value::as_str).unwrap_or_default();
            let head = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap_or_default())?;
            let head: Value = serde_json::from_slice(&head).context(name)?;
            if head.get("alg").and_then(Value::as_str) != Some(algorithm) {
                let engine = self.site.target.engine.name();
                return Err(fault(format!("{engine} signs {name} otherwise than by {algorithm}: {head}")));
            }
        }
        Ok(())
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let answer = self.tokens(client).await?;
        Ok(answer.map_or_else(ActOutcome::Unexpected, |body| ActOutcome::Expected(body.len() as u64)))
    }
}

/// Signs as for an ID token and an access token.
fn signer(by_rsa: bool) -> Result<impl Fn() + Send + Sync + 'static> {
    let key_error = |_| fault("no key can be made");
    let random = SystemRandom::new();
    let elliptic_key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(key_error)?;
    let rsa_key = RsaKeyPair::generate(KeySize::Rsa2048).map_err(key_error)?;
    let message = [b'x'; SIGNED];
    Ok(move || {
        let mut out = vec![0; rsa_key.public_modulus_len()];
        if by_rsa {
            let _ = std::hint::black_box(rsa_key.sign(&RSA_PKCS1_SHA256, &random, &message, &mut out));
        } else {
            let _ = std::hint::black_box(elliptic_key.sign(&random, &message));
        }
        let _ = std::hint::black_box(elliptic_key.sign(&random, &message));
    })
}

/// Runs on each server in turn; the bare signatures run before each round.
pub async fn run(bench: &mut Bench, groups: &[ServerGroup]) -> Result<()> {
    for round in 0..bench.rounds {
        for (name, algorithm) in [(NAME, "RS256"), (ELLIPTIC, "ES256")] {
            let by_rsa = algorithm == "RS256";
            let rate = rate_alone(1, bench.time, signer(by_rsa)?).await?;
            bench.record(name, "signatures alone", round, figures([("rate", rate)]));
            for group in groups {
                let create_visitor = async |site: Arc<Site>, slot| {
                    let app = if by_rsa { site.usual.clone() } else { site.elliptic.clone() };
                    Ok(Visitor::new(site, slot, app))
                };
                for site in group.sites.iter().map(Arc::clone) {
                    create_visitor(site, Slot { number: 0, count: 1 }).await?.check(algorithm).await?;
                }
                let values = load(bench, group, CLIENTS, create_visitor).await?;
                bench.record(name, group.engine.name(), round, values);
            }
        }
    }
    Ok(())
}
