//! The field table: the declaration of one line of [`record!`](crate::record).

pub mod field_of;
pub mod field_type;

use uuid::Uuid;

use crate::{
    Access, Column, DefaultValue, FieldType, German, ListRule, Mismatch, PairsRule, Record, Value,
    is_same_text, text::TextRule, value::Encoding,
};

/// The kind of a field's value, with its bounds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A UUID.
    Id,
    /// A Boolean.
    Bool,
    /// A whole number within bounds, both included.
    Int {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// Text that follows a rule.
    Text(&'static TextRule),
    /// One of a list of names, read without regard to case, written as listed.
    Choice(&'static [&'static str]),
    /// One of a list of names, written as its index in the list; read as the index or as the name.
    Numbered(&'static [&'static str]),
    /// A moment, stored as milliseconds since 1970 (UTC), written by RFC 3339.
    Time,
    /// Bytes.
    Bytes(Encoding),
    /// An object of a body with these members, stored as its JSON.
    Object(&'static [Field]),
    /// Ids, stored as their JSON array: shown, and written by the server alone.
    Ids,
    /// Texts, stored as their JSON array.
    Texts(&'static ListRule),
    /// Texts by names, stored as their JSON object.
    Pairs(&'static PairsRule),
}

/// A field: one line of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Column name, in snake case.
    pub column: &'static str,
    /// The field's description, for the OpenAPI document.
    pub about: &'static str,
    /// Its German texts.
    pub german: &'static German,
    /// The kind of its value.
    pub kind: Kind,
    /// Whether it may be empty.
    pub nullable: bool,
    /// The write access.
    pub access: Access,
    wire: WireName,
    record: &'static str,
    index: usize,
}

impl Field {
    /// The field of type `T` at this index of the record `R`. Called by [`record!`](crate::record).
    pub const fn new<R: Record, T: FieldType>(
        index: usize,
        column: &'static str,
        about: &'static str,
        german: &'static German,
        access: Access,
    ) -> Self {
        let name = match access.named {
            Some(other) => other,
            None => column,
        };
        let (nullable, wire) = (T::NULLABLE, WireName::of(name));
        let column = match access.stored_as {
            Some(other) => other,
            None => column,
        };
        Self { column, about, german, kind: T::KIND, nullable, access, wire, record: R::TYPE_NAME, index }
    }

    /// Its index among the fields of its record.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Whether it belongs to the record of this name (see [`Record::TYPE_NAME`]).
    pub const fn is_of(&self, record: &str) -> bool {
        is_same_text(self.record, record)
    }

    /// Whether this is the same field, perhaps with another kind, access or wire name.
    pub fn is(&self, other: &Self) -> bool {
        self.index == other.index && self.record == other.record
    }

    /// Its value in a row; null where the row has none.
    pub fn value<'a>(&self, values: &'a [Value]) -> &'a Value {
        values.get(self.index).unwrap_or(&Value::Null)
    }

    /// Its value in a row, where it is an id.
    pub fn id(&self, values: &[Value]) -> Option<Uuid> {
        if let Value::Id(id) = self.value(values) { Some(*id) } else { None }
    }

    /// Sets its value in a row.
    pub fn set(&self, values: &mut [Value], value: Value) {
        if let Some(slot) = values.get_mut(self.index) {
            *slot = value;
        }
    }

    /// The same field with another kind and access, for a legacy view or another form.
    #[must_use]
    pub fn with(self, kind: Kind, access: Access) -> Self {
        Self { kind, access, ..self }
    }

    /// The same field under another name on the wire.
    #[must_use]
    pub fn called(self, name: &str) -> Self {
        Self { wire: WireName::of(name), ..self }
    }

    /// The name on the wire: the column name in camel case.
    pub fn wire(&self) -> &str {
        self.wire.as_str()
    }

    /// Whether this is its name on the wire.
    pub fn is_named(&self, name: &str) -> bool {
        self.wire.as_bytes() == name.as_bytes()
    }

    /// Whether a create body must contain it.
    pub fn required(&self) -> bool {
        let Access { create, key, column, default, .. } = self.access;
        create
            && !self.nullable
            && default == DefaultValue::None
            && matches!(column, Column::Own | Column::Unstored)
            && !(key && matches!(self.kind, Kind::Id))
    }

    /// Whether this is the concurrency token.
    pub fn is_token(&self) -> bool {
        self.column == "concurrency_token"
    }

    /// Whether this is the resource's name for people.
    pub fn is_name(&self) -> bool {
        self.column == "name"
    }

    /// Whether this is the concurrency token, and required in a change.
    pub fn is_required_token(&self) -> bool {
        self.is_token() && self.access.shown
    }

    /// Whether its value is set at creation and never changes.
    pub fn is_create_only(&self) -> bool {
        let Access { create, put, patch, key, .. } = self.access;
        create && !put && !patch && !key && !self.is_token()
    }

    /// Converts a value of a row back into the field's type. Called by [`record!`](crate::record).
    pub fn take<T: FieldType>(column: &'static str, value: Option<Value>) -> Result<T, Mismatch> {
        T::from_value(value.unwrap_or(Value::Null)).map_err(|_| Mismatch(column))
    }
}

/// A column name in camel case, converted at compile time.
#[derive(Clone, Copy, Debug)]
struct WireName {
    bytes: [u8; 64],
    length: usize,
}

impl WireName {
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    const fn of(column: &str) -> Self {
        let column = column.as_bytes();
        let mut wire = Self { bytes: [0; 64], length: 0 };
        let mut at = 0;
        while at < column.len() {
            let starts_word = at > 0 && column[at - 1] == b'_';
            if column[at] != b'_' {
                let letter = column[at];
                wire.bytes[wire.length] = if starts_word { letter.to_ascii_uppercase() } else { letter };
                wire.length += 1;
            }
            at += 1;
        }
        wire
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::WireName;

    #[test]
    fn wire_names_are_camel_case() {
        assert_eq!(WireName::of("login_name").as_str(), "loginName");
        assert_eq!(WireName::of("is_user_active").as_str(), "isUserActive");
        assert_eq!(WireName::of("id").as_str(), "id");
    }
}
