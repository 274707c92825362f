//! Signed checkpoints: C2SP tlog-checkpoint in C2SP signed-note, with Ed25519 signatures.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    keys::AuditKeys,
    tree::{Hash, sha256},
};

/// The maximum length of a note, in bytes: enough for the 16 large signatures that the specification requires.
pub const MAX_NOTE: usize = 128 << 10;

/// A checkpoint: the size and root of a log's tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name, which is also the name of its key.
    pub origin: String,
    /// The number of leaves in the log's tree.
    pub size: u64,
    /// The root of the tree.
    pub root: Hash,
}

/// Why a text is not a trusted checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteError {
    /// The text is longer than [`MAX_NOTE`].
    TooLong,
    /// The text is not a signed note.
    Note,
    /// The text is a signed note, but not a checkpoint.
    Checkpoint,
    /// The origin cannot be a key's name: it is empty, or has white space, `+` or control characters.
    Origin,
    /// No known key signed the note.
    Unsigned,
    /// The signature of a known key does not match.
    Signature,
}

impl Checkpoint {
    /// The checkpoint's text, which is signed.
    pub fn to_text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, BASE64_STANDARD.encode(self.root))
    }

    /// The signed note. `sign` returns the Ed25519 signature of the given bytes, by the private key of
    /// `public_key`.
    ///
    /// # Errors
    /// [`NoteError::Origin`].
    pub fn sign(
        &self,
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
        public_key: &[u8; 32],
    ) -> Result<String, NoteError> {
        if !is_name(&self.origin) {
            return Err(NoteError::Origin);
        }
        let text = self.to_text();
        let mut signature = key_id(&self.origin, public_key).to_vec();
        signature.extend(sign(text.as_bytes()));
        Ok(format!("{text}\n— {} {}\n", self.origin, BASE64_STANDARD.encode(signature)))
    }

    /// Reads a signed note. One of the Ed25519 keys must have signed it in the origin's name; signatures of
    /// others, such as witnesses, are ignored.
    ///
    /// # Errors
    /// Every [`NoteError`].
    pub fn open(note: &str, keys: &AuditKeys) -> Result<Self, NoteError> {
        let (text, signatures) = split(note)?;
        let checkpoint = Self::read(text).ok_or(NoteError::Checkpoint)?;
        if !is_name(&checkpoint.origin) {
            return Err(NoteError::Origin);
        }
        check(text, &signatures, &checkpoint.origin, keys)?;
        Ok(checkpoint)
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        // the lines that follow are extensions: opaque, but not empty
        if lines.any(str::is_empty) {
            return None;
        }
        let number: u64 = size.parse().ok()?;
        let root = BASE64_STANDARD.decode(root).ok()?.try_into().ok()?;
        // no sign and no leading zeros
        (number.to_string() == size).then(|| Self { origin: origin.to_owned(), size: number, root })
    }
}

/// One signature line: the key's name and id, and the signature.
struct Signature<'a> {
    name: &'a str,
    key_id: [u8; 4],
    bytes: Vec<u8>,
}

/// A note's text and signatures.
fn split(note: &str) -> Result<(&str, Vec<Signature<'_>>), NoteError> {
    if note.len() > MAX_NOTE {
        return Err(NoteError::TooLong);
    }
    if note.chars().any(|sign| sign < ' ' && sign != '\n') {
        return Err(NoteError::Note);
    }
    let at = note.rfind("\n\n").ok_or(NoteError::Note)?;
    let (text, rest) = note.split_at(at + 1);
    let lines = rest.strip_prefix('\n').and_then(|lines| lines.strip_suffix('\n'));
    let signatures = lines.ok_or(NoteError::Note)?.split('\n').map(signature).collect::<Option<_>>();
    Ok((text, signatures.ok_or(NoteError::Note)?))
}

fn signature(line: &str) -> Option<Signature<'_>> {
    let (name, encoded) = line.strip_prefix("— ")?.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded).ok()?;
    let (key_id, bytes) = decoded.split_first_chunk()?;
    let is_complete = is_name(name) && !bytes.is_empty();
    is_complete.then(|| Signature { name, key_id: *key_id, bytes: bytes.to_vec() })
}

/// Checks that a known key has signed, and that every signature by a known key is valid.
fn check(text: &str, signatures: &[Signature<'_>], name: &str, keys: &AuditKeys) -> Result<(), NoteError> {
    let mut signed = false;
    for (info, key) in keys.ed25519() {
        let id = key_id(name, key);
        for signature in signatures.iter().filter(|one| one.name == name && one.key_id == id) {
            keys.verify(info, text.as_bytes(), &signature.bytes).map_err(|_| NoteError::Signature)?;
            signed = true;
        }
    }
    if signed { Ok(()) } else { Err(NoteError::Unsigned) }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|sign| sign.is_whitespace() || sign.is_control() || sign == '+')
}

/// A key's id: the first four bytes of SHA-256 over name, newline, algorithm number and key.
fn key_id(name: &str, public_key: &[u8; 32]) -> [u8; 4] {
    let [a, b, c, d, ..] = sha256(&[name.as_bytes(), b"\n\x01", public_key]);
    [a, b, c, d]
}

impl fmt::Display for NoteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "it is too long",
            Self::Note => "it is no signed note",
            Self::Checkpoint => "its text is no checkpoint",
            Self::Origin => "its origin cannot be the name of a key",
            Self::Unsigned => "none of the given keys has signed it",
            Self::Signature => "its signature does not fit its text",
        })
    }
}

impl std::error::Error for NoteError {}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::Ed25519KeyPair;
    use base64::{
        Engine as _,
        prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
    };
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Checkpoint, NoteError, check, key_id, split};
    use crate::{
        keys::AuditKeys,
        sample::{key_set, public_key},
        tree::leaf_hash,
    };

    fn pair() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint { origin: "audit.example/default".to_owned(), size: 12, root: leaf_hash(b"root") }
    }

    fn signed(checkpoint: &Checkpoint) -> Result<String, NoteError> {
        checkpoint.sign(|text| pair().sign(text).as_ref().to_vec(), &public_key(&pair()))
    }

    /// The example of the Go implementation on which the specification is based.
    #[test]
    fn a_note_of_the_go_implementation_is_verified() {
        let key = BASE64_STANDARD.decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").unwrap();
        let key: [u8; 32] = key[1..].try_into().unwrap();
        assert_eq!(key_id("PeterNeumann", &key), [0xc7, 0x4f, 0x20, 0xa3]);
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(key) });
        let keys = AuditKeys::from_jwks(&json!({ "keys": [jwk] }).to_string()).unwrap();
        let note = "If you think cryptography is the answer to your problem,\n\
            then you don't know what your problem is.\n\n\
            — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        let (text, signatures) = split(note).unwrap();
        assert_eq!(check(text, &signatures, "PeterNeumann", &keys), Ok(()));
        let changed = text.replace("is the", "is no");
        assert_eq!(check(&changed, &signatures, "PeterNeumann", &keys), Err(NoteError::Signature));
        assert_eq!(check(text, &signatures, "EnochRoot", &keys), Err(NoteError::Unsigned));
    }

    /// The example in the specification of tlog-checkpoint.
    #[test]
    fn the_checkpoint_of_the_specification_is_read() {
        let note = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
            — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";
        let (text, signatures) = split(note).unwrap();
        let read = Checkpoint::read(text).unwrap();
        assert_eq!((read.size, signatures.len()), (20_852_163, 1));
        assert_eq!(read.to_text(), text);
        assert_eq!(Checkpoint::open(note, &key_set(&[&pair()])), Err(NoteError::Unsigned));
    }

    #[test]
    fn a_signed_checkpoint_opens() {
        let (note, keys) = (signed(&checkpoint()).unwrap(), key_set(&[&pair()]));
        assert_eq!(Checkpoint::open(&note, &keys), Ok(checkpoint()));
        let witnessed = format!("{note}— witness.example AAAAAAAA\n— audit.example/default AAAAAAAA\n");
        assert_eq!(Checkpoint::open(&witnessed, &keys), Ok(checkpoint()));
        let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
        assert_eq!(Checkpoint::open(&note, &key_set(&[&other])), Err(NoteError::Unsigned));
        assert_eq!(Checkpoint::open(&note, &key_set(&[&other, &pair()])), Ok(checkpoint()));
        let spaced = Checkpoint { origin: "a b".to_owned(), ..checkpoint() };
        assert_eq!(signed(&spaced), Err(NoteError::Origin));
    }

    #[test]
    fn a_malformed_checkpoint_is_rejected() {
        let (note, keys) = (signed(&checkpoint()).unwrap(), key_set(&[&pair()]));
        let open = |note: &str| Checkpoint::open(note, &keys);
        for (from, to, expected) in [
            ("\n12\n", "\n012\n", NoteError::Checkpoint),
            ("\n12\n", "\n+12\n", NoteError::Checkpoint),
            ("\n12\n", "\n-1\n", NoteError::Checkpoint),
            ("\n12\n", "\n18446744073709551616\n", NoteError::Checkpoint),
            ("=\n\n", "=\n\nextension\n\n", NoteError::Checkpoint),
            ("=\n\n", "=\nextension\n\n", NoteError::Signature),
            ("\n12\n", "\n13\n", NoteError::Signature),
            ("\n12\n", "\r\n12\n", NoteError::Note),
            ("— ", "- ", NoteError::Note),
            ("\n— ", "\n\n— ", NoteError::Checkpoint),
        ] {
            assert_eq!(open(&note.replace(from, to)), Err(expected), "{to:?}");
        }
        assert_eq!(open(note.trim_end()), Err(NoteError::Note));
        assert_eq!(open(&checkpoint().to_text()), Err(NoteError::Note));
        assert_eq!(open(&format!("{note}{}", "x".repeat(super::MAX_NOTE))), Err(NoteError::TooLong));
        assert_eq!(open(""), Err(NoteError::Note));
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_rejected(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let note = signed(&checkpoint()).unwrap();
            let mut bytes = note.clone().into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            if let Ok(changed) = String::from_utf8(bytes) {
                prop_assert!(Checkpoint::open(&changed, &key_set(&[&pair()])).is_err());
            }
        }
    }
}
