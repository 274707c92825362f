//! The master key: 32 bytes outside the database, from which all other keys of the installation
//! are derived or under which they are encrypted.

use std::sync::Arc;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    hmac,
};
use chancery_record::Secret;

use crate::random;

/// The master key of an installation.
#[derive(Clone)]
pub struct MasterKey {
    key: Secret,
    /// Identifies the master key that encrypted a value; reveals nothing about the key.
    id: [u8; 4],
    sealing: Arc<SealingKey>,
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MasterKey(hidden)")
    }
}

impl MasterKey {
    /// Bytes of a master key.
    pub const LENGTH: usize = 32;

    /// Generates a new master key.
    ///
    /// # Panics
    /// Never: 32 bytes are a master key.
    pub fn generate() -> Self {
        #[expect(clippy::expect_used, reason = "the length is right")]
        Self::new(&random::<{ Self::LENGTH }>()).expect("32 bytes are a master key")
    }

    /// From its bytes; `None` for any other length.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::LENGTH {
            return None;
        }
        let key = Secret::new(bytes.to_vec());
        let [a, b, c, d, ..] = derive(&key, "key-id");
        let sealing = Arc::new(SealingKey::new(&derive(&key, "seal"))?);
        Some(Self { key, id: [a, b, c, d], sealing })
    }

    /// The bytes of the key, to be stored in a file.
    pub fn expose(&self) -> &[u8] {
        self.key.expose()
    }

    /// Derives a key for one purpose (HKDF-SHA256, RFC 5869).
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        derive(&self.key, purpose)
    }

    /// Encrypts bytes; they can be decrypted only with the same associated data.
    pub fn seal(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        [self.id.to_vec(), self.sealing.seal(associated_data, bytes)].concat()
    }

    /// Decrypts what [`MasterKey::seal`] encrypted with the same associated data; `None` for anything else.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Option<Secret> {
        let (id, rest) = sealed.split_at_checked(self.id.len())?;
        if id == self.id { self.sealing.open(associated_data, rest) } else { None }
    }

    /// The digest by which a client secret is stored. It is keyed, so that the database alone does not allow
    /// attempts to find the secret.
    pub fn secret_digest(&self, secret: &[u8]) -> Vec<u8> {
        self.digest("client-secret", secret)
    }

    /// A keyed digest of a short value that must not be guessed offline: a code, a token. The purpose
    /// separates the digests of one use from another's.
    pub fn digest(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derive(purpose));
        hmac::sign(&key, bytes).as_ref().to_vec()
    }
}

fn derive(key: &Secret, purpose: &str) -> [u8; 32] {
    let mut derived = [0; 32];
    let parts = [purpose.as_bytes()];
    let secret = Salt::new(HKDF_SHA256, b"chancery").extract(key.expose());
    let filled = secret.expand(&parts, HKDF_SHA256).and_then(|output| output.fill(&mut derived));
    debug_assert!(filled.is_ok(), "32 bytes are within what HKDF gives");
    derived
}

/// A key that encrypts and authenticates (AES-256-GCM): the master key's, or a person's.
pub struct SealingKey(LessSafeKey);

impl SealingKey {
    /// From 32 bytes; `None` for any other length.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        Some(Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?)))
    }

    /// Encrypts bytes with associated data; returns the nonce, then the ciphertext with its tag.
    pub fn seal(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        let nonce = random::<NONCE_LEN>();
        let mut sealed = bytes.to_vec();
        let aad = Aad::from(associated_data.as_bytes());
        let done =
            self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).is_ok();
        debug_assert!(done, "AES-GCM takes up to 64 GiB");
        if done { [nonce.as_slice(), &sealed].concat() } else { Vec::new() }
    }

    /// Decrypts what was encrypted under this key with the same associated data; `None` for anything else.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Option<Secret> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(associated_data.as_bytes()), &mut bytes).ok()?;
        Some(Secret::new(&*opened))
    }
}

#[cfg(test)]
mod tests {
    use super::MasterKey;

    #[test]
    fn sealed_bytes_open_only_in_their_place_under_their_key() {
        let key = MasterKey::generate();
        let sealed = key.seal("a", b"secret");
        assert_eq!(key.open("a", &sealed).unwrap().expose(), b"secret");
        assert!(key.open("b", &sealed).is_none());
        assert!(MasterKey::generate().open("a", &sealed).is_none());
        assert!(key.open("a", &sealed[..10]).is_none());
        assert!(!format!("{key:?}").contains("secret"));
    }
}
