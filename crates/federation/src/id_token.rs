//! The ID token (OpenID Connect Core 1.0, sections 2 and 3.1.3.7; RFC 8725).

mod claims;

pub use claims::{audiences, times};

use chancery_jwe::{OpeningKey, is_encrypted, open};
use chancery_oauth::{Algorithm, Jwk, KeyMiss, TokenParts, fitting_keys};
use chancery_record::{Json, Timestamp};

use crate::{
    Check, Client, Demands, Kind,
    check::{text, told},
};

/// The longest ID token, in bytes.
const LONGEST: usize = 64 * 1024;

/// By what an ID token is judged.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// What this server is at the provider.
    pub client: &'a Client,
    /// The issuer of the discovery document.
    pub issuer: &'a str,
    /// The provider's keys.
    pub keys: &'a [Jwk],
    /// The keys of linked certificates that open tokens.
    pub opening: &'a [OpeningKey],
    /// `nonce` of the request.
    pub nonce: &'a str,
    /// The access token that came with it.
    pub access_token: &'a str,
    /// What was demanded of the sign-in.
    pub demands: &'a Demands,
    /// The time.
    pub now: Timestamp,
}

/// Judges an ID token: all that is wrong with it, and its claims, which only count where every check passed.
pub fn judge_id_token(token: &str, expected: &Expected<'_>) -> (Vec<Check>, Option<Json>) {
    let mut checks = Vec::new();
    let mut opened = None;
    if is_encrypted(token) {
        let found = expected.opening.iter().find_map(|key| open(token, key));
        let text = found.and_then(|secret| String::from_utf8(secret.expose().to_vec()).ok());
        checks.push(encryption(text.is_some(), expected.opening.is_empty()).by("certStores"));
        let Some(text) = text else { return (checks, None) };
        opened = Some(text);
    }
    let parts = match TokenParts::read(opened.as_deref().unwrap_or(token), LONGEST) {
        Ok(parts) => parts,
        Err(why) => {
            checks.push(Check::failed("idToken", format!("The ID token cannot be read. {why}")));
            return (checks, None);
        }
    };
    let algorithm = text(&parts.header, "alg").unwrap_or_default();
    let keys = keys_of_issuer(&parts.claims, expected);
    checks.extend(signature(&parts, algorithm, &keys));
    checks.extend(claims::judge(&parts.claims, algorithm, expected));
    (checks, Some(parts.claims))
}

/// The keys that may sign for who issued the token: Microsoft publishes those of all organisations in one set, and tells whose each is.
fn keys_of_issuer(claims: &Json, expected: &Expected<'_>) -> Vec<Jwk> {
    let (issuer, tid) = (text(claims, "iss"), text(claims, "tid"));
    let is_of = |key: &&Jwk| {
        let of = key.issuer.as_ref().filter(|_| expected.client.kind == Kind::Microsoft);
        of.is_none_or(|of| expected.client.kind.issuer_of_token(of, tid).as_deref() == issuer)
    };
    expected.keys.iter().filter(is_of).cloned().collect()
}

fn encryption(is_open: bool, has_no_key: bool) -> Check {
    if is_open {
        return Check::new("encryption", true, "The ID token is encrypted, and was opened.");
    }
    let why = if has_no_key {
        "no certificate of type OidcTokenEncryption with its private key is linked"
    } else {
        "no linked certificate opens it"
    };
    Check::failed("encryption", format!("The ID token is encrypted, and {why}."))
}

/// Who signed: the algorithm, the key, and the signature by it.
fn signature(parts: &TokenParts<'_>, name: &str, keys: &[Jwk]) -> Vec<Check> {
    // by none anybody signs, and by an HMAC whoever knows the client's secret
    let Some(algorithm) = Algorithm::named(name).filter(|algorithm| !algorithm.is_symmetric()) else {
        let detail = format!(
            "The ID token is signed by {}, and must be by a key pair: RS, PS, ES or EdDSA.",
            told(name)
        );
        return vec![Check::failed("algorithm", detail)];
    };
    let algorithm_check = Check::new("algorithm", true, format!("The ID token is signed by {name}."));
    let kid = text(&parts.header, "kid")
        .map_or_else(|| "without a kid".to_owned(), |kid| format!("of kid {}", told(kid)));
    let key_check = |passed, what: &str| Check::new("key", passed, format!("The key {kid} {what}."));
    let fitting = match fitting_keys(&parts.header, keys, algorithm) {
        Ok(fitting) => fitting,
        Err(miss) => {
            let what = match miss {
                KeyMiss::Malformed => "is named by no text",
                KeyMiss::Unknown => "is none that the provider publishes",
                KeyMiss::OtherUse => "is for another use than signatures",
                KeyMiss::OtherAlgorithm => "is for another algorithm",
                KeyMiss::Many => "may be one of many: the token must name it",
            };
            return vec![algorithm_check, key_check(false, what)];
        }
    };
    let is_signed = is_signed_by(parts, algorithm, fitting);
    let detail =
        if is_signed { "The signature is the provider's." } else { "The signature is not by this key." };
    vec![algorithm_check, key_check(true, "is the provider's"), Check::new("signature", is_signed, detail)]
}

/// Whether one of these keys signed the token.
pub fn is_signed_by<'a>(
    parts: &TokenParts<'_>,
    algorithm: Algorithm,
    keys: impl IntoIterator<Item = &'a Jwk>,
) -> bool {
    keys.into_iter().any(|key| key.verifies(algorithm, parts.signed, &parts.signature))
}
