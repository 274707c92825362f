//! The calls of a trial, one after another: each answer is judged, and what cannot go on stops.

use chancery_federation::{
    Check, Discovery, Expected, Proof, Tokens, choose_proof, discovery_address, has_passed, judge_answer,
    judge_discovery, judge_id_token, judge_keys, judge_request, judge_tokens, judge_user_info, token_request,
};
use chancery_record::{Json, Secret, Timestamp};
use chancery_resource::{AskElsewhere, ElsewhereRequest};
use serde_json::{Value, json};

use super::{Secrets, settings::Settings, told};

/// The most parameters of an answer that are read.
const MOST: usize = 50;

/// What cannot be asked for: a provider would only refuse it.
const STOPPING: [&str; 2] = ["scopes", "callback"];

/// What was found before anybody signs in.
pub struct Begun {
    /// What the instance is set to.
    pub settings: Settings,
    /// What the provider says of itself, if it can be worked with.
    pub discovery: Option<Discovery>,
    /// What was looked at.
    pub checks: Vec<Check>,
}

impl Begun {
    /// Whether a browser can be sent there: some faults only show what they are when it was.
    pub fn can_go_on(&self) -> bool {
        !self.checks.iter().any(|check| !check.passed && STOPPING.contains(&check.name))
    }
}

/// Reads what the provider says of itself, and judges that.
pub async fn begin(ask: AskElsewhere, mut settings: Settings) -> Begun {
    let mut checks = std::mem::take(&mut settings.checks);
    checks.extend(judge_request(&settings.client));
    let (found, discovery) = discover(&ask, &settings).await;
    checks.extend(found);
    Begun { settings, discovery, checks }
}

async fn discover(ask: &AskElsewhere, settings: &Settings) -> (Vec<Check>, Option<Discovery>) {
    let address = discovery_address(&settings.client.authority);
    match document(ask, &address, None).await {
        Ok(document) => {
            let (mut checks, discovery) = judge_discovery(&document, &settings.client);
            checks.extend(discovery.as_ref().map(|found| choose_proof(found, settings.signing.is_some()).0));
            (checks, discovery)
        }
        Err(why) => (vec![Check::failed("discovery", format!("{address}: {why}.")).by("Authority")], None),
    }
}

async fn document(ask: &AskElsewhere, url: &str, authorization: Option<String>) -> Result<Vec<u8>, String> {
    let request = ElsewhereRequest { url: url.to_owned(), form: None, authorization };
    match ask(request).await? {
        (200, document) => Ok(document),
        (status, _) => Err(format!("the host answered {status} instead of 200")),
    }
}

/// The answer to a trial, and what it is judged by.
pub struct Answered {
    /// The parameters of the callback.
    pub parameters: Vec<(String, String)>,
    /// Nonce and verifier.
    pub secrets: Secrets,
    /// The id of the assertion, where one is made.
    pub assertion_id: String,
    /// The time.
    pub now: Timestamp,
}

/// The parameters of a query.
pub fn parameters(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.trim_start_matches('?').as_bytes()).into_owned().take(MOST).collect()
}

/// What came of a trial.
#[derive(Default)]
pub struct Completed {
    checks: Vec<Check>,
    /// The claims, and what told them.
    claims: Vec<(&'static str, Json)>,
}

impl Completed {
    /// The answer.
    pub fn to_json(&self) -> Value {
        json!({
            "passed": has_passed(&self.checks), "checks": told::checks(&self.checks), "claims": told::claims(&self.claims),
        })
    }
}

/// Redeems the code and judges all that comes back.
pub async fn complete(ask: AskElsewhere, mut settings: Settings, answered: Answered) -> Completed {
    let mut completed = Completed { checks: std::mem::take(&mut settings.checks), claims: Vec::new() };
    completed.checks.push(Check::new("state", true, "state is that of this trial."));
    let (checks, discovery) = discover(&ask, &settings).await;
    completed.checks.extend(checks);
    let Some(discovery) = discovery else { return completed };
    let (checks, code) = judge_answer(&answered.parameters, &discovery);
    completed.checks.extend(checks);
    let Some(code) = code else { return completed };
    let Some(tokens) = redeem(&ask, (&settings, &discovery), &code, &answered, &mut completed.checks).await
    else {
        return completed;
    };
    let subject = judge(&ask, (&settings, &discovery), &tokens, &answered, &mut completed).await;
    if let (Some(subject), Some(url)) = (subject, &discovery.userinfo_endpoint) {
        let (check, claims) = match document(&ask, url, Some(format!("Bearer {}", tokens.access_token))).await
        {
            Ok(document) => judge_user_info(&document, &subject),
            Err(why) => (Check::failed("userinfo", format!("{url}: {why}.")), None),
        };
        completed.checks.push(check);
        completed.claims.extend(claims.map(|claims| ("UserInfo", claims)));
    }
    completed
}

async fn redeem(
    ask: &AskElsewhere,
    (settings, discovery): (&Settings, &Discovery),
    code: &str,
    answered: &Answered,
    checks: &mut Vec<Check>,
) -> Option<Tokens> {
    let (_, proof) = choose_proof(discovery, settings.signing.is_some());
    let shown = match (&settings.signing, proof) {
        (Some(signing), Proof::PrivateKey) => {
            let now = answered.now.0.div_euclid(1000);
            match signing.assertion(discovery, &settings.client, &answered.assertion_id, now) {
                Ok(assertion) => Secret::new(assertion),
                Err(check) => {
                    checks.push(check);
                    return None;
                }
            }
        }
        _ => settings.secret.clone(),
    };
    let request =
        token_request(discovery, &settings.client, (proof, &shown), (code, &answered.secrets.verifier));
    let sent =
        ElsewhereRequest { url: request.url, form: Some(request.form), authorization: request.authorization };
    let (check, tokens) = match ask(sent).await {
        Ok((status, body)) => judge_tokens(status, &body, proof),
        Err(why) => (Check::failed("tokens", format!("{}: {why}.", discovery.token_endpoint)), None),
    };
    checks.push(check);
    tokens
}

/// Judges the ID token by the provider's keys; its subject.
async fn judge(
    ask: &AskElsewhere,
    (settings, discovery): (&Settings, &Discovery),
    tokens: &Tokens,
    answered: &Answered,
    completed: &mut Completed,
) -> Option<String> {
    let (check, keys) = match document(ask, &discovery.jwks_uri, None).await {
        Ok(document) => judge_keys(&document),
        Err(why) => (Check::failed("keys", format!("{}: {why}.", discovery.jwks_uri)), Vec::new()),
    };
    completed.checks.push(check);
    let expected = Expected {
        client: &settings.client,
        issuer: &discovery.issuer,
        keys: &keys,
        opening: &settings.opening,
        nonce: &answered.secrets.nonce,
        access_token: &tokens.access_token,
        now: answered.now,
    };
    let (checks, claims) = judge_id_token(&tokens.id_token, &expected);
    completed.checks.extend(checks);
    let claims = claims?;
    let subject =
        if let Some(Json::Text(subject)) = claims.get("sub") { subject.clone() } else { String::new() };
    completed.claims.push(("IdToken", claims));
    Some(subject)
}
