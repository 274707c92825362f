//! Key management of the content encryption key (RFC 7518, section 4).

use aws_lc_rs::{
    agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, UnparsedPublicKey, agree},
    digest::{SHA256, digest},
    error::Unspecified,
    key_wrap::{AES_128, AES_256, AesKek, KeyWrap as _},
    rsa::{OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, PrivateDecryptingKey},
};
use chancery_oauth::{Curve, Jwk, PublicKey};
use chancery_record::{Json, Secret};
use zeroize::Zeroizing;

use crate::{Decrypted, bytes, content::Content, text};

/// A private key that decrypts tokens. `Debug` does not print it.
pub struct DecryptionKey(PrivateKey);

enum PrivateKey {
    Rsa(OaepPrivateDecryptingKey),
    Curve(agreement::PrivateKey),
}

impl std::fmt::Debug for DecryptionKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("DecryptionKey(hidden)")
    }
}

impl DecryptionKey {
    /// Reads a key from PKCS#8 in DER. `None`: it is of a type that decrypts nothing.
    pub fn read(pkcs8: &Secret) -> Option<Self> {
        let der = pkcs8.expose();
        if let Ok(key) = PrivateDecryptingKey::from_pkcs8(der) {
            return OaepPrivateDecryptingKey::new(key).ok().map(|key| Self(PrivateKey::Rsa(key)));
        }
        let curves = [&ECDH_P256, &ECDH_P384, &ECDH_P521];
        let mut on_curve = curves
            .into_iter()
            .filter_map(|curve| agreement::PrivateKey::from_private_key_der(curve, der).ok());
        on_curve.next().map(|key| Self(PrivateKey::Curve(key)))
    }

    /// The content encryption key of a token: unwrapped, or agreed upon.
    pub(crate) fn content_key(&self, header: &Json, wrapped: &[u8], content: Content) -> Decrypted {
        let algorithm = text(header, "alg").ok_or(Unspecified)?;
        match &self.0 {
            PrivateKey::Rsa(key) => {
                let padding = match algorithm {
                    "RSA-OAEP" => &OAEP_SHA1_MGF1SHA1,
                    "RSA-OAEP-256" => &OAEP_SHA256_MGF1SHA256,
                    _ => return Err(Unspecified),
                };
                let mut buffer = Zeroizing::new(vec![0; key.min_output_size()]);
                Ok(Secret::new(&*key.decrypt(padding, wrapped, &mut buffer, None)?))
            }
            PrivateKey::Curve(key) => {
                let (name, length) = match algorithm {
                    // direct agreement: the agreed key is the content encryption key, and no wrapped key may be present
                    "ECDH-ES" if wrapped.is_empty() => (text(header, "enc"), content.key_length()),
                    "ECDH-ES+A128KW" => (Some(algorithm), 16),
                    "ECDH-ES+A256KW" => (Some(algorithm), 32),
                    _ => return Err(Unspecified),
                };
                let agreed = agreed_key(key, header, name.ok_or(Unspecified)?, length)?;
                let cipher = match algorithm {
                    "ECDH-ES" => return Ok(agreed),
                    "ECDH-ES+A128KW" => &AES_128,
                    _ => &AES_256,
                };
                let wrapping = AesKek::new(cipher, agreed.expose())?;
                let mut buffer = Zeroizing::new(vec![0; wrapped.len()]);
                Ok(Secret::new(&*wrapping.unwrap(wrapped, &mut buffer)?))
            }
        }
    }
}

/// The key that both sides derive (RFC 7518, section 4.6.2): Concat KDF with SHA-256.
fn agreed_key(key: &agreement::PrivateKey, header: &Json, name: &str, length: usize) -> Decrypted {
    let ephemeral = Jwk::read(header.get("epk").ok_or(Unspecified)?).map_err(|_| Unspecified)?.key;
    let PublicKey::Ec { curve, point, .. } = ephemeral else { return Err(Unspecified) };
    let curve = match curve {
        Curve::P256 => &ECDH_P256,
        Curve::P384 => &ECDH_P384,
        Curve::P521 => &ECDH_P521,
    };
    let party = |member| match header.get(member) {
        None => Ok(Vec::new()),
        Some(Json::Text(text)) => bytes(text).ok_or(Unspecified),
        Some(_) => Err(Unspecified),
    };
    let mut other_info = Vec::new();
    for part in [name.as_bytes(), &party("apu")?, &party("apv")?] {
        other_info.extend(u32::try_from(part.len()).map_err(|_| Unspecified)?.to_be_bytes());
        other_info.extend(part);
    }
    other_info.extend(u32::try_from(8 * length).map_err(|_| Unspecified)?.to_be_bytes());
    agree(key, UnparsedPublicKey::new(curve, point), Unspecified, |shared| {
        let mut derived = Zeroizing::new(Vec::with_capacity(64));
        for round in 1_u32..=2 {
            let input = Zeroizing::new([&round.to_be_bytes()[..], shared, &other_info].concat());
            derived.extend(digest(&SHA256, &input).as_ref());
        }
        derived.get(..length).map(Secret::new).ok_or(Unspecified)
    })
}
