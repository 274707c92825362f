//! The discovery document (OpenID Connect Discovery 1.0, section 4; RFC 8414).

use chancery_record::{Json, is_of_this_machine, read_json_within};
use url::Url;

use crate::{
    Check, Client,
    check::{text, texts, told},
};

/// The most values that a document may hold.
const MOST: usize = 10_000;

/// What tells who signed in at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// An ID token by a key that the provider publishes.
    IdToken {
        /// `jwks_uri`
        keys: String,
    },
    /// An access token by the key of a linked certificate.
    AccessToken,
    /// A profile that the access token reads.
    Profile {
        /// Where it is.
        address: String,
    },
}

impl Evidence {
    /// Its name in what is told of a trial.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IdToken { .. } => "IdToken",
            Self::AccessToken => "AccessToken",
            Self::Profile { .. } => "Profile",
        }
    }
}

/// What a provider says of itself, or what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// `issuer`
    pub issuer: String,
    /// `authorization_endpoint`
    pub authorization_endpoint: String,
    /// `token_endpoint`
    pub token_endpoint: String,
    /// What tells who signed in.
    pub evidence: Evidence,
    /// `userinfo_endpoint`
    pub userinfo_endpoint: Option<String>,
    /// `end_session_endpoint` (OpenID Connect RP-Initiated Logout 1.0, section 2.1)
    pub end_session_endpoint: Option<String>,
    /// `token_endpoint_auth_methods_supported`: what it is where it is absent, too.
    pub methods: Vec<String>,
    /// `token_endpoint_auth_signing_alg_values_supported`
    pub signing_algorithms: Vec<String>,
    /// `authorization_response_iss_parameter_supported` (RFC 9207)
    pub names_itself: bool,
}

/// Where the document is.
pub fn discovery_address(authority: &str) -> String {
    format!("{}/.well-known/openid-configuration", authority.trim_end_matches('/'))
}

/// Judges a document: `None` where it cannot be worked with.
pub fn judge_discovery(document: &[u8], client: &Client) -> (Vec<Check>, Option<Discovery>) {
    let authority = client.authority.as_str();
    let Some(json) = read_json_within(document, MOST).ok().filter(|json| matches!(json, Json::Object(_)))
    else {
        let detail = format!("What {} answers is no JSON object.", told(&discovery_address(authority)));
        return (vec![Check::failed("discovery", detail).by("Authority")], None);
    };
    let mut checks = vec![Check::new("discovery", true, "The discovery document was read.")];
    let issuer = text(&json, "issuer").unwrap_or_default();
    checks.push(Check::same("issuer", "issuer", issuer, &client.kind.issuer(authority)).by("Authority"));
    let (endpoints, found) = endpoints(&json);
    checks.push(endpoints);
    checks.extend(capabilities(&json, client));
    let Some([authorization_endpoint, token_endpoint, jwks_uri]) = found else { return (checks, None) };
    let discovery = Discovery {
        issuer: issuer.to_owned(),
        authorization_endpoint,
        token_endpoint,
        evidence: Evidence::IdToken { keys: jwks_uri },
        userinfo_endpoint: text(&json, "userinfo_endpoint").map(str::to_owned),
        end_session_endpoint: text(&json, "end_session_endpoint")
            .filter(|address| is_safe(address))
            .map(str::to_owned),
        methods: texts(&json, "token_endpoint_auth_methods_supported")
            .unwrap_or_else(|| vec!["client_secret_basic".to_owned()]),
        signing_algorithms: texts(&json, "token_endpoint_auth_signing_alg_values_supported")
            .unwrap_or_default(),
        names_itself: json.get("authorization_response_iss_parameter_supported") == Some(&Json::Bool(true)),
    };
    (checks, Some(discovery))
}

fn endpoints(json: &Json) -> (Check, Option<[String; 3]>) {
    let wrong = |name: &str| match text(json, name) {
        None => Some(format!("{name} is missing.")),
        Some(address) if is_safe(address) => None,
        Some(address) => Some(format!("{name} is {}, which does not begin with https://.", told(address))),
    };
    let needed = ["authorization_endpoint", "token_endpoint", "jwks_uri"];
    let userinfo = text(json, "userinfo_endpoint").and_then(|_| wrong("userinfo_endpoint"));
    let faults: Vec<String> = needed.into_iter().filter_map(wrong).chain(userinfo).collect();
    if faults.is_empty() {
        let found = needed.map(|name| text(json, name).unwrap_or_default().to_owned());
        return (Check::new("endpoints", true, "All endpoints are reached by https."), Some(found));
    }
    (Check::failed("endpoints", faults.join(" ")).by("Authority"), None)
}

/// Whether an address is reached by https, or is on this machine: a developer's.
pub fn is_safe(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    url.scheme() == "https" || (url.scheme() == "http" && is_of_this_machine(address))
}

/// What the provider must be able to do, as far as it tells.
fn capabilities(json: &Json, client: &Client) -> Vec<Check> {
    let has = |member: &str, wanted: &str| {
        texts(json, member).is_none_or(|values| values.iter().any(|value| value == wanted))
    };
    let able = |name, passed: bool, what: &str| {
        let says = if passed { "does this, or does not say" } else { "says that it does not do this" };
        Check::new(name, passed, format!("The provider {says}: {what}."))
    };
    let told_scopes = texts(json, "scopes_supported");
    let unknown: Vec<&str> = client
        .all_scopes()
        .into_iter()
        .filter(|scope| told_scopes.as_ref().is_some_and(|known| !known.iter().any(|one| one == scope)))
        .collect();
    // a provider need not list all scopes, but openid (Discovery 1.0, section 3)
    let scopes = if unknown.contains(&"openid") {
        Check::failed("scopes", "The provider does not know the scope openid: it is none of OpenID Connect.")
            .by("Authority")
    } else if unknown.is_empty() {
        Check::new("scopes", true, "The provider knows all scopes that are asked for, or does not list them.")
    } else {
        let list = unknown.join(" ");
        Check::new("scopes", true, format!("The provider does not list {}; it need not.", told(&list)))
            .by("AdditionalScopes")
    };
    vec![
        able("codeFlow", has("response_types_supported", "code"), "the flow with a code"),
        able("pkce", has("code_challenge_methods_supported", "S256"), "PKCE with S256"),
        scopes,
    ]
}
