//! The seal on audit entries: numbers that rise, salted digests, signatures, signed checkpoints.

use std::sync::atomic::{AtomicI64, Ordering};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use chancery_ledger::{AuditKeys, Checkpoint, NoteError, Stamp, content_digest, signed_form};
use chancery_record::Timestamp;

use crate::call::random;

/// Everything before the 32 bytes of the key in an Ed25519 `SubjectPublicKeyInfo` (RFC 8410).
const ED25519_INFO: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// The key that signs audit entries.
pub struct AuditKey {
    pair: Ed25519KeyPair,
    public_key_info: Vec<u8>,
}

impl AuditKey {
    /// From a PKCS#8 document; `None` when it is not one of an Ed25519 key.
    pub fn from_pkcs8(document: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8(document).ok()?;
        let mut public_key_info = ED25519_INFO.to_vec();
        public_key_info.extend_from_slice(pair.public_key().as_ref());
        Some(Self { pair, public_key_info })
    }

    /// DER of its `SubjectPublicKeyInfo`.
    pub fn public_key_info(&self) -> &[u8] {
        &self.public_key_info
    }
}

/// Seals audit entries and the trees over them.
pub struct Seal {
    key: AuditKey,
    keys: AuditKeys,
    last: AtomicI64,
}

/// A sealed content: what is kept of an original or current state.
pub struct Sealed {
    pub content: String,
    pub salt: [u8; 32],
    pub digest: Vec<u8>,
}

impl Seal {
    /// A seal with this key. `keys` are all that ever signed, `last` is the highest entry number
    /// there is.
    pub const fn new(key: AuditKey, keys: AuditKeys, last: i64) -> Self {
        Self { key, keys, last: AtomicI64::new(last) }
    }

    /// The next entry's number: the time in microseconds, but always more than the one before.
    /// Below 2^53 until the year 2255.
    pub fn number(&self, now: Timestamp) -> i64 {
        let floor = now.0.saturating_mul(1000);
        let next = |last: i64| Some(floor.max(last + 1));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        before.map_or(floor, |before| floor.max(before + 1))
    }

    /// Salts and digests a content: SHA-256 over the salt and the content's bytes.
    pub fn seal(content: String) -> Sealed {
        let salt = random::<32>();
        let digest = content_digest(&salt, &content).to_vec();
        Sealed { content, salt, digest }
    }

    /// Signs an entry: over the canonical JSON (RFC 8785) of its members and digests.
    pub fn sign(&self, stamp: &Stamp<'_>, original: Option<&[u8]>, current: Option<&[u8]>) -> Vec<u8> {
        self.key.pair.sign(&signed_form(stamp, original, current)).as_ref().to_vec()
    }

    /// DER of the `SubjectPublicKeyInfo` of the key that signs now.
    pub fn public_key_info(&self) -> &[u8] {
        &self.key.public_key_info
    }

    /// Signs a checkpoint of a tree: the note.
    ///
    /// # Errors
    /// An origin that cannot be a key's name.
    pub fn sign_checkpoint(&self, checkpoint: &Checkpoint) -> Result<String, NoteError> {
        let pair = &self.key.pair;
        let public_key = pair.public_key().as_ref().try_into().unwrap_or(&[0; 32]);
        checkpoint.sign(|text| pair.sign(text).as_ref().to_vec(), public_key)
    }

    /// Opens a checkpoint that this installation signed.
    ///
    /// # Errors
    /// It did not.
    pub fn open_checkpoint(&self, note: &str) -> Result<Checkpoint, NoteError> {
        Checkpoint::open(note, &self.keys)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{rand::SystemRandom, signature::Ed25519KeyPair};
    use chancery_ledger::{AuditKeys, Checkpoint, NoteError, empty_root};
    use chancery_record::Timestamp;

    use super::{AuditKey, Seal};

    fn seal(last: i64) -> Seal {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Seal::new(AuditKey::from_pkcs8(document.as_ref()).unwrap(), AuditKeys::default(), last)
    }

    #[test]
    fn numbers_rise_even_when_the_clock_does_not() {
        let seal = seal(5_000_000);
        assert_eq!(seal.number(Timestamp(1000)), 5_000_001);
        assert_eq!(seal.number(Timestamp(9000)), 9_000_000);
        assert_eq!(seal.number(Timestamp(8000)), 9_000_001);
    }

    #[test]
    fn a_checkpoint_opens_by_published_keys_alone() {
        let seal = seal(0);
        let checkpoint = Checkpoint { origin: "x".to_owned(), size: 0, root: empty_root() };
        let note = seal.sign_checkpoint(&checkpoint).unwrap();
        assert_eq!(seal.open_checkpoint(&note), Err(NoteError::Unsigned));
    }
}
