//! Values that are encrypted at rest: secrets under the master key, personal data under the person's key.
//! Destroying the key destroys the values.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};
use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use chancery_record::{Cell, Field, Secret, Value};
use uuid::Uuid;

use super::{
    compact,
    master_key::{MasterKey, SealingKey},
    random::random,
};

/// The first character of sealed text. That of text which was compressed before is `compact::MARK`. No text of a caller can
/// contain either.
pub const MARK: char = '\u{1}';

/// The key of one person, which encrypts the contents of audit entries about the person.
pub struct PersonKey {
    /// The person.
    pub id: Uuid,
    key: SealingKey,
    bytes: Secret,
}

/// The keys of several persons, by the persons' ids. A value encrypted under all of them is lost with any of
/// them.
#[derive(Clone, Default)]
pub struct Persons(BTreeMap<Uuid, Secret>);

impl Persons {
    /// Adds a person's key.
    pub fn add(&mut self, person: &PersonKey) {
        self.0.insert(person.id, person.bytes.clone());
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The ids of the persons.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.0.keys().copied()
    }

    /// Encrypts bytes with associated data, under the keys of all persons together; returns them unchanged
    /// where there are no persons.
    pub fn seal(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        self.key().map_or_else(|| bytes.to_vec(), |key| key.seal(associated_data, bytes))
    }

    /// Decrypts the output of [`Persons::seal`] with the same associated data.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Option<Secret> {
        self.key().map_or_else(|| Some(Secret::new(sealed)), |key| key.open(associated_data, sealed))
    }

    /// The key derived from the keys of all persons; `None` where there are no persons.
    fn key(&self) -> Option<SealingKey> {
        let mut digest = Context::new(&SHA256);
        for (id, key) in &self.0 {
            digest.update(id.as_bytes());
            digest.update(key.expose());
        }
        if self.0.is_empty() { None } else { SealingKey::new(digest.finish().as_ref()) }
    }
}

impl PersonKey {
    /// Generates the key of a new person, encrypted as in the person's row.
    pub fn generate(master: &MasterKey, id: Uuid) -> Value {
        Value::Bytes(master.seal(&person_associated_data(id), &random::<32>()))
    }

    /// Opens a stored key; `None` when it was destroyed.
    pub fn open(master: &MasterKey, id: Uuid, stored: &[u8]) -> Option<Self> {
        let bytes = master.open(&person_associated_data(id), stored)?;
        Some(Self { id, key: SealingKey::new(bytes.expose())?, bytes })
    }

    /// Compresses text where that makes it shorter, and encrypts it with associated data.
    pub fn seal_text(&self, associated_data: &str, text: &str) -> String {
        let compressed = compact::compress(text);
        let mark = if compressed.is_some() { compact::MARK } else { MARK };
        self.marked(mark, associated_data, compressed.as_deref().unwrap_or(text.as_bytes()))
    }

    /// Compresses text that was sealed as it is; `None` where that makes it no shorter, and for anything else.
    pub fn compress_sealed(&self, associated_data: &str, stored: &str) -> Option<String> {
        let sealed = BASE64_STANDARD_NO_PAD.decode(stored.strip_prefix(MARK)?).ok()?;
        let opened = self.key.open(associated_data, &sealed)?;
        let compressed = compact::compress(std::str::from_utf8(opened.expose()).ok()?)?;
        Some(self.marked(compact::MARK, associated_data, &compressed))
    }

    fn marked(&self, mark: char, associated_data: &str, bytes: &[u8]) -> String {
        format!("{mark}{}", BASE64_STANDARD_NO_PAD.encode(self.key.seal(associated_data, bytes)))
    }

    /// Encrypts bytes with associated data.
    pub fn seal_bytes(&self, associated_data: &str, bytes: &[u8]) -> Vec<u8> {
        self.key.seal(associated_data, bytes)
    }
}

fn person_associated_data(id: Uuid) -> String {
    format!("person/{id}")
}

/// The associated data of a member of an audit entry.
pub fn entry_associated_data(entry: i64, column: &str) -> String {
    format!("audit_entry/{column}/{entry}")
}

/// The associated data of a person's value in a row of a resource, under the person's key.
pub fn personal_associated_data(resource: &str, column: &str, id: Uuid) -> String {
    format!("{resource}/{column}/{id}")
}

/// Encrypts a secret of a row of this table, unless it is encrypted already.
pub fn seal_secret(master: &MasterKey, table: &str, field: &Field, key: &Value, value: &Value) -> Value {
    match value {
        Value::Text(text) if !text.starts_with(MARK) && !text.is_empty() => {
            let sealed = master.seal(&secret_associated_data(table, field.column, key), text.as_bytes());
            Value::Text(format!("{MARK}{}", BASE64_STANDARD_NO_PAD.encode(sealed)))
        }
        other => other.clone(),
    }
}

/// Decrypts a secret of a row of this table; text that is not sealed is returned unchanged.
pub fn open_secret(master: &MasterKey, table: &str, column: &str, key: &Value, text: &str) -> Option<String> {
    let Some(sealed) = text.strip_prefix(MARK) else { return Some(text.to_owned()) };
    let sealed = BASE64_STANDARD_NO_PAD.decode(sealed).ok()?;
    let opened = master.open(&secret_associated_data(table, column, key), &sealed)?;
    String::from_utf8(opened.expose().to_vec()).ok()
}

/// Whether text is sealed.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(MARK)
}

fn secret_associated_data(table: &str, column: &str, key: &Value) -> String {
    match key {
        Value::Id(id) => format!("{table}/{column}/{id}"),
        _ => format!("{table}/{column}"),
    }
}

/// Decrypts a value of a person; `None` where it was encrypted under another key.
pub fn open_personal(key: &PersonKey, associated_data: &str, cell: Cell<'_>) -> Option<Value> {
    match cell {
        Cell::Text(text) => {
            let compressed = text.strip_prefix(compact::MARK);
            let sealed =
                BASE64_STANDARD_NO_PAD.decode(compressed.or_else(|| text.strip_prefix(MARK))?).ok()?;
            let opened = key.key.open(associated_data, &sealed)?;
            let text = match compressed {
                Some(_) => compact::decompress(opened.expose()),
                None => String::from_utf8(opened.expose().to_vec()).ok(),
            };
            text.map(Value::Text)
        }
        Cell::Bytes(sealed) => Some(Value::Bytes(key.key.open(associated_data, sealed)?.expose().to_vec())),
        _ => None,
    }
}
