//! Client assertions: `private_key_jwt` and `client_secret_jwt` (RFC 7523, section 3; OpenID
//! Connect Core 1.0, section 9).

use aws_lc_rs::hmac;
use chancery_record::{Json, Secret, Timestamp};

use crate::{
    Algorithm, ErrorCode, Jwk, NoMatchingKey, ProtocolError,
    claims::{seconds, short_text, text},
    compact::Compact,
    matching_keys,
};

/// The maximum lifetime of an assertion, in seconds.
pub const MAX_LIFETIME: i64 = 3600;
/// The accepted difference between the clocks of client and server, in seconds.
pub const LEEWAY: i64 = 60;
/// The maximum length of the id of a client or of an assertion, in bytes.
const MAX_ID: usize = 256;

/// The keys that may verify a client's assertion. The client's method decides, never the assertion's header.
#[derive(Clone, Copy, Debug)]
pub enum AssertionKeys<'a> {
    /// `private_key_jwt`: the public keys that are usable now, see
    /// [`KeySetStatus::is_usable`](crate::KeySetStatus::is_usable).
    Public(&'a [Jwk]),
    /// `client_secret_jwt`: the secrets that have not expired.
    Secrets(&'a [Secret]),
}

/// The values that an assertion is validated with.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The accepted ids of the client.
    pub client_ids: &'a [&'a str],
    /// The accepted audiences: this server's issuer and its endpoints.
    pub audiences: &'a [&'a str],
    /// Whether `aud` must be a text, not an array (FAPI 2.0 Security Profile, section 5.3.2.1): one audience could
    /// replay the assertion at another.
    pub one_audience: bool,
    /// The time of the request.
    pub now: Timestamp,
    /// The maximum lifetime of the assertion, in seconds: [`MAX_LIFETIME`].
    pub max_lifetime: i64,
    /// The accepted difference between the clocks, in seconds: [`LEEWAY`].
    pub leeway: i64,
}

/// A client that authenticated by an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAssertion {
    /// The client id in the assertion, one of the expected ids.
    pub client_id: String,
    /// The assertion's id, valid once for this client. The text of the assertion is no substitute, because a second
    /// form of an ECDSA signature is valid, too.
    pub jti: String,
    /// The expiry, with leeway: until then the caller stores the id.
    pub expires_on: Timestamp,
    /// The algorithm of the signature.
    pub algorithm: Algorithm,
}

/// The unverified client id of an assertion, to look up its keys.
pub fn unverified_client_id(assertion: &str) -> Option<String> {
    let token = Compact::read(assertion).ok()?;
    let subject = short_text(&token.claims, "sub", MAX_ID)?;
    (text(&token.claims, "iss") == Some(subject)).then(|| subject.to_owned())
}

/// Checks the claims of an assertion before the look-up of keys.
///
/// # Errors
/// `invalid_client`, with the rule that the assertion breaks.
pub fn check_claims(assertion: &str, expected: &Expected<'_>) -> Result<(), ProtocolError> {
    let token = Compact::read(assertion).map_err(refuse)?;
    read_claims(&token, expected).map(drop)
}

/// Verifies an assertion. The caller must reject a used [`VerifiedAssertion::jti`].
///
/// # Errors
/// `invalid_client`, with the rule that the assertion breaks.
pub fn verify_assertion(
    assertion: &str,
    keys: AssertionKeys<'_>,
    expected: &Expected<'_>,
) -> Result<VerifiedAssertion, ProtocolError> {
    let token = Compact::read(assertion).map_err(refuse)?;
    let verified = read_claims(&token, expected)?;
    check_signature(&token, keys)?;
    Ok(verified)
}

/// Reads and checks the claims without verifying the signature.
fn read_claims(token: &Compact<'_>, expected: &Expected<'_>) -> Result<VerifiedAssertion, ProtocolError> {
    check_type(&token.header)?;
    let claims = &token.claims;
    let client_id = short_text(claims, "sub", MAX_ID).ok_or(refuse("sub is missing or too long."))?;
    if text(claims, "iss") != Some(client_id) {
        return Err(refuse("iss and sub must both be the client id."));
    }
    if !expected.client_ids.contains(&client_id) {
        return Err(refuse("The assertion is of another client."));
    }
    check_audience(claims, expected)?;
    let expiry = check_times(claims, expected)?;
    let jti = short_text(claims, "jti", MAX_ID).ok_or(refuse("jti is missing or too long."))?;
    Ok(VerifiedAssertion {
        client_id: client_id.to_owned(),
        jti: jti.to_owned(),
        expires_on: Timestamp(expiry.saturating_add(expected.leeway).saturating_mul(1000)),
        algorithm: token.algorithm,
    })
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidClient, detail)
}

/// Checks `typ`: a token for another purpose, e.g. an access token, must not authenticate a client (RFC 8725, section
/// 3.11).
fn check_type(header: &Json) -> Result<(), ProtocolError> {
    let is_valid = match header.get("typ") {
        None => true,
        Some(Json::Text(typ)) => {
            let typ = typ.to_ascii_lowercase();
            matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "client-authentication+jwt")
        }
        Some(_) => false,
    };
    if is_valid { Ok(()) } else { Err(refuse("typ is that of another kind of token.")) }
}

fn check_audience(claims: &Json, expected: &Expected<'_>) -> Result<(), ProtocolError> {
    let is_ours =
        |json: &Json| matches!(json, Json::Text(name) if expected.audiences.contains(&name.as_str()));
    match claims.get("aud") {
        Some(name @ Json::Text(_)) if is_ours(name) => Ok(()),
        Some(Json::Array(names)) if !expected.one_audience && names.iter().any(is_ours) => Ok(()),
        _ => Err(refuse("aud does not name this server.")),
    }
}

/// Checks the times; returns the expiry, in seconds since 1970.
fn check_times(claims: &Json, expected: &Expected<'_>) -> Result<i64, ProtocolError> {
    let time = |name| seconds(claims, name).map_err(|()| refuse("exp, iat and nbf are whole seconds."));
    let now = expected.now.0.div_euclid(1000);
    let latest = now.saturating_add(expected.leeway);
    let expiry = time("exp")?.ok_or(refuse("exp is missing."))?;
    if expiry.saturating_add(expected.leeway) <= now {
        return Err(refuse("The assertion has expired."));
    }
    if expiry > latest.saturating_add(expected.max_lifetime) {
        return Err(refuse("exp is too far ahead."));
    }
    if let Some(start) = time("nbf")?
        && (start > latest || start > expiry)
    {
        return Err(refuse("The assertion is not valid yet."));
    }
    if let Some(issued) = time("iat")? {
        if issued > latest || issued > expiry {
            return Err(refuse("iat is in the future."));
        }
        if issued.saturating_add(expected.max_lifetime).saturating_add(expected.leeway) < now {
            return Err(refuse("iat is too long ago."));
        }
    }
    Ok(expiry)
}

fn check_signature(token: &Compact<'_>, keys: AssertionKeys<'_>) -> Result<(), ProtocolError> {
    let verified = match keys {
        AssertionKeys::Public(keys) => verify_with_keys(token, keys)?,
        AssertionKeys::Secrets(secrets) => verify_with_secrets(token, secrets)?,
    };
    if verified { Ok(()) } else { Err(refuse("The signature is not the client's.")) }
}

fn verify_with_keys(token: &Compact<'_>, keys: &[Jwk]) -> Result<bool, ProtocolError> {
    if token.algorithm.is_symmetric() {
        return Err(refuse("The client signs with a private key, not with its secret."));
    }
    let matches = matching_keys(&token.header, keys, token.algorithm).map_err(|reason| {
        refuse(match reason {
            NoMatchingKey::Malformed => "kid is no text.",
            NoMatchingKey::Unknown | NoMatchingKey::OtherUse | NoMatchingKey::OtherAlgorithm => {
                "The client has no usable key of this kid and algorithm."
            }
            NoMatchingKey::Many => "The client has many keys: the header must name one by kid.",
        })
    })?;
    Ok(matches.iter().any(|jwk| jwk.verifies(token.algorithm, token.signed, &token.signature)))
}

fn verify_with_secrets(token: &Compact<'_>, secrets: &[Secret]) -> Result<bool, ProtocolError> {
    // a secret is at least as long as the hash (RFC 7518, section 3.2)
    let (algorithm, shortest) = match token.algorithm {
        Algorithm::Hs256 => (hmac::HMAC_SHA256, 32),
        Algorithm::Hs384 => (hmac::HMAC_SHA384, 48),
        Algorithm::Hs512 => (hmac::HMAC_SHA512, 64),
        _ => return Err(refuse("The client signs with its secret: HS256, HS384 or HS512.")),
    };
    let mut long_secrets = secrets.iter().filter(|secret| secret.expose().len() >= shortest).peekable();
    if long_secrets.peek().is_none() {
        return Err(refuse("The client has no secret that is long enough for this algorithm."));
    }
    Ok(long_secrets.any(|secret| {
        let key = hmac::Key::new(algorithm, secret.expose());
        hmac::verify(&key, token.signed, &token.signature).is_ok()
    }))
}
