//! Custom operations: function, body and answer.

use chancery_store::{Mode, Tx};

use crate::{Answer, Call, Problem, Purpose};

/// The function of a custom operation.
pub type Run = fn(&mut Call, &mut Tx<'_>) -> Result<Answer, Problem>;

/// A custom operation.
#[derive(Clone, Copy)]
pub struct Custom {
    /// The function that runs it.
    pub run: Run,
    /// The store mode.
    pub mode: Mode,
    /// The content of its answer.
    pub reply: Reply,
    /// The body that it takes.
    pub body: Body,
    /// The purpose of the work between transactions.
    pub works: Option<Purpose>,
    /// Whether it takes a batch, and so a larger body.
    pub is_batch: bool,
    /// Whether the body may be missing.
    pub is_optional: bool,
    /// Whether it writes rows as the standard pattern does, so that the protection applies to each changed
    /// field. Otherwise it is an action of its own, all of which is protected for the rows that its path or
    /// body names.
    pub is_by_rows: bool,
}

impl Custom {
    /// An operation that reads little, takes no body, and answers with one resource.
    pub const fn reading(run: Run) -> Self {
        Self {
            run,
            mode: Mode::Quick,
            reply: Reply::One,
            body: Body::None,
            works: None,
            is_batch: false,
            is_optional: false,
            is_by_rows: false,
        }
    }

    /// An operation that reads much, takes no body, and answers with many resources.
    pub const fn listing(run: Run) -> Self {
        Self {
            run,
            mode: Mode::Long,
            reply: Reply::Many,
            body: Body::None,
            works: None,
            is_batch: false,
            is_optional: false,
            is_by_rows: false,
        }
    }

    /// An operation that writes, takes no body, and answers with one resource.
    pub const fn writing(run: Run) -> Self {
        Self {
            run,
            mode: Mode::Write,
            reply: Reply::One,
            body: Body::None,
            works: None,
            is_batch: false,
            is_optional: false,
            is_by_rows: false,
        }
    }

    /// An operation that writes and needs work between transactions: it is refused while the queue is full.
    pub const fn working(purpose: Purpose, run: Run) -> Self {
        Self { works: Some(purpose), ..Self::writing(run) }
    }

    /// The same with a body.
    #[must_use]
    pub const fn taking(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// The same for a batch.
    #[must_use]
    pub const fn in_batch(mut self) -> Self {
        self.is_batch = true;
        self
    }

    /// The same, writing rows as the standard pattern does.
    #[must_use]
    pub const fn by_rows(mut self) -> Self {
        self.is_by_rows = true;
        self
    }

    /// The same, where the body may be missing.
    #[must_use]
    pub const fn optionally(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// The same with another answer.
    #[must_use]
    pub const fn replying(mut self, reply: Reply) -> Self {
        self.reply = reply;
        self
    }
}

/// The body that a custom operation takes.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// No body.
    None,
    /// A JSON object with these members.
    Form(&'static BodyForm),
    /// Any JSON object, described by this schema.
    Json(&'static JsonForm),
    /// A JSON Patch (RFC 6902), or many of them, described by this schema.
    JsonPatch(&'static JsonForm),
    /// The resource, as in a create body.
    Resource,
    /// An array of resources, as in create bodies.
    Resources,
    /// Bytes of one of these media types, at most this many.
    Bytes(&'static [&'static str], usize),
}

/// A custom JSON object, with fields like a resource's.
#[derive(Debug)]
pub struct BodyForm {
    /// Its name in the OpenAPI document.
    pub name: &'static str,
    /// The object's meaning, for the OpenAPI document.
    pub about: &'static str,
    /// Its members.
    pub fields: &'static [chancery_record::Field],
}

impl BodyForm {
    /// The form of a record.
    pub const fn of<R: chancery_record::Record>(name: &'static str) -> Self {
        Self { name, about: R::ABOUT, fields: R::FIELDS }
    }
}

/// A JSON object described by a custom schema.
#[derive(Debug)]
pub struct JsonForm {
    /// Its name in the OpenAPI document.
    pub name: &'static str,
    /// Its schema; `{"$ref": "#/components/schemas/X"}` names a resource of the same service.
    pub schema: fn() -> serde_json::Value,
}

/// The content of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// One resource.
    One,
    /// An array of resources.
    Many,
    /// The owning resource.
    Owner,
    /// `{items, totalCount}` of resources.
    Items,
    /// A custom object.
    Form(&'static BodyForm),
    /// A custom object, described by a schema.
    Json(&'static JsonForm),
    /// Content of one of these media types.
    Content(&'static [&'static str]),
    /// Events as they happen, until the client disconnects (server-sent events).
    Events,
    /// No body.
    Empty,
}

impl Reply {
    /// Whether it is a list, with a list's parameters.
    pub const fn is_list(&self) -> bool {
        matches!(self, Self::Many | Self::Items)
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
