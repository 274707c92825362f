//! Active Directory Federation Services without OpenID Connect: the access token identifies the user.

use chancery_oauth::{Algorithm, Jwk, LEEWAY, TokenParts};
use chancery_record::{Json, Timestamp};

use crate::{
    Check, Client, Discovery, IdentitySource,
    check::{quoted, text},
    discovery::is_safe,
    id_token::{audiences, is_signed_by, times},
};

/// The maximum length of an access token, in bytes.
const MAX_LENGTH: usize = 64 * 1024;
/// The prefix that AD FS adds to an identifier in `aud` that is no URI.
const AUDIENCE_PREFIX: &str = "microsoft:identityserver:";

/// The endpoints of an AD FS below its authority, which must be an https URL. No request is sent for them.
pub fn adfs_endpoints(client: &Client) -> (Check, Option<Discovery>) {
    let authority = client.authority.trim_end_matches('/');
    if !is_safe(authority) {
        let detail = format!("Authority is {}, which does not begin with https://.", quoted(authority));
        return (Check::failed("endpoints", detail).with_option("Authority"), None);
    }
    let endpoints = Discovery {
        issuer: authority.to_owned(),
        authorization_endpoint: format!("{authority}/oauth2/authorize"),
        token_endpoint: format!("{authority}/oauth2/token"),
        identity_source: IdentitySource::AccessToken,
        userinfo_endpoint: None,
        end_session_endpoint: None,
        auth_methods: vec!["client_secret_post".to_owned()],
        signing_algorithms: Vec::new(),
        sends_issuer: false,
    };
    (Check::new("endpoints", true, "The endpoints are below Authority."), Some(endpoints))
}

/// Validates an access token of AD FS with the keys of linked certificates. Returns its claims, which count only if every check passed.
/// `sub` is one of them: if the token has none, it is the token's `upn`.
pub fn check_adfs_token(
    token: &str,
    client: &Client,
    keys: &[Jwk],
    now: Timestamp,
) -> (Vec<Check>, Option<Json>) {
    let parts = match TokenParts::read(token, MAX_LENGTH) {
        Ok(parts) => parts,
        Err(why) => {
            let detail = format!("The access token cannot be read. {why}");
            return (vec![Check::failed("accessToken", detail)], None);
        }
    };
    let is_signed =
        text(&parts.header, "alg") == Some("RS256") && is_signed_by(&parts, Algorithm::Rs256, keys);
    let detail = if is_signed {
        "A linked certificate verifies the access token."
    } else {
        "No linked certificate of type AdfsOAuthTokenSigning verifies the access token by RS256."
    };
    let mut checks = vec![
        Check::new("signature", is_signed, detail).with_option("certStores"),
        audience(&parts.claims, client),
        authorized_party(&parts.claims, client),
    ];
    checks.extend(times(&parts.claims, now.0.div_euclid(1000)));
    checks.push(not_before(&parts.claims, now.0.div_euclid(1000)));
    let has_issuer = text(&parts.claims, "iss").is_some_and(|issuer| !issuer.is_empty());
    let detail = if has_issuer { "iss names who issued the token." } else { "iss is missing or no text." };
    checks.push(Check::new("tokenIssuer", has_issuer, detail));
    let name = if parts.claims.get("sub").is_some() { "sub" } else { "upn" };
    let subject = text(&parts.claims, name).filter(|subject| !subject.is_empty()).map(str::to_owned);
    let Some(subject) = subject else {
        checks.push(Check::failed(
            "subject",
            "The access token has neither a sub nor a upn that is text: add a rule there that issues one.",
        ));
        return (checks, None);
    };
    checks.push(Check::new("subject", true, format!("{name} is {}.", quoted(&subject))));
    let mut claims = parts.claims;
    if let (Json::Object(members), "upn") = (&mut claims, name) {
        members.push(("sub".to_owned(), Json::Text(subject)));
    }
    (checks, Some(claims))
}

fn audience(claims: &Json, client: &Client) -> Check {
    let audiences = audiences(claims).unwrap_or_default();
    let is_requested = |audience: &str| {
        let resource = audience.strip_prefix(AUDIENCE_PREFIX).unwrap_or(audience);
        client.resources.iter().any(|requested| requested == resource || requested == audience)
    };
    let is_ours = !audiences.is_empty() && audiences.iter().all(|audience| is_requested(audience));
    let names = if is_ours { "is" } else { "is not" };
    let detail = format!("aud is {}, which {names} among RequestResources.", quoted(&audiences.join(" ")));
    Check::new("audience", is_ours, detail).with_option("RequestResources")
}

/// Rejects a token that was issued to another client and is replayed here.
fn authorized_party(claims: &Json, client: &Client) -> Check {
    match claims.get("appid") {
        None => Check::new("authorizedParty", true, "appid is absent."),
        Some(Json::Text(party)) => {
            Check::equal("authorizedParty", "appid", party, &client.id).with_option("ClientId")
        }
        Some(_) => Check::failed("authorizedParty", "appid is no text."),
    }
}

fn not_before(claims: &Json, now: i64) -> Check {
    match claims.get("nbf") {
        None => Check::new("notBefore", true, "nbf is absent."),
        Some(Json::Int(start)) if *start <= now.saturating_add(LEEWAY) => {
            Check::new("notBefore", true, "nbf is over.")
        }
        Some(_) => {
            Check::failed("notBefore", "nbf is to come, or no whole number of seconds: a clock is wrong.")
        }
    }
}
