//! Public keys: read from a certificate's `SubjectPublicKeyInfo`, and written as a JWK.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::der::{BIT_STRING, DerReader, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, magnitude};

pub const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
pub const ELLIPTIC_CURVE: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
pub const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
pub const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
pub const P521: &[u8] = b"\x2b\x81\x04\x00\x23";
pub const ED25519: &[u8] = b"\x2b\x65\x70";

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA.
    Rsa {
        /// The bits of the modulus.
        bits: u32,
    },
    /// The elliptic curve P-256.
    P256,
    /// The elliptic curve P-384.
    P384,
    /// The elliptic curve P-521.
    P521,
    /// Ed25519.
    Ed25519,
    /// Another kind, which only a certificate without its private key may have.
    Other,
}

/// A public key of a supported kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    members: Members,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    /// The modulus and the exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// The curve's name, and the coordinates x and y of the point.
    Curve(&'static str, Vec<u8>, Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`. `None` when it is broken or its kind is
    /// [`KeyKind::Other`].
    pub fn from_spki(spki: &[u8]) -> Option<Self> {
        let mut reader = DerReader::only(spki, SEQUENCE)?;
        let mut algorithm = reader.enter(SEQUENCE)?;
        let (unused, key) = reader.take(BIT_STRING)?.split_first()?;
        if *unused != 0 || !reader.is_done() {
            return None;
        }
        match algorithm.take(OBJECT_IDENTIFIER)? {
            RSA => {
                let mut reader = DerReader::only(key, SEQUENCE)?;
                let modulus = magnitude(reader.take(INTEGER)?)?.to_vec();
                let exponent = magnitude(reader.take(INTEGER)?)?.to_vec();
                let kind = KeyKind::Rsa { bits: bits(&modulus) };
                Some(Self { kind, members: Members::Rsa(modulus, exponent) })
            }
            ELLIPTIC_CURVE => {
                let (kind, curve, length) = match algorithm.take(OBJECT_IDENTIFIER)? {
                    P256 => (KeyKind::P256, "P-256", 32),
                    P384 => (KeyKind::P384, "P-384", 48),
                    P521 => (KeyKind::P521, "P-521", 66),
                    _ => return None,
                };
                // an uncompressed point, as every certificate has it
                let (form, point) = key.split_first()?;
                let (x, y) = point.split_at_checked(length)?;
                let whole = *form == 4 && y.len() == length;
                whole.then(|| Self { kind, members: Members::Curve(curve, x.to_vec(), y.to_vec()) })
            }
            ED25519 if key.len() == 32 => {
                Some(Self { kind: KeyKind::Ed25519, members: Members::Ed25519(key.to_vec()) })
            }
            _ => None,
        }
    }

    /// The kind of a key.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The key as a JWK (RFC 7517, RFC 7518, RFC 8037) with this `kid`. The caller adds `use` and `alg`.
    pub fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.members {
            Members::Rsa(n, e) => json!({"kty": "RSA", "kid": kid, "n": text(n), "e": text(e)}),
            Members::Curve(curve, x, y) => {
                json!({"kty": "EC", "kid": kid, "crv": curve, "x": text(x), "y": text(y)})
            }
            Members::Ed25519(x) => json!({"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": text(x)}),
        }
    }

    /// The key's thumbprint by RFC 7638, over its required members in their order.
    pub fn thumbprint(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let members = match &self.members {
            Members::Rsa(n, e) => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, text(e), text(n)),
            Members::Curve(curve, x, y) => {
                format!(r#"{{"crv":"{curve}","kty":"EC","x":"{}","y":"{}"}}"#, text(x), text(y))
            }
            Members::Ed25519(x) => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, text(x)),
        };
        text(digest(&SHA256, members.as_bytes()).as_ref())
    }
}

/// The bits of a number without leading zeros.
pub fn bits(number: &[u8]) -> u32 {
    let unused = number.first().map_or(0, |byte| byte.leading_zeros());
    u32::try_from(number.len()).unwrap_or(u32::MAX).saturating_mul(8).saturating_sub(unused)
}
