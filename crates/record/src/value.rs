//! The kinds of value that both engines store.

use uuid::Uuid;

/// A value in the engine: owned, of one of the kinds that both databases store.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// A Boolean.
    Bool(bool),
    /// A whole number; also a time in milliseconds since 1970 (UTC).
    Int(i64),
    /// Text without NUL.
    Text(String),
    /// An identifier.
    Id(Uuid),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Whether this is [`Value::Null`].
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The length of text or bytes; 0 for all other kinds.
    pub const fn size(&self) -> usize {
        match self {
            Self::Text(value) => value.len(),
            Self::Bytes(value) => value.len(),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Id(_) => 0,
        }
    }

    /// This value, borrowed.
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(value) => Cell::Bool(*value),
            Self::Int(value) => Cell::Int(*value),
            Self::Text(value) => Cell::Text(value),
            Self::Id(value) => Cell::Id(*value),
            Self::Bytes(value) => Cell::Bytes(value),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}
impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}
impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Id(value)
    }
}
impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A value borrowed from a database row or from a [`Value`], so that it is written as JSON without being
/// copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Null.
    Null,
    /// A Boolean.
    Bool(bool),
    /// A whole number or a time.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// An identifier.
    Id(Uuid),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// This value, owned.
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Text(value) => Value::Text(value.to_owned()),
            Self::Id(value) => Value::Id(value),
            Self::Bytes(value) => Value::Bytes(value.to_vec()),
        }
    }
}

/// The encoding of bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Base64 with padding (RFC 4648, section 4).
    Base64,
    /// Lower-case hexadecimal.
    Hex,
}

/// Bytes of a record, shown as base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// Ids of a record, shown as an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids(pub Vec<Uuid>);

/// Reads an id: eight, four, four, four and twelve hexadecimal digits with dashes between them, in any case.
pub fn parse_id(text: &str) -> Option<Uuid> {
    (text.len() == uuid::fmt::Hyphenated::LENGTH).then(|| Uuid::try_parse(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::parse_id;

    /// Section 15: an id is read in one form.
    #[test]
    fn ids_have_one_form() {
        let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
        assert_eq!(parse_id(&id.to_uppercase()), parse_id(id));
        assert!(parse_id(id).is_some());
        let plain = id.replace('-', "");
        for wrong in
            [plain.as_str(), &format!("{{{id}}}"), &format!("urn:uuid:{id}"), &format!("{plain}----"), ""]
        {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }
}
