//! The keys that can verify a token: those that its header refers to, and that allow its algorithm.

use chancery_record::Json;

use crate::{Algorithm, Jwk, Purpose};

/// The maximum number of keys tried for one token; with more, `kid` is required.
const MAX_TRIED: usize = 10;

/// The reason why no key can verify a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMatchingKey {
    /// `kid` is not text.
    Malformed,
    /// No key has this `kid`.
    Unknown,
    /// The key is not for signatures.
    OtherUse,
    /// The key is not for this algorithm.
    OtherAlgorithm,
    /// Without a `kid`, too many keys match.
    Many,
}

/// The keys that can verify a token with this header. A key without a `kid`, e.g. of a certificate, matches any `kid`.
///
/// # Errors
/// No key matches.
pub fn matching_keys<'a>(
    header: &Json,
    keys: &'a [Jwk],
    algorithm: Algorithm,
) -> Result<Vec<&'a Jwk>, NoMatchingKey> {
    let kid = match header.get("kid") {
        None => None,
        Some(Json::Text(kid)) => Some(kid.as_str()),
        Some(_) => return Err(NoMatchingKey::Malformed),
    };
    let mut matches: Vec<&Jwk> =
        keys.iter().filter(|jwk| kid.is_none() || jwk.kid.is_none() || jwk.kid.as_deref() == kid).collect();
    if matches.is_empty() {
        return Err(NoMatchingKey::Unknown);
    }
    matches.retain(|jwk| jwk.allows(Purpose::Signature));
    if matches.is_empty() {
        return Err(NoMatchingKey::OtherUse);
    }
    matches.retain(|jwk| jwk.may_verify(algorithm));
    match matches.len() {
        0 => Err(NoMatchingKey::OtherAlgorithm),
        1..=MAX_TRIED => Ok(matches),
        _ => Err(NoMatchingKey::Many),
    }
}
