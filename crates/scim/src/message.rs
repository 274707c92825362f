//! What is answered beside resources: errors and lists.

use chancery_record::FieldError;
use chancery_resource::{Problem, ProblemKind};
use serde_json::{Map, Value, json};

use crate::Resource;

const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// What is wrong, as a word that clients know (RFC 7644, table 9; RFC 9865).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScimType {
    /// The body's structure.
    InvalidSyntax,
    /// The filter.
    InvalidFilter,
    /// The path of a PATCH.
    InvalidPath,
    /// A value.
    InvalidValue,
    /// The path of a PATCH fits nothing.
    NoTarget,
    /// The attribute is not written by clients.
    Mutability,
    /// Another resource has the value.
    Uniqueness,
    /// The cursor.
    InvalidCursor,
}

impl ScimType {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidSyntax => "invalidSyntax",
            Self::InvalidFilter => "invalidFilter",
            Self::InvalidPath => "invalidPath",
            Self::InvalidValue => "invalidValue",
            Self::NoTarget => "noTarget",
            Self::Mutability => "mutability",
            Self::Uniqueness => "uniqueness",
            Self::InvalidCursor => "invalidCursor",
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The word for it, where there is one.
    pub scim_type: Option<ScimType>,
    /// A sentence for people.
    pub detail: String,
    /// The places that are wrong, where they are several or inside of the body.
    pub errors: Vec<FieldError>,
}

impl Refusal {
    /// A request that is wrong: 400, or 409 for [`ScimType::Uniqueness`].
    pub fn wrong(scim_type: ScimType, detail: impl Into<String>) -> Self {
        let status = if scim_type == ScimType::Uniqueness { 409 } else { 400 };
        Self { status, scim_type: Some(scim_type), detail: detail.into(), errors: Vec::new() }
    }

    /// More than is taken at once: 413.
    pub fn too_much(detail: impl Into<String>) -> Self {
        Self { status: 413, scim_type: None, detail: detail.into(), errors: Vec::new() }
    }

    /// A body with these mistakes, of which there is at least one.
    pub fn mistakes(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] => format!("{} {}", one.pointer, one.detail),
            many => format!("{} places are not valid; see errors", many.len()),
        };
        Self { errors, ..Self::wrong(ScimType::InvalidValue, detail) }
    }

    /// The body.
    pub fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("schemas".into(), json!([ERROR]));
        body.insert("status".into(), self.status.to_string().into());
        if let Some(scim_type) = self.scim_type {
            body.insert("scimType".into(), scim_type.name().into());
        }
        body.insert("detail".into(), self.detail.clone().into());
        if !self.errors.is_empty() {
            let errors = self.errors.iter();
            let errors = errors.map(|one| json!({ "pointer": one.pointer, "detail": one.detail }));
            body.insert("errors".into(), errors.collect());
        }
        body.into()
    }
}

impl From<&Problem> for Refusal {
    fn from(problem: &Problem) -> Self {
        let scim_type = match problem.kind {
            ProblemKind::InvalidRequest => Some(ScimType::InvalidValue),
            ProblemKind::Conflict => Some(ScimType::Uniqueness),
            _ => None,
        };
        let (status, ..) = problem.kind.facts();
        let errors = problem.errors.as_slice().to_vec();
        Self { status, scim_type, detail: problem.detail.clone(), errors }
    }
}

/// Where a list is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// By position: where the page begins, from 1, and how many there are in all.
    Index {
        /// Where the page begins.
        start: u64,
        /// How many there are in all.
        total: u64,
    },
    /// By cursor: where the next page begins, if there is one.
    Cursor(Option<String>),
}

/// The body of a list.
pub fn list_response(page: &Page, resources: Vec<Resource>) -> Value {
    let mut body = Map::new();
    body.insert("schemas".into(), json!([LIST]));
    body.insert("itemsPerPage".into(), resources.len().into());
    match page {
        Page::Index { start, total } => {
            body.insert("startIndex".into(), (*start).into());
            body.insert("totalResults".into(), (*total).into());
        }
        Page::Cursor(Some(next)) => {
            body.insert("nextCursor".into(), next.as_str().into());
        }
        Page::Cursor(None) => {}
    }
    body.insert("Resources".into(), resources.into_iter().map(Value::Object).collect());
    body.into()
}

#[cfg(test)]
mod tests {
    use chancery_record::FieldError;
    use chancery_resource::Problem;
    use serde_json::json;

    use super::{Page, Refusal, ScimType, list_response};

    #[test]
    fn an_error_has_its_status_as_text() {
        let body = Refusal::wrong(ScimType::NoTarget, "fits nothing").body();
        let schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
        let expected =
            json!({ "schemas": schemas, "status": "400", "scimType": "noTarget", "detail": "fits nothing" });
        assert_eq!(body, expected);
    }

    #[test]
    fn several_mistakes_are_all_told() {
        let errors = vec![FieldError::new("/a", "is wrong"), FieldError::new("/b", "is, too")];
        let body = Refusal::mistakes(errors).body();
        assert_eq!(body["errors"][1], json!({ "pointer": "/b", "detail": "is, too" }));
        assert_eq!(body["scimType"], "invalidValue");
    }

    #[test]
    fn problems_keep_their_status() {
        let taken = Refusal::from(&Problem::conflict("taken"));
        assert_eq!((taken.status, taken.scim_type), (409, Some(ScimType::Uniqueness)));
        let unknown = Refusal::from(&Problem::not_found("user"));
        assert_eq!((unknown.status, unknown.scim_type), (404, None));
    }

    #[test]
    fn pages_by_cursor_have_no_total() {
        let body = list_response(&Page::Cursor(Some("x".into())), Vec::new());
        assert_eq!((body.get("totalResults"), &body["nextCursor"]), (None, &json!("x")));
        let body = list_response(&Page::Index { start: 1, total: 7 }, Vec::new());
        assert_eq!((&body["totalResults"], body.get("nextCursor")), (&json!(7), None));
    }
}
