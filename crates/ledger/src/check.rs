//! Checks of an entry by itself: its form, its signature, its contents.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{format_timestamp, parse_timestamp};

use crate::{
    entry::{Stamp, content_digest, key_person, leaf_data, signed_form},
    finding::{FindingKind, Report},
    keys::AuditKeys,
    line::{EntryLine, PersonMember},
    tree::{Hash, leaf_hash},
};

/// The result of checking an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedEntry {
    pub position: u64,
    pub id: i64,
    /// The hash of the entry's leaf; `None` when the entry is malformed.
    pub leaf: Option<Hash>,
    /// Whether the entry's signature holds.
    pub signed: bool,
    /// Whether contents of the entry were erased.
    pub erased: bool,
}

/// Checks an entry and reports the faults of it.
pub(crate) fn check(entry: &EntryLine, keys: &AuditKeys, report: &mut Report<'_>) -> CheckedEntry {
    let mut checked =
        CheckedEntry { position: entry.position, id: entry.id, leaf: None, signed: false, erased: false };
    let decoded = match Decoded::of(entry) {
        Ok(decoded) => decoded,
        Err(member) => {
            let detail = format!("its {member} has not the form in which it is signed");
            report.entry(FindingKind::Malformed, entry.position, entry.id, detail);
            return checked;
        }
    };
    let Decoded { stamp, original, current, signature, info } = &decoded;
    let (original, current) =
        (original.as_ref().map(<[u8; 32]>::as_slice), current.as_ref().map(<[u8; 32]>::as_slice));
    checked.leaf = Some(leaf_hash(&leaf_data(stamp, original, current, signature, info)));
    match keys.verify(info, &signed_form(stamp, original, current), signature) {
        Ok(()) => checked.signed = true,
        Err(error) => {
            report.entry(FindingKind::Signature, entry.position, entry.id, error.to_string());
        }
    }
    checked.erased = check_contents(entry, &decoded, report);
    // the leaf omits a person whose id is the prefix of the key; an entry with contents names that person
    // anyway, unless its export predates the member
    let has_contents = original.is_some() || current.is_some();
    if has_contents
        && entry.person == PersonMember::NoPerson
        && KEYED_BY_PERSON.contains(&stamp.area)
        && key_person(stamp.primary_key).is_some()
    {
        let detail = "its person is gone, with whom its key begins";
        report.entry(FindingKind::Altered, entry.position, entry.id, detail);
    }
    checked
}

/// The areas whose keys have the id of the entry's person as their prefix.
const KEYED_BY_PERSON: [&str; 4] = ["ApplicationUser", "User", "UserImage", "UserProfile"];

/// An entry's members as bytes.
struct Decoded<'a> {
    stamp: Stamp<'a>,
    original: Option<Hash>,
    current: Option<Hash>,
    signature: Vec<u8>,
    info: Vec<u8>,
}

impl<'a> Decoded<'a> {
    /// Decodes an entry; the error is the name of the member that cannot be decoded.
    fn of(entry: &'a EntryLine) -> Result<Self, &'static str> {
        let timestamp = parse_timestamp(&entry.timestamp).ok_or("timestamp")?;
        let mut written = Vec::with_capacity(24);
        format_timestamp(timestamp, &mut written);
        if written != entry.timestamp.as_bytes() {
            return Err("timestamp");
        }
        let digest =
            |text: &Option<String>, name| text.as_deref().map(|text| digest(text).ok_or(name)).transpose();
        let stamp = Stamp {
            id: entry.id,
            timestamp,
            user: entry.user.as_deref(),
            area: &entry.area,
            primary_key: &entry.primary_key,
            category: &entry.category,
            action: &entry.action,
            data_source: &entry.data_source,
            person: entry.person.id(),
        };
        Ok(Self {
            stamp,
            original: digest(&entry.original_digest, "originalDigest")?,
            current: digest(&entry.current_digest, "currentDigest")?,
            signature: BASE64_STANDARD.decode(&entry.signature).map_err(|_| "signature")?,
            info: BASE64_STANDARD
                .decode(&entry.signature_public_key_info)
                .map_err(|_| "signaturePublicKeyInfo")?,
        })
    }
}

/// The digest in a text; `None` when the text is not 64 digits of lower-case hexadecimal.
fn digest(text: &str) -> Option<Hash> {
    if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let bytes = (0..64).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// The state of one side of an entry: the original or the current content.
#[derive(PartialEq, Eq)]
enum Side {
    Absent,
    Valid,
    Erased,
    Invalid,
}

/// Checks the contents against their digests. Returns whether they are erased.
fn check_contents(entry: &EntryLine, decoded: &Decoded<'_>, report: &mut Report<'_>) -> bool {
    let mut side = |name: &str, content: &Option<String>, salt: &Option<String>, digest: Option<Hash>| {
        let (side, detail) = match (content, salt, digest) {
            (None, None, None) => (Side::Absent, ""),
            (None, None, Some(_)) => (Side::Erased, ""),
            (Some(content), Some(salt), Some(digest)) => match BASE64_STANDARD.decode(salt) {
                // of a fixed length, so that no prefix of the content can be passed off as salt
                Ok(salt) if salt.len() == 32 && content_digest(&salt, content) == digest => (Side::Valid, ""),
                _ => (Side::Invalid, "does not fit its salt and digest"),
            },
            _ => (Side::Invalid, "is there without its salt or digest, or they without it"),
        };
        if side == Side::Invalid {
            let detail = format!("its {name} content {detail}");
            report.entry(FindingKind::Content, entry.position, entry.id, detail);
        }
        side
    };
    let original = side("original", &entry.original_content, &entry.original_salt, decoded.original);
    let current = side("current", &entry.current_content, &entry.current_salt, decoded.current);
    // both sides are encrypted under one key
    if matches!((&original, &current), (Side::Erased, Side::Valid) | (Side::Valid, Side::Erased)) {
        let detail = "one of its contents is gone, the other is not";
        report.entry(FindingKind::Content, entry.position, entry.id, detail);
    }
    original == Side::Erased || current == Side::Erased
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_is_lower_case_hexadecimal() {
        let text = "0f".repeat(32);
        assert_eq!(digest(&text), Some([0x0f; 32]));
        for wrong in ["0F".repeat(32), "0f".repeat(31), "+f".repeat(32), "é".repeat(32)] {
            assert_eq!(digest(&wrong), None, "{wrong}");
        }
    }
}
