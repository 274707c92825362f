//! Problems: errors as they are answered to the caller (RFC 9457).

use chancery_record::{Field, FieldError, FieldErrors, pointer};
use chancery_store as store;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// The type of a problem, by which a client tells problems apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request is malformed or breaks a rule on a field.
    InvalidRequest,
    /// No token, or an invalid or expired one.
    Unauthorized,
    /// The caller has no role for the operation.
    Forbidden,
    /// There is no such item, or it is outside of the caller's scope.
    NotFound,
    /// The path is no route.
    NoSuchRoute,
    /// The route has no such method.
    MethodNotAllowed,
    /// No representation that the caller accepts.
    NotAcceptable,
    /// The state does not allow it, or a key is taken.
    Conflict,
    /// The concurrency token is stale.
    ConcurrencyConflict,
    /// `If-Match` does not hold.
    PreconditionFailed,
    /// The first answer to an idempotency key contained a person whose data were erased since.
    Erased,
    /// The history before a feed's cursor differs from the current one.
    EventHistoryChanged,
    /// The events after a feed's cursor are past their retention.
    EventsGone,
    /// The body is larger than allowed.
    PayloadTooLarge,
    /// The operation does not read this media type.
    UnsupportedMediaType,
    /// An idempotency key was used again, with another request.
    IdempotencyKeyReused,
    /// Too many requests.
    TooManyRequests,
    /// A fault of the server.
    Internal,
    /// Whether the change was made is not known.
    OutcomeUnknown,
    /// The storage cannot be reached or has too much to do.
    Unavailable,
}

impl ProblemKind {
    /// All kinds, for the documentation.
    pub const ALL: [Self; 20] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::NoSuchRoute,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::Conflict,
        Self::ConcurrencyConflict,
        Self::PreconditionFailed,
        Self::Erased,
        Self::EventHistoryChanged,
        Self::EventsGone,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyKeyReused,
        Self::TooManyRequests,
        Self::Internal,
        Self::OutcomeUnknown,
        Self::Unavailable,
    ];

    /// Status, the last segment of the type, title.
    pub const fn facts(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::InvalidRequest => (400, "invalid-request", "The request is not valid"),
            Self::Unauthorized => (401, "unauthorized", "A valid access token is needed"),
            Self::Forbidden => (403, "forbidden", "The role for this is missing"),
            Self::NotFound => (404, "not-found", "There is no such item"),
            Self::NoSuchRoute => (404, "no-such-route", "There is no such path"),
            Self::MethodNotAllowed => (405, "method-not-allowed", "The path has no such method"),
            Self::NotAcceptable => (406, "not-acceptable", "No acceptable representation"),
            Self::Conflict => (409, "conflict", "The state does not allow this"),
            Self::ConcurrencyConflict => {
                (409, "concurrency-conflict", "The item was changed in the meantime")
            }
            Self::PreconditionFailed => (412, "precondition-failed", "The precondition fails"),
            Self::Erased => (410, "erased", "What this told of a person was erased"),
            Self::EventHistoryChanged => {
                (410, "event-history-changed", "The history of this feed was changed")
            }
            Self::EventsGone => (410, "events-gone", "These events are kept no longer"),
            Self::PayloadTooLarge => (413, "payload-too-large", "The body is too large"),
            Self::UnsupportedMediaType => {
                (415, "unsupported-media-type", "The body's media type is not read here")
            }
            Self::IdempotencyKeyReused => {
                (422, "idempotency-key-reused", "The idempotency key belongs to another request")
            }
            Self::TooManyRequests => (429, "too-many-requests", "Too many requests"),
            Self::Internal => (500, "internal", "Something went wrong here"),
            Self::OutcomeUnknown => (500, "outcome-unknown", "Whether this was done is not known"),
            Self::Unavailable => (503, "unavailable", "The storage cannot serve this now"),
        }
    }

    /// The problem's `type`.
    pub fn type_uri(self) -> String {
        format!("/problems/{}", self.facts().1)
    }
}

/// A problem to answer to the caller. Details for operators alone are logged, never put here.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: ProblemKind,
    /// The reason, and what the caller can do.
    pub detail: String,
    /// The errors of the body, each with its pointer.
    pub errors: FieldErrors,
    /// Further members of the body.
    pub members: Vec<(&'static str, String)>,
    /// Headers of the answer.
    pub headers: Vec<(&'static str, String)>,
    /// The store's error that caused it, which decides whether the operation is repeated.
    pub cause: Option<store::Error>,
}

impl Problem {
    /// A problem with its detail.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (errors, members, headers) = Default::default();
        Self { kind, detail: detail.into(), errors, members, headers, cause: None }
    }

    /// A request that is not valid.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::InvalidRequest, detail)
    }

    /// A request with these errors in its body.
    pub fn wrong(errors: impl Into<FieldErrors>) -> Self {
        let errors = errors.into();
        let detail = match (errors.as_slice(), errors.more()) {
            ([one], 0) => format!("{} {}", location(&one.pointer), one.detail),
            (_, 0) => format!("{} places are not valid; see errors", errors.all()),
            (reported, _) => {
                format!("{} places are not valid; errors has the first {}", errors.all(), reported.len())
            }
        };
        Self { errors, ..Self::invalid(detail) }
    }

    /// A request with one error in its body.
    pub fn wrong_at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::wrong(vec![FieldError::new(pointer, detail)])
    }

    /// A request whose body has this error in this field.
    pub fn wrong_field(field: impl Into<&'static Field>, detail: impl Into<String>) -> Self {
        Self::wrong_at(pointer("", field.into().wire()), detail)
    }

    /// An item that is not found. The answer does not depend on whether it does not exist or is outside of the
    /// caller's scope.
    pub fn not_found(what: &str) -> Self {
        Self::new(ProblemKind::NotFound, format!("There is no such {what} here."))
    }

    /// The state does not allow it.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Conflict, detail)
    }

    /// The same problem with another detail.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a member to the body.
    #[must_use]
    pub fn with_member(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// The HTTP status.
    pub const fn status(&self) -> u16 {
        self.kind.facts().0
    }

    /// The body. `instance` is the path of the request.
    pub fn body(&self, instance: &str, trace_id: &str) -> Vec<u8> {
        // text and numbers under names that are text: serialising them cannot fail
        serde_json::to_vec(&Body { problem: self, instance, trace_id }).unwrap_or_default()
    }
}

/// A problem as it is written in the answer to one request.
struct Body<'a> {
    problem: &'a Problem,
    instance: &'a str,
    trace_id: &'a str,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Problem { kind, detail, errors, members, .. } = self.problem;
        let (status, _, title) = kind.facts();
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("type", &kind.type_uri())?;
        body.serialize_entry("title", title)?;
        body.serialize_entry("status", &status)?;
        body.serialize_entry("detail", detail)?;
        body.serialize_entry("instance", self.instance)?;
        body.serialize_entry("traceId", self.trace_id)?;
        members.iter().try_for_each(|(name, value)| body.serialize_entry(name, value))?;
        if !errors.is_empty() {
            body.serialize_entry("errors", errors.as_slice())?;
            if errors.more() > 0 {
                body.serialize_entry("moreErrors", &errors.more())?;
            }
        }
        body.end()
    }
}

fn location(pointer: &str) -> &str {
    if pointer.is_empty() { "The body" } else { pointer }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        let busy = "Nothing was changed. Try again in a moment.";
        let unavailable = || Self::new(ProblemKind::Unavailable, busy);
        let mut problem = match &error {
            store::Error::Unique(_) => Self::conflict("A key of this item is taken."),
            store::Error::Reference => {
                Self::conflict("Something that this refers to is gone, or still refers to this.")
            }
            store::Error::Retry | store::Error::Stale | store::Error::Unavailable(_) => {
                unavailable().with_header("retry-after", "1")
            }
            // random delays keep callers who were refused together from returning together
            store::Error::Busy => {
                let [chance] = crate::random::<1>();
                unavailable().with_header("retry-after", (1 + chance % 5).to_string())
            }
            store::Error::TooLong => Self::new(
                ProblemKind::Unavailable,
                "This took the storage longer than 30 seconds and was given up; nothing was changed. \
                 Ask for less at a time: a narrower filter, a filter by members with an index, fewer items.",
            )
            .with_header("retry-after", "30"),
            store::Error::Unknown(_) => Self::new(
                ProblemKind::OutcomeUnknown,
                "The database was lost while the change was being made, and whether it was made could \
                 not be found out. With an Idempotency-Key, send the same request with the same key \
                 again: it is made once. Without one, read the item first.",
            ),
            // never answered: the work is done, and the operation runs again
            store::Error::Suspended | store::Error::Internal(_) => Self::new(
                ProblemKind::Internal,
                "Nothing was changed. The server's log has the reason under this traceId.",
            ),
        };
        problem.cause = Some(error);
        problem
    }
}

impl From<chancery_record::Mismatch> for Problem {
    fn from(mismatch: chancery_record::Mismatch) -> Self {
        store::Error::Internal(format!("column {} holds another kind", mismatch.0)).into()
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::{FieldError, FieldErrors};

    use super::{Problem, ProblemKind};

    #[test]
    fn a_body_has_its_members_in_order() {
        let plain = Problem::new(ProblemKind::NotFound, "a \"b\"\\\n\u{1}\u{7f}ü").body("/x?", "t");
        let expected = r#"{"type":"/problems/not-found","title":"There is no such item","status":404,"detail":"a \"b\"\\\n\u0001"#;
        let expected = format!("{expected}\u{7f}ü\",\"instance\":\"/x?\",\"traceId\":\"t\"}}");
        assert_eq!(String::from_utf8(plain).unwrap(), expected);

        let mut errors: FieldErrors =
            [FieldError::new("/a", "is \"wrong\""), FieldError::new("", "no")].into_iter().collect();
        errors.count_more(7);
        let wrong = Problem::wrong(errors).with_member("currentToken", "\u{8}").with_member("also", "1");
        let expected = concat!(
            r#"{"type":"/problems/invalid-request","title":"The request is not valid","status":400,"#,
            r#""detail":"9 places are not valid; errors has the first 2","instance":"/i","traceId":"","#,
            r#""currentToken":"\b","also":"1","errors":[{"pointer":"/a","detail":"is \"wrong\""},"#,
            r#"{"pointer":"","detail":"no"}],"moreErrors":7}"#
        );
        assert_eq!(String::from_utf8(wrong.body("/i", "")).unwrap(), expected);
    }
}
