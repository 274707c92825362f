//! DPoP: a client proves possession of the key that its tokens are bound to (RFC 9449).

use aws_lc_rs::digest::{SHA256, digest};
use chancery_record::{Json, Timestamp};

use crate::{
    ErrorCode, Jwk, KeyFault, Nonces, ProtocolError,
    claims::{seconds, short_text, text, to_base64},
    compact::Compact,
    target::is_same,
};

/// The maximum age of a proof, in seconds.
const MAX_AGE: i64 = 300;
/// The accepted lead of a client's clock, in seconds.
const MAX_AHEAD: i64 = 60;
/// The maximum length of an id and of a nonce, in bytes.
const MAX_TEXT: usize = 256;

/// Whether a proof needs a nonce.
#[derive(Clone, Copy, Debug)]
pub enum NoncePolicy<'a> {
    /// Nonces are ignored.
    Ignored,
    /// A nonce is optional, and must be valid if present.
    Optional(&'a Nonces),
    /// A proof must have a valid nonce: `requireDpopNonce`.
    Required(&'a Nonces),
}

/// The request with the proof.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The request's method.
    pub method: &'a str,
    /// The request's URL as the client sees it; query and fragment are ignored.
    pub url: &'a str,
    /// The access token of the request, if it has one.
    pub access_token: Option<&'a str>,
    /// Whether the proof needs a nonce.
    pub nonce: NoncePolicy<'a>,
    /// The time of the request.
    pub now: Timestamp,
}

/// A verified proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The thumbprint of the key, to be compared with or written to the token's `cnf.jkt` (section 6.1).
    pub jkt: String,
    /// The proof's id, valid once for the target (section 11.1).
    pub jti: String,
    /// The proof's `iat`.
    pub issued_on: Timestamp,
    /// The expiry of the proof: until then the caller stores its id.
    pub expires_on: Timestamp,
    /// The proof's nonce, if it was checked.
    pub nonce: Option<String>,
}

/// Verifies a proof by the list in section 4.3. The caller must reject a used id, and a key that is not the token's.
///
/// # Errors
/// `invalid_dpop_proof`, with the rule that the proof breaks; `use_dpop_nonce` if only the nonce is missing or invalid.
pub fn verify_proof(proof: &str, request: &Request<'_>) -> Result<Proof, ProtocolError> {
    let token = Compact::read(proof).map_err(refuse)?;
    if text(&token.header, "typ") != Some("dpop+jwt") {
        return Err(refuse("typ must be dpop+jwt."));
    }
    if token.algorithm.is_symmetric() {
        return Err(refuse("A proof is signed with a private key."));
    }
    let jwk = token.header.get("jwk").ok_or(refuse("jwk is missing."))?;
    let jwk = Jwk::read(jwk).map_err(|fault| {
        refuse(match fault {
            KeyFault::Private => "jwk holds a private key.",
            KeyFault::Symmetric => "jwk is a symmetric key.",
            KeyFault::Weak => "jwk is an RSA key of less than 2048 or more than 8192 bits.",
            _ => "jwk cannot be read or is of a kind that is not served.",
        })
    })?;
    let claims = &token.claims;
    let jti = short_text(claims, "jti", MAX_TEXT).ok_or(refuse("jti is missing or too long."))?;
    if text(claims, "htm") != Some(request.method) {
        return Err(refuse("htm is not the method of the request."));
    }
    if !text(claims, "htu").is_some_and(|url| is_same(url, request.url)) {
        return Err(refuse("htu is not the URL of the request."));
    }
    let issued =
        seconds(claims, "iat").ok().flatten().ok_or(refuse("iat is missing or no whole seconds."))?;
    let now = request.now.0.div_euclid(1000);
    if issued.saturating_add(MAX_AGE) < now || issued > now.saturating_add(MAX_AHEAD) {
        return Err(refuse("iat is too long ago or in the future."));
    }
    if let Some(access_token) = request.access_token {
        let hash = to_base64(digest(&SHA256, access_token.as_bytes()).as_ref());
        if text(claims, "ath") != Some(&hash) {
            return Err(refuse("ath is not the hash of the access token."));
        }
    }
    if !jwk.verifies(token.algorithm, token.signed, &token.signature) {
        return Err(refuse("The signature is not that of the key in jwk."));
    }
    Ok(Proof {
        jkt: jwk.key.thumbprint(),
        jti: jti.to_owned(),
        issued_on: Timestamp(issued.saturating_mul(1000)),
        // the proof is valid through its last second
        expires_on: Timestamp(issued.saturating_add(MAX_AGE + 1).saturating_mul(1000)),
        nonce: check_nonce(claims, request)?,
    })
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidDpopProof, detail)
}

/// Checks the nonce; returns it unless it is absent or ignored.
fn check_nonce(claims: &Json, request: &Request<'_>) -> Result<Option<String>, ProtocolError> {
    let (nonces, required) = match request.nonce {
        NoncePolicy::Ignored => return Ok(None),
        NoncePolicy::Optional(nonces) => (nonces, false),
        NoncePolicy::Required(nonces) => (nonces, true),
    };
    if claims.get("nonce").is_none() && !required {
        return Ok(None);
    }
    match short_text(claims, "nonce", MAX_TEXT) {
        Some(nonce) if nonces.is_valid(nonce, request.now) => Ok(Some(nonce.to_owned())),
        _ => Err(ProtocolError::new(
            ErrorCode::UseDpopNonce,
            "The proof must hold the nonce of the DPoP-Nonce header.",
        )),
    }
}
