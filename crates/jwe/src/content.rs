//! Content encryption (RFC 7518, section 5).

use aws_lc_rs::{
    aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey},
    cipher::{
        self, AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
    },
    constant_time::verify_slices_are_equal,
    error::Unspecified,
    hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512},
    iv::FixedLength,
};
use chancery_record::Secret;
use zeroize::Zeroizing;

use crate::Decrypted;

/// The length of a tag in GCM, in bytes.
const TAG: usize = 16;

/// An algorithm of content encryption.
#[derive(Clone, Copy)]
pub enum Content {
    Gcm(&'static Algorithm),
    /// CBC with HMAC: the cipher, the hash, and the bytes of each half of the key.
    Cbc(&'static cipher::Algorithm, hmac::Algorithm, usize),
}

impl Content {
    /// The algorithm of that name (`enc`).
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "A128GCM" => Self::Gcm(&AES_128_GCM),
            "A192GCM" => Self::Gcm(&AES_192_GCM),
            "A256GCM" => Self::Gcm(&AES_256_GCM),
            "A128CBC-HS256" => Self::Cbc(&AES_128, HMAC_SHA256, 16),
            "A192CBC-HS384" => Self::Cbc(&AES_192, HMAC_SHA384, 24),
            "A256CBC-HS512" => Self::Cbc(&AES_256, HMAC_SHA512, 32),
            _ => return None,
        })
    }

    /// The bytes of its key.
    pub fn key_length(self) -> usize {
        match self {
            Self::Gcm(algorithm) => algorithm.key_len(),
            Self::Cbc(_, _, half) => 2 * half,
        }
    }

    /// Decrypts content: initialization vector, ciphertext and tag; `header` is the authenticated data.
    pub fn decrypt(self, key: &[u8], header: &[u8], [vector, sealed, tag]: &[Vec<u8>; 3]) -> Decrypted {
        if key.len() != self.key_length() {
            return Err(Unspecified);
        }
        match self {
            Self::Gcm(algorithm) => {
                // a truncated tag could be guessed
                if tag.len() != TAG {
                    return Err(Unspecified);
                }
                let key = LessSafeKey::new(UnboundKey::new(algorithm, key)?);
                let nonce = Nonce::try_assume_unique_for_key(vector)?;
                let mut text = Zeroizing::new([sealed.as_slice(), tag].concat());
                let plaintext = key.open_in_place(nonce, Aad::from(header), &mut text)?;
                Ok(Secret::new(&*plaintext))
            }
            Self::Cbc(cipher, hash, half) => {
                let (mac_key, key) = key.split_at(half);
                let bits = u64::try_from(header.len()).map_err(|_| Unspecified)?.saturating_mul(8);
                let message = [header, vector, sealed, &bits.to_be_bytes()].concat();
                let mac = hmac::sign(&hmac::Key::new(hash, mac_key), &message);
                verify_slices_are_equal(mac.as_ref().get(..half).ok_or(Unspecified)?, tag)?;
                let context = DecryptionContext::Iv128(FixedLength::try_from(vector.as_slice())?);
                let key = PaddedBlockDecryptingKey::cbc_pkcs7(UnboundCipherKey::new(cipher, key)?)?;
                let mut text = Zeroizing::new(sealed.clone());
                let plaintext = key.decrypt(&mut text, context)?;
                Ok(Secret::new(&*plaintext))
            }
        }
    }
}
