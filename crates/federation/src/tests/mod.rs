//! Validation of a correct provider, and of each fault.

mod id_token;
mod provider;
mod requests;

use crate::{Check, Client, Discovery, ProviderAddresses, ProviderKind, check_discovery};

const ISSUER: &str = "https://provider.example";

fn client(kind: ProviderKind) -> Client {
    Client {
        kind,
        authority: kind.authority(ISSUER, &ProviderAddresses::default()),
        subject_claim: "sub".to_owned(),
        id: "chancery".to_owned(),
        scopes: vec!["email".to_owned(), "openid".to_owned()],
        resources: vec!["https://api.example/".to_owned()],
        tenants: Vec::new(),
        redirect_uri: "https://id.example/external/1/callback".to_owned(),
    }
}

fn document() -> serde_json::Value {
    serde_json::json!({
        "issuer": ISSUER, "authorization_endpoint": "https://provider.example/authorize?p=1",
        "token_endpoint": "https://provider.example/token", "jwks_uri": "https://provider.example/keys",
        "userinfo_endpoint": "https://provider.example/userinfo", "response_types_supported": ["code", "id_token"],
        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["openid", "profile", "email"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "private_key_jwt"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn discovery() -> Discovery {
    let (checks, discovery) =
        check_discovery(document().to_string().as_bytes(), &client(ProviderKind::OpenIdConnect));
    assert_eq!(failing(&checks), [""; 0], "{checks:?}");
    discovery.unwrap()
}

/// The names of the checks that failed.
fn failing(checks: &[Check]) -> Vec<&'static str> {
    checks.iter().filter(|check| !check.passed).map(|check| check.name).collect()
}
