//! Write access to a field, and its default.

use crate::Value;

/// The value of a field that a create body does not contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// No default: null where the field may be empty, required otherwise.
    None,
    /// A Boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'static str),
}

impl DefaultValue {
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

/// Whether a field's value is encrypted at rest. Such a field can be neither sorted nor filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// Not encrypted.
    Open,
    /// Under the master key, in the rows that contain a secret by the resource's declaration.
    Secret,
    /// Under the key of the row's person, if it has one.
    Person,
}

/// The source of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// In a column of the resource's table, named as the field.
    Own,
    /// In the caller's scope: the user store of the path. No column of its own.
    Scope,
    /// In the path: the id of the owning resource. The table holds its row number.
    Owner,
    /// Derived from other rows: read, but not in the table.
    Derived,
    /// In the body, and in the answer to it, but not stored: empty in later reads.
    Unstored,
}

impl Column {
    /// Whether reading a row returns it.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Own | Self::Derived)
    }
}

/// Write access to a field, and the source of its value: the access column of the contract.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the contract's own table")]
pub struct Access {
    /// A create body may contain it.
    pub create: bool,
    /// A PUT body may contain it.
    pub put: bool,
    /// A PATCH body may contain it.
    pub patch: bool,
    /// Answers contain it.
    pub shown: bool,
    /// It is the resource's key.
    pub key: bool,
    /// The source of its value.
    pub column: Column,
    /// Its value where a create body does not contain it.
    pub default: DefaultValue,
    /// The column's name where it is not the field's.
    pub stored_as: Option<&'static str>,
    /// The name on the wire where it is not the field's, in snake case.
    pub named: Option<&'static str>,
    /// The table has a second column `<name>_key` with the folded text, for search and order.
    pub folded: bool,
    /// Whether it is encrypted at rest.
    pub sealing: Sealing,
    /// Whether the audit trail records it even though answers do not contain it.
    pub audited: bool,
    /// Whether the documents list it in request bodies, where it is ignored.
    pub repeated: bool,
    /// Whether a PUT that omits it leaves it unchanged although it is nullable, for clients that predate it.
    pub retained: bool,
    /// An example for the documents, where that of its type would mislead.
    pub example: Option<&'static str>,
}

impl Access {
    /// The same access, with a default.
    #[must_use]
    pub const fn or(self, default: DefaultValue) -> Self {
        Self { default, ..self }
    }

    /// The same access, matched and ordered without regard to case (see [`crate::fold()`]).
    #[must_use]
    pub const fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// The same access, in a column of another name.
    #[must_use]
    pub const fn stored_as(self, column: &'static str) -> Self {
        Self { stored_as: Some(column), ..self }
    }

    /// The same access, under another name on the wire, such as a keyword of Rust.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Self {
        Self { named: Some(name), ..self }
    }

    /// The same access, encrypted at rest.
    #[must_use]
    pub const fn sealed(self, sealing: Sealing) -> Self {
        Self { sealing, ..self }
    }

    /// The same access, and recorded in the audit trail.
    #[must_use]
    pub const fn audited(self) -> Self {
        Self { audited: true, ..self }
    }

    /// The same access, and listed in request bodies, which may repeat it: it is ignored there.
    #[must_use]
    pub const fn repeated(self) -> Self {
        Self { repeated: true, ..self }
    }

    /// The same access, unchanged by a PUT that omits it.
    #[must_use]
    pub const fn retained(self) -> Self {
        Self { retained: true, ..self }
    }

    /// The same access, with an example for the documents.
    #[must_use]
    pub const fn like(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    /// The same access, but never in an answer.
    #[must_use]
    pub const fn write_only(self) -> Self {
        Self { shown: false, ..self }
    }

    /// The same access, to a value that is not stored: see [`Column::Unstored`].
    #[must_use]
    pub const fn unstored(self) -> Self {
        Self { column: Column::Unstored, ..self }
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
    default: DefaultValue::None,
    stored_as: None,
    named: None,
    folded: false,
    sealing: Sealing::Open,
    audited: false,
    repeated: false,
    retained: false,
    example: None,
};
/// Written in create only; shown.
pub const FIXED: Access = Access { put: false, patch: false, ..OPEN };
/// The key: may be provided at creation, is repeated in PUT; shown.
pub const KEY: Access = Access { key: true, ..FIXED };
/// Written by the server; shown.
pub const SHOWN: Access = Access { create: false, ..FIXED };
/// Derived by the server from other rows; shown. See [`Column::Derived`].
pub const DERIVED: Access = Access { column: Column::Derived, ..SHOWN };
/// Written by the server; never shown.
pub const HIDDEN: Access = Access { shown: false, ..SHOWN };
/// The user store of the path; a create body may repeat it.
pub const SCOPE: Access = Access { column: Column::Scope, ..FIXED };
/// The owning resource of the path; a create body may repeat it.
pub const OWNER: Access = Access { column: Column::Owner, ..FIXED };
