//! Services.

use chancery_record::is_same_text;

use crate::Op;

/// A service: a list of operations under one base path, documented together.
pub struct Service {
    /// Its name in `spec/operations.tsv`.
    pub name: &'static str,
    /// Its version there.
    pub version: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// The base path that every path begins with.
    pub base: &'static str,
    /// Its operations: a list for each resource.
    pub operations: &'static [&'static [Op]],
    /// Whether its version is deprecated.
    pub is_deprecated: bool,
}

impl Service {
    /// All its operations.
    pub fn all(&self) -> impl Iterator<Item = &'static Op> {
        self.operations.iter().flat_map(|list| list.iter())
    }

    /// Whether one of its operations has this name. Usable at compile time, so that a misspelt name does not
    /// compile.
    pub const fn declares(&self, name: &str) -> bool {
        let mut lists = self.operations;
        while let [list, others @ ..] = lists {
            let mut list: &[Op] = list;
            while let [op, rest @ ..] = list {
                if is_same_text(op.name, name) {
                    return true;
                }
                list = rest;
            }
            lists = others;
        }
        false
    }
}
