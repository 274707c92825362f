//! Who may write a field, when, and what it starts with.

use crate::Value;

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
    pub audited: bool,
    /// Whether the documents list it in bodies, where it is ignored.
    pub repeated: bool,
    /// A value as it can be, for the documents, where that of its type would mislead.
    pub example: Option<&'static str>,
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
    pub const fn audited(self) -> Self {
        Self { audited: true, ..self }
    }

    /// The same access, and listed in bodies, which may repeat it: it is ignored there.
    #[must_use]
    pub const fn repeated(self) -> Self {
        Self { repeated: true, ..self }
    }

    /// The same access, with an example for the documents.
    #[must_use]
    pub const fn like(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
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
    audited: false,
    repeated: false,
    example: None,
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
