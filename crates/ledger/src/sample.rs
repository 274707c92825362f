//! Sample audit trails for tests.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_record::{Timestamp, format_timestamp};
use serde_json::{Value, json};

use crate::{
    AuditKeys, Checkpoint, Finding, Frontier, Hash, Stamp, Summary, content_digest, leaf_data, leaf_hash,
    signed_form, verify, write_end, write_entry, write_head, write_tile,
};

pub const ORIGIN: &str = "audit.example/default";

/// The 32 bytes of a public key.
pub fn public_key(pair: &Ed25519KeyPair) -> [u8; 32] {
    pair.public_key().as_ref().try_into().unwrap()
}

/// The JSON Web Key Set of these keys.
pub fn key_set(pairs: &[&Ed25519KeyPair]) -> AuditKeys {
    let jwk = |pair: &&Ed25519KeyPair| json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(public_key(pair)) });
    let keys: Vec<Value> = pairs.iter().map(jwk).collect();
    AuditKeys::from_jwks(&json!({ "keys": keys }).to_string()).unwrap()
}

/// The key that signs the samples, or another key by another number.
pub fn pair(number: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap()
}

fn info(pair: &Ed25519KeyPair) -> Vec<u8> {
    [&[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0][..], &public_key(pair)].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A person by number.
pub fn person(number: u64) -> String {
    format!("00000000-0000-7000-8000-{number:012x}")
}

/// The subject of a sample's entry.
pub struct Change {
    pub area: &'static str,
    pub key: String,
    pub action: &'static str,
    pub person: Option<u64>,
    pub erased: bool,
}

/// A signed entry, as the API returns it, and its leaf.
pub fn entry(id: i64, change: &Change, pair: &Ed25519KeyPair) -> (Value, Hash) {
    let user = (id % 3 != 0).then(|| format!("client {id}"));
    let stamp = Stamp {
        id,
        timestamp: Timestamp(id / 1000),
        user: user.as_deref(),
        area: change.area,
        primary_key: &change.key,
        category: "DatabaseRecordChange",
        action: change.action,
        data_source: "default",
        person: change.person.map(|number| person(number).parse().unwrap()),
    };
    let content = |is_present: bool, word: &str| {
        is_present.then(|| {
            (format!("{{\"name\":\"{word} {id} \\\"é\\\"\"}}"), leaf_hash(format!("{word}{id}").as_bytes()))
        })
    };
    // a deleted person's contents are erased
    let is_erased = change.area == "User" && change.action == "Deleted";
    let original = content(change.action != "Added" && !is_erased, "old");
    let current = content(change.action != "Deleted", "new");
    let digest = |side: &Option<(String, Hash)>| side.as_ref().map(|(text, salt)| content_digest(salt, text));
    let (before, after) = (digest(&original), digest(&current));
    let digests = (before.as_ref().map(|hash| &hash[..]), after.as_ref().map(|hash| &hash[..]));
    let signature = pair.sign(&signed_form(&stamp, digests.0, digests.1));
    let leaf = leaf_hash(&leaf_data(&stamp, digests.0, digests.1, signature.as_ref(), &info(pair)));
    let mut time = Vec::new();
    format_timestamp(stamp.timestamp, &mut time);
    let visible = |side: &Option<(String, Hash)>| side.clone().filter(|_| !change.erased);
    let text = |side| visible(side).map(|(text, _)| text);
    let salt = |side| visible(side).map(|(_, salt)| BASE64_STANDARD.encode(salt));
    let value = json!({
        "id": id, "timestamp": String::from_utf8(time).unwrap(), "user": user, "area": stamp.area,
        "primaryKey": stamp.primary_key, "category": stamp.category, "action": stamp.action,
        "dataSource": stamp.data_source, "person": stamp.person, "originalContent": text(&original), "currentContent": text(&current),
        "originalSalt": salt(&original), "currentSalt": salt(&current),
        "originalDigest": digests.0.map(hex), "currentDigest": digests.1.map(hex),
        "signature": BASE64_STANDARD.encode(signature.as_ref()),
        "signaturePublicKeyInfo": BASE64_STANDARD.encode(info(pair)),
    });
    (value, leaf)
}

/// The subject of the entry at a position of a sample. Persons 0 and 1 are erased; they are deleted at
/// positions 30 and 31, which every sample of more than 31 entries has. The entries at 14 and 22 have a
/// person whom their key does not name; the one at 12 was written before that member existed.
pub fn change(position: u64) -> Change {
    let action = ["Added", "Modified", "Deleted"][(position / 2 % 3) as usize];
    let (area, key, action, owner, erased) = match position {
        1..6 => ("User", person(position % 2), "Modified", Some(position % 2), true),
        12 => ("TemporaryAccessPass", format!("{}|{}", person(0), person(12)), "Modified", None, true),
        14 => ("TemporaryAccessPass", person(14), "Modified", Some(0), true),
        20 => ("UserProfile", format!("{}|x", person(0)), "Added", Some(0), true),
        22 => ("TemporaryAccessPass", person(22), "Modified", Some(5), false),
        30 | 31 => ("User", person(position % 2), "Deleted", None, true),
        _ if position.is_multiple_of(2) => ("Group", person(position + 9), action, None, false),
        _ => ("User", person(position + 9), "Modified", Some(position + 9), false),
    };
    Change { area, key, action, person: owner, erased }
}

/// The number of the entry at a position. Numbers do not always follow the tree's order, as in real trails.
pub fn id(position: u64) -> i64 {
    1_795_000_000_000_000 + i64::try_from(position ^ 1).unwrap() * 1000
}

/// A valid export with this number of entries, and the signed checkpoints of all its sizes.
pub struct Sample {
    pub lines: Vec<String>,
    pub notes: Vec<String>,
}

impl Sample {
    pub fn new(size: u64) -> Self {
        let entries: Vec<_> = (0..size).map(|at| entry(id(at), &change(at), &pair(1))).collect();
        let mut frontier = Frontier::default();
        let mut notes = vec![note(ORIGIN, &frontier, &pair(1))];
        for (_, leaf) in &entries {
            frontier.push(*leaf);
            notes.push(note(ORIGIN, &frontier, &pair(1)));
        }
        let mut out = Vec::new();
        let note = notes.last().filter(|_| size > 0).map(String::as_str);
        write_head(ORIGIN, note, size, Timestamp(1_795_900_000_000), &mut out);
        for (tile, entries) in entries.chunks(256).enumerate() {
            let leaves: Vec<Hash> = entries.iter().map(|(_, leaf)| *leaf).collect();
            write_tile(tile as u64, &leaves, &mut out);
            for (at, (value, _)) in entries.iter().enumerate() {
                write_entry(value.to_string().as_bytes(), (tile * 256 + at) as u64, &mut out).unwrap();
            }
        }
        write_end(size, &mut out);
        let lines = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        Self { lines, notes }
    }

    /// The index of an entry's line: after the head and the lines of tiles.
    pub fn line(position: u64) -> usize {
        usize::try_from(position + position / 256 + 2).unwrap()
    }
}

/// The signed checkpoint of a tree.
pub fn note(origin: &str, frontier: &Frontier, pair: &Ed25519KeyPair) -> String {
    let checkpoint = Checkpoint { origin: origin.to_owned(), size: frontier.size(), root: frontier.root() };
    checkpoint.sign(|text| pair.sign(text).as_ref().to_vec(), &public_key(pair)).unwrap()
}

/// Verifies lines with the samples' key.
pub fn verified(lines: &[String], checkpoint: Option<&str>) -> (Summary, Vec<Finding>) {
    let text = lines.join("\n") + "\n";
    let mut findings = Vec::new();
    let summary =
        verify(text.as_bytes(), &key_set(&[&pair(1)]), checkpoint, &mut |finding| findings.push(finding))
            .unwrap();
    assert_eq!(summary.findings, findings.len() as u64);
    (summary, findings)
}
