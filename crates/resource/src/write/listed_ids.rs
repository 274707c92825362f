//! The ids that a body lists for a set, each with its pointer.

use std::collections::HashSet;

use chancery_record::{FieldError, Json, parse_id, pointer};
use uuid::Uuid;

use crate::{MAX_RELATED, Problem, ProblemKind, Relation};

/// The distinct ids of a body's list, with their pointers.
pub struct ListedIds {
    /// The JSON Pointer of the list.
    pub at: String,
    /// The rest of the pointer from an item to its id.
    end: &'static str,
    indices: Vec<usize>,
    /// The ids.
    pub ids: Vec<Uuid>,
}

impl ListedIds {
    /// Ids without a body.
    pub fn all(ids: Vec<Uuid>) -> Self {
        Self { at: String::new(), end: "", indices: (0..ids.len()).collect(), ids }
    }

    /// Reads the list of a relation; `None` where the body does not contain it.
    ///
    /// # Errors
    /// The member is not a list of ids.
    pub fn read(relation: &Relation, body: &Json, base: &str) -> Result<Option<Self>, Problem> {
        let at = pointer(base, relation.name);
        let items = match body.get(relation.name) {
            None | Some(Json::Null) => return Ok(None),
            Some(Json::Array(items)) if items.len() <= MAX_RELATED => items,
            Some(_) => {
                let detail = format!("must be an array of at most {MAX_RELATED} objects with an id");
                return Err(Problem::wrong_at(&at, detail));
            }
        };
        Self::of(at, "/id", items.iter().map(|item| item.get("id"))).map(Some)
    }

    fn of<'a>(
        at: String,
        end: &'static str,
        ids: impl Iterator<Item = Option<&'a Json>>,
    ) -> Result<Self, Problem> {
        let mut seen = HashSet::new();
        let mut listed = Self { at, end, indices: Vec::new(), ids: Vec::new() };
        let mut errors = Vec::new();
        for (index, id) in ids.enumerate() {
            let id = match id {
                Some(Json::Text(text)) => parse_id(text),
                _ => None,
            };
            match id {
                Some(id) if seen.insert(id) => {
                    listed.indices.push(index);
                    listed.ids.push(id);
                }
                Some(_) => {}
                None => errors.push(FieldError::new(listed.pointer(index), "must be a UUID")),
            }
        }
        if errors.is_empty() { Ok(listed) } else { Err(Problem::wrong(errors)) }
    }

    fn pointer(&self, index: usize) -> String {
        format!("{}/{index}{}", self.at, self.end)
    }

    /// The JSON Pointer of the id at this index.
    pub fn at(&self, number: usize) -> String {
        self.pointer(self.indices.get(number).copied().unwrap_or(number))
    }
}

/// The ids of the body of a relation operation.
///
/// # Errors
/// The body is not an object with a list of ids.
pub fn related_ids(body: &Json) -> Result<ListedIds, Problem> {
    let Json::Object(members) = body else {
        return Err(Problem::wrong_at("", format!("must be an object, not {}", body.word())));
    };
    if let Some((name, _)) = members.iter().find(|(name, _)| name != "relatedIds") {
        return Err(Problem::wrong_at(pointer("", name), "is not a member of this body"));
    }
    let array = match body.get("relatedIds") {
        Some(Json::Array(array)) => array,
        Some(other) => {
            let detail = format!("must be an array of UUIDs, not {}", other.word());
            return Err(Problem::wrong_at("/relatedIds", detail));
        }
        None => return Err(Problem::wrong_at("/relatedIds", "is missing")),
    };
    if array.len() > MAX_RELATED {
        let detail = format!("relatedIds takes at most {MAX_RELATED} ids, not {}.", array.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    ListedIds::of("/relatedIds".to_owned(), "", array.iter().map(Some))
}
