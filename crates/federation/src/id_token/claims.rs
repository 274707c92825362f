//! The claims of an ID token, each by its rule.

use chancery_oauth::{Algorithm, LEEWAY, half_hash};
use chancery_record::Json;

use super::Expected;
use crate::{
    Check,
    check::{text, told},
};

/// How long ago a token may have been made that answers a request of now, in seconds.
const OLDEST: i64 = 600;
/// The bytes that a subject may have (section 2).
const LONGEST_SUBJECT: usize = 255;

/// Judges all claims that matter, whichever of them are wrong.
pub fn judge(claims: &Json, algorithm: &str, expected: &Expected<'_>) -> Vec<Check> {
    let client = expected.client;
    let mut checks = vec![
        issuer(claims, expected),
        audience(claims, &client.id),
        authorized_party(claims, &client.id),
        subject(claims),
    ];
    let now = expected.now.0.div_euclid(1000);
    checks.extend(times(claims, now));
    checks.extend(sign_in_time(claims, expected, now));
    let nonce = text(claims, "nonce").is_some_and(|nonce| nonce == expected.nonce);
    let detail = if nonce { "nonce is that of the request." } else { "nonce is not that of the request." };
    checks.push(Check::new("nonce", nonce, detail));
    // by no algorithm that is known, no hash is the right one
    if Algorithm::named(algorithm).is_some() {
        checks.push(access_token(claims, &half_hash(expected.access_token, algorithm)));
    }
    if !client.tenants.is_empty() {
        let tid = text(claims, "tid").unwrap_or_default();
        let is_listed = client.tenants.iter().any(|tenant| tenant == tid);
        let is = if is_listed { "is" } else { "is not" };
        let detail = format!("tid is {}, which {is} listed.", told(tid));
        checks.push(Check::new("tenant", is_listed, detail).by("ScimUniqueIdentifierValues"));
    }
    checks
}

fn issuer(claims: &Json, expected: &Expected<'_>) -> Check {
    let found = text(claims, "iss").unwrap_or_default();
    match expected.client.kind.issuer_of_token(expected.issuer, text(claims, "tid")) {
        Some(issuer) => Check::same("tokenIssuer", "iss", found, &issuer).by("Authority"),
        None => Check::failed("tokenIssuer", "tid is missing or no id: it names no organisation."),
    }
}

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
        return Check::failed("audience", "aud is neither a text nor an array of texts.").by("ClientId");
    };
    let is_ours = audiences.contains(&id);
    let names = if is_ours { "names" } else { "does not name" };
    let detail = format!("aud is {}, which {names} ClientId.", told(&audiences.join(" ")));
    Check::new("audience", is_ours, detail).by("ClientId")
}

/// Of several audiences one got the token: it must be this server.
fn authorized_party(claims: &Json, id: &str) -> Check {
    let is_one_of_many = audiences(claims).is_some_and(|audiences| audiences.len() > 1);
    let check = match claims.get("azp") {
        None if is_one_of_many => Check::failed("authorizedParty", "aud names several, and azp is missing."),
        None => Check::new("authorizedParty", true, "azp is absent, and aud names one."),
        Some(Json::Text(party)) => Check::same("authorizedParty", "azp", party, id),
        Some(_) => Check::failed("authorizedParty", "azp is no text."),
    };
    check.by("ClientId")
}

fn subject(claims: &Json) -> Check {
    match text(claims, "sub") {
        Some(sub) if (1..=LONGEST_SUBJECT).contains(&sub.len()) => {
            Check::new("subject", true, format!("sub is {}.", told(sub)))
        }
        _ => Check::failed("subject", "sub is missing, empty or longer than 255 bytes."),
    }
}

pub fn times(claims: &Json, now: i64) -> [Check; 2] {
    let moment = |name| if let Some(Json::Int(seconds)) = claims.get(name) { Some(*seconds) } else { None };
    let check = |name, (passed, detail): (bool, &str)| Check::new(name, passed, detail);
    let end = match moment("exp") {
        None => (false, "exp is no whole number of seconds."),
        Some(end) if end.saturating_add(LEEWAY) <= now => {
            (false, "exp is over: the token has expired, or a clock is wrong.")
        }
        Some(_) => (true, "exp is still to come."),
    };
    let made = match moment("iat") {
        None => (false, "iat is no whole number of seconds."),
        Some(made) if made > now.saturating_add(LEEWAY) => (false, "iat is in the future: a clock is wrong."),
        Some(made) if made.saturating_add(OLDEST) < now => {
            (false, "iat is more than ten minutes ago: the token is an old one, or a clock is wrong.")
        }
        Some(_) => (true, "iat is just now."),
    };
    [check("expiry", end), check("issuedAt", made)]
}

/// Where a sign-in of a certain age was demanded, `auth_time` must tell one (section 3.1.3.7, rule 13).
fn sign_in_time(claims: &Json, expected: &Expected<'_>, now: i64) -> Option<Check> {
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

/// Where it is there, `at_hash` must be of the access token beside it.
fn access_token(claims: &Json, hash: &str) -> Check {
    match claims.get("at_hash") {
        None => Check::new("accessTokenHash", true, "at_hash is absent, as it may be."),
        Some(Json::Text(found)) if found == hash => {
            Check::new("accessTokenHash", true, "at_hash is that of the access token.")
        }
        Some(_) => Check::failed("accessTokenHash", "at_hash is not that of the access token."),
    }
}
