//! What is to be done with the rows of a server.

use serde_json::{Map, Value};

/// What is to be done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is made.
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
    /// What the server has; null of a row that is made.
    pub before: Value,
    /// What the document says: a secret by its name alone.
    pub after: Value,
    /// Whether it is a secret, so that what the server has is not shown.
    pub is_secret: bool,
}

/// Links of a set that are added and removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The path of the set's operations, below the service's base.
    pub path: &'static str,
    /// The keys of the rows that are linked.
    pub added: Vec<String>,
    /// The keys of those that are not any more.
    pub removed: Vec<String>,
}

/// What is to be done with one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The number of the document that asks for it; none of a deletion.
    pub document: Option<usize>,
    /// What is done.
    pub what: What,
    /// What the row is called.
    pub name: String,
    /// Its key in the interface: of a row that is made, the one that it will have.
    pub key: String,
    /// The members that differ.
    pub differences: Vec<Difference>,
    /// The links that differ.
    pub links: Vec<Link>,
    /// What the interface takes, secrets by their names; none where only links differ.
    pub body: Option<Map<String, Value>>,
    /// Whether it needs rows that are made, too, so that it cannot be tried before.
    pub waits: bool,
    /// The document's members, with ids in the place of names.
    pub(crate) given: Map<String, Value>,
}

/// What is to be done: the changes of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The changes, by the index of their kind.
    pub changes: Vec<Vec<Change>>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(Vec::is_empty)
    }

    /// How many rows are made, changed and deleted.
    pub fn counts(&self) -> [usize; 3] {
        let all = || self.changes.iter().flatten();
        [What::Create, What::Change, What::Delete]
            .map(|what| all().filter(|change| change.what == what).count())
    }
}
