//! Reading of a resource's rows.

use crate::Shape;

/// Reading of a resource's rows.
#[derive(Clone, Copy)]
pub struct Reads {
    /// A query in brackets, read instead of the table; its `?1` is the time. For members that change with time
    /// alone, such as an expiry.
    pub view: Option<&'static str>,
    /// Whether one item can be large, so that reading it must leave the worker (`Mode::Long`).
    pub large: bool,
    /// Whether an element of a batch without a key is matched by its concurrency token.
    pub found_by_token: bool,
}

impl Reads {
    pub(super) const fn new() -> Self {
        Self { view: None, large: false, found_by_token: false }
    }
}

impl Shape {
    /// The same, read from this query, whose `?1` is the time.
    #[must_use]
    pub const fn read_from(mut self, query: &'static str) -> Self {
        self.reads.view = Some(query);
        self
    }

    /// The same, where one item can be large.
    #[must_use]
    pub const fn large(mut self) -> Self {
        self.reads.large = true;
        self
    }

    /// The same, where an element of a batch without a key is matched by its concurrency token.
    #[must_use]
    pub const fn found_by_token(mut self) -> Self {
        self.reads.found_by_token = true;
        self
    }
}
