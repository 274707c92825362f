//! Validation of the claims of an ID token.

use chancery_oauth::{Algorithm, LEEWAY, half_hash};
use chancery_record::Json;

use super::Expected;
use crate::{
    Check,
    check::{quoted, text},
};

/// The maximum age of a token since `iat`, in seconds.
const MAX_TOKEN_AGE: i64 = 600;
/// The maximum length of a subject, in bytes (section 2).
const MAX_SUBJECT_LENGTH: usize = 255;

/// Validates all claims, even after one has failed.
pub fn check(claims: &Json, algorithm: &str, expected: &Expected<'_>) -> Vec<Check> {
    let client = expected.client;
    let mut checks = vec![
        issuer(claims, expected),
        audience(claims, &client.id),
        authorized_party(claims, &client.id),
        subject(claims),
    ];
    let now = expected.now.0.div_euclid(1000);
    checks.extend(times(claims, now));
    checks.extend(authentication_time(claims, expected, now));
    let is_same = text(claims, "nonce").is_some_and(|nonce| nonce == expected.nonce);
    let detail = if is_same { "nonce is that of the request." } else { "nonce is not that of the request." };
    checks.push(Check::new("nonce", is_same, detail));
    // the hash of an unknown algorithm cannot be checked
    if Algorithm::named(algorithm).is_some() {
        checks.push(access_token_hash(claims, &half_hash(expected.access_token, algorithm)));
    }
    if !client.tenants.is_empty() {
        let tid = text(claims, "tid").unwrap_or_default();
        let is_listed = client.tenants.iter().any(|tenant| tenant == tid);
        let is = if is_listed { "is" } else { "is not" };
        let detail = format!("tid is {}, which {is} listed.", quoted(tid));
        checks.push(Check::new("tenant", is_listed, detail).with_option("ScimUniqueIdentifierValues"));
    }
    checks
}

fn issuer(claims: &Json, expected: &Expected<'_>) -> Check {
    let received = text(claims, "iss").unwrap_or_default();
    match expected.client.kind.issuer_of_token(expected.issuer, text(claims, "tid")) {
        Some(issuer) => Check::equal("tokenIssuer", "iss", received, &issuer).with_option("Authority"),
        None => Check::failed("tokenIssuer", "tid is missing or no id: it names no organisation."),
    }
}

/// The values of `aud`, if it is a text or an array of texts.
pub fn audiences(claims: &Json) -> Option<Vec<&str>> {
    match claims.get("aud") {
        Some(Json::Text(one)) => Some(vec![one]),
        Some(Json::Array(items)) => items
            .iter()
            .map(|item| if let Json::Text(text) = item { Some(text.as_str()) } else { None })
            .collect(),
        _ => None,
    }
}

fn audience(claims: &Json, id: &str) -> Check {
    let Some(audiences) = audiences(claims) else {
        return Check::failed("audience", "aud is neither a text nor an array of texts.")
            .with_option("ClientId");
    };
    let is_ours = audiences.contains(&id);
    let names = if is_ours { "names" } else { "does not name" };
    let detail = format!("aud is {}, which {names} ClientId.", quoted(&audiences.join(" ")));
    Check::new("audience", is_ours, detail).with_option("ClientId")
}

/// If there are several audiences, `azp` must name this server.
fn authorized_party(claims: &Json, id: &str) -> Check {
    let has_several = audiences(claims).is_some_and(|audiences| audiences.len() > 1);
    let check = match claims.get("azp") {
        None if has_several => Check::failed("authorizedParty", "aud names several, and azp is missing."),
        None => Check::new("authorizedParty", true, "azp is absent, and aud names one."),
        Some(Json::Text(party)) => Check::equal("authorizedParty", "azp", party, id),
        Some(_) => Check::failed("authorizedParty", "azp is no text."),
    };
    check.with_option("ClientId")
}

fn subject(claims: &Json) -> Check {
    match text(claims, "sub") {
        Some(sub) if (1..=MAX_SUBJECT_LENGTH).contains(&sub.len()) => {
            Check::new("subject", true, format!("sub is {}.", quoted(sub)))
        }
        _ => Check::failed("subject", "sub is missing, empty or longer than 255 bytes."),
    }
}

/// Checks `exp` and `iat`. `now` is in seconds.
pub fn times(claims: &Json, now: i64) -> [Check; 2] {
    let seconds = |name| if let Some(Json::Int(seconds)) = claims.get(name) { Some(*seconds) } else { None };
    let check = |name, (passed, detail): (bool, &str)| Check::new(name, passed, detail);
    let expiry = match seconds("exp") {
        None => (false, "exp is no whole number of seconds."),
        Some(expiry) if expiry.saturating_add(LEEWAY) <= now => {
            (false, "exp is over: the token has expired, or a clock is wrong.")
        }
        Some(_) => (true, "exp is still to come."),
    };
    let issued = match seconds("iat") {
        None => (false, "iat is no whole number of seconds."),
        Some(issued) if issued > now.saturating_add(LEEWAY) => {
            (false, "iat is in the future: a clock is wrong.")
        }
        Some(issued) if issued.saturating_add(MAX_TOKEN_AGE) < now => {
            (false, "iat is more than ten minutes ago: the token is an old one, or a clock is wrong.")
        }
        Some(_) => (true, "iat is just now."),
    };
    [check("expiry", expiry), check("issuedAt", issued)]
}

/// Checks `auth_time` if a maximum age was demanded (section 3.1.3.7, rule 13).
fn authentication_time(claims: &Json, expected: &Expected<'_>, now: i64) -> Option<Check> {
    let max_age = expected.demands.max_age?;
    let check = |passed, detail: &str| Some(Check::new("authTime", passed, detail));
    let Some(Json::Int(time)) = claims.get("auth_time") else {
        return check(false, "auth_time is no whole number of seconds.");
    };
    let max_age = i64::try_from(max_age).unwrap_or(i64::MAX);
    let since = expected.demands.since.unwrap_or_else(|| now.saturating_sub(max_age));
    let is_recent = time.saturating_add(LEEWAY) >= since;
    check(
        is_recent,
        if is_recent {
            "auth_time is as was demanded."
        } else {
            "auth_time is longer ago than was demanded."
        },
    )
}

/// Checks `at_hash`, if present, against the access token of the same response.
fn access_token_hash(claims: &Json, hash: &str) -> Check {
    match claims.get("at_hash") {
        None => Check::new("accessTokenHash", true, "at_hash is absent, as it may be."),
        Some(Json::Text(received)) if received == hash => {
            Check::new("accessTokenHash", true, "at_hash is that of the access token.")
        }
        Some(_) => Check::failed("accessTokenHash", "at_hash is not that of the access token."),
    }
}
