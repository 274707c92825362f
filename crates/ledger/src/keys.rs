//! The public keys that audit entries and checkpoints are signed with, as they are published.

use std::{collections::HashMap, fmt};

use aws_lc_rs::{
    encoding::{AsDer as _, PublicKeyX509Der},
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
    },
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;

/// The maximum length of a list of keys, in bytes.
const MAX_JWKS: usize = 4 << 20;

/// The bytes before the 32 of the key in an Ed25519 `SubjectPublicKeyInfo` (RFC 8410).
const ED25519_INFO: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// The bytes before the 64 of the point in a P-256 `SubjectPublicKeyInfo` (RFC 5480).
const P256_INFO: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3,
    1, 7, 3, 0x42, 0, 4,
];

/// Every key that ever signed an audit trail, by its DER `SubjectPublicKeyInfo`.
#[derive(Default)]
pub struct AuditKeys(HashMap<Vec<u8>, ParsedPublicKey>);

/// Why a list of keys cannot be read, in words for people.
#[derive(Debug, PartialEq, Eq)]
pub struct KeysError(pub String);

/// Why a signature is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// None of the keys made the signature.
    UnknownKey,
    /// The key did not sign this content.
    Wrong,
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl AuditKeys {
    /// Reads a JSON Web Key Set (RFC 7517): Ed25519 keys (RFC 8037), P-256 keys, whose signatures are ES256 in
    /// DER, and RSA keys of 2,048 to 8,192 bits, whose signatures are RS256. Keys of other kinds are skipped,
    /// as RFC 7517 requires.
    ///
    /// # Errors
    /// A text that is not such a set, or an invalid key of these kinds.
    pub fn from_jwks(text: &str) -> Result<Self, KeysError> {
        if text.len() > MAX_JWKS {
            return Err(KeysError(format!("the keys are longer than {MAX_JWKS} bytes")));
        }
        let set: Jwks = serde_json::from_str(text).map_err(|error| KeysError(error.to_string()))?;
        let mut known = HashMap::new();
        for (index, jwk) in set.keys.iter().enumerate() {
            let unreadable = || KeysError(format!("key {index} of the set cannot be read"));
            let Some(algorithm) = jwk.algorithm() else { continue };
            let info = jwk.public_key_info().ok_or_else(unreadable)?;
            let key = ParsedPublicKey::new(algorithm, &info).map_err(|_| unreadable())?;
            known.insert(info, key);
        }
        Ok(Self(known))
    }

    /// Verifies a signature by the key of this DER `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// A key that is not in the set, or an invalid signature.
    pub fn verify(&self, info: &[u8], message: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        let key = self.0.get(info).ok_or(SignatureError::UnknownKey)?;
        key.verify_sig(message, signature).map_err(|_| SignatureError::Wrong)
    }

    /// The keys' DER `SubjectPublicKeyInfo`s.
    pub fn infos(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }

    /// The Ed25519 keys: `SubjectPublicKeyInfo` and the 32 bytes of the key.
    pub(crate) fn ed25519(&self) -> impl Iterator<Item = (&[u8], &[u8; 32])> {
        self.0.keys().filter_map(|info| {
            let key = info.strip_prefix(ED25519_INFO.as_slice())?.try_into().ok()?;
            Some((info.as_slice(), key))
        })
    }
}

impl Jwk {
    fn algorithm(&self) -> Option<&'static dyn VerificationAlgorithm> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => Some(&ED25519),
            ("EC", Some("P-256")) => Some(&ECDSA_P256_SHA256_ASN1),
            ("RSA", _) => Some(&RSA_PKCS1_2048_8192_SHA256),
            _ => None,
        }
    }

    fn public_key_info(&self) -> Option<Vec<u8>> {
        let part = |member: &Option<String>| BASE64_URL_SAFE_NO_PAD.decode(member.as_deref()?).ok();
        let coordinate = |member| part(member).filter(|bytes| bytes.len() == 32);
        match self.kty.as_str() {
            "OKP" => Some([ED25519_INFO.to_vec(), coordinate(&self.x)?].concat()),
            "EC" => Some([P256_INFO.to_vec(), coordinate(&self.x)?, coordinate(&self.y)?].concat()),
            _ => {
                let n = part(&self.n).filter(|modulus| (256..=1024).contains(&modulus.len()))?;
                let components = PublicKeyComponents { n, e: part(&self.e)? };
                let info: PublicKeyX509Der<'_> = components.as_der().ok()?;
                Some(info.as_ref().to_vec())
            }
        }
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for SignatureError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UnknownKey => "its key is not one of the given ones",
            Self::Wrong => "its signature does not fit what it says",
        })
    }
}

impl std::error::Error for KeysError {}
impl std::error::Error for SignatureError {}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::{AsDer as _, PublicKeyX509Der},
        rand::SystemRandom,
        rsa::KeySize,
        signature::{
            ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
            RsaKeyPair,
        },
    };
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::{Value, json};

    use super::{AuditKeys, SignatureError};

    fn text(bytes: &[u8]) -> Value {
        BASE64_URL_SAFE_NO_PAD.encode(bytes).into()
    }

    #[test]
    fn all_three_kinds_verify_by_their_published_form() {
        let random = SystemRandom::new();
        let mut signed: Vec<(Value, Vec<u8>, Vec<u8>)> = Vec::new();

        let pair = Ed25519KeyPair::generate().unwrap();
        let info: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let jwk =
            json!({ "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()), "kid": "1" });
        signed.push((jwk, info.as_ref().to_vec(), pair.sign(b"message").as_ref().to_vec()));

        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let point = pair.public_key().as_ref();
        let info: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..]) });
        signed.push((jwk, info.as_ref().to_vec(), pair.sign(&random, b"message").unwrap().as_ref().to_vec()));

        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let info: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        // the key ends with the modulus, and the exponent 65,537 with its tag and length
        let end = info.as_ref().len() - 5;
        let jwk = json!({ "kty": "RSA", "n": text(&info.as_ref()[end - 256..end]), "e": "AQAB" });
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &random, b"message", &mut signature).unwrap();
        signed.push((jwk, info.as_ref().to_vec(), signature));

        let all: Vec<&Value> = signed.iter().map(|(jwk, ..)| jwk).collect();
        let keys = AuditKeys::from_jwks(&json!({ "keys": all }).to_string()).unwrap();
        for (_, info, signature) in &signed {
            assert_eq!(keys.verify(info, b"message", signature), Ok(()));
            assert_eq!(keys.verify(info, b"massage", signature), Err(SignatureError::Wrong));
            assert_eq!(keys.verify(&info[1..], b"message", signature), Err(SignatureError::UnknownKey));
        }
        assert_eq!(keys.verify(&signed[0].1, b"message", &signed[1].2), Err(SignatureError::Wrong));
        assert_eq!(keys.ed25519().count(), 1);
    }

    #[test]
    fn other_keys_are_skipped_and_invalid_ones_rejected() {
        let read = |key: Value| AuditKeys::from_jwks(&json!({ "keys": [key] }).to_string());
        for key in [json!({ "kty": "oct", "k": "AA" }), json!({ "kty": "OKP", "crv": "X25519", "x": "AA" })] {
            assert_eq!(read(key).unwrap().0.len(), 0);
        }
        for key in [
            json!({ "kty": "OKP", "crv": "Ed25519", "x": "AA" }),
            json!({ "kty": "OKP", "crv": "Ed25519" }),
            json!({ "kty": "EC", "crv": "P-256", "x": text(&[1; 32]), "y": text(&[1; 32]) }),
            json!({ "kty": "RSA", "n": text(&[0xff; 128]), "e": "AQAB" }),
        ] {
            assert!(read(key).is_err_and(|error| error.0.contains("key 0")));
        }
        assert!(AuditKeys::from_jwks("[]").is_err());
    }
}
