//! The keys that a signed token may be of: those that its header means, and that may verify its algorithm.

use chancery_record::Json;

use crate::{Algorithm, Jwk, Purpose};

/// The most keys tried for one token; an owner with more must name one by `kid`.
const MAX_TRIED: usize = 10;

/// Why no key fits a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMiss {
    /// `kid` is no text.
    Malformed,
    /// No key has this `kid`.
    Unknown,
    /// The key is for another use than signatures.
    OtherUse,
    /// The key is not for this algorithm.
    OtherAlgorithm,
    /// Without a `kid`, too many keys could be meant.
    Many,
}

/// The keys that a token with this header may be of. A key without a `kid`, e.g. of a certificate, may be the one that the
/// header names.
///
/// # Errors
/// [`KeyMiss`]: none fits.
pub fn fitting_keys<'a>(
    header: &Json,
    keys: &'a [Jwk],
    algorithm: Algorithm,
) -> Result<Vec<&'a Jwk>, KeyMiss> {
    let kid = match header.get("kid") {
        None => None,
        Some(Json::Text(kid)) => Some(kid.as_str()),
        Some(_) => return Err(KeyMiss::Malformed),
    };
    let mut fitting: Vec<&Jwk> =
        keys.iter().filter(|jwk| kid.is_none() || jwk.kid.is_none() || jwk.kid.as_deref() == kid).collect();
    if fitting.is_empty() {
        return Err(KeyMiss::Unknown);
    }
    fitting.retain(|jwk| jwk.serves(Purpose::Signature));
    if fitting.is_empty() {
        return Err(KeyMiss::OtherUse);
    }
    fitting.retain(|jwk| jwk.may_verify(algorithm));
    match fitting.len() {
        0 => Err(KeyMiss::OtherAlgorithm),
        1..=MAX_TRIED => Ok(fitting),
        _ => Err(KeyMiss::Many),
    }
}
