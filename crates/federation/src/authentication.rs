//! Client authentication of this server at a provider's token endpoint.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_certificate::{Algorithm, KeyKind, PrivateKey};
use serde_json::{Value, json};

use crate::{Check, Client, Discovery, check::quoted};

/// The lifetime of an assertion, in seconds.
const LIFETIME: i64 = 300;

/// A client authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthMethod {
    /// `client_secret_basic`
    Basic,
    /// `client_secret_post`
    Post,
    /// `private_key_jwt`
    PrivateKey,
}

impl ClientAuthMethod {
    /// The registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }
}

/// The private key of a certificate with which this server signs assertions.
#[derive(Debug)]
pub struct SigningKey {
    /// The key.
    pub key: PrivateKey,
    /// The SHA-256 thumbprint of the certificate, in base64url.
    pub x5t: String,
}

/// Chooses the client authentication method: the key of a linked certificate, otherwise the secret in the header, or in the body if the
/// provider supports only that.
pub fn choose_client_auth(discovery: &Discovery, has_key: bool) -> (Check, ClientAuthMethod) {
    let supports = |method: ClientAuthMethod| discovery.auth_methods.iter().any(|name| name == method.name());
    let secret = if supports(ClientAuthMethod::Post) && !supports(ClientAuthMethod::Basic) {
        ClientAuthMethod::Post
    } else {
        ClientAuthMethod::Basic
    };
    let method = if has_key { ClientAuthMethod::PrivateKey } else { secret };
    let name = method.name();
    if supports(method) {
        return (
            Check::new("clientAuthentication", true, format!("This server proves itself by {name}.")),
            method,
        );
    }
    let supported = discovery.auth_methods.join(", ");
    let detail =
        format!("This server proves itself by {name}, and the provider takes {}.", quoted(&supported));
    let option =
        if has_key || supports(ClientAuthMethod::PrivateKey) { "certStores" } else { "ClientSecret" };
    (Check::failed("clientAuthentication", detail).with_option(option), method)
}

impl SigningKey {
    /// Creates an assertion for one use (RFC 7523, section 3). `now` is in seconds.
    ///
    /// # Errors
    /// The provider supports no algorithm of the key.
    pub fn assertion(
        &self,
        discovery: &Discovery,
        client: &Client,
        id: &str,
        now: i64,
    ) -> Result<String, Check> {
        let supports = |name: &str| discovery.signing_algorithms.iter().any(|algorithm| algorithm == name);
        let algorithm = match self.key.kind() {
            KeyKind::Rsa { .. } if supports("PS256") && !supports("RS256") => {
                Some((Algorithm::Ps256, "PS256"))
            }
            KeyKind::Rsa { .. } => Some((Algorithm::Rs256, "RS256")),
            KeyKind::P256 => Some((Algorithm::Es256, "ES256")),
            KeyKind::P384 => Some((Algorithm::Es384, "ES384")),
            KeyKind::P521 => Some((Algorithm::Es512, "ES512")),
            KeyKind::Ed25519 => Some((Algorithm::EdDsa, "EdDSA")),
            KeyKind::Other => None,
        };
        let error = |detail: String| Check::failed("clientAuthentication", detail).with_option("certStores");
        let (algorithm, name) =
            algorithm.ok_or_else(|| error("The certificate's key signs nothing.".to_owned()))?;
        if !discovery.signing_algorithms.is_empty() && !supports(name) {
            return Err(error(format!(
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
        let signature = signature.map_err(|_| error("The certificate's key does not sign.".to_owned()))?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}
