//! The types that a record's fields can have.

use uuid::Uuid;

use crate::{
    Field, GermanNames, Kind, Value,
    value::{Bytes, Encoding, Ids},
};

/// A stored value does not fit its field: a migration or a manual change was wrong. Contains the column's name.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch(pub &'static str);

/// A struct declared by [`record!`](crate::record).
pub trait Record: Sized {
    /// The record's name with its module path, which is unique.
    const TYPE_NAME: &'static str;
    /// The record's description, for the OpenAPI document.
    const ABOUT: &'static str;
    /// Its German names, where it is a resource that has them of its own.
    const GERMAN: Option<GermanNames>;
    /// Its fields, in order.
    const FIELDS: &'static [Field];
    /// Builds the record from the values of its fields, in order.
    fn from_values(values: Vec<Value>) -> Result<Self, Mismatch>;
    /// The values of the record's fields, in order.
    fn into_values(self) -> Vec<Value>;
    /// Null for each of the record's fields.
    fn no_values() -> Vec<Value> {
        vec![Value::Null; Self::FIELDS.len()]
    }
}

/// A type that a record's field can have.
pub trait FieldType: Sized {
    /// The kind of a field of this type.
    const KIND: Kind;
    /// Whether a field of this type may be empty.
    const NULLABLE: bool = false;
    /// Converts to a stored value.
    fn into_value(self) -> Value;
    /// Converts from a stored value; `Err` when it is of another kind.
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

/// Declares identifier types, one per resource, so that a user's id is no group's.
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

/// Declares enumerations. A choice's name on the wire is its name in Rust, or the one given after `=`.
#[macro_export]
macro_rules! choice_types {
    ($($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $about:literal])* $choice:ident $(= $wire:literal)?),+ $(,)?
    })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $about])* $choice),+ }
        impl $name {
            /// The choice's name on the wire.
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

/// Declares types for secrets in a body: text that a rule reads and that is never stored or answered.
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

    use super::FieldType as _;
    use crate::{Ids, Value};

    #[test]
    fn ids_are_stored_as_json() {
        for (ids, json) in [
            (Vec::new(), "[]".to_owned()),
            (
                vec![Uuid::from_u128(1), Uuid::from_u128(2)],
                format!("[\"{}\",\"{}\"]", Uuid::from_u128(1), Uuid::from_u128(2)),
            ),
        ] {
            assert_eq!(Ids(ids.clone()).into_value(), Value::Text(json.clone()));
            assert_eq!(Ids::from_value(Value::Text(json)), Ok(Ids(ids)));
        }
        assert!(Ids::from_value(Value::Text("[\"x\"]".into())).is_err());
    }
}
