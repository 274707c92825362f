//! What claim rules and groups cost a whole sign-in: two servers, one with 100 rules for people in 500 groups, one
//! without both. A code by a session, or by a password, and its tokens.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    Bench, ServerGroup, load,
    site::{Site, Slot, text},
    start_chancery,
};
use crate::{
    browser::Browser,
    client::Client,
    cluster::Cluster,
    fault::{Context as _, Result, fault},
    load::{ActOutcome, Actor, random},
    people::{self, Random},
    seed::Seeds,
    target::Engine,
};

/// The workload by a session.
pub const CODE: &str = "code by session to tokens with 100 rules and 500 groups, 64 clients";
/// The workload by a password.
pub const PASSWORD: &str = "password to tokens with 100 rules and 500 groups, 64 clients";

const CLIENTS: usize = 64;
/// The number of people who sign in: one for each client.
const PEOPLE: u64 = 64;
const RULES: usize = 100;
/// Everybody belongs to at most four seeded groups.
const GROUPS: usize = 496;
const SCOPE: &str = "openid profile email groups";

/// The name in results of the server without rules and groups.
pub const fn without(engine: Engine) -> &'static str {
    if matches!(engine, Engine::Postgres) { "postgres without" } else { "sqlite without" }
}

/// Runs both in turn, on each engine.
pub async fn run(bench: &mut Bench, seeds: &Seeds) -> Result<()> {
    for config in bench.configs.clone() {
        let (mut clusters, mut servers): ([Option<Cluster>; 2], _) = ([None, None], Vec::new());
        for (cluster, has_rules) in clusters.iter_mut().zip([false, true]) {
            let name = if has_rules { "rules" } else { "no-rules" };
            let group = start_chancery((bench.users, PEOPLE), seeds, (&config, name), cluster).await?;
            prepare(&group, has_rules).await?;
            servers.push((if has_rules { group.engine.name() } else { without(group.engine) }, group));
        }
        for round in 0..bench.rounds {
            for (workload, by_password) in [(CODE, false), (PASSWORD, true)] {
                for (name, group) in &servers {
                    let create_visitor =
                        async |site: Arc<Site>, slot: Slot| Ok(Visitor::new(site, slot, by_password));
                    let figures = load(bench, group, CLIENTS, create_visitor).await?;
                    bench.record(workload, name, round, figures);
                }
            }
        }
        for server in servers.into_iter().flat_map(|(_, group)| group.servers) {
            server.stop()?;
        }
        for cluster in clusters.into_iter().flatten() {
            cluster.stop()?;
        }
    }
    Ok(())
}

/// Creates groups and rules if required, and checks the claims of tokens.
async fn prepare(group: &ServerGroup, has_rules: bool) -> Result<()> {
    for site in &group.sites {
        site.include_groups().await?;
        if has_rules {
            make_groups(site).await?;
            let rules: Vec<Value> = (0..RULES).map(rule).collect();
            let body = json!(rules).to_string();
            let path = "/api/management/v2/ClaimRule/batch";
            site.target.call("POST", path, body.as_bytes(), 200).await?;
        }
        let mut visitor = Visitor::new(Arc::clone(site), Slot { number: 0, count: CLIENTS }, false);
        let mut client = Client::connect(site.target.address).await?;
        let answer = visitor.tokens(&mut client).await?.map_err(fault)?;
        let answer: Value = serde_json::from_slice(&answer).context("a token answer")?;
        let payload = text(&answer, "id_token").split('.').nth(1).unwrap_or_default();
        let id_token: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload)?)?;
        let count = |name: &str| id_token.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        let is_expected = if has_rules {
            count("groups") >= GROUPS && count("roles") > RULES / 2
        } else {
            count("groups") < 5 && count("roles") == 0
        };
        if !is_expected {
            return Err(fault(format!("unexpected claims in the ID token: {id_token}")));
        }
    }
    Ok(())
}

/// Creates groups that all of the people belong to. Their names are short, so that an ID token holds them.
async fn make_groups(site: &Site) -> Result<()> {
    let groups: Vec<Value> = (0..GROUPS).map(|number| json!({ "name": format!("g{number:03}") })).collect();
    let path = "/api/userstore/v2/default/administration/Group";
    let body = json!(groups).to_string();
    let created = site.target.call("POST", &format!("{path}/batch"), body.as_bytes(), 200).await?;
    let created: Value = serde_json::from_slice(&created)?;
    let people: Vec<String> = (0..PEOPLE).map(|number| people::user_id(number).to_string()).collect();
    let body = json!({ "relatedIds": people }).to_string();
    for group in created.as_array().into_iter().flatten() {
        let users = format!("{path}/{}/users", text(group, "id"));
        site.target.call("PUT", &users, body.as_bytes(), 202).await?;
    }
    Ok(())
}

/// One of the rules: most turn groups into roles, the others add claims, and one lets all else through.
fn rule(number: usize) -> Value {
    let mut rule = json!({ "name": format!("rule {number}"), "ruleLevel": "Subscription" });
    let specific = match number {
        0 => json!({ "ruleType": "Remove", "typeEvaluationRule": "^nothing$", "destination": "IdToken" }),
        1..60 => json!({
            "ruleType": "Transform", "filterTarget": "ClaimTypeAndValue", "transformTarget": "ClaimTypeAndValue",
            "typeEvaluationRule": "^groups$", "valueEvaluationRule": format!("^g{number:03}$"),
            "typeTransformationReplacement": "roles",
            "valueTransformationRule": "^g", "valueTransformationReplacement": "r",
        }),
        _ => json!({
            "ruleType": "Add", "priority": 1 + number % 4, "typeTransformationReplacement": format!("c{number}"),
            "valueTransformationReplacement": "yes",
        }),
    };
    if let (Some(rule), Value::Object(specific)) = (rule.as_object_mut(), specific) {
        rule.extend(specific);
    }
    rule
}

struct Visitor {
    site: Arc<Site>,
    slot: Slot,
    random: Random,
    request: String,
    by_password: bool,
}

impl Visitor {
    fn new(site: Arc<Site>, slot: Slot, by_password: bool) -> Self {
        let request = site.usual.code_request(SCOPE);
        Self { site, slot, random: random(slot.number), request, by_password }
    }

    /// The answer with tokens, or a description of another response.
    async fn tokens(&mut self, client: &mut Client) -> Result<std::result::Result<Vec<u8>, String>> {
        let user = self.site.user(self.slot, &mut self.random);
        let mut browser = Browser::new(self.site.target.address);
        if !self.by_password {
            self.site.set_session(&mut browser, user);
        }
        let mut response = browser.open(client, &self.request).await?;
        if self.by_password {
            let name = people::login_name(user);
            let filled = response.filled(&[("username", &name), ("password", people::PASSWORD)]);
            let Some((action, form)) = filled else { return Ok(Err(response.describe())) };
            response = browser.post(client, &action, &form).await?;
        }
        let Some(code) = response.parameter("code") else { return Ok(Err(response.describe())) };
        let (status, body) = self.site.redeem(client, &self.site.usual, code).await?;
        Ok(if status == 200 { Ok(body) } else { Err(format!("tokens: status {status}")) })
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        let answer = self.tokens(client).await?;
        Ok(answer.map_or_else(ActOutcome::Unexpected, |body| ActOutcome::Expected(body.len() as u64)))
    }
}
