//! Facebook and Twitter: OAuth 2.0 at endpoints that are the same for everybody. A profile, read by the access token, tells who signed
//! in.

use std::fmt::Write as _;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use chancery_oauth::with_query;
use chancery_record::{Json, Secret, read_json_within};

use crate::{
    Addresses, Check, Client, Discovery, Evidence, Kind,
    check::{text, told},
};

/// The most values that a profile may hold.
const MOST: usize = 1_000;

/// The endpoints of a provider of this kind; `None` where its kind has none that are the same for everybody.
pub fn fixed_endpoints(kind: Kind, addresses: &Addresses) -> Option<Discovery> {
    let (sign_in, api) = (&addresses.facebook, &addresses.facebook_api);
    let (authorize, token, profile, method) = match kind {
        Kind::Facebook => (
            format!("{sign_in}/dialog/oauth"),
            format!("{api}/oauth/access_token"),
            format!("{api}/me?fields=id,name,first_name,last_name,email,picture.type(large)"),
            "client_secret_post",
        ),
        Kind::Twitter => (
            format!("{}/i/oauth2/authorize", addresses.twitter),
            format!("{}/2/oauth2/token", addresses.twitter_api),
            format!("{}/2/users/me?user.fields=name,username,profile_image_url", addresses.twitter_api),
            "client_secret_basic",
        ),
        Kind::OpenIdConnect | Kind::AdfsOAuth | Kind::Microsoft | Kind::Google => return None,
    };
    Some(Discovery {
        issuer: kind.authority("", addresses),
        authorization_endpoint: authorize,
        token_endpoint: token,
        evidence: Evidence::Profile { address: profile },
        userinfo_endpoint: None,
        end_session_endpoint: None,
        methods: vec![method.to_owned()],
        signing_algorithms: Vec::new(),
        names_itself: false,
    })
}

/// Where the profile of who got an access token is. Facebook is shown that the caller knows the secret, so that a token that was stolen
/// elsewhere is of no use.
pub fn profile_address(client: &Client, address: &str, (access_token, secret): (&str, &Secret)) -> String {
    if client.kind != Kind::Facebook {
        return address.to_owned();
    }
    let proof = sign(&Key::new(HMAC_SHA256, secret.expose()), access_token.as_bytes());
    let mut hex = String::new();
    for byte in proof.as_ref() {
        // writing to a String does not fail
        let _ = write!(hex, "{byte:02x}");
    }
    with_query(address, &[("appsecret_proof".to_owned(), hex)])
}

/// Judges a profile; its claims, by the names of OpenID Connect Core 1.0, section 5.1.
pub fn judge_profile(document: &[u8], client: &Client, issuer: &str) -> (Check, Option<Json>) {
    let json = read_json_within(document, MOST).ok().filter(|json| matches!(json, Json::Object(_)));
    let Some(json) = json else {
        return (Check::failed("profile", "The provider answered no JSON object for the profile."), None);
    };
    let is_twitter = client.kind == Kind::Twitter;
    let profile = if is_twitter { json.get("data").unwrap_or(&json) } else { &json };
    let Some(subject) = text(profile, "id").filter(|id| !id.is_empty()) else {
        return (Check::failed("profile", "The profile has no id."), None);
    };
    let picture = if is_twitter {
        text(profile, "profile_image_url")
    } else {
        profile.get("picture").and_then(|picture| picture.get("data")).and_then(|data| text(data, "url"))
    };
    let told_as = [
        ("iss", Some(issuer)),
        ("sub", Some(subject)),
        ("name", text(profile, "name")),
        ("given_name", text(profile, "first_name")),
        ("family_name", text(profile, "last_name")),
        ("email", text(profile, "email")),
        ("preferred_username", text(profile, "username")),
        ("picture", picture),
    ];
    let claims = told_as
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Json::Text(value?.to_owned()))))
        .collect();
    let detail = format!("The profile was read, of id {}.", told(subject));
    (Check::new("profile", true, detail), Some(Json::Object(claims)))
}
