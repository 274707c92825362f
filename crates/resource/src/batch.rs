//! Batches: all or nothing, in one transaction, in the order of the request. When the database
//! refuses one, the operation runs again to find out which elements are wrong.

use std::collections::{HashMap, HashSet};

use chancery_record::{Draft, FieldError, Form, Given, Json, Kind, Value, fold, pointer};
use chancery_store::Tx;

use crate::{
    Answer, Call, OwnerRow, Problem, ProblemKind, Shape, Sql, Unique,
    change::{self, gone},
    emit::{Stored, write_no_relations, write_values},
    family::{confine, find_children, keep},
    load::{key_name, owner_of},
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

/// What the elements of a batch are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// New rows.
    New,
    /// Rows that are there, each by its key.
    There,
    /// Those that are there by their keys, and new ones.
    Either,
}

/// Creates and changes the rows that the body lists: all or none. What is there is changed as this form
/// says.
///
/// # Errors
/// What is wrong with the elements, each with its place.
pub fn write(call: &mut Call, tx: &mut Tx<'_>, taking: Taking, form: Form) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let mut batch = Batch { call, shape, owner, failures: Failures::default() };
    let rows = batch.rows(tx, taking, form)?;
    let (owner, failures) = (batch.owner, batch.failures);
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for (_, was, values) in &rows {
        match was {
            Some(was) => change::update(call, tx, shape, was, values)?,
            None => change::insert(call, tx, shape, owner.as_ref(), values)?,
        }
        if let (Some(born), None) = (shape.born, was) {
            born(call, tx, values)?;
        }
    }
    confine(call, tx, shape, rows.iter().map(|(element, _, values)| (base(*element), values.as_slice())))?;
    answer(call, tx, owner.as_ref(), rows)
}

/// A batch that is being read.
struct Batch<'a> {
    call: &'a Call,
    shape: &'static Shape,
    owner: Option<OwnerRow>,
    failures: Failures,
}

impl Batch<'_> {
    /// The rows as they are to be; what is wrong is noted.
    fn rows(&mut self, tx: &mut Tx<'_>, taking: Taking, form: Form) -> Result<Vec<NewRow>, Problem> {
        let (call, shape) = (self.call, self.shape);
        let mut drafts = self.drafts(taking, form)?;
        if shape.found_by_token {
            find_by_token(call, tx, shape, &mut drafts)?;
        }
        let keys = self.keys(taking, &mut drafts);
        let mut found = load_keys(call, tx, shape, self.owner.as_ref(), &keys)?;
        let (mut rows, mut brought) = (Vec::new(), Vec::new());
        for (element, draft) in drafts {
            let key = draft.given(shape.plan().key);
            let was = key.and_then(|value| found.remove(&key_name(value)));
            let values = match (was, taking) {
                (None, Taking::There) => {
                    self.failures.add(element, ProblemKind::NotFound, unknown(shape, &base(element)));
                    continue;
                }
                (None, _) => {
                    if let Some(id @ Value::Id(_)) = key {
                        brought.push((element, id.clone()));
                    }
                    self.new_row(element, draft, taking)?.map(|values| (None, values))
                }
                (Some(was), _) => self.changed(element, &draft, &was)?.map(|values| (Some(was), values)),
            };
            rows.extend(values.map(|(was, values)| (element, was, values)));
        }
        find_retired(call, tx, shape, &brought, &mut self.failures)?;
        find_against(call, tx, shape, &mut rows, &mut self.failures)?;
        find_taken(call, tx, (shape, self.owner.as_ref()), &rows, &mut self.failures)?;
        Ok(rows)
    }

    /// Reads every element; those that are wrong are left out. Whether one that may be either is new
    /// shows later.
    fn drafts(&mut self, taking: Taking, form: Form) -> Result<Vec<(usize, Draft)>, Problem> {
        let form = if taking == Taking::New { Form::Create } else { form };
        let mut drafts = Vec::new();
        for (element, body) in elements(self.call)?.iter().enumerate() {
            match self.shape.read(form, body, &base(element)) {
                Ok(draft) => drafts.push((element, draft)),
                Err(errors) => self.wrong(element, errors),
            }
        }
        Ok(drafts)
    }

    fn wrong(&mut self, element: usize, errors: Vec<FieldError>) {
        for error in errors {
            self.failures.add(element, ProblemKind::InvalidRequest, error);
        }
    }

    /// The keys of rows that may be there. One that is missing where it is needed, or there twice, is
    /// noted, and its element left out.
    fn keys(&mut self, taking: Taking, drafts: &mut Vec<(usize, Draft)>) -> Vec<Value> {
        if taking == Taking::New {
            return Vec::new();
        }
        let (key, wire) = (self.shape.plan().key, self.shape.key().map_or("id", |key| key.wire()));
        let mut seen = HashSet::new();
        let failures = &mut self.failures;
        drafts.retain(|(element, draft)| {
            let wrong = match draft.given(key) {
                None if taking == Taking::Either => return true,
                None => "is missing: in a batch each element names its own",
                Some(value) if !seen.insert(key_name(value)) => "is in this batch twice",
                Some(_) => return true,
            };
            let error = FieldError::new(pointer(&base(*element), wire), wrong);
            failures.add(*element, ProblemKind::InvalidRequest, error);
            false
        });
        drafts.iter().filter_map(|(_, draft)| draft.given(key).cloned()).collect()
    }

    fn new_row(
        &mut self,
        element: usize,
        draft: Draft,
        taking: Taking,
    ) -> Result<Option<Vec<Value>>, Problem> {
        let draft = if taking == Taking::New {
            draft
        } else {
            let body = elements(self.call)?.get(element).unwrap_or(&Json::Null);
            match self.shape.read(Form::Create, body, &base(element)) {
                Ok(draft) => draft,
                Err(errors) => {
                    self.wrong(element, errors);
                    return Ok(None);
                }
            }
        };
        let values = new_values(self.call, self.shape, self.owner.as_ref(), &draft, &base(element))?;
        Ok(values.map_err(|errors| self.wrong(element, errors)).ok())
    }

    fn changed(
        &mut self,
        element: usize,
        draft: &Draft,
        was: &Stored,
    ) -> Result<Option<Vec<Value>>, Problem> {
        match changed_values(self.call, self.shape, was, draft, &base(element))? {
            Ok(values) => return Ok(Some(values)),
            Err(Refusal::Wrong(errors)) => self.wrong(element, errors),
            Err(Refusal::Stale(current)) => {
                let at = pointer(&base(element), "concurrencyToken");
                let error = FieldError::new(at, format!("is stale; the current one is {current}"));
                self.failures.add(element, ProblemKind::ConcurrencyConflict, error);
            }
        }
        Ok(None)
    }
}

/// Links what the elements list, and answers with the rows as they are then.
fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    owner: Option<&OwnerRow>,
    rows: Vec<NewRow>,
) -> Result<Answer, Problem> {
    let (shape, key) = (call.op.shape, call.op.shape.plan().key);
    let has_new = rows.iter().any(|(_, was, _)| was.is_none());
    if has_new && !shape.is_read_back() && rows.iter().all(|(_, was, _)| was.is_none()) {
        keep(call, tx, shape)?;
        write_new(call, shape, &rows);
        return Ok(Answer::new(call.op.status));
    }
    let new = rows.iter().filter(|(_, was, _)| was.is_none());
    let keys: Vec<Value> = new.filter_map(|(_, _, values)| values.get(key).cloned()).collect();
    let mut found = load_keys(call, tx, shape, owner, &keys)?;
    let mut stored = Vec::with_capacity(rows.len());
    for (element, was, values) in rows {
        if let Some(was) = was {
            stored.push((element, false, was.with(values)));
            continue;
        }
        let row = values.get(key).and_then(|value| found.remove(&key_name(value)));
        let row = row.ok_or_else(|| Problem::not_found(shape.name))?;
        if let Some(body) = elements(call)?.get(element) {
            relate::relate_new(call, tx, shape, &row, body, &base(element))?;
        }
        stored.push((element, true, row));
    }
    let bodies = elements(call)?;
    let changed: Vec<_> = stored
        .iter()
        .filter(|(_, is_new, _)| !is_new)
        .filter_map(|(element, _, row)| Some((base(*element), row, bodies.get(*element)?)))
        .collect();
    relate::relate_body(call, tx, shape, &changed)?;
    keep(call, tx, shape)?;
    let rows: Vec<Stored> = stored.into_iter().map(|(.., row)| row).collect();
    write_all(call, tx, shape, &rows)?;
    Ok(Answer::new(call.op.status))
}

fn write_new(call: &mut Call, shape: &Shape, rows: &[NewRow]) {
    call.out.bytes.push(b'[');
    for (index, (_, _, values)) in rows.iter().enumerate() {
        if index > 0 {
            call.out.bytes.push(b',');
        }
        write_values((shape, &call.desk.master), &call.scope, values, &mut call.out.bytes);
        write_no_relations(shape, &mut call.out.bytes);
    }
    call.out.bytes.push(b']');
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

/// Rows as they are answered: with their relations, or their own members alone.
///
/// # Errors
/// The store's.
pub fn represent(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[Stored],
    with_relations: bool,
) -> Result<Vec<serde_json::Value>, Problem> {
    if with_relations {
        write_all(call, tx, shape, rows)?;
    } else {
        call.out.bytes.push(b'[');
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                call.out.bytes.push(b',');
            }
            write_values((shape, &call.desk.master), &call.scope, &row.values, &mut call.out.bytes);
            call.out.bytes.push(b'}');
        }
        call.out.bytes.push(b']');
    }
    let bytes = std::mem::take(&mut call.out.bytes);
    serde_json::from_slice(&bytes).map_err(|_| Problem::invalid("What is there cannot be read."))
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
    let owner = owner_of(call, tx, shape)?;
    let wanted: Vec<Value> = keys.iter().map(|(_, key)| key.clone()).collect();
    let mut found = load_keys(call, tx, shape, owner.as_ref(), &wanted)?;
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

/// Loads rows by their keys, some hundred at a time; by the names of their keys.
///
/// # Errors
/// The store's.
pub fn load_keys(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    keys: &[Value],
) -> Result<HashMap<String, Stored>, Problem> {
    let mut found = HashMap::with_capacity(keys.len());
    let place = shape.plan().key;
    let column = shape.key().map_or("id", |key| key.column);
    for chunk in keys.chunks(LIST) {
        let mut sql = shape.select(call, owner.map(|owner| owner.rid));
        sql = sql.push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().cloned());
        tx.query(&sql.text, &sql.parameters, |row| {
            let stored = Stored::read(shape, &call.scope, owner, row)?;
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
    let is_unnamed = |draft: &&mut Draft| draft.given(key).is_none() && draft.given(token).is_some();
    let mut unnamed: Vec<&mut Draft> = drafts.iter_mut().map(|(_, draft)| draft).filter(is_unnamed).collect();
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
    (shape, owner): (&Shape, Option<&OwnerRow>),
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
            find_stored(call, tx, (shape, owner), unique, &columns, &keys, failures)?;
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
    (shape, owner): (&Shape, Option<&OwnerRow>),
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
        if let (Some(of), Some(owner)) = (shape.owner, owner) {
            sql = sql.push("t.").push(of.column).push(" = ").bind(owner.rid).push(" AND ");
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
