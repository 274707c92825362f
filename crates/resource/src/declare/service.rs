//! Services.

use crate::Op;

/// A service: a list of operations under one base path, documented together.
pub struct Service {
    /// Its name in `operations.tsv`.
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
}
