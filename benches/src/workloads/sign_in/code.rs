//! A browser with a session gets a code, and the app makes tokens of it.

use std::sync::Arc;

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeySize,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{
    Bench, Contestant, alone, load,
    site::{App, Place, Site},
};
use crate::{
    browser::Browser,
    client::Client,
    fault::{Doing as _, Result, fault},
    load::{Actor, Done, chance},
    people::Chance,
    results::figures,
};

/// The workload's name, with an ID token by RS256 and an access token by ES256, as a server signs at first.
pub const NAME: &str = "code by session to tokens, 64 clients";
/// The same where both are signed by ES256.
pub const ELLIPTIC: &str = "code by session to tokens, ES256, 64 clients";

const CLIENTS: usize = 64;
/// About what is signed of a token, in bytes.
const SIGNED: usize = 420;

struct Visitor {
    site: Arc<Site>,
    app: App,
    place: Place,
    browser: Browser,
    chance: Chance,
    request: String,
}

impl Visitor {
    fn new(site: Arc<Site>, place: Place, app: App) -> Self {
        let (browser, request) = (Browser::new(site.target.address), app.code_request("openid"));
        Self { site, app, place, browser, chance: chance(place.number), request }
    }
}

impl Visitor {
    /// The answer with tokens, or what came instead.
    async fn tokens(&mut self, client: &mut Client) -> Result<std::result::Result<Vec<u8>, String>> {
        let user = self.site.user(self.place, &mut self.chance);
        self.site.lend_session(&mut self.browser, user);
        let arrived = self.browser.open(client, &self.request).await?;
        let Some(code) = arrived.parameter("code") else { return Ok(Err(arrived.told())) };
        let (status, body) = self.site.redeem(client, &self.app, code).await?;
        Ok(if status == 200 { Ok(body) } else { Err(format!("tokens: status {status}")) })
    }

    /// Makes sure that the tokens are signed by what the workload says.
    async fn check(mut self, id_token: &str) -> Result<()> {
        let mut client = Client::connect(self.site.target.address).await?;
        let answer = self.tokens(&mut client).await?.map_err(fault)?;
        let answer: Value = serde_json::from_slice(&answer).doing("a token answer")?;
        for (name, algorithm) in [("id_token", id_token), ("access_token", "ES256")] {
            let token = answer.get(name).and_then(Value::as_str).unwrap_or_default();
            let head = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap_or_default())?;
            let head: Value = serde_json::from_slice(&head).doing(name)?;
            if head.get("alg").and_then(Value::as_str) != Some(algorithm) {
                let engine = self.site.target.engine.name();
                return Err(fault(format!("{engine} signs {name} otherwise than by {algorithm}: {head}")));
            }
        }
        Ok(())
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let answer = self.tokens(client).await?;
        Ok(answer.map_or_else(Done::Bad, |body| Done::Good(body.len() as u64)))
    }
}

/// What signs an ID token and an access token.
fn signing(by_rsa: bool) -> Result<impl Fn() + Send + Sync + 'static> {
    let failed = |_| fault("no key can be made");
    let random = SystemRandom::new();
    let curve = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
    let message = [b'x'; SIGNED];
    Ok(move || {
        let mut out = vec![0; rsa.public_modulus_len()];
        if by_rsa {
            let _ = std::hint::black_box(rsa.sign(&RSA_PKCS1_SHA256, &random, &message, &mut out));
        } else {
            let _ = std::hint::black_box(curve.sign(&random, &message));
        }
        let _ = std::hint::black_box(curve.sign(&random, &message));
    })
}

/// Runs on each server in turn; the bare signatures run before each round.
pub async fn run(bench: &mut Bench, all: &[Contestant]) -> Result<()> {
    for round in 0..bench.rounds {
        for (name, algorithm) in [(NAME, "RS256"), (ELLIPTIC, "ES256")] {
            let by_rsa = algorithm == "RS256";
            let rate = alone(1, bench.time, signing(by_rsa)?).await?;
            bench.note(name, "signatures alone", round, figures([("rate", rate)]));
            for one in all {
                let make = async |site: Arc<Site>, place| {
                    let app = if by_rsa { site.usual.clone() } else { site.elliptic.clone() };
                    Ok(Visitor::new(site, place, app))
                };
                for site in one.sites.iter().map(Arc::clone) {
                    make(site, Place { number: 0, of: 1 }).await?.check(algorithm).await?;
                }
                let told = load(bench, one, CLIENTS, make).await?;
                bench.note(name, one.engine.name(), round, told);
            }
        }
    }
    Ok(())
}
