//! What is answered beside resources: errors.

use chancery_record::FieldError;
use chancery_resource::{Problem, ProblemKind};
use serde_json::{Map, Value, json};

const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

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
    /// All words.
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
    /// The places that are wrong, where they are inside of the body.
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
        let detail = told(&errors);
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
        body.into()
    }
}

/// The most mistakes that a sentence tells.
const TOLD: usize = 10;

/// Mistakes as one sentence: a member of their own would be more than strict clients read.
pub fn told(errors: &[FieldError]) -> String {
    let mut told: Vec<String> =
        errors.iter().take(TOLD).map(|one| format!("{} {}", one.pointer, one.detail)).collect();
    if errors.len() > TOLD {
        told.push(format!("and {} more", errors.len() - TOLD));
    }
    told.join("; ")
}

/// The member of a problem that holds the word.
const WORD: &str = "scimType";

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let kind = ProblemKind::ALL.into_iter().find(|kind| kind.facts().0 == refusal.status);
        let mut problem = Self::new(kind.unwrap_or(ProblemKind::InvalidRequest), refusal.detail);
        problem.errors = refusal.errors.into();
        match refusal.scim_type {
            Some(scim_type) => problem.with_member(WORD, scim_type.name()),
            None => problem,
        }
    }
}

/// The problem of a list whose filter could not be read as its home reads filters (RFC 7644, section 3.12).
pub fn of_filter(problem: Problem) -> Problem {
    let has_word = problem.members.iter().any(|(name, _)| *name == WORD);
    if has_word || problem.kind != ProblemKind::InvalidRequest {
        return problem;
    }
    problem.with_member(WORD, ScimType::InvalidFilter.name())
}

impl From<&Problem> for Refusal {
    fn from(problem: &Problem) -> Self {
        let word = problem.members.iter().find(|(name, _)| *name == WORD);
        let named = word.and_then(|(_, word)| ScimType::ALL.into_iter().find(|known| known.name() == word));
        let scim_type = named.or(match problem.kind {
            ProblemKind::InvalidRequest => Some(ScimType::InvalidValue),
            // other conflicts are of the state, and name no value
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

    use super::{Refusal, ScimType};

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
        assert_eq!(body["detail"], "/a is wrong; /b is, too");
        assert_eq!(body["scimType"], "invalidValue");
    }

    #[test]
    fn problems_keep_their_status() {
        let held = Refusal::from(&Problem::conflict("held"));
        assert_eq!((held.status, held.scim_type), (409, None));
        let taken = Refusal::wrong(ScimType::Uniqueness, "taken");
        assert_eq!(Refusal::from(&Problem::from(taken.clone())), taken);
        let unknown = Refusal::from(&Problem::not_found("user"));
        assert_eq!((unknown.status, unknown.scim_type), (404, None));
    }
}
