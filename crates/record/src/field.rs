//! The field table: what one line of [`record!`](crate::record) says.

use uuid::Uuid;

use crate::{
    Value,
    text::TextRule,
    value::{Bytes, Encoding, Ids},
};

/// What a field holds, with its bounds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A UUID.
    Id,
    /// A truth value.
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
    /// The same, written as its place in the list, and read as that or as the name.
    Numbered(&'static [&'static str]),
    /// A moment, stored as milliseconds since 1970 (UTC), written by RFC 3339.
    Time,
    /// Bytes.
    Bytes(Encoding),
    /// An object of a body with these members, kept as its JSON.
    Object(&'static [Field]),
    /// Ids, kept as their JSON array: shown, and written by us alone.
    Ids,
}

/// What a field starts with when a create body does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// No default: null where the field may be empty, required otherwise.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'static str),
}

impl Preset {
    /// The default as a value.
    pub fn to_value(self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Text(value) => Value::Text(value.to_owned()),
        }
    }
}

/// Whether a field's value is encrypted where it is kept. Such a field gives no order and no
/// filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// It is not.
    Open,
    /// Under the master key, where the resource says that the row holds a secret.
    Secret,
    /// Under the key of the person that the row is about, where it is about one.
    Person,
}

/// Where a field's value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// In a column of the resource's table, named as the field.
    Own,
    /// In the caller's scope: the user store that the path names. No column of its own.
    Scope,
    /// In the path: the id of the owning resource. The table holds its row number.
    Owner,
    /// In what is read, but not in the table: it follows from other rows.
    Seen,
    /// In the body, and in the answer to it, but nowhere else: empty whenever it is read.
    Given,
}

impl Column {
    /// Whether it is in what is read.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Own | Self::Seen)
    }
}

/// Who may write a field, and where it lives: the access column of the contract.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the contract's own table")]
pub struct Access {
    /// A create body may hold it.
    pub create: bool,
    /// A PUT body may hold it.
    pub put: bool,
    /// A PATCH body may hold it.
    pub patch: bool,
    /// Answers hold it.
    pub shown: bool,
    /// It is the resource's key.
    pub key: bool,
    /// Where its value lives.
    pub column: Column,
    /// What it starts with.
    pub preset: Preset,
    /// The column's name where it is not the field's.
    pub stored_as: Option<&'static str>,
    /// The name on the wire where it is not the field's, in snake case.
    pub named: Option<&'static str>,
    /// The table has a second column `<name>_key` with the folded text, for search and order.
    pub folded: bool,
    /// Whether it is encrypted where it is kept.
    pub sealing: Sealing,
    /// Whether the audit trail tells it even though answers do not.
    pub told: bool,
}

impl Access {
    /// The same access, starting with `preset`.
    #[must_use]
    pub const fn or(self, preset: Preset) -> Self {
        Self { preset, ..self }
    }

    /// The same access, found and ordered without regard to case (see [`crate::fold`]).
    #[must_use]
    pub const fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// The same access, in a column of another name.
    #[must_use]
    pub const fn stored_as(self, column: &'static str) -> Self {
        Self { stored_as: Some(column), ..self }
    }

    /// The same access, under another name on the wire: one that is a word of the language.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Self {
        Self { named: Some(name), ..self }
    }

    /// The same access, encrypted where it is kept.
    #[must_use]
    pub const fn sealed(self, sealing: Sealing) -> Self {
        Self { sealing, ..self }
    }

    /// The same access, and told in the audit trail.
    #[must_use]
    pub const fn told(self) -> Self {
        Self { told: true, ..self }
    }

    /// The same access, but never in an answer.
    #[must_use]
    pub const fn unseen(self) -> Self {
        Self { shown: false, ..self }
    }

    /// The same access to what is not kept: see [`Column::Given`].
    #[must_use]
    pub const fn not_kept(self) -> Self {
        Self { column: Column::Given, ..self }
    }
}

/// Written in create, PUT and PATCH; shown.
pub const OPEN: Access = Access {
    create: true,
    put: true,
    patch: true,
    shown: true,
    key: false,
    column: Column::Own,
    preset: Preset::None,
    stored_as: None,
    named: None,
    folded: false,
    sealing: Sealing::Open,
    told: false,
};
/// Written in create only; shown.
pub const FIXED: Access = Access { put: false, patch: false, ..OPEN };
/// The key: may come with create, is repeated in PUT; shown.
pub const KEY: Access = Access { key: true, ..FIXED };
/// Ours; shown.
pub const SHOWN: Access = Access { create: false, ..FIXED };
/// Ours, and follows from other rows; shown. See [`Column::Seen`].
pub const SEEN: Access = Access { column: Column::Seen, ..SHOWN };
/// Ours; never shown.
pub const HIDDEN: Access = Access { shown: false, ..SHOWN };
/// The user store of the path; a create body may repeat it.
pub const SCOPE: Access = Access { column: Column::Scope, ..FIXED };
/// The owning resource of the path; a create body may repeat it.
pub const OWNER: Access = Access { column: Column::Owner, ..FIXED };

/// One line of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Column name, in snake case.
    pub column: &'static str,
    /// What the field means, for the OpenAPI document.
    pub about: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be empty.
    pub nullable: bool,
    /// Who may write it.
    pub access: Access,
    wire: WireName,
}

impl Field {
    /// A field of type `T`. Called by [`record!`](crate::record).
    pub const fn new<T: FieldType>(column: &'static str, about: &'static str, access: Access) -> Self {
        let name = match access.named {
            Some(other) => other,
            None => column,
        };
        let (nullable, wire) = (T::NULLABLE, WireName::of(name));
        let column = match access.stored_as {
            Some(other) => other,
            None => column,
        };
        Self { column, about, kind: T::KIND, nullable, access, wire }
    }

    /// The same field, told in another way, for who may write it now.
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

    /// Whether a create body must hold it.
    pub fn required(&self) -> bool {
        let Access { create, key, column, preset, .. } = self.access;
        create
            && !self.nullable
            && preset == Preset::None
            && matches!(column, Column::Own | Column::Given)
            && !(key && matches!(self.kind, Kind::Id))
    }

    /// Whether this is the concurrency token.
    pub fn is_token(&self) -> bool {
        self.column == "concurrency_token"
    }

    /// Whether this is the concurrency token, and a change must show it.
    pub fn is_asked_token(&self) -> bool {
        self.is_token() && self.access.shown
    }

    /// Takes one value of a row back into its type. Called by [`record!`](crate::record).
    pub fn take<T: FieldType>(column: &'static str, value: Option<Value>) -> Result<T, Mismatch> {
        T::from_value(value.unwrap_or(Value::Null)).map_err(|_| Mismatch(column))
    }
}

/// A column name in camel case, made when the program is compiled.
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

/// A stored value does not fit its field: a migration or a hand was wrong. Names the column.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch(pub &'static str);

/// A struct made by [`record!`](crate::record).
pub trait Record: Sized {
    /// What the record is, for the OpenAPI document.
    const ABOUT: &'static str;
    /// Its fields, in order.
    const FIELDS: &'static [Field];
    /// From the values of its fields, in order.
    fn from_values(values: Vec<Value>) -> Result<Self, Mismatch>;
    /// To the values of its fields, in order.
    fn into_values(self) -> Vec<Value>;
}

/// A type that a record's field can have.
pub trait FieldType: Sized {
    /// What it holds.
    const KIND: Kind;
    /// Whether it may be empty.
    const NULLABLE: bool = false;
    /// To a value.
    fn into_value(self) -> Value;
    /// From a value; `Err` when it is of another kind.
    fn from_value(value: Value) -> Result<Self, Mismatch>;
}

impl<T: FieldType> FieldType for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
    fn into_value(self) -> Value {
        self.map_or(Value::Null, T::into_value)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl FieldType for bool {
    const KIND: Kind = Kind::Bool;
    fn into_value(self) -> Value {
        Value::Bool(self)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Bool(value) => Ok(value),
            Value::Int(value) => Ok(value != 0),
            _ => Err(Mismatch("")),
        }
    }
}

impl FieldType for i64 {
    const KIND: Kind = Kind::Int { min: 0, max: 9_007_199_254_740_991 };
    fn into_value(self) -> Value {
        Value::Int(self)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Int(value) = value { Ok(value) } else { Err(Mismatch("")) }
    }
}

impl FieldType for Uuid {
    const KIND: Kind = Kind::Id;
    fn into_value(self) -> Value {
        Value::Id(self)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Id(value) = value { Ok(value) } else { Err(Mismatch("")) }
    }
}

impl FieldType for Bytes {
    const KIND: Kind = Kind::Bytes(Encoding::Base64);
    fn into_value(self) -> Value {
        Value::Bytes(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Bytes(value) = value { Ok(Self(value)) } else { Err(Mismatch("")) }
    }
}

impl FieldType for Ids {
    const KIND: Kind = Kind::Ids;
    fn into_value(self) -> Value {
        let ids: Vec<String> = self.0.iter().map(|id| format!("\"{id}\"")).collect();
        Value::Text(format!("[{}]", ids.join(",")))
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        let Value::Text(text) = value else { return Err(Mismatch("")) };
        let ids = text.split('"').skip(1).step_by(2).map(Uuid::try_parse);
        ids.collect::<Result<_, _>>().map(Self).map_err(|_| Mismatch(""))
    }
}

/// Declares identifier types, one a resource, so that a user's id cannot pass for a group's.
#[macro_export]
macro_rules! id_types {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $crate::Uuid);
        impl $crate::FieldType for $name {
            const KIND: $crate::Kind = $crate::Kind::Id;
            fn into_value(self) -> $crate::Value { $crate::Value::Id(self.0) }
            fn from_value(value: $crate::Value) -> Result<Self, $crate::Mismatch> {
                $crate::FieldType::from_value(value).map(Self)
            }
        }
    )*};
}

/// Declares enumerations whose values are named on the wire as they are here, or as is said.
#[macro_export]
macro_rules! choice_types {
    ($($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $about:literal])* $choice:ident $(= $wire:literal)?),+ $(,)?
    })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $about])* $choice),+ }
        impl $name {
            /// Its name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$choice => $crate::choice_name!($choice $($wire)?)),+ }
            }
        }
        impl $crate::FieldType for $name {
            const KIND: $crate::Kind = $crate::Kind::Choice(&[$($crate::choice_name!($choice $($wire)?)),+]);
            fn into_value(self) -> $crate::Value { self.name().into() }
            fn from_value(value: $crate::Value) -> Result<Self, $crate::Mismatch> {
                let $crate::Value::Text(text) = value else { return Err($crate::Mismatch("")) };
                [$(Self::$choice),+].into_iter().find(|choice| choice.name() == text).ok_or($crate::Mismatch(""))
            }
        }
    )*};
}

/// The name of a choice on the wire. Called by [`choice_types!`].
#[doc(hidden)]
#[macro_export]
macro_rules! choice_name {
    ($choice:ident) => {
        stringify!($choice)
    };
    ($choice:ident $wire:literal) => {
        $wire
    };
}

/// Declares types of text in a body that must not be seen: read by a rule, never written.
#[macro_export]
macro_rules! secret_types {
    ($($(#[doc = $doc:literal])* $name:ident($rule:expr);)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $name(pub $crate::Secret);
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool { self.0.matches(other.0.expose()) }
        }
        impl $crate::FieldType for $name {
            const KIND: $crate::Kind = $crate::Kind::Text($rule);
            fn into_value(self) -> $crate::Value { $crate::Value::Null }
            fn from_value(value: $crate::Value) -> Result<Self, $crate::Mismatch> {
                match value {
                    $crate::Value::Text(text) => Ok(Self($crate::Secret::new(text))),
                    _ => Err($crate::Mismatch("")),
                }
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{FieldType as _, WireName};
    use crate::{Ids, Value};

    #[test]
    fn ids_are_kept_as_their_json() {
        for (ids, kept) in [
            (Vec::new(), "[]".to_owned()),
            (
                vec![Uuid::from_u128(1), Uuid::from_u128(2)],
                format!("[\"{}\",\"{}\"]", Uuid::from_u128(1), Uuid::from_u128(2)),
            ),
        ] {
            assert_eq!(Ids(ids.clone()).into_value(), Value::Text(kept.clone()));
            assert_eq!(Ids::from_value(Value::Text(kept)), Ok(Ids(ids)));
        }
        assert!(Ids::from_value(Value::Text("[\"x\"]".into())).is_err());
    }

    #[test]
    fn wire_names_are_camel_case() {
        assert_eq!(WireName::of("login_name").as_str(), "loginName");
        assert_eq!(WireName::of("is_user_active").as_str(), "isUserActive");
        assert_eq!(WireName::of("id").as_str(), "id");
    }
}
