//! How this server proves at a provider's token endpoint who it is.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_certificate::{Algorithm, KeyKind, PrivateKey};
use serde_json::{Value, json};

use crate::{Check, Client, Discovery, check::told};

/// How long an assertion is good, in seconds.
const LIFETIME: i64 = 300;

/// A way to prove who this server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// `client_secret_basic`
    Basic,
    /// `client_secret_post`
    Post,
    /// `private_key_jwt`
    PrivateKey,
}

impl Proof {
    /// Its registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }
}

/// A key of a certificate by which this server signs.
#[derive(Debug)]
pub struct SigningKey {
    /// The key.
    pub key: PrivateKey,
    /// The SHA-256 thumbprint of the certificate, in base64url.
    pub x5t: String,
}

/// Chooses the proof: the key of a linked certificate, else the secret in the header, or in the body where only that is
/// served.
pub fn choose_proof(discovery: &Discovery, has_key: bool) -> (Check, Proof) {
    let serves = |proof: Proof| discovery.methods.iter().any(|method| method == proof.name());
    let secret = if serves(Proof::Post) && !serves(Proof::Basic) { Proof::Post } else { Proof::Basic };
    let proof = if has_key { Proof::PrivateKey } else { secret };
    let name = proof.name();
    if serves(proof) {
        return (
            Check::new("clientAuthentication", true, format!("This server proves itself by {name}.")),
            proof,
        );
    }
    let taken = discovery.methods.join(", ");
    let detail = format!("This server proves itself by {name}, and the provider takes {}.", told(&taken));
    let option = if has_key || serves(Proof::PrivateKey) { "certStores" } else { "ClientSecret" };
    (Check::failed("clientAuthentication", detail).by(option), proof)
}

impl SigningKey {
    /// Makes an assertion (RFC 7523, section 3), good once. `now` is in seconds.
    ///
    /// # Errors
    /// The key signs by no algorithm that the provider takes.
    pub fn assertion(
        &self,
        discovery: &Discovery,
        client: &Client,
        id: &str,
        now: i64,
    ) -> Result<String, Check> {
        let takes = |name: &str| discovery.signing_algorithms.iter().any(|algorithm| algorithm == name);
        let found = match self.key.kind() {
            KeyKind::Rsa { .. } if takes("PS256") && !takes("RS256") => Some((Algorithm::Ps256, "PS256")),
            KeyKind::Rsa { .. } => Some((Algorithm::Rs256, "RS256")),
            KeyKind::P256 => Some((Algorithm::Es256, "ES256")),
            KeyKind::P384 => Some((Algorithm::Es384, "ES384")),
            KeyKind::P521 => Some((Algorithm::Es512, "ES512")),
            KeyKind::Ed25519 => Some((Algorithm::EdDsa, "EdDSA")),
            KeyKind::Other => None,
        };
        let refuse = |detail: String| Check::failed("clientAuthentication", detail).by("certStores");
        let (algorithm, name) =
            found.ok_or_else(|| refuse("The certificate's key signs nothing.".to_owned()))?;
        if !discovery.signing_algorithms.is_empty() && !takes(name) {
            return Err(refuse(format!(
                "The certificate's key signs by {name}, which the provider does not take."
            )));
        }
        let header = json!({ "alg": name, "typ": "JWT", "kid": self.key.thumbprint(), "x5t#S256": self.x5t });
        let claims = json!({
            "iss": client.id, "sub": client.id, "aud": discovery.token_endpoint, "jti": id, "iat": now,
            "nbf": now, "exp": now.saturating_add(LIFETIME),
        });
        let part = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.key.sign(algorithm, signed.as_bytes());
        let signature = signature.map_err(|_| refuse("The certificate's key does not sign.".to_owned()))?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}
