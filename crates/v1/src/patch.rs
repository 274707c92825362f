//! PATCH of version 1: a JSON Patch on the form. Only the members that it writes are forwarded, as a merge
//! patch.

use std::collections::{HashMap, HashSet};

use chancery_record::{Field, FieldError, Form, Json, Value};
use chancery_resource::{
    Answer, Call, JsonForm, MAX_BATCH, Problem, ProblemKind, RelationBody, Rows, Shape, StoredRow, Tx,
    Writing, answer_with, check_if_match, key_name, key_of, load, load_keys, owner_of, relate_rows,
    represent, write_bodies,
};
use serde_json::json;

use crate::json_patch::{PatchOutcome, Rules, apply_within, named_members};

/// The body of a patch of one row.
pub static ONE: JsonForm = JsonForm { name: "JsonPatch", schema: one };
/// The body of patches of many rows.
pub static MANY: JsonForm = JsonForm { name: "JsonPatches", schema: many };

fn one() -> serde_json::Value {
    json!({
        "type": "array", "description": "The operations of a JSON Patch (RFC 6902). They are applied one after another, all or none.",
        "maxItems": 1000,
        "items": { "type": "object", "required": ["op", "path"], "properties": {
            "op": { "type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"] },
            "path": { "type": "string", "description": "A JSON Pointer (RFC 6901).", "examples": ["/name"] },
            "from": { "type": ["string", "null"], "description": "The source of move and copy." },
            "value": { "description": "The value that add and replace write, and that test compares with." },
        } },
    })
}

fn many() -> serde_json::Value {
    json!({
        "type": "array", "description": "Patches, each with the keys of the items that it applies to.",
        "items": { "type": "object", "required": ["ids", "patch"], "properties": {
            "ids": { "type": "array", "minItems": 1, "items": { "type": "string" } }, "patch": one(),
        } },
    })
}

/// The members of a form: all, those that a patch may write, and the relations.
struct FormMembers {
    members: Vec<&'static str>,
    writable: Vec<&'static str>,
    arrays: Vec<&'static str>,
}

impl FormMembers {
    fn of(shape: &'static Shape) -> Self {
        let shown = || shape.fields.iter().filter(|field| field.access.shown);
        let arrays: Vec<_> = shape.relations.iter().map(|relation| relation.name).collect();
        let changed = shape.relations.iter().filter(|relation| relation.listed.at_change());
        Self {
            members: shown().map(Field::wire).chain(arrays.iter().copied()).collect(),
            writable: shown()
                .filter(|field| field.access.patch)
                .map(Field::wire)
                .chain(changed.map(|relation| relation.name))
                .collect(),
            arrays,
        }
    }

    /// The relations that a patch names.
    fn arrays_in(&self, patch: &Json) -> Vec<&'static str> {
        let mut relations = named_members(patch, &self.members);
        relations.retain(|member| self.arrays.contains(member));
        relations
    }

    fn apply(
        &self,
        mut whole: serde_json::Value,
        patch: &Json,
        at: &str,
        added: &mut usize,
    ) -> Result<PatchOutcome, Problem> {
        let may_write = |member: &str| self.writable.contains(&member);
        let rules = Rules { members: &self.members, may_write: &may_write };
        let written = apply_within(&mut whole, patch, &rules, at, added)?;
        Ok(PatchOutcome { whole, written })
    }

    /// The members that a patch wrote, as a merge patch (RFC 7396). A removed relation is empty.
    fn merged(&self, patched: &PatchOutcome) -> Vec<(String, Json)> {
        let value = |name: &String| match patched.whole.get(name) {
            None | Some(serde_json::Value::Null) if self.arrays.contains(&name.as_str()) => {
                Json::Array(Vec::new())
            }
            value => Json::from_serde(value.cloned().unwrap_or_default()),
        };
        patched.written.keys().map(|name| (name.clone(), value(name))).collect()
    }
}

/// Patches the row that the path names.
///
/// # Errors
/// An operation that cannot be applied, or an invalid result.
pub fn patch_one(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let (form, patch) = (FormMembers::of(shape), call.request.body()?.clone());
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let was = load(&call.context, tx, shape, owner.as_ref(), key)?;
    check_if_match(call, tx, shape, &was)?;
    let rows = std::slice::from_ref(&was);
    let whole =
        represent(&mut call.context, tx, shape, rows, &form.arrays_in(&patch))?.pop().unwrap_or_default();
    let patched = form.apply(whole, &patch, "", &mut 0)?;
    let body = Json::Object(form.merged(&patched));
    let pointer_of = |error: &FieldError| {
        let member = error.pointer.split('/').nth(1)?;
        patched.written.get(member).map(|number| format!("/{number}/value"))
    };
    if patched.written.keys().all(|name| form.arrays.contains(&name.as_str())) {
        // only relations were written: the row itself does not change
        let relation_body = RelationBody { owner: &was, is_new: false, body: &body, base: String::new() };
        relate_rows(&call.context, tx, shape, &[relation_body])
            .map_err(|problem| at_operations(problem, pointer_of))?;
        return answer_with(call, tx, shape, &was);
    }
    let writing = Writing::one(Rows::Existing, Form::MergePatch).checked();
    let outcome = write_bodies(call, tx, writing, &[body]);
    outcome.map_err(|problem| at_operations(problem, pointer_of))
}

/// Moves the errors of a problem to the operations that caused them.
fn at_operations(mut problem: Problem, pointer_of: impl Fn(&FieldError) -> Option<String>) -> Problem {
    for error in &mut problem.errors {
        if let Some(pointer) = pointer_of(error) {
            error.pointer = pointer;
        }
    }
    if let [error] = problem.errors.as_slice() {
        problem.detail = format!("{} {}", error.pointer, error.detail);
    }
    problem
}

/// The most operations of a batch; those of a patch count once for each of its ids.
const MAX_OPERATIONS: usize = 100_000;

/// A parsed element of a batch.
struct Element<'a> {
    keys: Vec<Value>,
    patch: &'a Json,
}

fn elements<'a>(shape: &Shape, body: &'a Json) -> Result<Vec<Element<'a>>, Problem> {
    let Json::Array(items) = body else {
        return Err(Problem::wrong_at("", format!("must be an array, not {}", body.word())));
    };
    let (mut elements, mut errors, mut count, mut operation_count) = (Vec::new(), Vec::new(), 0, 0);
    let mut ids_seen = HashSet::new();
    for (number, item) in items.iter().enumerate() {
        let (Some(Json::Array(ids)), Some(patch @ Json::Array(operations))) =
            (item.get("ids"), item.get("patch"))
        else {
            errors.push(FieldError::new(format!("/{number}"), "needs ids and patch, both arrays"));
            continue;
        };
        if ids.is_empty() {
            errors.push(FieldError::new(format!("/{number}/ids"), "must contain an id"));
        }
        count += ids.len();
        operation_count += ids.len() * operations.len();
        let mut keys = Vec::with_capacity(ids.len());
        for (index, id) in ids.iter().enumerate() {
            let key = match id {
                Json::Text(text) => shape.read_key(text).ok(),
                _ => None,
            };
            let wrong = match key {
                Some(key) if ids_seen.insert(key_name(&key)) => {
                    keys.push(key);
                    continue;
                }
                Some(_) => "is in this batch twice",
                None => "is no key of this resource",
            };
            errors.push(FieldError::new(format!("/{number}/ids/{index}"), wrong));
        }
        elements.push(Element { keys, patch });
    }
    if count > MAX_BATCH || operation_count > MAX_OPERATIONS {
        let detail = format!(
            "A batch takes at most {MAX_BATCH} ids and {MAX_OPERATIONS} operations on them, not {count} and {operation_count}."
        );
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    if errors.is_empty() { Ok(elements) } else { Err(Problem::wrong(errors)) }
}

/// Patches many rows, all or none.
///
/// # Errors
/// Operations that cannot be applied, or invalid results, with their JSON Pointers.
pub fn patch_many(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let (form, sent) = (FormMembers::of(shape), call.request.body()?.clone());
    let elements = elements(shape, &sent)?;
    let owner = owner_of(call, tx, shape)?;
    let all: Vec<Value> = elements.iter().flat_map(|element| element.keys.iter().cloned()).collect();
    let mut existing = load_keys(&call.context, tx, shape, owner.as_ref(), &all)?;
    let (mut rows, mut indices): (Vec<StoredRow>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let mut unknown = Vec::new();
    for (number, element) in elements.iter().enumerate() {
        for (index, key) in element.keys.iter().enumerate() {
            match existing.remove(&key_name(key)) {
                Some(row) => {
                    rows.push(row);
                    indices.push((number, index));
                }
                None => unknown.push(FieldError::new(
                    format!("/{number}/ids/{index}"),
                    format!("names no {}", shape.name),
                )),
            }
        }
    }
    if !unknown.is_empty() {
        return Err(Problem { kind: ProblemKind::NotFound, ..Problem::wrong(unknown) });
    }
    let arrays: Vec<&str> = elements.iter().flat_map(|element| form.arrays_in(element.patch)).collect();
    let wholes = represent(&mut call.context, tx, shape, &rows, &arrays)?;
    let key = shape.fields.iter().find(|field| field.access.key).map_or("id", |field| field.wire());
    let (mut bodies, mut written, mut added) = (Vec::new(), Vec::new(), 0);
    for (whole, (number, _)) in wholes.into_iter().zip(&indices) {
        let Some(element) = elements.get(*number) else { continue };
        let own = whole.get(key).cloned().unwrap_or_default();
        let at = format!("/{number}/patch");
        let patched = form.apply(whole, element.patch, &at, &mut added)?;
        let mut body = form.merged(&patched);
        body.push((key.to_owned(), Json::from_serde(own)));
        bodies.push(Json::Object(body));
        written.push(patched.written);
    }
    let outcome = write_bodies(call, tx, Writing::many(Rows::Existing, Form::MergePatch), &bodies);
    let indices: HashMap<String, (usize, usize)> =
        indices.into_iter().enumerate().map(|(row, index)| (row.to_string(), index)).collect();
    outcome.map_err(|problem| {
        at_operations(problem, |error| {
            let mut parts = error.pointer.split('/').skip(1);
            let row = parts.next()?;
            let (number, index) = indices.get(row)?;
            let last = written.get(row.parse::<usize>().ok()?)?;
            Some(match parts.next().and_then(|member| last.get(member)) {
                Some(operation) => format!("/{number}/patch/{operation}/value"),
                None => format!("/{number}/ids/{index}"),
            })
        })
    })
}
