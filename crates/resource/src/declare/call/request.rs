//! The request of a caller.

use chancery_record::Json;

use crate::{Action, Op, Preconditions, Problem, Shape};

/// Rows as they were read: their shape, and their keys with their concurrency tokens.
#[derive(Clone)]
pub struct Unchanged {
    /// The resource of the rows.
    pub shape: &'static Shape,
    /// Each row's key, and its token at that time.
    pub tokens: Vec<(String, String)>,
}

/// A request, parsed but not validated.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub struct Request {
    /// The operation.
    pub op: &'static Op,
    /// Path parameters in order, decoded, without `{userstore}`.
    pub path: Vec<String>,
    /// Path and query as sent, for pagination links.
    pub address: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// The conditions of the request headers (RFC 9110, section 13).
    pub preconditions: Preconditions,
    /// The JSON body.
    pub body: Option<Json>,
    /// The body of an operation that takes bytes, with its media type.
    pub bytes: Option<(String, Vec<u8>)>,
    /// Whether a PATCH body is a merge patch (RFC 7396).
    pub merge_patch: bool,
    /// Whether to answer as the real call would, but change nothing.
    pub dry_run: bool,
    /// Whether the body of an answer may be read after the commit: reading a large resource must not block
    /// other writes.
    pub reads_later: bool,
    /// Whether the caller prefers an answer to a write without a body (`return=minimal`, RFC 7240), or a list
    /// whose items have empty sets: only pages request such lists.
    pub minimal: bool,
    /// The rows that must be unchanged since they were read: only pages set them.
    pub unchanged: Option<Unchanged>,
}

/// Ids in a set from which it counts as one of many.
const MANY: usize = 1_000;

impl Request {
    /// Whether it writes many rows or links: a batch, or a large set.
    pub fn is_of_many(&self) -> bool {
        let listed = match (self.op.action, &self.body) {
            (Action::Relate(..), Some(body)) => body.get("relatedIds"),
            _ => None,
        };
        self.op.is_batch() || matches!(listed, Some(Json::Array(ids)) if ids.len() >= MANY)
    }

    /// The path parameter at this index.
    pub fn parameter(&self, number: usize) -> &str {
        self.path.get(number).map_or("", String::as_str)
    }

    /// The query parameter of this name.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body; a problem where there is none.
    pub fn body(&self) -> Result<&Json, Problem> {
        self.body.as_ref().ok_or_else(|| Problem::invalid("This operation needs a JSON body."))
    }
}
