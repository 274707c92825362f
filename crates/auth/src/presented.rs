//! The credentials that a client presents, read from a request.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_oauth::unverified_client_id;
use chancery_record::{Secret, Timestamp};
use percent_encoding::percent_decode_str;

use crate::{
    Issuer, OAuthError,
    error::{FOREIGN_ASSERTION, INVALID_CLIENT, invalid},
};

/// `client_assertion_type` of RFC 7523, section 2.2.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The parameters that may occur once only, in any request.
const SINGLE: [&str; 14] = [
    "grant_type",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "scope",
    "token",
    "token_type_hint",
    "subject_token",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "device_code",
];

/// The certificate that the client presented in the TLS handshake.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate in DER. The handshake proved that the client has its private key.
    pub der: Vec<u8>,
    /// Whether the certificate chains to an authority that the operator trusts for clients.
    pub is_trusted: bool,
}

/// The SHA-256 thumbprint of a certificate in DER, as tokens are bound to it (RFC 8705, section 3.1).
pub fn certificate_thumbprint(der: &[u8]) -> Option<String> {
    chancery_certificate::facts_of(der).ok().map(|facts| facts.thumbprint_sha256)
}

/// A request to an endpoint where clients authenticate.
pub struct EndpointRequest {
    /// The form's parameters, in order.
    pub form: Vec<(String, String)>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The `DPoP` headers.
    pub proofs: Vec<String>,
    /// The client's certificate, if the connection has one.
    pub certificate: Option<ClientCertificate>,
    /// Whether the client accepts signed answers of introspection (RFC 9701, section 4).
    pub accepts_signed: bool,
    /// The issuer that the request is to.
    pub issuer: Issuer,
    /// The path below the issuer, such as `/connect/token`.
    pub path: &'static str,
    /// The time of the request.
    pub now: Timestamp,
}

/// The credential by which a client authenticates.
pub enum Proof {
    /// The client's secret, in the header.
    Basic(Secret),
    /// The client's secret, in the body.
    Post(Secret),
    /// An assertion (RFC 7523).
    Assertion(String),
    /// None in the request: a certificate, or nothing.
    Bare,
}

/// The client id of a request, and the credential for it.
pub struct PresentedCredential {
    /// The client id, or the name of the installation's own client app.
    pub client: String,
    /// The client's credential.
    pub proof: Proof,
}

impl EndpointRequest {
    /// The first parameter of a name. One without a value counts as absent (RFC 6749, section 3.2).
    pub fn one(&self, name: &str) -> Option<&str> {
        let matching = |(key, value): &&(String, String)| key == name && !value.is_empty();
        self.form.iter().find(matching).map(|(_, value)| value.as_str())
    }

    /// All parameters of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let matching = self.form.iter().filter(move |(key, value)| key == name && !value.is_empty());
        matching.map(|(_, value)| value.as_str())
    }

    /// Rejects a request that repeats a parameter of [`SINGLE`].
    pub fn check_single(&self) -> Result<(), OAuthError> {
        let twice = |name: &&str| self.form.iter().filter(|(key, _)| key == name).count() > 1;
        if SINGLE.iter().any(twice) { Err(invalid("A parameter is there twice.")) } else { Ok(()) }
    }

    /// The client id that the request names, and its one credential.
    pub fn presented(&self) -> Result<PresentedCredential, OAuthError> {
        let (client, secret) = (self.one("client_id"), self.one("client_secret"));
        let assertion = self.one("client_assertion");
        let ways = [self.authorization.is_some(), secret.is_some(), assertion.is_some()];
        if ways.iter().filter(|way| **way).count() > 1 {
            return Err(invalid(
                "Prove the client in one way: in the header, by a secret or by an assertion.",
            ));
        }
        let presented = if let Some(header) = &self.authorization {
            parse_basic(header).ok_or(INVALID_CLIENT)?
        } else if let Some(assertion) = assertion {
            if self.one("client_assertion_type") != Some(ASSERTION_TYPE) {
                return Err(invalid("client_assertion_type must be that of a JWT."));
            }
            let client = unverified_client_id(assertion).ok_or(FOREIGN_ASSERTION)?;
            PresentedCredential { client, proof: Proof::Assertion(assertion.to_owned()) }
        } else {
            let client = client.ok_or(INVALID_CLIENT)?.to_owned();
            PresentedCredential {
                client,
                proof: secret.map_or(Proof::Bare, |secret| Proof::Post(Secret::new(secret))),
            }
        };
        if client.is_some_and(|client| client != presented.client) {
            return Err(invalid("client_id is another than in the proof."));
        }
        Ok(presented)
    }
}

/// Basic credentials; both parts are form-encoded first (RFC 6749, section 2.3.1).
fn parse_basic(header: &str) -> Option<PresentedCredential> {
    let (scheme, rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (client, secret) = decoded.split_once(':')?;
    let decode = |text: &str| {
        percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    let (client, secret) = (decode(client)?, decode(secret)?);
    // an empty secret is no guess: libraries send the id of a public client app this way
    let proof = if secret.is_empty() { Proof::Bare } else { Proof::Basic(Secret::new(secret)) };
    Some(PresentedCredential { client, proof })
}

#[cfg(test)]
mod tests {
    use super::{Proof, parse_basic};

    #[test]
    fn basic_parts_are_form_encoded() {
        // "a%20b:c%3Ad+e"
        let presented = parse_basic("basic YSUyMGI6YyUzQWQrZQ==").unwrap();
        assert_eq!(presented.client, "a b");
        assert!(matches!(presented.proof, Proof::Basic(secret) if secret.expose() == b"c:d e"));
        // "app:"
        let bare = parse_basic("Basic YXBwOg==").unwrap();
        assert!(bare.client == "app" && matches!(bare.proof, Proof::Bare));
        for wrong in ["", "Basic", "Basic !!!", "Bearer YTpi", "Basic YQ=="] {
            assert!(parse_basic(wrong).is_none(), "{wrong}");
        }
    }
}
