//! A client that signs assertions and proofs.

use aws_lc_rs::{
    digest::{SHA256, digest},
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::World;
use serde_json::{Value, json};

/// A key on P-256.
pub struct Signer {
    pair: EcdsaKeyPair,
    /// The key id.
    pub kid: &'static str,
}

/// Bytes as base64url.
pub fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An unused id.
pub fn fresh() -> String {
    encode(&chancery_resource::random::<16>())
}

impl Signer {
    /// A new key with this id.
    pub fn new(kid: &'static str) -> Self {
        Self { pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(), kid }
    }

    /// The key of a certificate.
    pub fn from_pkcs8(der: &[u8]) -> Self {
        Self {
            pair: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).unwrap(),
            kid: "of a certificate",
        }
    }

    /// The public key.
    pub fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..]) })
    }

    /// Its key set, as text.
    pub fn jwks(&self) -> String {
        let mut jwk = self.jwk();
        jwk["kid"] = json!(self.kid);
        json!({ "keys": [jwk] }).to_string()
    }

    /// A JWT with this header and these claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed =
            format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature.as_ref()))
    }

    /// An assertion of these claims.
    pub fn assert(&self, claims: &Value) -> String {
        self.sign(&json!({ "alg": "ES256", "kid": self.kid }), claims)
    }

    /// A DPoP proof for a request, with more claims.
    #[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
    pub fn prove(&self, method: &str, url: &str, more: Value) -> String {
        let mut claims = json!({ "jti": fresh(), "htm": method, "htu": url, "iat": now() });
        claims.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.sign(&json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk() }), &claims)
    }

    /// A DPoP proof for a request with a token.
    pub fn prove_with(&self, method: &str, url: &str, token: &str) -> String {
        self.prove(method, url, json!({ "ath": encode(digest(&SHA256, token.as_bytes()).as_ref()) }))
    }

    /// The thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let jwk = self.jwk();
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, jwk["x"], jwk["y"]);
        encode(digest(&SHA256, text.as_bytes()).as_ref())
    }
}

/// An assertion that is signed with a secret, by HS256.
pub fn assert_with_secret(secret: &[u8], claims: &Value) -> String {
    let header = json!({ "alg": "HS256" }).to_string();
    let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.to_string().as_bytes()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", encode(tag.as_ref()))
}

/// The claims of an assertion of a client app, with more claims.
#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
pub fn claims(world: &World, app: &Value, more: Value) -> Value {
    let audience = format!("{}/connect/token", world.base);
    let mut claims = json!({
        "iss": app["id"], "sub": app["id"], "aud": audience, "jti": fresh(), "exp": now() + 60, "iat": now(),
    });
    claims.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    claims
}

/// The time in seconds.
#[expect(clippy::disallowed_methods, reason = "what is signed is signed now")]
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}
