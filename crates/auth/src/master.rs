//! The master key: 32 bytes outside the database, from which all other keys of the installation
//! are derived or under which they are encrypted.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    hmac,
};
use chancery_record::Secret;
use chancery_resource::random;

/// The master key of an installation.
#[derive(Clone, Debug)]
pub struct MasterKey(Secret);

impl MasterKey {
    /// Bytes of a master key.
    pub const LENGTH: usize = 32;

    /// Makes a new one.
    pub fn generate() -> Self {
        Self(Secret::new(random::<{ Self::LENGTH }>().to_vec()))
    }

    /// From its bytes; `None` for any other length.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == Self::LENGTH).then(|| Self(Secret::new(bytes.to_vec())))
    }

    /// Its bytes, to be kept in a file.
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }

    /// A key for one purpose (HKDF-SHA256, RFC 5869).
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut key = [0; 32];
        let parts = [purpose.as_bytes()];
        let secret = Salt::new(HKDF_SHA256, b"chancery").extract(self.0.expose());
        let filled = secret.expand(&parts, HKDF_SHA256).and_then(|output| output.fill(&mut key));
        debug_assert!(filled.is_ok(), "32 bytes are within what HKDF gives");
        key
    }

    /// Encrypts bytes for one place: only there can they be decrypted.
    pub fn seal(&self, place: &str, bytes: &[u8]) -> Vec<u8> {
        let nonce = random::<NONCE_LEN>();
        let mut sealed = bytes.to_vec();
        let done = self.cipher().is_some_and(|cipher| {
            let aad = Aad::from(place.as_bytes());
            cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).is_ok()
        });
        if !done {
            return Vec::new();
        }
        [self.key_id().as_slice(), &nonce, &sealed].concat()
    }

    /// Decrypts what [`MasterKey::seal`] made for this place; `None` for anything else.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Option<Secret> {
        let (key_id, rest) = sealed.split_at_checked(4)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        if key_id != self.key_id() {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = sealed.to_vec();
        let opened = self.cipher()?.open_in_place(nonce, Aad::from(place.as_bytes()), &mut bytes).ok()?;
        Some(Secret::new(&*opened))
    }

    /// The digest that a client secret is stored as. Keyed, so that the database alone does not
    /// let anyone try secrets.
    pub fn secret_digest(&self, secret: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derive("client-secret"));
        hmac::sign(&key, secret).as_ref().to_vec()
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.derive("seal")).ok()?))
    }

    /// Which master key sealed something; tells nothing about the key.
    fn key_id(&self) -> [u8; 4] {
        let derived = self.derive("key-id");
        [derived[0], derived[1], derived[2], derived[3]]
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
