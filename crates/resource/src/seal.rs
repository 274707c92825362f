//! The seal on audit entries: numbers that rise, salted digests, signatures.

use std::sync::atomic::{AtomicI64, Ordering};

use aws_lc_rs::{
    digest::{Context, SHA256},
    signature::{Ed25519KeyPair, KeyPair as _},
};
use chancery_record::{Timestamp, format_timestamp, write_string};

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

/// Seals audit entries.
pub struct Seal {
    key: AuditKey,
    last: AtomicI64,
}

/// A sealed content: what is kept of an original or current state.
pub struct Sealed {
    pub content: String,
    pub salt: [u8; 32],
    pub digest: Vec<u8>,
}

/// What a signature covers besides the digests.
pub struct Stamp<'a> {
    pub id: i64,
    pub timestamp: Timestamp,
    pub user: Option<&'a str>,
    pub area: &'a str,
    pub primary_key: &'a str,
    pub category: &'a str,
    pub action: &'a str,
    pub data_source: &'a str,
}

impl Seal {
    /// A seal with this key. `last` is the highest entry number there is.
    pub const fn new(key: AuditKey, last: i64) -> Self {
        Self { key, last: AtomicI64::new(last) }
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
        let mut digest = Context::new(&SHA256);
        digest.update(&salt);
        digest.update(content.as_bytes());
        Sealed { content, salt, digest: digest.finish().as_ref().to_vec() }
    }

    /// Signs an entry: over the canonical JSON (RFC 8785) of its members and digests.
    pub fn sign(&self, stamp: &Stamp<'_>, original: Option<&[u8]>, current: Option<&[u8]>) -> Vec<u8> {
        self.key.pair.sign(&signed_form(stamp, original, current)).as_ref().to_vec()
    }

    /// DER of the `SubjectPublicKeyInfo` of the key that signs now.
    pub fn public_key_info(&self) -> &[u8] {
        &self.key.public_key_info
    }
}

/// The bytes that a signature covers. The members stand in the order that RFC 8785 asks for.
fn signed_form(stamp: &Stamp<'_>, original: Option<&[u8]>, current: Option<&[u8]>) -> Vec<u8> {
    let mut timestamp = Vec::with_capacity(24);
    format_timestamp(stamp.timestamp, &mut timestamp);
    let timestamp = String::from_utf8(timestamp).unwrap_or_default();
    let (original, current) = (original.map(hex), current.map(hex));
    let mut out = Vec::with_capacity(512);
    let texts = [
        ("{\"action\":", Some(stamp.action)),
        (",\"area\":", Some(stamp.area)),
        (",\"category\":", Some(stamp.category)),
        (",\"currentDigest\":", current.as_deref()),
        (",\"dataSource\":", Some(stamp.data_source)),
    ];
    let more = [
        (",\"originalDigest\":", original.as_deref()),
        (",\"primaryKey\":", Some(stamp.primary_key)),
        (",\"timestamp\":", Some(timestamp.as_str())),
        (",\"user\":", stamp.user),
    ];
    write_members(&texts, &mut out);
    out.extend_from_slice(format!(",\"id\":{}", stamp.id).as_bytes());
    write_members(&more, &mut out);
    out.push(b'}');
    out
}

fn write_members(members: &[(&str, Option<&str>)], out: &mut Vec<u8>) {
    for (label, value) in members {
        out.extend_from_slice(label.as_bytes());
        match value {
            Some(text) => write_string(text, out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use aws_lc_rs::{rand::SystemRandom, signature::Ed25519KeyPair};
    use chancery_record::Timestamp;

    use super::{AuditKey, Seal, Stamp, signed_form};

    #[test]
    fn numbers_rise_even_when_the_clock_does_not() {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = AuditKey::from_pkcs8(document.as_ref()).unwrap();
        let seal = Seal { key, last: AtomicI64::new(5_000_000) };
        assert_eq!(seal.number(Timestamp(1000)), 5_000_001);
        assert_eq!(seal.number(Timestamp(9000)), 9_000_000);
        assert_eq!(seal.number(Timestamp(8000)), 9_000_001);
    }

    #[test]
    fn the_signed_form_is_canonical() {
        let stamp = Stamp {
            id: 7,
            timestamp: Timestamp(0),
            user: None,
            area: "User",
            primary_key: "a|b",
            category: "DatabaseRecordChange",
            action: "Added",
            data_source: "default",
        };
        let form = String::from_utf8(signed_form(&stamp, None, Some(&[0xab]))).unwrap();
        // serde_json keeps an object's members sorted by name
        let value: serde_json::Value = serde_json::from_str(&form).unwrap();
        assert_eq!(form, serde_json::to_string(&value).unwrap());
    }
}
