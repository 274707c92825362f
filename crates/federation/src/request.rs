//! The authorization request (OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636, 8707).

use chancery_oauth::{Challenge, with_query};
use chancery_record::is_loopback_url;

use crate::{Check, Client, Discovery, IdentitySource, ProviderKind, check::quoted};

/// The parameters of one authorization request, against which its response is validated.
#[derive(Clone, Copy, Debug)]
pub struct RequestParameters<'a> {
    /// `state`
    pub state: &'a str,
    /// `nonce`
    pub nonce: &'a str,
    /// `code_verifier`
    pub verifier: &'a str,
    /// The client app's demands on the sign-in.
    pub demands: &'a Demands,
}

/// A client app's demands on a sign-in, which are passed on to the provider (OpenID Connect Core 1.0, section 3.1.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Whether the user must sign in again (`prompt=login`).
    pub login: bool,
    /// The maximum age of the user's sign-in, in seconds (`max_age`).
    pub max_age: Option<u64>,
    /// The earliest time of the user's sign-in, in seconds since 1970. It is known from the redirect on.
    pub since: Option<i64>,
    /// The expected user (`login_hint`).
    pub login_hint: Option<String>,
    /// The accepted authentication context classes (`acr_values`).
    pub acr_values: Vec<String>,
}

impl Demands {
    /// No demands.
    pub const NONE: Self =
        Self { login: false, max_age: None, since: None, login_hint: None, acr_values: Vec::new() };

    fn fields(&self, kind: ProviderKind) -> impl Iterator<Item = (&'static str, String)> {
        let prompt = if kind.reports_auth_time() { "login" } else { "select_account" };
        let acr_values = Some(self.acr_values.join(" ")).filter(|values| !values.is_empty());
        [
            ("prompt", self.login.then(|| prompt.to_owned())),
            ("max_age", self.max_age.map(|seconds| seconds.to_string())),
            ("login_hint", self.login_hint.clone()),
            ("acr_values", acr_values),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The URL of the authorization request, with state, nonce and PKCE by S256.
pub fn authorization_url(discovery: &Discovery, client: &Client, request: RequestParameters<'_>) -> String {
    let mut fields = vec![
        ("response_type", "code".to_owned()),
        ("client_id", client.id.clone()),
        ("redirect_uri", client.redirect_uri.clone()),
        ("scope", requested_scopes(discovery, client)),
        ("state", request.state.to_owned()),
        ("code_challenge", Challenge::of(request.verifier).to_string()),
        ("code_challenge_method", "S256".to_owned()),
    ];
    fields.retain(|(name, value)| *name != "scope" || !value.is_empty());
    match discovery.identity_source {
        IdentitySource::IdToken { .. } => {
            fields.push(("nonce", request.nonce.to_owned()));
            fields.extend(request.demands.fields(client.kind));
        }
        IdentitySource::AccessToken => fields.extend(request.demands.fields(client.kind)),
        IdentitySource::Profile { .. } if client.kind == ProviderKind::Facebook && request.demands.login => {
            fields.push(("auth_type", "reauthenticate".to_owned()));
        }
        IdentitySource::Profile { .. } => {}
    }
    fields.extend(client.resources.iter().map(|resource| ("resource", resource.clone())));
    let fields: Vec<(String, String)> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    with_query(&discovery.authorization_endpoint, &fields)
}

/// The requested scopes. An AD FS without OpenID Connect knows only the configured ones.
fn requested_scopes(discovery: &Discovery, client: &Client) -> String {
    if discovery.identity_source == IdentitySource::AccessToken {
        client.scopes.join(" ")
    } else {
        client.all_scopes().join(" ")
    }
}

/// Checks that the provider can meet the demands: only ID tokens report the time of the sign-in.
pub fn check_demands(discovery: &Discovery, client: &Client, demands: &Demands) -> Option<Check> {
    demands.max_age?;
    let is_reported = matches!(discovery.identity_source, IdentitySource::IdToken { .. })
        && client.kind.reports_auth_time();
    let detail = "The client app demands a sign-in of a certain age, and this provider does not tell when somebody signed in.";
    (!is_reported).then(|| Check::failed("authTime", detail))
}

/// Reports the requested scopes and resources, and checks the URL of the callback. Scopes and resources are well-formed: an instance with
/// other options gets no trial.
pub fn check_request(client: &Client) -> Vec<Check> {
    let mut requested = vec![format!("the scopes {}", client.all_scopes().join(" "))];
    if !client.resources.is_empty() {
        requested.push(format!("the resources {}", client.resources.join(" ")));
    }
    let mut checks = vec![Check::new("request", true, format!("It asks for {}.", requested.join(" and ")))];
    checks.extend(resources(client));
    let is_safe = client.redirect_uri.starts_with("https://")
        || (client.redirect_uri.starts_with("http://") && is_loopback_url(&client.redirect_uri));
    let detail = format!("The provider leads back to {}: register it there.", quoted(&client.redirect_uri));
    checks.push(Check::new("callback", is_safe, detail).with_option("CallbackPath"));
    checks
}

/// An AD FS issues access tokens for one resource at a time.
fn resources(client: &Client) -> Option<Check> {
    (client.kind == ProviderKind::AdfsOAuth && client.resources.len() > 1).then(|| {
        Check::failed("resources", "AD FS takes one resource: RequestResources names several.")
            .with_option("RequestResources")
    })
}
