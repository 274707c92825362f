//! The two forms of an entry that are hashed: what its signature covers, and its leaf.

use chancery_record::{Cell, Encoding, Kind, Timestamp, write_cell};
use uuid::Uuid;

use crate::tree::{Hash, sha256};

/// The members of an entry that its signature covers besides the digests.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// The entry's number.
    pub id: i64,
    /// The time of the change.
    pub timestamp: Timestamp,
    /// The caller who made the change.
    pub user: Option<&'a str>,
    /// The resource that was changed.
    pub area: &'a str,
    /// The key of what was changed.
    pub primary_key: &'a str,
    /// The kind of entry.
    pub category: &'a str,
    /// The action, such as `Deleted`.
    pub action: &'a str,
    /// The store in which the change was made.
    pub data_source: &'a str,
    /// The person whose contents the entry has. The leaf covers this, the signature does not.
    pub person: Option<Uuid>,
}

impl Stamp<'_> {
    /// The person, where that person's id is not the prefix of the key.
    fn other_person(&self) -> Option<Uuid> {
        self.person.filter(|person| key_person(self.primary_key) != Some(*person))
    }
}

/// The id at the start of a key.
pub fn key_person(key: &str) -> Option<Uuid> {
    Uuid::try_parse(key.split('|').next()?).ok()
}

/// The digest of a content: SHA-256 over the salt and the content's bytes.
pub fn content_digest(salt: &[u8], content: &str) -> Hash {
    sha256(&[salt, content.as_bytes()])
}

/// The bytes that a signature covers: the canonical JSON (RFC 8785) of the stamp's members and
/// the digests of the contents.
pub fn signed_form(
    stamp: &Stamp<'_>,
    original_digest: Option<&[u8]>,
    current_digest: Option<&[u8]>,
) -> Vec<u8> {
    form(stamp, original_digest, current_digest, [None; 3])
}

/// The data of an entry's leaf: the signed form with the members `signature` and `signaturePublicKeyInfo`
/// (base64) in their canonical places, and with `person` where the key does not start with that person's id. It
/// covers all of an entry except the contents and salts, which may be erased and are covered by their digests.
pub fn leaf_data(
    stamp: &Stamp<'_>,
    original_digest: Option<&[u8]>,
    current_digest: Option<&[u8]>,
    signature: &[u8],
    public_key_info: &[u8],
) -> Vec<u8> {
    let more = [
        stamp.other_person().map(|person| ("person", Kind::Id, Cell::Id(person))),
        Some(("signature", BASE64, Cell::Bytes(signature))),
        Some(("signaturePublicKeyInfo", BASE64, Cell::Bytes(public_key_info))),
    ];
    form(stamp, original_digest, current_digest, more)
}

type Member<'a> = (&'static str, Kind, Cell<'a>);

const BASE64: Kind = Kind::Bytes(Encoding::Base64);
const HEX: Kind = Kind::Bytes(Encoding::Hex);
const NUMBER: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };

fn form(
    stamp: &Stamp<'_>,
    original: Option<&[u8]>,
    current: Option<&[u8]>,
    [person, signature, info]: [Option<Member<'_>>; 3],
) -> Vec<u8> {
    let text = |name, text| Some((name, HEX, Cell::Text(text)));
    let digest = |name, digest: Option<_>| Some((name, HEX, digest.map_or(Cell::Null, Cell::Bytes)));
    // in the order that RFC 8785 requires
    let members = [
        text("action", stamp.action),
        text("area", stamp.area),
        text("category", stamp.category),
        digest("currentDigest", current),
        text("dataSource", stamp.data_source),
        Some(("id", NUMBER, Cell::Int(stamp.id))),
        digest("originalDigest", original),
        person,
        text("primaryKey", stamp.primary_key),
        signature,
        info,
        Some(("timestamp", Kind::Time, Cell::Int(stamp.timestamp.0))),
        Some(("user", HEX, stamp.user.map_or(Cell::Null, Cell::Text))),
    ];
    let mut out = Vec::with_capacity(768);
    for (name, kind, cell) in members.iter().flatten() {
        out.extend_from_slice(if out.is_empty() { b"{\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        write_cell(kind, *cell, &mut out);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use serde_json::{Value, json};

    use super::{Stamp, leaf_data, signed_form};

    const STAMP: Stamp<'static> = Stamp {
        id: 7,
        timestamp: Timestamp(0),
        user: None,
        area: "User",
        primary_key: "a|\"b",
        category: "DatabaseRecordChange",
        action: "Added",
        data_source: "default",
        person: None,
    };

    #[test]
    fn the_signed_form_is_stable() {
        let form = String::from_utf8(signed_form(&STAMP, None, Some(&[0xab]))).unwrap();
        assert_eq!(
            form,
            "{\"action\":\"Added\",\"area\":\"User\",\"category\":\"DatabaseRecordChange\",\
             \"currentDigest\":\"ab\",\"dataSource\":\"default\",\"id\":7,\"originalDigest\":null,\
             \"primaryKey\":\"a|\\\"b\",\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"user\":null}"
        );
        let user = Stamp { user: Some("ada"), ..STAMP };
        let with_user = String::from_utf8(signed_form(&user, None, Some(&[0xab]))).unwrap();
        assert_eq!(with_user, form.replace("\"user\":null", "\"user\":\"ada\""));
    }

    #[test]
    fn a_leaf_is_the_signed_form_with_its_signature_and_key() {
        let leaf = leaf_data(&STAMP, Some(&[1]), None, b"s", b"k");
        // serde_json keeps an object's members sorted by name
        let mut value: Value = serde_json::from_slice(&leaf).unwrap();
        assert_eq!(String::from_utf8(leaf).unwrap(), value.to_string());
        let members = value.as_object_mut().unwrap();
        assert_eq!(members.remove("signature"), Some(json!("cw==")));
        assert_eq!(members.remove("signaturePublicKeyInfo"), Some(json!("aw==")));
        assert_eq!(value.to_string().into_bytes(), signed_form(&STAMP, Some(&[1]), None));
    }

    /// B8: an entry's leaf covers its person, and the leaves of entries without that member are unchanged.
    #[test]
    fn a_leaf_has_the_person_only_where_the_key_lacks_it() {
        let person = uuid::Uuid::from_u128(7);
        let leaf = |stamp: &Stamp<'_>| leaf_data(stamp, None, None, b"s", b"k");
        let with_person = Stamp { person: Some(person), ..STAMP };
        let mut value: Value = serde_json::from_slice(&leaf(&with_person)).unwrap();
        assert_eq!(leaf(&with_person), value.to_string().into_bytes());
        assert_eq!(value["person"], json!(person.to_string()));
        value.as_object_mut().unwrap().remove("person");
        assert_eq!(leaf(&STAMP), value.to_string().into_bytes());
        assert_eq!(signed_form(&with_person, None, None), signed_form(&STAMP, None, None));
        for key in [person.to_string(), format!("{person}|motto")] {
            let keyed = Stamp { primary_key: &key, ..STAMP };
            assert_eq!(leaf(&Stamp { person: Some(person), ..keyed }), leaf(&keyed));
        }
    }
}
