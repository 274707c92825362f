//! The protocol exchange with a provider, request by request: each response is validated, and a fault that cannot be passed stops it.

use std::sync::Arc;

use chancery_federation::{
    Check, ClientAuthMethod, Demands, Discovery, Expected, IdentitySource, ProviderKind, Tokens,
    adfs_endpoints, check_adfs_token, check_callback, check_demands, check_discovery, check_id_token,
    check_keys, check_profile, check_request, check_token_response, check_user_info, choose_client_auth,
    discovery_url, has_passed, profile_url, token_request,
};
use chancery_oauth::Jwk;
use chancery_record::{Json, Secret};
use chancery_resource::OutboundRequest;

use super::{Connection, ProviderClient};

/// The maximum number of parameters of a response that are read.
const MAX_PARAMETERS: usize = 50;

/// The checks without which a request is pointless: a provider would only refuse it.
const BLOCKING_CHECKS: [&str; 6] = ["scopes", "callback", "authTime", "subjectClaim", "resources", "secret"];

/// The state before the redirect to the provider.
pub struct Begun {
    /// The configuration of the instance.
    pub connection: Connection,
    /// The discovery document of the provider, if it is usable.
    pub discovery: Option<Discovery>,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Begun {
    /// Whether a browser can be redirected to the provider: some faults show only there.
    pub fn can_go_on(&self) -> bool {
        !self.checks.iter().any(|check| !check.passed && BLOCKING_CHECKS.contains(&check.name))
    }
}

/// Reads the discovery document of the provider, and checks it against the demands of the sign-in.
pub async fn begin(provider: ProviderClient, mut connection: Connection, demands: &Demands) -> Begun {
    let mut checks = std::mem::take(&mut connection.checks);
    checks.extend(check_request(&connection.client));
    let (found, discovery) = discover(&provider, &connection).await;
    checks.extend(found);
    checks.extend(
        discovery.as_ref().and_then(|discovery| check_demands(discovery, &connection.client, demands)),
    );
    Begun { connection, discovery, checks }
}

/// The `end_session_endpoint` of a provider.
///
/// # Errors
/// The reason why it is unknown.
pub async fn end_session_endpoint(
    provider: ProviderClient,
    connection: Connection,
) -> Result<String, String> {
    let (checks, discovery) = discover(&provider, &connection).await;
    let discovery = discovery.filter(|_| has_passed(&checks)).ok_or_else(|| {
        let wrong = checks.iter().filter(|check| !check.passed).map(|check| check.detail.as_str());
        wrong.collect::<Vec<_>>().join(" ")
    })?;
    discovery.end_session_endpoint.ok_or_else(|| "The provider names no end_session_endpoint.".to_owned())
}

async fn discover(provider: &ProviderClient, connection: &Connection) -> (Vec<Check>, Option<Discovery>) {
    if let Some(fixed) = &connection.fixed {
        return (vec![choose_client_auth(fixed, false).0], Some(fixed.clone()));
    }
    if let (ProviderKind::AdfsOAuth, Some(keys)) = (connection.client.kind, &connection.token_keys) {
        if keys.is_empty() {
            let detail = "No linked certificate of type AdfsOAuthTokenSigning can be used: link the one that AD FS signs by now.";
            return (vec![Check::failed("tokenCertificate", detail).with_option("certStores")], None);
        }
        if connection.client.resources.is_empty() {
            let detail = "AD FS issues access tokens for a resource alone: set RequestResources to the identifier of this server there.";
            return (vec![Check::failed("resources", detail).with_option("RequestResources")], None);
        }
        let (check, endpoints) = adfs_endpoints(&connection.client);
        let Some(endpoints) = endpoints else { return (vec![check], None) };
        return (vec![check, choose_client_auth(&endpoints, false).0], Some(endpoints));
    }
    let address = discovery_url(&connection.client.authority);
    let validated = |document: &[u8]| check_discovery(document, &connection.client);
    let is_good = |document: &[u8]| {
        let (checks, discovery) = validated(document);
        discovery.is_some() && has_passed(&checks)
    };
    match provider.document(&address, is_good).await {
        Ok((document, _)) => {
            let (mut checks, discovery) = validated(&document);
            checks.extend(
                discovery.as_ref().map(|found| choose_client_auth(found, connection.signing.is_some()).0),
            );
            (checks, discovery)
        }
        Err(why) => {
            (vec![Check::failed("discovery", format!("{address}: {why}.")).with_option("Authority")], None)
        }
    }
}

/// The secrets of a request, which only this server knows until the redemption.
pub struct Secrets {
    /// `nonce`
    pub nonce: String,
    /// `code_verifier`
    pub verifier: String,
}

/// The response of a provider by way of a browser, and the values that it is validated against.
pub struct Returned {
    /// The parameters of the callback.
    pub parameters: Vec<(String, String)>,
    /// Nonce and verifier.
    pub secrets: Secrets,
    /// The demands of the sign-in.
    pub demands: Demands,
    /// The id of the assertion, if one is created.
    pub assertion_id: String,
}

/// The parameters of a query.
pub fn parameters(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.trim_start_matches('?').as_bytes())
        .into_owned()
        .take(MAX_PARAMETERS)
        .collect()
}

/// The result of an exchange.
#[derive(Default)]
pub struct Completed {
    /// The checks.
    pub checks: Vec<Check>,
    /// The claims that identify the person: of the ID token, or of the provider's substitute.
    pub id_token: Option<Json>,
    /// The subject, as in the person's identity.
    pub subject: Option<String>,
    /// The source of the claims.
    pub identity_source: Option<IdentitySource>,
    /// The claims of the UserInfo endpoint.
    pub user_info: Option<Json>,
}

impl Completed {
    /// Whether a person signed in there, and all checks passed. A linked certificate that cannot be used, such as one that is
    /// expired, does not count: if a key is needed and missing, another check fails.
    pub fn has_passed(&self) -> bool {
        let counts = |check: &&Check| check.name != "certificates";
        self.id_token.is_some() && self.checks.iter().filter(counts).all(|check| check.passed)
    }
}

/// Redeems the code and validates the responses.
pub async fn complete(provider: ProviderClient, mut connection: Connection, returned: Returned) -> Completed {
    let mut completed = Completed { checks: std::mem::take(&mut connection.checks), ..Completed::default() };
    completed.checks.push(Check::new("state", true, "state is that of this request."));
    let (checks, discovery) = discover(&provider, &connection).await;
    completed.checks.extend(checks);
    let Some(discovery) = discovery else { return completed };
    completed.checks.extend(check_demands(&discovery, &connection.client, &returned.demands));
    let (checks, code) = check_callback(&returned.parameters, &discovery);
    completed.checks.extend(checks);
    let Some(code) = code else { return completed };
    let exchange =
        Exchange { provider: &provider, connection: &connection, discovery: &discovery, returned: &returned };
    let Some(tokens) = redeem(&exchange, &code, &mut completed.checks).await else {
        return completed;
    };
    let subject = identify(&exchange, &tokens, &mut completed).await;
    if let (Some(subject), Some(url)) = (subject, &discovery.userinfo_endpoint) {
        let answer = provider.get(url, Some(format!("Bearer {}", tokens.access_token))).await;
        let (check, claims) = match answer {
            Ok(document) => check_user_info(&document, &subject),
            Err(why) => (Check::failed("userinfo", format!("{url}: {why}.")), None),
        };
        completed.checks.push(check);
        completed.user_info = claims;
    }
    completed
}

/// An exchange with a provider that returned a code.
struct Exchange<'a> {
    provider: &'a ProviderClient,
    connection: &'a Connection,
    discovery: &'a Discovery,
    returned: &'a Returned,
}

async fn redeem(exchange: &Exchange<'_>, code: &str, checks: &mut Vec<Check>) -> Option<Tokens> {
    let Exchange { provider, connection, discovery, returned } = exchange;
    // only an OpenID provider accepts a key as proof of this server
    let signing = connection
        .signing
        .as_ref()
        .filter(|_| matches!(discovery.identity_source, IdentitySource::IdToken { .. }));
    let (_, method) = choose_client_auth(discovery, signing.is_some());
    let credential = match (signing, method) {
        (Some(signing), ClientAuthMethod::PrivateKey) => {
            let now = provider.now.0.div_euclid(1000);
            match signing.assertion(discovery, &connection.client, &returned.assertion_id, now) {
                Ok(assertion) => Secret::new(assertion),
                Err(check) => {
                    checks.push(check);
                    return None;
                }
            }
        }
        _ => connection.secret.clone(),
    };
    let request =
        token_request(discovery, &connection.client, method, &credential, code, &returned.secrets.verifier);
    let http_request =
        OutboundRequest { url: request.url, form: Some(request.form), authorization: request.authorization };
    let (check, tokens) = match (provider.send)(http_request).await {
        Ok((status, body)) => check_token_response(status, &body, method, &discovery.identity_source),
        Err(why) => (Check::failed("tokens", format!("{}: {why}.", discovery.token_endpoint)), None),
    };
    checks.push(check);
    tokens
}

/// Validates the evidence of who signed in; returns the subject.
async fn identify(exchange: &Exchange<'_>, tokens: &Tokens, completed: &mut Completed) -> Option<String> {
    let Exchange { provider, connection, discovery, .. } = exchange;
    let (checks, claims) = match (&discovery.identity_source, &tokens.id_token) {
        (IdentitySource::IdToken { keys }, Some(id_token)) => {
            validate_id_token(exchange, keys, id_token, &tokens.access_token).await
        }
        (IdentitySource::IdToken { .. }, None) => return None,
        (IdentitySource::AccessToken, _) => check_adfs_token(
            &tokens.access_token,
            &connection.client,
            connection.token_keys.as_deref().unwrap_or_default(),
            provider.now,
        ),
        (IdentitySource::Profile { url }, _) => {
            let url = profile_url(&connection.client, url, &tokens.access_token, &connection.secret);
            let (check, claims) =
                match provider.get(&url, Some(format!("Bearer {}", tokens.access_token))).await {
                    Ok(document) => check_profile(&document, &connection.client, &discovery.issuer),
                    Err(why) => (Check::failed("profile", format!("The profile: {why}.")), None),
                };
            (vec![check], claims)
        }
    };
    completed.checks.extend(checks);
    let claims = claims?;
    let subject =
        if let Some(Json::Text(subject)) = claims.get("sub") { subject.clone() } else { String::new() };
    match claims.get(&connection.client.subject_claim) {
        Some(Json::Text(found)) if !found.is_empty() => completed.subject = Some(found.clone()),
        _ => {
            let detail = format!("The claim {} is missing or no text.", connection.client.subject_claim);
            completed.checks.push(Check::failed("subject", detail).with_option("ScimSubjectClaim"));
        }
    }
    completed.identity_source = Some(discovery.identity_source.clone());
    completed.id_token = Some(claims);
    Some(subject)
}

/// Validates the ID token by the provider's keys; returns its claims. If a key is missing that the provider may have added since its keys
/// were cached, they are read once more.
async fn validate_id_token(
    exchange: &Exchange<'_>,
    jwks_uri: &str,
    id_token: &str,
    access_token: &str,
) -> (Vec<Check>, Option<Json>) {
    let provider = exchange.provider;
    let is_good = |(check, keys): &(Check, Vec<Jwk>)| check.passed && !keys.is_empty();
    let found = provider.document(jwks_uri, |document| is_good(&check_keys(document))).await;
    let was_cached = matches!(found, Ok((_, true)));
    let validated = |document: Result<Arc<Vec<u8>>, String>| {
        let (check, keys) = match document {
            Ok(document) => check_keys(&document),
            Err(why) => (Check::failed("keys", format!("{jwks_uri}: {why}.")), Vec::new()),
        };
        let expected = expected(exchange, access_token, &keys);
        let (checks, claims) = check_id_token(id_token, &expected);
        (std::iter::once(check).chain(checks).collect::<Vec<_>>(), claims)
    };
    let (mut checks, mut claims) = validated(found.map(|(document, _)| document));
    if was_cached && checks.iter().any(|check| check.name == "key" && !check.passed) {
        let refreshed = provider.read(jwks_uri).await;
        if let Ok(document) = &refreshed
            && is_good(&check_keys(document))
        {
            provider.cache(jwks_uri, document);
        }
        (checks, claims) = validated(refreshed);
    }
    (checks, claims)
}

fn expected<'a>(exchange: &Exchange<'a>, access_token: &'a str, keys: &'a [Jwk]) -> Expected<'a> {
    let Exchange { provider, connection, discovery, returned } = exchange;
    Expected {
        client: &connection.client,
        issuer: &discovery.issuer,
        keys,
        decryption_keys: &connection.decryption_keys,
        nonce: &returned.secrets.nonce,
        access_token,
        demands: &returned.demands,
        now: provider.now,
    }
}
