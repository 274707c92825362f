//! Batches: all or nothing, in one transaction, in the order of the request. When the database
//! refuses one, the operation runs again to find out which elements are wrong.

use std::collections::{HashMap, HashSet};

use chancery_record::{Draft, FieldError, Form, Given, Json, Kind, Value, fold, pointer, read_draft};
use chancery_store::Tx;

use crate::{
    Answer, Call, Problem, ProblemKind, Shape, Sql, Unique,
    change::{self, gone},
    emit::{Stored, write_no_relations, write_values},
    family::{confine, find_children, keep},
    load::key_name,
    nested,
    pattern::{Refusal, changed_values, new_values, taken},
    relate,
    rules::Proposed,
    sql::LIST,
};

/// The most elements of a batch.
pub const MAX_BATCH: usize = 10_000;

/// What is wrong with a batch: each error with its element and the kind of problem it is.
#[derive(Default)]
struct Failures(Vec<(usize, ProblemKind, FieldError)>);

impl Failures {
    fn add(&mut self, element: usize, kind: ProblemKind, error: FieldError) {
        self.0.push((element, kind, error));
    }

    /// All errors in the order of the elements; the first one's kind is the answer's.
    fn into_problem(mut self) -> Option<Problem> {
        self.0.sort_by_key(|(element, ..)| *element);
        let kind = self.0.first()?.1;
        let errors: Vec<_> = self.0.into_iter().map(|(.., error)| error).collect();
        let detail = format!("{} of the elements cannot be done, so nothing was. See errors.", errors.len());
        Some(Problem { errors, ..Problem::new(kind, detail) })
    }
}

fn elements(call: &Call) -> Result<&[Json], Problem> {
    let body = call.body()?;
    let Json::Array(elements) = body else {
        return Err(Problem::wrong_at("", format!("must be an array, not {}", body.word())));
    };
    if elements.len() > MAX_BATCH {
        let detail = format!("A batch takes at most {MAX_BATCH} elements, not {}.", elements.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    Ok(elements)
}

fn base(element: usize) -> String {
    format!("/{element}")
}

/// Reads every element; those that are wrong are noted and left out.
fn drafts(call: &Call, form: Form, failures: &mut Failures) -> Result<Vec<(usize, Draft)>, Problem> {
    let shape = call.op.shape;
    let arrays = shape.arrays();
    let mut drafts = Vec::new();
    for (element, body) in elements(call)?.iter().enumerate() {
        match read_draft(shape.fields, &arrays, form, body, &base(element)) {
            Ok(draft) => drafts.push((element, draft)),
            Err(errors) => {
                for error in errors {
                    failures.add(element, ProblemKind::InvalidRequest, error);
                }
            }
        }
    }
    Ok(drafts)
}

pub fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let mut failures = Failures::default();
    let mut rows = Vec::new();
    let mut brought = Vec::new();
    for (element, draft) in drafts(call, Form::Create, &mut failures)? {
        if let Some(id @ Value::Id(_)) = draft.given(shape.plan().key) {
            brought.push((element, id.clone()));
        }
        match new_values(call, shape, None, &draft, &base(element))? {
            Ok(values) => rows.push((element, None, values)),
            Err(errors) => {
                for error in errors {
                    failures.add(element, ProblemKind::InvalidRequest, error);
                }
            }
        }
    }
    find_retired(call, tx, shape, &brought, &mut failures)?;
    find_against(call, tx, shape, &mut rows, &mut failures)?;
    find_taken(call, tx, shape, &rows, &mut failures)?;
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for (_, _, values) in &rows {
        change::insert(call, tx, shape, None, values)?;
        if let Some(born) = shape.born {
            born(call, tx, values)?;
        }
    }
    confine(call, tx, shape, rows.iter().map(|(element, _, values)| (base(*element), values.as_slice())))?;
    keep(call, tx, shape)?;
    if shape.is_read_back() {
        return answer_related(call, tx, shape, &rows);
    }
    call.out.bytes.push(b'[');
    for (index, (_, _, values)) in rows.iter().enumerate() {
        if index > 0 {
            call.out.bytes.push(b',');
        }
        write_values((shape, &call.desk.master), &call.scope, values, &mut call.out.bytes);
        write_no_relations(shape, &mut call.out.bytes);
    }
    call.out.bytes.push(b']');
    Ok(Answer::new(call.op.status))
}

/// Links what the elements list, and answers with the rows as they are then.
fn answer_related(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[NewRow],
) -> Result<Answer, Problem> {
    let key = shape.plan().key;
    let keys: Vec<Value> = rows.iter().filter_map(|(_, _, values)| values.get(key).cloned()).collect();
    let mut found = load_all(call, tx, shape, &keys)?;
    let mut stored = Vec::with_capacity(rows.len());
    let bodies = elements(call)?.to_vec();
    for (element, _, values) in rows {
        let row = values.get(key).and_then(|value| found.remove(&key_name(value)));
        let row = row.ok_or_else(|| Problem::not_found(shape.name))?;
        if let Some(body) = bodies.get(*element) {
            relate::relate_new(call, tx, shape, &row, body, &base(*element))?;
        }
        stored.push(row);
    }
    write_all(call, tx, shape, &stored)?;
    Ok(Answer::new(call.op.status))
}

pub fn replace(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let key = shape.plan().key;
    let mut failures = Failures::default();
    let mut drafts = drafts(call, Form::Put, &mut failures)?;
    let mut seen = HashSet::new();
    if shape.found_by_token {
        find_by_token(call, tx, shape, &mut drafts)?;
    }
    drafts.retain(|(element, draft)| {
        let wrong = match draft.given(key) {
            None => "is missing: in a batch each element names its own",
            Some(value) if !seen.insert(key_name(value)) => "is in this batch twice",
            Some(_) => return true,
        };
        let at = pointer(&base(*element), shape.key().map_or("id", |key| key.wire()));
        failures.add(*element, ProblemKind::InvalidRequest, FieldError::new(at, wrong));
        false
    });
    let keys: Vec<Value> = drafts.iter().filter_map(|(_, draft)| draft.given(key).cloned()).collect();
    let mut found = load_all(call, tx, shape, &keys)?;
    let mut rows = Vec::new();
    for (element, draft) in drafts {
        let was = draft.given(key).and_then(|value| found.remove(&key_name(value)));
        let Some(was) = was else {
            failures.add(element, ProblemKind::NotFound, unknown(shape, &base(element)));
            continue;
        };
        match changed_values(call, shape, &was, &draft, &base(element))? {
            Ok(values) => rows.push((element, Some(was), values)),
            Err(Refusal::Wrong(errors)) => {
                for error in errors {
                    failures.add(element, ProblemKind::InvalidRequest, error);
                }
            }
            Err(Refusal::Stale(current)) => {
                let at = pointer(&base(element), "concurrencyToken");
                let error = FieldError::new(at, format!("is stale; the current one is {current}"));
                failures.add(element, ProblemKind::ConcurrencyConflict, error);
            }
        }
    }
    find_against(call, tx, shape, &mut rows, &mut failures)?;
    find_taken(call, tx, shape, &rows, &mut failures)?;
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for (_, was, values) in &rows {
        if let Some(was) = was {
            change::update(call, tx, shape, was, values)?;
        }
    }
    confine(call, tx, shape, rows.iter().map(|(element, _, values)| (base(*element), values.as_slice())))?;
    keep(call, tx, shape)?;
    let rows: Vec<Stored> = rows.into_iter().filter_map(|(_, was, values)| Some(was?.with(values))).collect();
    write_all(call, tx, shape, &rows)?;
    Ok(Answer::new(call.op.status))
}

/// Writes many rows as an array, with their relations.
fn write_all(call: &mut Call, tx: &mut Tx<'_>, shape: &Shape, rows: &[Stored]) -> Result<(), Problem> {
    let scope = call.scope.clone().to_be_changed(false);
    call.out.bytes.push(b'[');
    let mut first = true;
    for chunk in rows.chunks(LIST) {
        let mut rids: Vec<i64> = chunk.iter().map(|row| row.rid).collect();
        rids.sort_unstable();
        let items = nested::load(tx, shape, &scope, &rids)?;
        for row in chunk {
            if !first {
                call.out.bytes.push(b',');
            }
            first = false;
            write_values((shape, &call.desk.master), &scope, &row.values, &mut call.out.bytes);
            nested::write(tx, shape, &scope, &items, row.rid, &mut call.out)?;
        }
    }
    call.out.bytes.push(b']');
    Ok(())
}

pub fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let mut failures = Failures::default();
    let mut keys: Vec<(usize, Value)> = Vec::new();
    let mut seen = HashSet::new();
    for (element, body) in elements(call)?.iter().enumerate() {
        match body {
            Json::Text(text) => match shape.read_key(text) {
                Ok(key) if seen.insert(key_name(&key)) => keys.push((element, key)),
                Ok(_) => {}
                Err(_) => failures.add(
                    element,
                    ProblemKind::InvalidRequest,
                    FieldError::new(
                        base(element),
                        if shape.has_id() { "must be a UUID" } else { "is no key of this resource" },
                    ),
                ),
            },
            other => failures.add(
                element,
                ProblemKind::InvalidRequest,
                FieldError::new(base(element), format!("must be a string, not {}", other.word())),
            ),
        }
    }
    let mut found = load_all(call, tx, shape, &keys.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>())?;
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for (element, key) in keys {
        let row = found.remove(&key_name(&key));
        match row {
            Some(row) => {
                rows.push(row);
                places.push(element);
            }
            None => failures.add(
                element,
                ProblemKind::NotFound,
                FieldError::new(base(element), format!("names no {}", shape.name)),
            ),
        }
    }
    for (row, detail) in find_children(tx, shape, &rows)? {
        let element = places.get(row).copied().unwrap_or(0);
        failures.add(element, ProblemKind::Conflict, FieldError::new(base(element), detail));
    }
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for row in &rows {
        change::delete(call, tx, shape, row)?;
    }
    if !change::hides(call, shape) {
        gone(call, tx, shape, &rows)?;
    }
    keep(call, tx, shape)?;
    Ok(Answer::new(call.op.status))
}

fn unknown(shape: &Shape, base: &str) -> FieldError {
    let key = shape.key().map_or("id", |key| key.wire());
    FieldError::new(pointer(base, key), format!("names no {}", shape.name))
}

/// Loads rows by their keys, some hundred at a time.
fn load_all(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    keys: &[Value],
) -> Result<HashMap<String, Stored>, Problem> {
    let mut found = HashMap::with_capacity(keys.len());
    let place = shape.plan().key;
    let column = shape.key().map_or("id", |key| key.column);
    for chunk in keys.chunks(LIST) {
        let mut sql = shape.select(call, None).push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().cloned());
        tx.query(&sql.text, &sql.parameters, |row| {
            let stored = Stored::read(shape, &call.scope, None, row)?;
            found.insert(key_name(stored.value(place)), stored);
            Ok(())
        })?;
    }
    Ok(found)
}

/// Gives elements that name no key that of the row which has their token.
fn find_by_token(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    drafts: &mut [(usize, Draft)],
) -> Result<(), Problem> {
    let (key, Some(token)) = (shape.plan().key, shape.plan().token) else { return Ok(()) };
    let column = shape.key().map_or("id", |key| key.column);
    let mut unnamed: Vec<&mut Draft> =
        drafts.iter_mut().map(|(_, draft)| draft).filter(|draft| draft.given(key).is_none()).collect();
    for chunk in unnamed.chunks_mut(LIST) {
        let mut sql = shape
            .begin(call, &format!("SELECT t.concurrency_token, t.{column} FROM {} t WHERE ", shape.table));
        shape.add_reach(&mut sql, &call.scope, None);
        sql.add(" AND t.concurrency_token IN ");
        sql.add_list(chunk.iter().filter_map(|draft| draft.given(token).cloned()));
        let mut found = HashMap::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            found.insert(row.text(0)?.to_owned(), row.id(1)?);
            Ok(())
        })?;
        for draft in chunk {
            let id = match draft.given(token) {
                Some(Value::Text(token)) => found.get(token).copied(),
                _ => None,
            };
            if let (Some(id), Some(slot)) = (id, draft.0.get_mut(key)) {
                *slot = Given::Value(Value::Id(id));
            }
        }
    }
    Ok(())
}

fn find_retired(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    brought: &[(usize, Value)],
    failures: &mut Failures,
) -> Result<(), Problem> {
    for chunk in brought.chunks(LIST) {
        let mut sql = Sql::new("SELECT id FROM retired_id WHERE store = ")
            .bind(call.scope.store())
            .push(" AND resource = ")
            .bind(shape.name)
            .push(" AND id IN ");
        sql.add_list(chunk.iter().map(|(_, id)| id.clone()));
        tx.query(&sql.text, &sql.parameters, |row| {
            let retired = Value::Id(row.id(0)?);
            for (element, _) in chunk.iter().filter(|(_, id)| *id == retired) {
                let error = FieldError::new(
                    pointer(&base(*element), "id"),
                    "was used once: an id is never used again",
                );
                failures.add(*element, ProblemKind::Conflict, error);
            }
            Ok(())
        })?;
    }
    Ok(())
}

type NewRow = (usize, Option<Stored>, Vec<Value>);

/// Asks the rule against the data about all elements at once.
fn find_against(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &mut [NewRow],
    failures: &mut Failures,
) -> Result<(), Problem> {
    let elements: Vec<usize> = rows.iter().map(|(element, ..)| *element).collect();
    let mut proposed: Vec<Proposed<'_>> =
        rows.iter_mut().map(|(_, was, values)| Proposed { was: was.as_ref(), values }).collect();
    let element = |row: usize| elements.get(row).copied().unwrap_or(0);
    for (row, kind, error) in shape.check_against(call, tx, &mut proposed, |row| base(element(row)))? {
        failures.add(element(row), kind, error);
    }
    Ok(())
}

/// Finds elements that collide with each other and, once something is known to be wrong, with
/// what is stored. A batch that is right asks the database nothing.
fn find_taken(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[NewRow],
    failures: &mut Failures,
) -> Result<(), Problem> {
    for unique in shape.unique {
        let columns = unique.columns(shape);
        let of = |values: &[Value]| -> Vec<Value> {
            let value = |place: usize| values.get(place).unwrap_or(&Value::Null);
            columns.iter().map(|(column, place)| comparable(shape, column, *place, value(*place))).collect()
        };
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut keys = Vec::new();
        for (element, was, values) in rows {
            let key = of(values);
            if key.iter().any(Value::is_null) || was.as_ref().is_some_and(|was| of(&was.values) == key) {
                continue;
            }
            if first.insert(format!("{key:?}"), *element).is_some() {
                add_taken(shape, unique, *element, failures);
            }
            keys.push((*element, key));
        }
        if call.diagnose || !failures.0.is_empty() {
            find_stored(call, tx, shape, unique, &columns, &keys, failures)?;
        }
    }
    Ok(())
}

/// A value as a unique index compares it.
fn comparable(shape: &Shape, column: &str, place: usize, value: &Value) -> Value {
    match (shape.fields.get(place), value) {
        (Some(field), Value::Text(text)) if field.access.folded && field.column != column => {
            Value::Text(fold(text))
        }
        _ => value.clone(),
    }
}

fn add_taken(shape: &Shape, unique: &Unique, element: usize, failures: &mut Failures) {
    let error = taken(shape, unique.index, &base(element));
    // an element is told once, even if it collides twice
    if let Some(error) = error
        && !failures.0.iter().any(|(_, _, known)| *known == error)
    {
        failures.add(element, ProblemKind::Conflict, error);
    }
}

fn find_stored(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    unique: &Unique,
    columns: &[(&str, usize)],
    keys: &[(usize, Vec<Value>)],
    failures: &mut Failures,
) -> Result<(), Problem> {
    let Some((last, _)) = columns.last() else { return Ok(()) };
    let kinds: Vec<Kind> =
        columns.iter().filter_map(|(_, place)| shape.fields.get(*place)).map(|field| field.kind).collect();
    let names: Vec<String> = columns.iter().map(|(column, _)| format!("t.{column}")).collect();
    for chunk in keys.chunks(LIST) {
        // what is in quarantine is hidden, but its keys are taken: no condition on visibility
        let mut sql = Sql::new(format!("SELECT {} FROM {} t WHERE ", names.join(", "), shape.table));
        if shape.reach.is_store() {
            sql = sql.push("t.store = ").bind(call.scope.store()).push(" AND ");
        }
        sql = sql.push("t.").push(last).push(" IN ");
        sql.add_list(chunk.iter().filter_map(|(_, key)| key.last().cloned()));
        tx.query(&sql.text, &sql.parameters, |row| {
            let stored: Vec<Value> =
                kinds.iter().enumerate().map(|(at, kind)| row.value(at, kind)).collect::<Result<_, _>>()?;
            for (element, _) in chunk.iter().filter(|(_, key)| *key == stored) {
                add_taken(shape, unique, *element, failures);
            }
            Ok(())
        })?;
    }
    Ok(())
}
