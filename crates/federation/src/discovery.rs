//! The discovery document (OpenID Connect Discovery 1.0, section 4; RFC 8414).

use chancery_record::{Json, is_loopback_url, read_json_within};
use url::Url;

use crate::{
    Check, Client,
    check::{quoted, text, texts},
};

/// The maximum number of JSON values in a document.
const MAX_VALUES: usize = 10_000;

/// The source of the user's identity at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// An ID token, signed with a key that the provider publishes.
    IdToken {
        /// `jwks_uri`
        keys: String,
    },
    /// An access token, signed with the key of a linked certificate.
    AccessToken,
    /// A profile that is read with the access token.
    Profile {
        /// The URL of the profile.
        url: String,
    },
}

impl IdentitySource {
    /// The name in the report of a trial.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IdToken { .. } => "IdToken",
            Self::AccessToken => "AccessToken",
            Self::Profile { .. } => "Profile",
        }
    }
}

/// The metadata of a provider, from its discovery document or fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// `issuer`
    pub issuer: String,
    /// `authorization_endpoint`
    pub authorization_endpoint: String,
    /// `token_endpoint`
    pub token_endpoint: String,
    /// The source of the user's identity.
    pub identity_source: IdentitySource,
    /// `userinfo_endpoint`
    pub userinfo_endpoint: Option<String>,
    /// `end_session_endpoint` (OpenID Connect RP-Initiated Logout 1.0, section 2.1)
    pub end_session_endpoint: Option<String>,
    /// `token_endpoint_auth_methods_supported`, or its default.
    pub auth_methods: Vec<String>,
    /// `token_endpoint_auth_signing_alg_values_supported`
    pub signing_algorithms: Vec<String>,
    /// `authorization_response_iss_parameter_supported` (RFC 9207)
    pub sends_issuer: bool,
}

/// The URL of the discovery document.
pub fn discovery_url(authority: &str) -> String {
    format!("{}/.well-known/openid-configuration", authority.trim_end_matches('/'))
}

/// Validates a discovery document; `None` if it lacks a usable endpoint.
pub fn check_discovery(document: &[u8], client: &Client) -> (Vec<Check>, Option<Discovery>) {
    let authority = client.authority.as_str();
    let Some(json) =
        read_json_within(document, MAX_VALUES).ok().filter(|json| matches!(json, Json::Object(_)))
    else {
        let detail = format!("What {} answers is no JSON object.", quoted(&discovery_url(authority)));
        return (vec![Check::failed("discovery", detail).with_option("Authority")], None);
    };
    let mut checks = vec![Check::new("discovery", true, "The discovery document was read.")];
    let issuer = text(&json, "issuer").unwrap_or_default();
    checks.push(
        Check::equal("issuer", "issuer", issuer, &client.kind.issuer(authority)).with_option("Authority"),
    );
    let (endpoints_check, endpoints) = endpoints(&json);
    checks.push(endpoints_check);
    checks.extend(capabilities(&json, client));
    let Some([authorization_endpoint, token_endpoint, jwks_uri]) = endpoints else { return (checks, None) };
    let discovery = Discovery {
        issuer: issuer.to_owned(),
        authorization_endpoint,
        token_endpoint,
        identity_source: IdentitySource::IdToken { keys: jwks_uri },
        userinfo_endpoint: text(&json, "userinfo_endpoint").map(str::to_owned),
        end_session_endpoint: text(&json, "end_session_endpoint")
            .filter(|url| is_safe(url))
            .map(str::to_owned),
        auth_methods: texts(&json, "token_endpoint_auth_methods_supported")
            .unwrap_or_else(|| vec!["client_secret_basic".to_owned()]),
        signing_algorithms: texts(&json, "token_endpoint_auth_signing_alg_values_supported")
            .unwrap_or_default(),
        sends_issuer: json.get("authorization_response_iss_parameter_supported") == Some(&Json::Bool(true)),
    };
    (checks, Some(discovery))
}

fn endpoints(json: &Json) -> (Check, Option<[String; 3]>) {
    let fault = |name: &str| match text(json, name) {
        None => Some(format!("{name} is missing.")),
        Some(url) if is_safe(url) => None,
        Some(url) => Some(format!("{name} is {}, which does not begin with https://.", quoted(url))),
    };
    let required = ["authorization_endpoint", "token_endpoint", "jwks_uri"];
    let userinfo = text(json, "userinfo_endpoint").and_then(|_| fault("userinfo_endpoint"));
    let faults: Vec<String> = required.into_iter().filter_map(fault).chain(userinfo).collect();
    if faults.is_empty() {
        let urls = required.map(|name| text(json, name).unwrap_or_default().to_owned());
        return (Check::new("endpoints", true, "All endpoints are reached by https."), Some(urls));
    }
    (Check::failed("endpoints", faults.join(" ")).with_option("Authority"), None)
}

/// Whether a URL uses https, or is on this machine, as during development.
pub fn is_safe(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback_url(text))
}

/// Checks the required features, as far as the document lists them.
fn capabilities(json: &Json, client: &Client) -> Vec<Check> {
    let supports = |member: &str, feature: &str| {
        texts(json, member).is_none_or(|values| values.iter().any(|value| value == feature))
    };
    let feature_check = |name, passed: bool, feature: &str| {
        let says = if passed { "does this, or does not say" } else { "says that it does not do this" };
        Check::new(name, passed, format!("The provider {says}: {feature}."))
    };
    let listed_scopes = texts(json, "scopes_supported");
    let unknown: Vec<&str> = client
        .all_scopes()
        .into_iter()
        .filter(|scope| listed_scopes.as_ref().is_some_and(|listed| !listed.iter().any(|one| one == scope)))
        .collect();
    // the list may be incomplete, except for openid (Discovery 1.0, section 3)
    let scopes = if unknown.contains(&"openid") {
        Check::failed("scopes", "The provider does not know the scope openid: it is none of OpenID Connect.")
            .with_option("Authority")
    } else if unknown.is_empty() {
        Check::new("scopes", true, "The provider knows all scopes that are asked for, or does not list them.")
    } else {
        let list = unknown.join(" ");
        Check::new("scopes", true, format!("The provider does not list {}; it need not.", quoted(&list)))
            .with_option("AdditionalScopes")
    };
    vec![
        feature_check("codeFlow", supports("response_types_supported", "code"), "the flow with a code"),
        feature_check("pkce", supports("code_challenge_methods_supported", "S256"), "PKCE with S256"),
        scopes,
    ]
}
