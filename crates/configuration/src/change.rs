//! The changes to the rows of a server.

use serde_json::{Map, Value};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is created.
    Create,
    /// It is changed.
    Change,
    /// It is deleted.
    Delete,
}

/// A member that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The member.
    pub member: String,
    /// The server's value; null of a new row.
    pub before: Value,
    /// The document's value: a secret by its name alone.
    pub after: Value,
    /// Whether it is a secret, so that the server's value is not shown.
    pub is_secret: bool,
}

/// Links of a set that are added and removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The path of the set's operations, below the service's base.
    pub path: &'static str,
    /// The keys of the rows that are linked.
    pub added: Vec<String>,
    /// The keys of the rows that are unlinked.
    pub removed: Vec<String>,
}

/// The change of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The number of its document; none of a deletion.
    pub document: Option<usize>,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The name of the row.
    pub name: String,
    /// Its key in the interface: of a new row, the future one.
    pub key: String,
    /// The members that differ.
    pub differences: Vec<Difference>,
    /// The links that differ.
    pub links: Vec<Link>,
    /// The body for the interface, secrets by their names; none where only links differ.
    pub body: Option<Map<String, Value>>,
    /// Whether it depends on new rows, so that it cannot be tried in advance.
    pub waits: bool,
    /// The document's members, with ids in the place of names.
    pub(crate) given: Map<String, Value>,
}

/// The changes of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The changes, by the index of their kind.
    pub changes: Vec<Vec<Change>>,
}

impl Plan {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(Vec::is_empty)
    }

    /// The numbers of created, changed and deleted rows.
    pub fn counts(&self) -> [usize; 3] {
        let all = || self.changes.iter().flatten();
        [ChangeKind::Create, ChangeKind::Change, ChangeKind::Delete]
            .map(|kind| all().filter(|change| change.kind == kind).count())
    }
}
