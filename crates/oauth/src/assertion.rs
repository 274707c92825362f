//! Client assertions: `private_key_jwt` and `client_secret_jwt` (RFC 7523, section 3; OpenID
//! Connect Core 1.0, section 9).

use aws_lc_rs::hmac;
use chancery_record::{Json, Secret, Timestamp};

use crate::{
    Algorithm, Code, Jwk, Refusal,
    claims::{seconds, short_text, text},
    compact::Compact,
};

/// How far ahead an assertion may end, in seconds.
pub const MAX_LIFETIME: i64 = 3600;
/// How much the clocks may differ, in seconds.
pub const LEEWAY: i64 = 60;
/// Far above what anybody calls a client or an assertion.
const MAX_ID: usize = 256;
/// Signatures tried for one assertion; a client with more keys names the one.
const MAX_TRIED: usize = 10;

/// What the client may prove itself with. Its method decides, never the assertion's header.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// `private_key_jwt`: the public keys that are usable now, see [`Status::is_usable`](crate::Status::is_usable).
    Public(&'a [Jwk]),
    /// `client_secret_jwt`: the secrets that have not expired.
    Secrets(&'a [Secret]),
}

/// What an assertion must say.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// What names the client whose keys these are.
    pub client_ids: &'a [&'a str],
    /// What names this server: its issuer, its token endpoint.
    pub audiences: &'a [&'a str],
    /// Whether `aud` must be one text, no array, as FAPI 2.0 Security Profile, section 5.3.2.1 has it:
    /// what is meant for two servers can be used by one at the other.
    pub one_audience: bool,
    /// When.
    pub now: Timestamp,
    /// How far ahead it may end, in seconds: [`MAX_LIFETIME`].
    pub max_lifetime: i64,
    /// How much the clocks may differ, in seconds: [`LEEWAY`].
    pub leeway: i64,
}

/// A client that proved itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// What it called itself: one of the expected.
    pub client_id: String,
    /// The assertion's id. Per client, it is good once; by its text it would not be, because an
    /// ECDSA signature has a second form that is good too.
    pub jti: String,
    /// When the assertion cannot be used any more, leeway included: until then its id must be
    /// remembered.
    pub expires_on: Timestamp,
    /// How it was signed.
    pub algorithm: Algorithm,
}

/// Whom an assertion says it is of, so that the keys can be looked up. Nothing is proven by it.
pub fn client_of(assertion: &str) -> Option<String> {
    let token = Compact::read(assertion).ok()?;
    let subject = short_text(&token.claims, "sub", MAX_ID)?;
    (text(&token.claims, "iss") == Some(subject)).then(|| subject.to_owned())
}

/// Checks what an assertion says, before any key is looked up for it.
///
/// # Errors
/// `invalid_client`, and which rule it breaks.
pub fn check_claims(assertion: &str, expected: &Expected<'_>) -> Result<(), Refusal> {
    let token = Compact::read(assertion).map_err(refuse)?;
    read_claims(&token, expected).map(drop)
}

/// Verifies an assertion. That it was not used before is for the caller to see, by [`Proven::jti`].
///
/// # Errors
/// `invalid_client`, and which rule it breaks.
pub fn verify_assertion(assertion: &str, keys: Keys<'_>, expected: &Expected<'_>) -> Result<Proven, Refusal> {
    let token = Compact::read(assertion).map_err(refuse)?;
    let proven = read_claims(&token, expected)?;
    check_signature(&token, keys)?;
    Ok(proven)
}

/// What the assertion would prove, were its signature good.
fn read_claims(token: &Compact<'_>, expected: &Expected<'_>) -> Result<Proven, Refusal> {
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
    let end = check_times(claims, expected)?;
    let jti = short_text(claims, "jti", MAX_ID).ok_or(refuse("jti is missing or too long."))?;
    Ok(Proven {
        client_id: client_id.to_owned(),
        jti: jti.to_owned(),
        expires_on: Timestamp(end.saturating_add(expected.leeway).saturating_mul(1000)),
        algorithm: token.algorithm,
    })
}

const fn refuse(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidClient, detail)
}

/// A token that was made for something else, e.g. an access token, proves no client (RFC 8725,
/// section 3.11).
fn check_type(header: &Json) -> Result<(), Refusal> {
    let fits = match header.get("typ") {
        None => true,
        Some(Json::Text(typ)) => {
            let typ = typ.to_ascii_lowercase();
            matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "client-authentication+jwt")
        }
        Some(_) => false,
    };
    if fits { Ok(()) } else { Err(refuse("typ is that of another kind of token.")) }
}

fn check_audience(claims: &Json, expected: &Expected<'_>) -> Result<(), Refusal> {
    let ours = |json: &Json| matches!(json, Json::Text(name) if expected.audiences.contains(&name.as_str()));
    match claims.get("aud") {
        Some(name @ Json::Text(_)) if ours(name) => Ok(()),
        Some(Json::Array(names)) if !expected.one_audience && names.iter().any(ours) => Ok(()),
        _ => Err(refuse("aud does not name this server.")),
    }
}

/// When the assertion ends, in seconds.
fn check_times(claims: &Json, expected: &Expected<'_>) -> Result<i64, Refusal> {
    let moment = |name| seconds(claims, name).map_err(|()| refuse("exp, iat and nbf are whole seconds."));
    let now = expected.now.0.div_euclid(1000);
    let latest = now.saturating_add(expected.leeway);
    let end = moment("exp")?.ok_or(refuse("exp is missing."))?;
    if end.saturating_add(expected.leeway) <= now {
        return Err(refuse("The assertion has expired."));
    }
    if end > latest.saturating_add(expected.max_lifetime) {
        return Err(refuse("exp is too far ahead."));
    }
    if let Some(begin) = moment("nbf")?
        && (begin > latest || begin > end)
    {
        return Err(refuse("The assertion is not valid yet."));
    }
    if let Some(made) = moment("iat")? {
        if made > latest || made > end {
            return Err(refuse("iat is in the future."));
        }
        if made.saturating_add(expected.max_lifetime).saturating_add(expected.leeway) < now {
            return Err(refuse("iat is too long ago."));
        }
    }
    Ok(end)
}

fn check_signature(token: &Compact<'_>, keys: Keys<'_>) -> Result<(), Refusal> {
    let verified = match keys {
        Keys::Public(keys) => verify_with_keys(token, keys)?,
        Keys::Secrets(secrets) => verify_with_secrets(token, secrets)?,
    };
    if verified { Ok(()) } else { Err(refuse("The signature is not the client's.")) }
}

fn verify_with_keys(token: &Compact<'_>, keys: &[Jwk]) -> Result<bool, Refusal> {
    if token.algorithm.is_symmetric() {
        return Err(refuse("The client signs with a private key, not with its secret."));
    }
    let kid = match token.header.get("kid") {
        None => None,
        Some(Json::Text(kid)) => Some(kid.as_str()),
        Some(_) => return Err(refuse("kid is no text.")),
    };
    // a key without a name, e.g. of a certificate, may be the one that is meant
    let meant = |jwk: &&Jwk| kid.is_none() || jwk.kid.is_none() || jwk.kid.as_deref() == kid;
    let fitting: Vec<&Jwk> =
        keys.iter().filter(meant).filter(|jwk| jwk.may_verify(token.algorithm)).collect();
    if fitting.is_empty() {
        return Err(refuse("The client has no usable key of this kid and algorithm."));
    }
    if fitting.len() > MAX_TRIED {
        return Err(refuse("The client has many keys: the header must name one by kid."));
    }
    Ok(fitting.iter().any(|jwk| jwk.verifies(token.algorithm, token.signed, &token.signature)))
}

fn verify_with_secrets(token: &Compact<'_>, secrets: &[Secret]) -> Result<bool, Refusal> {
    // the secret has the size of the hash at least (RFC 7518, section 3.2)
    let (algorithm, shortest) = match token.algorithm {
        Algorithm::Hs256 => (hmac::HMAC_SHA256, 32),
        Algorithm::Hs384 => (hmac::HMAC_SHA384, 48),
        Algorithm::Hs512 => (hmac::HMAC_SHA512, 64),
        _ => return Err(refuse("The client signs with its secret: HS256, HS384 or HS512.")),
    };
    let mut long = secrets.iter().filter(|secret| secret.expose().len() >= shortest).peekable();
    if long.peek().is_none() {
        return Err(refuse("The client has no secret that is long enough for this algorithm."));
    }
    Ok(long.any(|secret| {
        let key = hmac::Key::new(algorithm, secret.expose());
        hmac::verify(&key, token.signed, &token.signature).is_ok()
    }))
}
