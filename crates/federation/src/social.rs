//! Facebook and Twitter: OAuth 2.0 at fixed endpoints. A profile, read with the access token, identifies the user.

use std::fmt::Write as _;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use chancery_oauth::with_query;
use chancery_record::{Json, Secret, read_json_within};

use crate::{
    Check, Client, Discovery, IdentitySource, ProviderAddresses, ProviderKind,
    check::{quoted, text},
};

/// The maximum number of JSON values in a profile.
const MAX_VALUES: usize = 1_000;

/// The fixed endpoints of a kind of provider, if it has some.
pub fn fixed_discovery(kind: ProviderKind, addresses: &ProviderAddresses) -> Option<Discovery> {
    let (sign_in, api) = (&addresses.facebook, &addresses.facebook_api);
    let (authorize, token, profile, method) = match kind {
        ProviderKind::Facebook => (
            format!("{sign_in}/dialog/oauth"),
            format!("{api}/oauth/access_token"),
            format!("{api}/me?fields=id,name,first_name,last_name,email,picture.type(large)"),
            "client_secret_post",
        ),
        ProviderKind::Twitter => (
            format!("{}/i/oauth2/authorize", addresses.twitter),
            format!("{}/2/oauth2/token", addresses.twitter_api),
            format!("{}/2/users/me?user.fields=name,username,profile_image_url", addresses.twitter_api),
            "client_secret_basic",
        ),
        ProviderKind::OpenIdConnect
        | ProviderKind::AdfsOAuth
        | ProviderKind::Microsoft
        | ProviderKind::Google => return None,
    };
    Some(Discovery {
        issuer: kind.authority("", addresses),
        authorization_endpoint: authorize,
        token_endpoint: token,
        identity_source: IdentitySource::Profile { url: profile },
        userinfo_endpoint: None,
        end_session_endpoint: None,
        auth_methods: vec![method.to_owned()],
        signing_algorithms: Vec::new(),
        sends_issuer: false,
    })
}

/// The URL of the profile of the access token's user. For Facebook it has a MAC with the secret, so that a token that was stolen from
/// another application is useless.
pub fn profile_url(client: &Client, url: &str, access_token: &str, secret: &Secret) -> String {
    if client.kind != ProviderKind::Facebook {
        return url.to_owned();
    }
    let proof = sign(&Key::new(HMAC_SHA256, secret.expose()), access_token.as_bytes());
    let mut hex = String::new();
    for byte in proof.as_ref() {
        // writing to a String does not fail
        let _ = write!(hex, "{byte:02x}");
    }
    with_query(url, &[("appsecret_proof".to_owned(), hex)])
}

/// Validates a profile. Returns its claims, by the names of OpenID Connect Core 1.0, section 5.1.
pub fn check_profile(document: &[u8], client: &Client, issuer: &str) -> (Check, Option<Json>) {
    let json = read_json_within(document, MAX_VALUES).ok().filter(|json| matches!(json, Json::Object(_)));
    let Some(json) = json else {
        return (Check::failed("profile", "The provider answered no JSON object for the profile."), None);
    };
    let is_twitter = client.kind == ProviderKind::Twitter;
    let profile = if is_twitter { json.get("data").unwrap_or(&json) } else { &json };
    let Some(subject) = text(profile, "id").filter(|id| !id.is_empty()) else {
        return (Check::failed("profile", "The profile has no id."), None);
    };
    let picture = if is_twitter {
        text(profile, "profile_image_url")
    } else {
        profile.get("picture").and_then(|picture| picture.get("data")).and_then(|data| text(data, "url"))
    };
    let values = [
        ("iss", Some(issuer)),
        ("sub", Some(subject)),
        ("name", text(profile, "name")),
        ("given_name", text(profile, "first_name")),
        ("family_name", text(profile, "last_name")),
        ("email", text(profile, "email")),
        ("preferred_username", text(profile, "username")),
        ("picture", picture),
    ];
    let claims = values
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Json::Text(value?.to_owned()))))
        .collect();
    let detail = format!("The profile was read, of id {}.", quoted(subject));
    (Check::new("profile", true, detail), Some(Json::Object(claims)))
}
