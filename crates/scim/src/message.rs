//! SCIM error responses (RFC 7644, section 3.12).

use chancery_record::FieldError;
use chancery_resource::{Problem, ProblemKind};
use serde_json::{Map, Value, json};

const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

/// The `scimType` of an error (RFC 7644, table 9; RFC 9865).
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
    /// All values.
    const ALL: [Self; 8] = [
        Self::InvalidSyntax,
        Self::InvalidFilter,
        Self::InvalidPath,
        Self::InvalidValue,
        Self::NoTarget,
        Self::Mutability,
        Self::Uniqueness,
        Self::InvalidCursor,
    ];

    /// The value on the wire.
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

/// An error response.
#[derive(Clone, Debug, PartialEq)]
pub struct ScimError {
    /// The HTTP status.
    pub status: u16,
    /// The `scimType`, if the error has one.
    pub scim_type: Option<ScimType>,
    /// A sentence for people.
    pub detail: String,
    /// The invalid members of the body, by JSON Pointer.
    pub errors: Vec<FieldError>,
}

impl ScimError {
    /// A bad request: 400, or 409 for [`ScimType::Uniqueness`].
    pub fn new(scim_type: ScimType, detail: impl Into<String>) -> Self {
        let status = if scim_type == ScimType::Uniqueness { 409 } else { 400 };
        Self { status, scim_type: Some(scim_type), detail: detail.into(), errors: Vec::new() }
    }

    /// A request above a limit: 413.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self { status: 413, scim_type: None, detail: detail.into(), errors: Vec::new() }
    }

    /// A body with these invalid members, at least one.
    pub fn of_fields(errors: Vec<FieldError>) -> Self {
        let detail = error_summary(&errors);
        Self { errors, ..Self::new(ScimType::InvalidValue, detail) }
    }

    /// The response body.
    pub fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("schemas".into(), json!([ERROR]));
        body.insert("status".into(), self.status.to_string().into());
        if let Some(scim_type) = self.scim_type {
            body.insert("scimType".into(), scim_type.name().into());
        }
        body.insert("detail".into(), self.detail.clone().into());
        body.into()
    }
}

/// The most errors that a summary lists.
const MAX_LISTED: usize = 10;

/// Joins errors into one sentence: a further member of the body would be more than strict clients read.
pub fn error_summary(errors: &[FieldError]) -> String {
    let mut sentences: Vec<String> =
        errors.iter().take(MAX_LISTED).map(|one| format!("{} {}", one.pointer, one.detail)).collect();
    if errors.len() > MAX_LISTED {
        sentences.push(format!("and {} more", errors.len() - MAX_LISTED));
    }
    sentences.join("; ")
}

/// The member of a problem that holds the `scimType`.
const SCIM_TYPE_MEMBER: &str = "scimType";

impl From<ScimError> for Problem {
    fn from(error: ScimError) -> Self {
        let kind = ProblemKind::ALL.into_iter().find(|kind| kind.facts().0 == error.status);
        let mut problem = Self::new(kind.unwrap_or(ProblemKind::InvalidRequest), error.detail);
        problem.errors = error.errors.into();
        match error.scim_type {
            Some(scim_type) => problem.with_member(SCIM_TYPE_MEMBER, scim_type.name()),
            None => problem,
        }
    }
}

/// Adds `invalidFilter` to the problem of a list whose filter could not be parsed (RFC 7644, section 3.12).
pub fn as_filter_error(problem: Problem) -> Problem {
    let has_scim_type = problem.members.iter().any(|(name, _)| *name == SCIM_TYPE_MEMBER);
    if has_scim_type || problem.kind != ProblemKind::InvalidRequest {
        return problem;
    }
    problem.with_member(SCIM_TYPE_MEMBER, ScimType::InvalidFilter.name())
}

impl From<&Problem> for ScimError {
    fn from(problem: &Problem) -> Self {
        let scim_type = problem.members.iter().find(|(name, _)| *name == SCIM_TYPE_MEMBER);
        let named =
            scim_type.and_then(|(_, name)| ScimType::ALL.into_iter().find(|known| known.name() == name));
        let scim_type = named.or(match problem.kind {
            ProblemKind::InvalidRequest => Some(ScimType::InvalidValue),
            // other conflicts are about the state and name no value
            ProblemKind::Conflict
                if problem.errors.as_slice().iter().any(|error| !error.pointer.is_empty()) =>
            {
                Some(ScimType::Uniqueness)
            }
            _ => None,
        });
        let (status, ..) = problem.kind.facts();
        let errors = problem.errors.as_slice().to_vec();
        Self { status, scim_type, detail: problem.detail.clone(), errors }
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::FieldError;
    use chancery_resource::Problem;
    use serde_json::json;

    use super::{ScimError, ScimType};

    #[test]
    fn an_error_has_its_status_as_text() {
        let body = ScimError::new(ScimType::NoTarget, "fits nothing").body();
        let schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
        let expected =
            json!({ "schemas": schemas, "status": "400", "scimType": "noTarget", "detail": "fits nothing" });
        assert_eq!(body, expected);
    }

    #[test]
    fn several_errors_are_all_listed() {
        let errors = vec![FieldError::new("/a", "is wrong"), FieldError::new("/b", "is, too")];
        let body = ScimError::of_fields(errors).body();
        assert_eq!(body["detail"], "/a is wrong; /b is, too");
        assert_eq!(body["scimType"], "invalidValue");
    }

    #[test]
    fn problems_keep_their_status() {
        let held = ScimError::from(&Problem::conflict("held"));
        assert_eq!((held.status, held.scim_type), (409, None));
        let taken = ScimError::new(ScimType::Uniqueness, "taken");
        assert_eq!(ScimError::from(&Problem::from(taken.clone())), taken);
        let unknown = ScimError::from(&Problem::not_found("user"));
        assert_eq!((unknown.status, unknown.scim_type), (404, None));
    }
}
