//! The discovery document of an issuer.

use std::sync::LazyLock;

use chancery_auth::{GRANTS, Issuer};
use chancery_signin::{ACR, GRANT_TYPES, STANDARD_SCOPES, platform_claims};
use serde_json::{Value, json};

use crate::{app::App, pages, routes::system_route::SystemRoute};

/// The client authentication methods.
const METHODS: [&str; 4] =
    ["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt"];
/// The signature algorithms of client assertions.
const ASSERTION_ALGORITHMS: [&str; 13] = [
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
    "ES512", "EdDSA",
];
/// The signature algorithms of DPoP proofs.
const PROOF_ALGORITHMS: [&str; 10] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

/// The claims of ID tokens that are not about the person.
const TOKEN_CLAIMS: [&str; 11] =
    ["sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "tid"];
/// The signature algorithms of ID tokens, and of signed answers of the UserInfo and introspection endpoints.
const ID_TOKEN_ALGORITHMS: [&str; 5] = ["RS256", "ES256", "ES384", "ES512", "EdDSA"];

/// All grants of the token endpoint where people sign in.
fn grants_of_people() -> impl Iterator<Item = &'static str> {
    GRANT_TYPES.iter().map(|grant_type| grant_type.name).chain(GRANTS)
}

/// The error text of the token endpoint for an unsupported grant type.
pub fn unsupported_grant(app: &App) -> &'static str {
    static ALONE: LazyLock<String> = LazyLock::new(|| message(GRANTS.into_iter()));
    static OF_PEOPLE: LazyLock<String> = LazyLock::new(|| message(grants_of_people()));
    fn message(grants: impl Iterator<Item = &'static str>) -> String {
        format!("This server grants by {}.", grants.collect::<Vec<_>>().join(", "))
    }
    if app.sign_in.is_on { &OF_PEOPLE } else { &ALONE }
}

/// The addresses in the document of an issuer, in the order in which people see them.
const ADDRESSES: [&str; 9] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "end_session_endpoint",
    "introspection_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
];

/// The addresses of an issuer that are served, by their names in its discovery document, and that of the document itself as
/// `discovery`.
pub fn endpoints(app: &App, issuer: &Issuer) -> Vec<(&'static str, String)> {
    let document = document(app, issuer);
    let addresses =
        ADDRESSES.iter().filter_map(|name| Some((*name, document.get(*name)?.as_str()?.to_owned())));
    let mut all: Vec<_> = addresses.collect();
    all.insert(1.min(all.len()), ("discovery", issuer.endpoint(SystemRoute::Discovery.path())));
    all
}

/// The discovery document of an issuer (OpenID Connect Discovery 1.0; RFC 8414), as text.
pub fn discovery(app: &App, issuer: &Issuer) -> String {
    document(app, issuer).to_string()
}

fn document(app: &App, issuer: &Issuer) -> Value {
    let documentation = format!("{}{}", app.token_service.public_url, SystemRoute::Documentation.path());
    let mut methods = METHODS.to_vec();
    if app.context.requests_client_certificates {
        methods.extend(["tls_client_auth", "self_signed_tls_client_auth"]);
    }
    let mut document = json!({
        "issuer": issuer.url,
        "token_endpoint": issuer.endpoint(SystemRoute::Token.path()),
        "introspection_endpoint": issuer.endpoint(SystemRoute::Introspect.path()),
        "revocation_endpoint": issuer.endpoint(SystemRoute::Revoke.path()),
        "jwks_uri": issuer.endpoint(SystemRoute::Keys.path()),
        "grant_types_supported": GRANTS,
        "token_endpoint_auth_methods_supported": methods,
        "token_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
        "introspection_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
        "introspection_signing_alg_values_supported": ID_TOKEN_ALGORITHMS,
        "revocation_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
        "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
        "tls_client_certificate_bound_access_tokens": app.context.requests_client_certificates,
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "service_documentation": documentation,
    });
    if let (true, Some(members)) = (pages::are_served(app), document.as_object_mut()) {
        members.extend(sign_in(issuer, &methods));
    }
    document
}

/// The discovery members where people sign in.
fn sign_in(issuer: &Issuer, methods: &[&str]) -> serde_json::Map<String, serde_json::Value> {
    let methods: Vec<&str> = methods.iter().copied().chain(["none"]).collect();
    let metadata = json!({
        "authorization_endpoint": issuer.endpoint(SystemRoute::Authorize.path()),
        "userinfo_endpoint": issuer.endpoint(SystemRoute::UserInfo.path()),
        "device_authorization_endpoint": issuer.endpoint(SystemRoute::DeviceAuthorization.path()),
        "end_session_endpoint": issuer.endpoint(SystemRoute::EndSession.path()),
        "grant_types_supported": grants_of_people().collect::<Vec<_>>(),
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "response_types_supported": ["code", "none"],
        "response_modes_supported": ["query", "fragment", "form_post"],
        "scopes_supported": STANDARD_SCOPES,
        "claims_supported": TOKEN_CLAIMS.into_iter().chain(platform_claims()).collect::<Vec<_>>(),
        "claim_types_supported": ["normal"],
        "claims_parameter_supported": true,
        "acr_values_supported": ACR,
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "ui_locales_supported": ["en", "de"],
        "code_challenge_methods_supported": ["S256"],
        "id_token_signing_alg_values_supported": ID_TOKEN_ALGORITHMS,
        "userinfo_signing_alg_values_supported": ID_TOKEN_ALGORITHMS,
        "request_parameter_supported": false,
        "request_uri_parameter_supported": false,
        "authorization_response_iss_parameter_supported": true,
        "backchannel_logout_supported": true,
        "backchannel_logout_session_supported": true,
        "frontchannel_logout_supported": true,
        "frontchannel_logout_session_supported": true,
    });
    match metadata {
        serde_json::Value::Object(members) => members,
        _ => serde_json::Map::new(),
    }
}
