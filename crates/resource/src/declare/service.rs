//! Services.

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
                if is_same(op.name.as_bytes(), name.as_bytes()) {
                    return true;
                }
                list = rest;
            }
            lists = others;
        }
        false
    }
}

/// Whether two texts are equal, at compile time.
const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn texts_are_equal_as_a_whole() {
        assert!(is_same(b"GetUser", b"GetUser") && is_same(b"", b""));
        assert!(!is_same(b"GetUser", b"GetUsers") && !is_same(b"GetUsers", b"GetUser"));
        assert!(!is_same(b"GetUser", b"SetUser"));
    }
}
