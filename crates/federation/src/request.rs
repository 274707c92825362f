//! The authorization request (OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636, 8707).

use chancery_oauth::{Challenge, with_query};
use chancery_record::is_of_this_machine;

use crate::{Check, Client, Discovery, Evidence, Kind, check::told};

/// What makes one request that request: by these its answer is judged.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `state`
    pub state: &'a str,
    /// `nonce`
    pub nonce: &'a str,
    /// `code_verifier`
    pub verifier: &'a str,
    /// What the client app demands of the sign-in.
    pub demands: &'a Demands,
}

/// What a client app demands of a sign-in, which the provider is asked for in turn (OpenID Connect Core 1.0, section 3.1.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Whether the person must sign in anew (`prompt=login`).
    pub login: bool,
    /// How long ago the person may have signed in, in seconds (`max_age`).
    pub max_age: Option<u64>,
    /// Since when the person must have signed in, in seconds since 1970: it is known once the browser was sent there.
    pub since: Option<i64>,
    /// Who is expected (`login_hint`).
    pub login_hint: Option<String>,
    /// The authentication context classes that will do (`acr_values`).
    pub acr_values: Vec<String>,
}

impl Demands {
    /// Nothing is demanded.
    pub const NONE: Self =
        Self { login: false, max_age: None, since: None, login_hint: None, acr_values: Vec::new() };

    fn fields(&self, kind: Kind) -> impl Iterator<Item = (&'static str, String)> {
        let prompt = if kind.tells_time() { "login" } else { "select_account" };
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

/// Where a browser is sent to: with state, nonce and PKCE by S256.
pub fn authorization_address(discovery: &Discovery, client: &Client, asked: Asked<'_>) -> String {
    let mut fields = vec![
        ("response_type", "code".to_owned()),
        ("client_id", client.id.clone()),
        ("redirect_uri", client.redirect_uri.clone()),
        ("scope", asked_scopes(discovery, client)),
        ("state", asked.state.to_owned()),
        ("code_challenge", Challenge::of(asked.verifier).to_string()),
        ("code_challenge_method", "S256".to_owned()),
    ];
    fields.retain(|(name, value)| *name != "scope" || !value.is_empty());
    match discovery.evidence {
        Evidence::IdToken { .. } => {
            fields.push(("nonce", asked.nonce.to_owned()));
            fields.extend(asked.demands.fields(client.kind));
        }
        Evidence::AccessToken => fields.extend(asked.demands.fields(client.kind)),
        Evidence::Profile { .. } if client.kind == Kind::Facebook && asked.demands.login => {
            fields.push(("auth_type", "reauthenticate".to_owned()));
        }
        Evidence::Profile { .. } => {}
    }
    fields.extend(client.resources.iter().map(|resource| ("resource", resource.clone())));
    let fields: Vec<(String, String)> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    with_query(&discovery.authorization_endpoint, &fields)
}

/// The scopes that are asked for. An AD FS whose access token is the evidence knows those alone that are set.
fn asked_scopes(discovery: &Discovery, client: &Client) -> String {
    if discovery.evidence == Evidence::AccessToken {
        client.scopes.join(" ")
    } else {
        client.all_scopes().join(" ")
    }
}

/// Judges whether the provider can tell what the client app demands: when somebody signed in is told by an ID token alone.
pub fn judge_demands(discovery: &Discovery, client: &Client, demands: &Demands) -> Option<Check> {
    demands.max_age?;
    let is_told = matches!(discovery.evidence, Evidence::IdToken { .. }) && client.kind.tells_time();
    let detail = "The client app demands a sign-in of a certain age, and this provider does not tell when somebody signed in.";
    (!is_told).then(|| Check::failed("authTime", detail))
}

/// Tells what would be asked for, and judges where the provider leads back to. Scopes and resources are of their form: an instance whose
/// options are not is not tried out.
pub fn judge_request(client: &Client) -> Vec<Check> {
    let mut asked = vec![format!("the scopes {}", client.all_scopes().join(" "))];
    if !client.resources.is_empty() {
        asked.push(format!("the resources {}", client.resources.join(" ")));
    }
    let mut checks = vec![Check::new("request", true, format!("It asks for {}.", asked.join(" and ")))];
    checks.extend(resources(client));
    let is_safe = client.redirect_uri.starts_with("https://")
        || (client.redirect_uri.starts_with("http://") && is_of_this_machine(&client.redirect_uri));
    let detail = format!("The provider leads back to {}: register it there.", told(&client.redirect_uri));
    checks.push(Check::new("callback", is_safe, detail).by("CallbackPath"));
    checks
}

/// An AD FS issues access tokens for one resource at a time, and must be told which.
fn resources(client: &Client) -> Option<Check> {
    (client.kind == Kind::AdfsOAuth && client.resources.len() > 1).then(|| {
        Check::failed("resources", "AD FS takes one resource: RequestResources names several.")
            .by("RequestResources")
    })
}
