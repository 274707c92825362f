//! Strict parsing of JWS in compact serialization (RFC 7515, section 7.1), without verification.

use chancery_record::{Json, read_json};

use crate::{
    Algorithm,
    claims::{from_base64, text},
};

/// The maximum length of a token, in bytes.
const MAX_LENGTH: usize = 8 * 1024;

/// The parts of a token with a supported algorithm.
pub struct Compact<'a> {
    pub header: Json,
    pub claims: Json,
    pub algorithm: Algorithm,
    /// The signing input.
    pub signed: &'a [u8],
    pub signature: Vec<u8>,
}

/// The parts of a token with any algorithm, not verified.
#[derive(Clone, Debug)]
pub struct TokenParts<'a> {
    /// The header.
    pub header: Json,
    /// The claims.
    pub claims: Json,
    /// The signing input.
    pub signed: &'a [u8],
    /// The signature.
    pub signature: Vec<u8>,
}

impl<'a> TokenParts<'a> {
    /// Parses a token of at most `max_length` bytes. Repeated members, `crit` and `b64` are rejected.
    ///
    /// # Errors
    /// The explanation of the fault.
    pub fn read(token: &'a str, max_length: usize) -> Result<Self, &'static str> {
        if token.len() > max_length {
            return Err("The token is too long.");
        }
        let malformed = "The token is not of the form header.claims.signature in base64url.";
        let (signed, signature) = token.rsplit_once('.').ok_or(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(malformed)?;
        let signature = from_base64(signature).ok_or(malformed)?;
        let header = object(&from_base64(header).ok_or(malformed)?)
            .ok_or("The header is no JSON object, or has a member twice.")?;
        let claims = object(&from_base64(claims).ok_or(malformed)?)
            .ok_or("The claims are no JSON object, or have a member twice.")?;
        // no extension is supported, and a critical one must be rejected (RFC 7515, section 4.1.11)
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return Err("The header must not hold crit or b64.");
        }
        Ok(Self { header, claims, signed: signed.as_bytes(), signature })
    }
}

impl<'a> Compact<'a> {
    /// Parses a token. Repeated members, `crit`, `b64` and unknown algorithms are rejected.
    pub fn read(token: &'a str) -> Result<Self, &'static str> {
        if token.len() > MAX_LENGTH {
            return Err("The token is longer than 8 KiB.");
        }
        let TokenParts { header, claims, signed, signature } = TokenParts::read(token, MAX_LENGTH)?;
        let algorithm = text(&header, "alg")
            .and_then(Algorithm::named)
            .ok_or("The algorithm is missing or not served.")?;
        Ok(Self { header, claims, algorithm, signed, signature })
    }
}

fn object(bytes: &[u8]) -> Option<Json> {
    read_json(bytes).ok().filter(|json| matches!(json, Json::Object(_)))
}
