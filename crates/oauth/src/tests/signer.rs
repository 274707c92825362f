//! The keys of a client, which sign tokens for the tests.

use std::sync::LazyLock;

use aws_lc_rs::{
    encoding::{AsDer as _, PublicKeyX509Der},
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
        EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
    },
};
use serde_json::{Value, json};

use crate::{Algorithm, PublicKey, claims::to_base64};

pub enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Secret(Vec<u8>),
}

pub static RSA: LazyLock<Signer> =
    LazyLock::new(|| Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
pub static P256: LazyLock<Signer> = LazyLock::new(|| ec(&ECDSA_P256_SHA256_FIXED_SIGNING));
pub static P384: LazyLock<Signer> = LazyLock::new(|| ec(&ECDSA_P384_SHA384_FIXED_SIGNING));
pub static P521: LazyLock<Signer> = LazyLock::new(|| ec(&ECDSA_P521_SHA512_FIXED_SIGNING));
pub static ED25519: LazyLock<Signer> = LazyLock::new(|| Signer::Ed25519(Ed25519KeyPair::generate().unwrap()));

/// Every asymmetric algorithm, with a key for it.
pub fn asymmetric() -> Vec<(Algorithm, &'static Signer)> {
    let signer = |algorithm| match algorithm {
        Algorithm::Es256 => &*P256,
        Algorithm::Es384 => &*P384,
        Algorithm::Es512 => &*P521,
        Algorithm::EdDsa => &*ED25519,
        _ => &*RSA,
    };
    let all = Algorithm::ALL.into_iter().filter(|algorithm| !algorithm.is_symmetric());
    all.map(|algorithm| (algorithm, signer(algorithm))).collect()
}

fn ec(algorithm: &'static EcdsaSigningAlgorithm) -> Signer {
    Signer::Ec(EcdsaKeyPair::generate(algorithm).unwrap())
}

/// A secret of this length.
pub fn secret(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

impl Signer {
    /// The public key as in a certificate.
    pub fn spki(&self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = match self {
            Self::Rsa(pair) => pair.public_key().as_der(),
            Self::Ec(pair) => pair.public_key().as_der(),
            Self::Ed25519(pair) => pair.public_key().as_der(),
            Self::Secret(_) => panic!("a secret has no public key"),
        }
        .unwrap();
        der.as_ref().to_vec()
    }

    pub fn jwk(&self) -> Value {
        serde_json::from_str(&PublicKey::from_spki(&self.spki()).unwrap().canonical()).unwrap()
    }

    pub fn sign(&self, algorithm: Algorithm, header: &Value, claims: &Value) -> String {
        let mut header = header.clone();
        header["alg"] = json!(algorithm.name());
        self.sign_text(algorithm, &header.to_string(), &claims.to_string())
    }

    /// Signs any text, which may not be JSON or may name another algorithm.
    pub fn sign_text(&self, algorithm: Algorithm, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", to_base64(header.as_bytes()), to_base64(claims.as_bytes()));
        let signature = self.signature(algorithm, signed.as_bytes());
        format!("{signed}.{}", to_base64(&signature))
    }

    fn signature(&self, algorithm: Algorithm, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let padding = match algorithm {
                    Algorithm::Rs384 => &RSA_PKCS1_SHA384,
                    Algorithm::Rs512 => &RSA_PKCS1_SHA512,
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    Algorithm::Ps384 => &RSA_PSS_SHA384,
                    Algorithm::Ps512 => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Secret(secret) => {
                let hash = match algorithm {
                    Algorithm::Hs384 => hmac::HMAC_SHA384,
                    Algorithm::Hs512 => hmac::HMAC_SHA512,
                    _ => hmac::HMAC_SHA256,
                };
                hmac::sign(&hmac::Key::new(hash, secret), message).as_ref().to_vec()
            }
        }
    }
}
