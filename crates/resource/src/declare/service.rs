//! A service.

use crate::Op;

/// A service: a list of operations under one base path, documented together.
pub struct Service {
    /// Its name in `operations.tsv`.
    pub name: &'static str,
    /// Its version there.
    pub version: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// What every path begins with.
    pub base: &'static str,
    /// Its operations, a list a resource.
    pub operations: &'static [&'static [Op]],
    /// Whether it is a version that is on its way out.
    pub is_deprecated: bool,
}

impl Service {
    /// All its operations.
    pub fn all(&self) -> impl Iterator<Item = &'static Op> {
        self.operations.iter().flat_map(|list| list.iter())
    }
}
