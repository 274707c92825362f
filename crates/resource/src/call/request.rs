//! What a caller asks for.

use chancery_record::Json;

use crate::{Op, Preconditions, Problem};

/// A request, read but not judged.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub struct Request {
    /// The operation.
    pub op: &'static Op,
    /// Path parameters in order, decoded, without `{userstore}`.
    pub path: Vec<String>,
    /// Path and query as sent, for links.
    pub address: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Conditions on the current representation.
    pub preconditions: Preconditions,
    /// The JSON body.
    pub body: Option<Json>,
    /// The body of an operation that takes bytes, with its media type.
    pub bytes: Option<(String, Vec<u8>)>,
    /// Whether a PATCH body is a merge patch (RFC 7396).
    pub merge_patch: bool,
    /// Answer as the real call would, and change nothing.
    pub dry_run: bool,
    /// Whether the body of an answer may be read after the commit: a large resource must not be
    /// read while other writes wait.
    pub reads_later: bool,
    /// Whether the caller wants no body in the answer to a write (RFC 7240).
    pub minimal: bool,
}

impl Request {
    /// A path parameter by its number.
    pub fn parameter(&self, number: usize) -> &str {
        self.path.get(number).map_or("", String::as_str)
    }

    /// A query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body; a problem when there is none.
    pub fn body(&self) -> Result<&Json, Problem> {
        self.body.as_ref().ok_or_else(|| Problem::invalid("This operation needs a JSON body."))
    }
}
