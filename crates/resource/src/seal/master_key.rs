//! The master key: 32 bytes outside the database, under which other keys are encrypted. Its file can hold several: the first
//! encrypts, all decrypt. Other keys are derived from a separate root key, so that a rotation of the master key does not change them.

use std::{fmt::Write as _, sync::Arc};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    hmac,
};
use chancery_record::Secret;

use super::random::random;

/// The master key of an installation.
#[derive(Clone)]
pub struct MasterKey {
    /// All keys, concatenated as in the file.
    bytes: Secret,
    /// The root key, from which other keys are derived.
    root: Secret,
    keys: Arc<[OneKey]>,
    /// The era to which access tokens and sign-ins in progress are bound.
    era: Arc<str>,
}

/// One of the keys.
struct OneKey {
    /// Identifies the key that encrypted a value; reveals nothing about the key.
    id: [u8; ID],
    bytes: Secret,
    sealing: SealingKey,
}

/// Bytes of a key's id.
const ID: usize = 4;

impl OneKey {
    fn new(bytes: &[u8]) -> Option<Self> {
        let bytes = Secret::new(bytes.to_vec());
        let id = derive(&bytes, "key-id").first_chunk().copied()?;
        let sealing = SealingKey::new(&derive(&bytes, "seal"))?;
        Some(Self { id, bytes, sealing })
    }

    /// The id as hex.
    fn name(&self) -> String {
        self.id.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn sign(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        keyed_digest(&derive(&self.bytes, purpose), bytes)
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MasterKey(hidden)")
    }
}

impl MasterKey {
    /// Bytes of one key.
    pub const LENGTH: usize = 32;
    /// The most keys of a file.
    pub const MAX_KEYS: usize = 16;

    /// Generates a new master key.
    ///
    /// # Panics
    /// Never: 32 bytes are a master key.
    pub fn generate() -> Self {
        #[expect(clippy::expect_used, reason = "the length is right")]
        Self::new(&random::<{ Self::LENGTH }>()).expect("32 bytes are a master key")
    }

    /// From the bytes of one or more keys, first the one that encrypts; `None` for any other length. Other keys are derived from the
    /// first one, unless [`MasterKey::with_root`] sets a root key.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let (keys, rest) = bytes.as_chunks::<{ Self::LENGTH }>();
        if !rest.is_empty() || keys.len() > Self::MAX_KEYS {
            return None;
        }
        let keys: Arc<[OneKey]> = keys.iter().map(|key| OneKey::new(key)).collect::<Option<_>>()?;
        let root = keys.first()?.bytes.clone();
        Some(Self { bytes: Secret::new(bytes.to_vec()), root, keys, era: "".into() })
    }

    /// The id of the key that encrypts, as hex. It identifies the master key of a backup, and reveals nothing about the key.
    pub fn id(&self) -> String {
        self.keys.first().map(OneKey::name).unwrap_or_default()
    }

    /// Whether one of the keys has this id.
    pub fn knows(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.name() == id)
    }

    /// An HMAC-SHA256 under the key that encrypts, for data that is stored outside of the database.
    pub fn sign(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        self.keys.first().map(|key| key.sign(purpose, bytes)).unwrap_or_default()
    }

    /// Whether an HMAC was made under one of the keys.
    pub fn has_signed(&self, purpose: &str, bytes: &[u8], signature: &[u8]) -> bool {
        self.keys.iter().any(|key| Secret::new(key.sign(purpose, bytes)).matches(signature))
    }

    /// The same key in this era of the installation. Each restore begins another era, and values that are not stored in rows, such as
    /// access tokens, are valid in their own era only. Before the first restore the era is empty.
    #[must_use]
    pub fn in_era(&self, era: &str) -> Self {
        Self { era: era.into(), ..self.clone() }
    }

    /// The era of the installation.
    pub fn era(&self) -> &str {
        &self.era
    }

    /// The same, with this root key.
    #[must_use]
    pub fn with_root(self, root: Secret) -> Self {
        Self { root, ..self }
    }

    /// The root key, from which other keys are derived.
    pub const fn root(&self) -> &Secret {
        &self.root
    }

    /// The same with a new key, which encrypts from then on; `None` if there are too many keys already.
    pub fn rotated(&self) -> Option<Self> {
        let new = [&random::<{ Self::LENGTH }>(), self.expose()].concat();
        Some(Self::new(&new)?.with_root(self.root.clone()))
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The bytes of all keys, to be stored in a file.
    pub fn expose(&self) -> &[u8] {
        self.bytes.expose()
    }

    /// Derives a key for one purpose (HKDF-SHA256, RFC 5869).
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        derive(&self.root, purpose)
    }

    /// Encrypts bytes; they can be decrypted only with the same associated data.
    pub fn seal(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        let sealed =
            self.keys.first().map(|key| [&key.id, &*key.sealing.seal(associated_data, bytes)].concat());
        sealed.unwrap_or_default()
    }

    /// Decrypts the output of [`MasterKey::seal`] with the same associated data; `None` for anything else.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Option<Secret> {
        let (key, rest) = self.key_of(sealed)?;
        key.sealing.open(associated_data, rest)
    }

    /// Whether the first key encrypted a value.
    pub fn is_first(&self, sealed: &[u8]) -> bool {
        self.keys.first().is_some_and(|key| sealed.starts_with(&key.id))
    }

    /// The key that encrypted a value, if it is one of these. Before the root key existed, other keys were
    /// derived from it.
    pub fn root_by(&self, sealed: &[u8]) -> Option<Secret> {
        self.key_of(sealed).map(|(key, _)| key.bytes.clone())
    }

    fn key_of<'a>(&self, sealed: &'a [u8]) -> Option<(&OneKey, &'a [u8])> {
        let (id, rest) = sealed.split_first_chunk()?;
        self.keys.iter().find(|key| key.id == *id).map(|key| (key, rest))
    }

    /// The digest by which a client secret is stored. It is keyed, so that the database alone does not allow
    /// attempts to find the secret.
    pub fn secret_digest(&self, secret: &[u8]) -> Vec<u8> {
        self.digest("client-secret", secret)
    }

    /// A keyed digest of a short value that must not be guessed offline: a code, a token. The purpose
    /// separates the digests of one use from another's.
    pub fn digest(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        keyed_digest(&self.derive(purpose), bytes)
    }
}

fn keyed_digest(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes).as_ref().to_vec()
}

fn derive(key: &Secret, purpose: &str) -> [u8; 32] {
    let mut derived = [0; 32];
    let parts = [purpose.as_bytes()];
    let secret = Salt::new(HKDF_SHA256, b"chancery").extract(key.expose());
    let filled = secret.expand(&parts, HKDF_SHA256).and_then(|output| output.fill(&mut derived));
    assert!(filled.is_ok(), "HKDF-SHA256 outputs up to 8,160 bytes");
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
    ///
    /// # Panics
    /// With more than 64 GiB.
    pub fn seal(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        let nonce = random::<NONCE_LEN>();
        let mut sealed = bytes.to_vec();
        let aad = Aad::from(associated_data.as_bytes());
        let done = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed);
        assert!(done.is_ok(), "AES-GCM encrypts up to 64 GiB");
        [nonce.as_slice(), &sealed].concat()
    }

    /// Decrypts a value encrypted under this key with the same associated data; `None` for anything else.
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

    /// HMACs outside of the database, such as that of the manifest of a backup, are valid after a rotation.
    #[test]
    fn signatures_of_an_older_key_verify_after_a_rotation() {
        let old = MasterKey::generate();
        let signature = old.sign("a", b"text");
        let new = old.rotated().unwrap();
        assert!(new.has_signed("a", b"text", &signature) && new.knows(&old.id()));
        assert_ne!((new.id(), new.sign("a", b"text")), (old.id(), signature.clone()));
        assert!(!new.has_signed("b", b"text", &signature) && !new.has_signed("a", b"other", &signature));
        let other = MasterKey::generate();
        assert!(!other.has_signed("a", b"text", &signature) && !other.knows(&old.id()));
    }

    #[test]
    fn sealed_bytes_open_only_with_their_associated_data_and_key() {
        let key = MasterKey::generate();
        let sealed = key.seal("a", b"secret");
        assert_eq!(key.open("a", &sealed).unwrap().expose(), b"secret");
        assert!(key.open("b", &sealed).is_none());
        assert!(MasterKey::generate().open("a", &sealed).is_none());
        assert!(key.open("a", &sealed[..10]).is_none());
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn the_first_key_encrypts_and_all_decrypt() {
        let old = MasterKey::generate();
        let (sealed, derived) = (old.seal("a", b"secret"), old.derive("purpose"));
        let both = old.rotated().unwrap();
        assert_eq!((both.count(), both.expose().len()), (2, 64));
        assert_eq!(both.open("a", &sealed).unwrap().expose(), b"secret");
        assert_eq!(both.derive("purpose"), derived, "what is derived stays");
        let new = both.seal("a", b"secret");
        assert!(new[..4] != sealed[..4] && old.open("a", &new).is_none());
        let read = MasterKey::new(both.expose()).unwrap();
        assert_eq!(read.open("a", &new).unwrap().expose(), b"secret");
        assert_ne!(read.derive("purpose"), derived, "the file alone does not tell the root");
        let root = read.root_by(&sealed).unwrap();
        assert_eq!(read.with_root(root).derive("purpose"), derived);
    }

    #[test]
    fn a_key_file_has_1_to_16_complete_keys() {
        for (length, is_taken) in
            [(0, false), (31, false), (32, true), (33, false), (64, true), (512, true), (544, false)]
        {
            assert_eq!(MasterKey::new(&vec![7; length]).is_some(), is_taken, "{length}");
        }
        let most = MasterKey::new(&[7; 32 * MasterKey::MAX_KEYS]).unwrap();
        assert!(most.rotated().is_none());
    }
}
