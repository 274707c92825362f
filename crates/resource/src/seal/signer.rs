//! Signing of audit entries: ascending numbers, salted digests, signatures, signed checkpoints.

use std::{
    ops::Range,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
};

use chancery_certificate::{Algorithm, KeyKind, PrivateKey};
use chancery_ledger::{AuditKeys, Checkpoint, NoteError, Stamp, content_digest, signed_form};
use chancery_record::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::random::random;

/// A key that signs audit entries.
#[derive(Clone)]
pub struct AuditKey {
    key: Arc<PrivateKey>,
    algorithm: Algorithm,
    public_key_info: Vec<u8>,
    /// The time in which it signs, in milliseconds since 1970.
    valid: Range<i64>,
}

impl AuditKey {
    /// The installation's own key; `None` when it is not an Ed25519 key.
    pub fn own(key: PrivateKey) -> Option<Self> {
        let algorithm = matches!(key.kind(), KeyKind::Ed25519).then_some(Algorithm::EdDsa)?;
        Self::new(key.into(), algorithm, i64::MIN..i64::MAX)
    }

    /// The key of a certificate that is valid in this time, in milliseconds since 1970. `None` when it is
    /// neither P-256 nor RSA: the uploader of an Ed25519 key knows it, and could sign checkpoints, too.
    pub fn of_certificate(key: Arc<PrivateKey>, valid: Range<i64>) -> Option<Self> {
        let algorithm = match key.kind() {
            KeyKind::P256 => Algorithm::Es256Der,
            KeyKind::Rsa { .. } => Algorithm::Rs256,
            _ => return None,
        };
        Self::new(key, algorithm, valid)
    }

    /// `None` where the key has no public form for the published key set.
    fn new(key: Arc<PrivateKey>, algorithm: Algorithm, valid: Range<i64>) -> Option<Self> {
        let published = json!({ "keys": [key.public_jwk("")] }).to_string();
        let public_key_info = AuditKeys::from_jwks(&published).ok()?.infos().next()?.to_vec();
        Some(Self { key, algorithm, public_key_info, valid })
    }

    /// DER of its `SubjectPublicKeyInfo`.
    pub fn public_key_info(&self) -> &[u8] {
        &self.public_key_info
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.key.sign(self.algorithm, message).ok()
    }
}

/// The keys of certificates that sign, as of an epoch. The first valid one signs.
#[derive(Default)]
struct Certified {
    epoch: i64,
    keys: Vec<AuditKey>,
    /// The cert stores whose keys would sign, too, but cannot be opened.
    broken: Vec<Uuid>,
}

/// Signs audit entries and the checkpoints of the trees over them.
pub struct AuditSigner {
    own: AuditKey,
    certified: RwLock<Arc<Certified>>,
    keys: AuditKeys,
    last: AtomicI64,
}

/// A signature, and the DER `SubjectPublicKeyInfo` of the key that made it.
pub struct Signature {
    pub bytes: Vec<u8>,
    pub public_key_info: Vec<u8>,
}

/// The content of an original or current state, with its salt and digest.
pub struct DigestedContent {
    pub content: String,
    pub salt: [u8; 32],
    pub digest: Vec<u8>,
}

impl AuditSigner {
    /// A signer with the installation's own key. `keys` are all own keys that ever signed, `last` is the
    /// highest entry number so far.
    pub fn new(own: AuditKey, keys: AuditKeys, last: i64) -> Self {
        Self { own, certified: RwLock::default(), keys, last: AtomicI64::new(last) }
    }

    fn certified(&self) -> Arc<Certified> {
        Arc::clone(&self.certified.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The epoch at which the keys of certificates were read.
    pub fn certified_at(&self) -> i64 {
        self.certified().epoch
    }

    /// Whether this key is among the certificates' keys that may sign.
    pub fn knows(&self, key: &AuditKey) -> bool {
        self.certified().keys.iter().any(|known| known.public_key_info == key.public_key_info)
    }

    /// Sets the keys of certificates: from now on the first valid one signs, and the installation's own key
    /// where none is valid. They must be published by then. `broken` are the cert stores whose keys cannot be
    /// opened.
    pub fn certify(&self, epoch: i64, keys: Vec<AuditKey>, broken: Vec<Uuid>) {
        let certified = Certified { epoch, keys, broken };
        *self.certified.write().unwrap_or_else(PoisonError::into_inner) = certified.into();
    }

    /// The cert stores whose keys would sign, but cannot be opened.
    pub fn broken(&self) -> Vec<Uuid> {
        self.certified().broken.clone()
    }

    /// The next entry's number: the time in milliseconds times a thousand, plus a random start, so that
    /// processes do not begin a millisecond with the same number; but always greater than the one before.
    /// Below 2^53 until the year 2255.
    ///
    /// Also greater than `last`, which another process may have chosen by a clock that is ahead.
    pub fn number(&self, now: Timestamp, last: i64) -> i64 {
        self.number_from(now, last, i64::from(u16::from_le_bytes(random()) % 1000))
    }

    fn number_from(&self, now: Timestamp, last: i64, start: i64) -> i64 {
        let begin = now.0.saturating_mul(1000).max(last.saturating_add(1));
        let after = |before: i64| if before < begin { begin + start } else { before + 1 };
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| Some(after(it)));
        before.map_or(begin, after)
    }

    /// Salts and digests a content: SHA-256 over the salt and the content's bytes.
    pub fn digest(content: String) -> DigestedContent {
        let salt = random::<32>();
        let digest = content_digest(&salt, &content).to_vec();
        DigestedContent { content, salt, digest }
    }

    /// Signs an entry: the canonical JSON (RFC 8785) of its members and digests. `None` when no key can sign.
    pub fn sign(
        &self,
        stamp: &Stamp<'_>,
        original: Option<&[u8]>,
        current: Option<&[u8]>,
    ) -> Option<Signature> {
        let (message, certified) = (signed_form(stamp, original, current), self.certified());
        let valid = certified.keys.iter().filter(|key| key.valid.contains(&stamp.timestamp.0));
        valid.chain([&self.own]).find_map(|key| {
            let bytes = key.sign(&message)?;
            Some(Signature { bytes, public_key_info: key.public_key_info.clone() })
        })
    }

    /// Signs a checkpoint of a tree with the installation's own key; returns the signed note.
    ///
    /// # Errors
    /// An origin that cannot be a key's name, or a key that cannot sign.
    pub fn sign_checkpoint(&self, checkpoint: &Checkpoint) -> Result<String, NoteError> {
        let public_key = self.own.public_key_info.last_chunk().ok_or(NoteError::Unsigned)?;
        let signature = self.own.sign(checkpoint.to_text().as_bytes()).ok_or(NoteError::Unsigned)?;
        checkpoint.sign(|_| signature, public_key)
    }

    /// Verifies a checkpoint's signature by this installation and reads it.
    ///
    /// # Errors
    /// The installation did not sign it.
    pub fn open_checkpoint(&self, note: &str) -> Result<Checkpoint, NoteError> {
        Checkpoint::open(note, &self.keys)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{rand::SystemRandom, signature::Ed25519KeyPair};
    use chancery_certificate::{Algorithm, PrivateKey};
    use chancery_ledger::{AuditKeys, Checkpoint, NoteError, empty_root};
    use chancery_record::Timestamp;

    use super::{AuditKey, AuditSigner};

    fn signer(last: i64) -> AuditSigner {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let own = AuditKey::own(PrivateKey::read(document.as_ref(), None).unwrap()).unwrap();
        AuditSigner::new(own, AuditKeys::default(), last)
    }

    #[test]
    fn numbers_ascend_even_when_the_clock_does_not() {
        let signer = signer(5_000_000);
        assert_eq!(signer.number_from(Timestamp(1000), 0, 400), 5_000_001);
        assert_eq!(signer.number_from(Timestamp(9000), 0, 400), 9_000_400);
        assert_eq!(signer.number_from(Timestamp(9000), 0, 700), 9_000_401);
        assert_eq!(signer.number_from(Timestamp(8000), 0, 700), 9_000_402);
        assert_eq!(signer.number_from(Timestamp(9500), 9_700_000, 3), 9_700_004, "another process was ahead");
        assert_eq!(signer.number_from(Timestamp(9500), 0, 3), 9_700_005);
        let number = signer.number(Timestamp(10_000), 0);
        assert!((10_000_000..10_001_000).contains(&number), "{number}");
    }

    /// B4: processes choose their numbers independently, and few numbers are chosen twice.
    #[test]
    fn numbers_of_eight_processes_seldom_collide() {
        let processes: Vec<AuditSigner> = (0..8).map(|_| signer(0)).collect();
        let (mut count, mut distinct) = (0, std::collections::HashSet::new());
        let mut chance = 20_261_122_u64;
        // each writes 500 a second for 20 seconds: one in two milliseconds
        for millisecond in (1..=20_000).step_by(2) {
            for (index, process) in processes.iter().enumerate() {
                chance =
                    chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let now = Timestamp(millisecond + i64::from(index % 2 == 1));
                distinct.insert(process.number_from(now, 0, i64::try_from((chance >> 33) % 1000).unwrap()));
                count += 1;
            }
        }
        let collided = count - distinct.len();
        assert!(collided * 200 < count, "{collided} of {count} numbers were made twice");
    }

    /// D: there is no checkpoint without a signature.
    #[test]
    fn a_key_that_cannot_sign_produces_no_checkpoint() {
        let mut signer = signer(0);
        signer.own.algorithm = Algorithm::Es256Der;
        let checkpoint = Checkpoint { origin: "x".to_owned(), size: 0, root: empty_root() };
        assert_eq!(signer.sign_checkpoint(&checkpoint), Err(NoteError::Unsigned));
    }

    #[test]
    fn a_checkpoint_opens_only_with_published_keys() {
        let signer = signer(0);
        let checkpoint = Checkpoint { origin: "x".to_owned(), size: 0, root: empty_root() };
        let note = signer.sign_checkpoint(&checkpoint).unwrap();
        assert_eq!(signer.open_checkpoint(&note), Err(NoteError::Unsigned));
    }
}
