//! A signed token in its compact form (RFC 7515, section 7.1), read strictly; not yet verified.

use chancery_record::{Json, read_json};

use crate::{
    Algorithm,
    claims::{from_base64, text},
};

/// The longest token that is read, in bytes.
const LONGEST: usize = 8 * 1024;

/// A token's parts.
pub struct Compact<'a> {
    pub header: Json,
    pub claims: Json,
    pub algorithm: Algorithm,
    /// The bytes that the signature is over.
    pub signed: &'a [u8],
    pub signature: Vec<u8>,
}

/// A token of the form of a signed one, of any algorithm: nothing is verified.
#[derive(Clone, Debug)]
pub struct TokenParts<'a> {
    /// The header.
    pub header: Json,
    /// The claims.
    pub claims: Json,
    /// The bytes that the signature is over.
    pub signed: &'a [u8],
    /// The signature.
    pub signature: Vec<u8>,
}

impl<'a> TokenParts<'a> {
    /// Reads a token of at most so many bytes. Repeated members, `crit` and `b64` are refused.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(token: &'a str, longest: usize) -> Result<Self, &'static str> {
        if token.len() > longest {
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
        // no extension is supported, and one that is critical must be refused (RFC 7515, section 4.1.11)
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return Err("The header must not hold crit or b64.");
        }
        Ok(Self { header, claims, signed: signed.as_bytes(), signature })
    }
}

impl<'a> Compact<'a> {
    /// Reads a token. Repeated members, `crit`, `b64` and unknown algorithms are refused.
    pub fn read(token: &'a str) -> Result<Self, &'static str> {
        if token.len() > LONGEST {
            return Err("The token is longer than 8 KiB.");
        }
        let TokenParts { header, claims, signed, signature } = TokenParts::read(token, LONGEST)?;
        let algorithm = text(&header, "alg")
            .and_then(Algorithm::named)
            .ok_or("The algorithm is missing or not served.")?;
        Ok(Self { header, claims, algorithm, signed, signature })
    }
}

fn object(bytes: &[u8]) -> Option<Json> {
    read_json(bytes).ok().filter(|json| matches!(json, Json::Object(_)))
}
