//! The authorization request (OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636, 8707).

use chancery_oauth::{Challenge, with_query};
use chancery_record::is_of_this_machine;

use crate::{Check, Client, Discovery, check::told};

/// What makes one request that request: by these its answer is judged.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `state`
    pub state: &'a str,
    /// `nonce`
    pub nonce: &'a str,
    /// `code_verifier`
    pub verifier: &'a str,
}

/// Where a browser is sent to: with state, nonce and PKCE by S256.
pub fn authorization_address(discovery: &Discovery, client: &Client, asked: Asked<'_>) -> String {
    let mut fields = vec![
        ("response_type", "code".to_owned()),
        ("client_id", client.id.clone()),
        ("redirect_uri", client.redirect_uri.clone()),
        ("scope", client.all_scopes().join(" ")),
        ("state", asked.state.to_owned()),
        ("nonce", asked.nonce.to_owned()),
        ("code_challenge", Challenge::of(asked.verifier).to_string()),
        ("code_challenge_method", "S256".to_owned()),
    ];
    fields.extend(client.resources.iter().map(|resource| ("resource", resource.clone())));
    let fields: Vec<(String, String)> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    with_query(&discovery.authorization_endpoint, &fields)
}

/// Judges what would be asked for.
pub fn judge_request(client: &Client) -> Vec<Check> {
    // RFC 6749, section 3.3: all that is printed, but for quotes and backslashes
    let is_scope =
        |scope: &&String| scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
    let mut checks = Vec::new();
    checks.extend(client.scopes.iter().find(|scope| !is_scope(scope)).map(|wrong| {
        Check::failed("scopes", format!("{} is no scope (RFC 6749, section 3.3).", told(wrong)))
            .by("AdditionalScopes")
    }));
    let is_resource = |text: &&String| url::Url::parse(text).is_ok_and(|url| url.fragment().is_none());
    checks.extend(client.resources.iter().find(|text| !is_resource(text)).map(|wrong| {
        let detail =
            format!("{} is no absolute address without a fragment (RFC 8707, section 2).", told(wrong));
        Check::failed("resources", detail).by("RequestResources")
    }));
    let is_safe = client.redirect_uri.starts_with("https://")
        || (client.redirect_uri.starts_with("http://") && is_of_this_machine(&client.redirect_uri));
    let detail = format!("The provider leads back to {}: register it there.", told(&client.redirect_uri));
    checks.push(Check::new("callback", is_safe, detail).by("CallbackPath"));
    checks
}
