//! What claim rules and groups cost a whole sign-in: the same server twice, once with 100 rules for people in 500 groups, once without
//! both. A code by a session, or by a password, and its tokens.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    Bench, Contestant, load, ours,
    site::{Place, Site, text},
};
use crate::{
    browser::Browser,
    client::Client,
    cluster::Cluster,
    fault::{Doing as _, Result, fault},
    load::{Actor, Done, chance},
    people::{self, Chance},
    seed::Seeds,
    target::Engine,
};

/// The workload by a session.
pub const CODE: &str = "code by session to tokens with 100 rules and 500 groups, 64 clients";
/// The workload by a password.
pub const PASSWORD: &str = "password to tokens with 100 rules and 500 groups, 64 clients";

const CLIENTS: usize = 64;
/// The people who sign in: one for each client.
const PEOPLE: u64 = 64;
const RULES: usize = 100;
/// Everybody is in four groups at most that are seeded.
const GROUPS: usize = 496;
const SCOPE: &str = "openid profile email groups";

/// What the server without rules and groups is called in results.
pub const fn without(engine: Engine) -> &'static str {
    if matches!(engine, Engine::Postgres) { "postgres without" } else { "sqlite without" }
}

/// Runs both in turn, on each engine.
pub async fn run(bench: &mut Bench, seeds: &Seeds) -> Result<()> {
    for recipe in bench.recipes.clone() {
        let (mut clusters, mut both): ([Option<Cluster>; 2], _) = ([None, None], Vec::new());
        for (cluster, has_rules) in clusters.iter_mut().zip([false, true]) {
            let name = if has_rules { "rules" } else { "no-rules" };
            let one = ours((bench.users, PEOPLE), seeds, (&recipe, name), cluster).await?;
            prepare(&one, has_rules).await?;
            both.push((if has_rules { one.engine.name() } else { without(one.engine) }, one));
        }
        for round in 0..bench.rounds {
            for (workload, by_password) in [(CODE, false), (PASSWORD, true)] {
                for (name, one) in &both {
                    let make =
                        async |site: Arc<Site>, place: Place| Ok(Visitor::new(site, place, by_password));
                    let figures = load(bench, one, CLIENTS, make).await?;
                    bench.note(workload, name, round, figures);
                }
            }
        }
        for server in both.into_iter().flat_map(|(_, one)| one.servers) {
            server.stop()?;
        }
        for cluster in clusters.into_iter().flatten() {
            cluster.stop()?;
        }
    }
    Ok(())
}

/// Makes groups and rules where they are asked for, and checks what tokens tell.
async fn prepare(at: &Contestant, has_rules: bool) -> Result<()> {
    for site in &at.sites {
        site.tell_groups().await?;
        if has_rules {
            make_groups(site).await?;
            let rules: Vec<Value> = (0..RULES).map(rule).collect();
            let body = json!(rules).to_string();
            let path = "/api/management/v2/ClaimRule/batch";
            site.target.call("POST", path, body.as_bytes(), 200).await?;
        }
        let mut visitor = Visitor::new(Arc::clone(site), Place { number: 0, of: CLIENTS }, false);
        let mut client = Client::connect(site.target.address).await?;
        let answer = visitor.tokens(&mut client).await?.map_err(fault)?;
        let answer: Value = serde_json::from_slice(&answer).doing("a token answer")?;
        let part = text(&answer, "id_token").split('.').nth(1).unwrap_or_default();
        let id_token: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part)?)?;
        let count = |name: &str| id_token.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        let is_as_meant = if has_rules {
            count("groups") >= GROUPS && count("roles") > RULES / 2
        } else {
            count("groups") < 5 && count("roles") == 0
        };
        if !is_as_meant {
            return Err(fault(format!("unexpected claims in the ID token: {id_token}")));
        }
    }
    Ok(())
}

/// Makes groups that all of the people are in. Their names are short, so that an ID token holds them.
async fn make_groups(site: &Site) -> Result<()> {
    let groups: Vec<Value> = (0..GROUPS).map(|number| json!({ "name": format!("g{number:03}") })).collect();
    let path = "/api/userstore/v2/default/administration/Group";
    let body = json!(groups).to_string();
    let made = site.target.call("POST", &format!("{path}/batch"), body.as_bytes(), 200).await?;
    let made: Value = serde_json::from_slice(&made)?;
    let people: Vec<String> = (0..PEOPLE).map(|number| people::user_id(number).to_string()).collect();
    let body = json!({ "relatedIds": people }).to_string();
    for group in made.as_array().into_iter().flatten() {
        let users = format!("{path}/{}/users", text(group, "id"));
        site.target.call("PUT", &users, body.as_bytes(), 202).await?;
    }
    Ok(())
}

/// One of the rules: most make roles of groups, the others add claims, and one lets all else through.
fn rule(number: usize) -> Value {
    let mut rule = json!({ "name": format!("rule {number}"), "ruleLevel": "Subscription" });
    let more = match number {
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
    if let (Some(rule), Value::Object(more)) = (rule.as_object_mut(), more) {
        rule.extend(more);
    }
    rule
}

struct Visitor {
    site: Arc<Site>,
    place: Place,
    chance: Chance,
    request: String,
    by_password: bool,
}

impl Visitor {
    fn new(site: Arc<Site>, place: Place, by_password: bool) -> Self {
        let request = site.usual.code_request(SCOPE);
        Self { site, place, chance: chance(place.number), request, by_password }
    }

    /// The answer with tokens, or what came instead.
    async fn tokens(&mut self, client: &mut Client) -> Result<std::result::Result<Vec<u8>, String>> {
        let user = self.site.user(self.place, &mut self.chance);
        let mut browser = Browser::new(self.site.target.address);
        if !self.by_password {
            self.site.lend_session(&mut browser, user);
        }
        let mut arrived = browser.open(client, &self.request).await?;
        if self.by_password {
            let name = people::login_name(user);
            let filled = arrived.filled(&[("username", &name), ("password", people::PASSWORD)]);
            let Some((action, form)) = filled else { return Ok(Err(arrived.told())) };
            arrived = browser.post(client, &action, &form).await?;
        }
        let Some(code) = arrived.parameter("code") else { return Ok(Err(arrived.told())) };
        let (status, body) = self.site.redeem(client, &self.site.usual, code).await?;
        Ok(if status == 200 { Ok(body) } else { Err(format!("tokens: status {status}")) })
    }
}

impl Actor for Visitor {
    async fn act(&mut self, client: &mut Client) -> Result<Done> {
        let answer = self.tokens(client).await?;
        Ok(answer.map_or_else(Done::Bad, |body| Done::Good(body.len() as u64)))
    }
}
