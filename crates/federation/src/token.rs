//! The token request and the token response (OpenID Connect Core 1.0, section 3.1.3; RFC 6749, sections 2.3.1 and 4.1.3).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Json, Secret, read_json_within};
use form_urlencoded::{Serializer, byte_serialize};

use crate::{
    Check, Client, ClientAuthMethod, Discovery, IdentitySource,
    check::{quoted, text},
};

/// `client_assertion_type` (RFC 7523, section 2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A token request. `Debug` does not print it.
pub struct TokenRequest {
    /// The token endpoint.
    pub url: String,
    /// The form-encoded body.
    pub form: String,
    /// The header `Authorization`.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for TokenRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenRequest(hidden)")
    }
}

/// The request that redeems a code. `credential` is that of the method: the secret, or an assertion.
pub fn token_request(
    discovery: &Discovery,
    client: &Client,
    method: ClientAuthMethod,
    credential: &Secret,
    code: &str,
    verifier: &str,
) -> TokenRequest {
    let credential = String::from_utf8_lossy(credential.expose());
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code").append_pair("code", code);
    form.append_pair("redirect_uri", &client.redirect_uri).append_pair("code_verifier", verifier);
    for resource in &client.resources {
        form.append_pair("resource", resource);
    }
    let mut authorization = None;
    match method {
        ClientAuthMethod::Basic => {
            // id and secret are form-encoded before they are joined
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let joined = format!("{}:{}", encode(&client.id), encode(&credential));
            authorization = Some(format!("Basic {}", BASE64_STANDARD.encode(joined)));
        }
        ClientAuthMethod::Post => {
            form.append_pair("client_id", &client.id).append_pair("client_secret", &credential);
        }
        ClientAuthMethod::PrivateKey => {
            form.append_pair("client_id", &client.id).append_pair("client_assertion_type", ASSERTION_TYPE);
            form.append_pair("client_assertion", &credential);
        }
    }
    TokenRequest { url: discovery.token_endpoint.clone(), form: form.finish(), authorization }
}

/// The tokens of a token response. `Debug` does not print them.
pub struct Tokens {
    /// The ID token, if the provider issued one.
    pub id_token: Option<String>,
    /// The access token.
    pub access_token: String,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Tokens(hidden)")
    }
}

/// Validates the token response.
pub fn check_token_response(
    status: u16,
    body: &[u8],
    method: ClientAuthMethod,
    identity_source: &IdentitySource,
) -> (Check, Option<Tokens>) {
    let json = read_json_within(body, 1_000).ok().filter(|json| matches!(json, Json::Object(_)));
    let Some(json) = json else {
        let detail = format!("The token endpoint answered {status}, and no JSON object.");
        return (Check::failed("tokens", detail).with_option("Authority"), None);
    };
    if status != 200 {
        // Facebook's error is an object
        let message = json.get("error").and_then(|error| text(error, "message"));
        let error = text(&json, "error").unwrap_or_default();
        let description = text(&json, "error_description").or(message);
        let about = description.map(|text| format!(": {}", quoted(text))).unwrap_or_default();
        let detail = format!("The token endpoint answered {status} by {}{about}.", quoted(error));
        let check = Check::failed("tokens", detail);
        return match error {
            "invalid_client" if method == ClientAuthMethod::PrivateKey => {
                (check.with_option("certStores"), None)
            }
            "invalid_client" => (check.with_option("ClientSecret"), None),
            "unauthorized_client" => (check.with_option("ClientId"), None),
            "invalid_grant" => (check.with_option("CallbackPath"), None),
            "invalid_target" => (check.with_option("RequestResources"), None),
            _ => (check, None),
        };
    }
    let is_bearer = text(&json, "token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    let Some(access_token) = text(&json, "access_token").map(str::to_owned) else {
        return (Check::failed("tokens", "The answer has no access_token."), None);
    };
    let id_token = text(&json, "id_token").map(str::to_owned);
    let needs_id_token = matches!(identity_source, IdentitySource::IdToken { .. });
    if needs_id_token && id_token.is_none() {
        return (Check::failed("tokens", "The answer has no id_token: it is none of OpenID Connect."), None);
    }
    if !is_bearer {
        return (Check::failed("tokens", "token_type is not Bearer."), None);
    }
    let issued = if needs_id_token { "an ID token and an access token" } else { "an access token" };
    let check = Check::new("tokens", true, format!("The code was redeemed for {issued}."));
    (check, Some(Tokens { id_token, access_token }))
}
