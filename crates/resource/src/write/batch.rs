//! Batches: all or nothing, in one transaction, in the order of the request. When the database
//! refuses one, the operation runs again to find out which elements are wrong.

use std::collections::{HashMap, HashSet};

use chancery_record::{Draft, FieldError, FieldErrors, Form, Given, Json, Value, pointer};
use chancery_store::Tx;

use crate::{
    Answer, Call, Context, OwnerRow, Problem, ProblemKind, Shape,
    read::emit::Stored,
    read::load::{key_name, owner_of},
    read::sql::LIST,
    write::change::{self, purged},
    write::integrity::{Written, check_postcondition, confine, find_children},
    write::relate::{RelationBody, relate_body},
    write::values::{Refusal, changed_values, new_values},
};

mod answer;
mod failures;

pub use answer::represent;
use answer::{write_all, write_new};
use failures::{Failures, find_retired, find_taken, validate_rows};

/// The most elements of a batch.
pub const MAX_BATCH: usize = 10_000;

fn elements(call: &Call) -> Result<&[Json], Problem> {
    let body = call.request.body()?;
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

/// An element, the row that is there, and the values to be.
type NewRow = (usize, Option<Stored>, Vec<Value>);

/// What the elements of a batch are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRows {
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
pub fn write(call: &mut Call, tx: &mut Tx<'_>, taking: BatchRows, form: Form) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let mut batch = Batch { call, shape, owner, failures: Failures::default() };
    let rows = batch.rows(tx, taking, form)?;
    let (owner, failures) = (batch.owner, batch.failures);
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for (_, was, values) in &rows {
        match was {
            Some(was) => change::update(&call.context, tx, shape, was, values)?,
            None => change::insert(&call.context, tx, shape, owner.as_ref(), values)?,
        }
        if let (Some(after_insert), None) = (shape.after_insert, was) {
            after_insert(&call.context, tx, values)?;
        }
    }
    let new = rows.iter().filter(|(_, was, _)| was.is_none());
    let written = new.map(|(element, _, values)| Written { base: base(*element), is_new: true, values });
    confine(&call.context, tx, shape, written)?;
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
    fn rows(&mut self, tx: &mut Tx<'_>, taking: BatchRows, form: Form) -> Result<Vec<NewRow>, Problem> {
        let (call, shape) = (self.call, self.shape);
        let mut drafts = self.drafts(taking, form)?;
        if shape.found_by_token {
            find_by_token(&call.context, tx, shape, &mut drafts)?;
        }
        let keys = self.keys(taking, &mut drafts);
        let mut found = load_keys(&call.context, tx, shape, self.owner.as_ref(), &keys)?;
        let (mut rows, mut brought) = (Vec::new(), Vec::new());
        for (element, draft) in drafts {
            let key = draft.given(shape.plan().key);
            let was = key.and_then(|value| found.remove(&key_name(value)));
            let values = match (was, taking) {
                (None, BatchRows::There) => {
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
        find_retired(&call.context, tx, shape, &brought, &mut self.failures)?;
        validate_rows(call, tx, shape, &mut rows, &mut self.failures)?;
        find_taken(call, tx, (shape, self.owner.as_ref()), &rows, &mut self.failures)?;
        Ok(rows)
    }

    /// Reads every element; those that are wrong are left out. Whether one that may be either is new
    /// shows later.
    fn drafts(&mut self, taking: BatchRows, form: Form) -> Result<Vec<(usize, Draft)>, Problem> {
        let form = if taking == BatchRows::New { Form::Create } else { form };
        let mut drafts = Vec::new();
        for (element, body) in elements(self.call)?.iter().enumerate() {
            match self.shape.read(form, body, &base(element)) {
                Ok(draft) => drafts.push((element, draft)),
                Err(errors) => self.wrong(element, errors),
            }
        }
        Ok(drafts)
    }

    fn wrong(&mut self, element: usize, errors: impl Into<FieldErrors>) {
        let errors = errors.into();
        self.failures.count_more(errors.more());
        for error in errors {
            self.failures.add(element, ProblemKind::InvalidRequest, error);
        }
    }

    /// The keys of rows that may be there. One that is missing where it is needed, or there twice, is
    /// noted, and its element left out.
    fn keys(&mut self, taking: BatchRows, drafts: &mut Vec<(usize, Draft)>) -> Vec<Value> {
        if taking == BatchRows::New {
            return Vec::new();
        }
        let (key, wire) = (self.shape.plan().key, self.shape.key().map_or("id", |key| key.wire()));
        let mut seen = HashSet::new();
        let failures = &mut self.failures;
        let token = self.shape.plan().token.filter(|_| self.shape.found_by_token);
        drafts.retain(|(element, draft)| {
            if draft.given(key).is_none() && token.is_some_and(|token| draft.given(token).is_some()) {
                // the token that was to name the row is no row's any more
                let at = pointer(&base(*element), "concurrencyToken");
                let error = FieldError::new(at, "is stale: no item has it now. Read the item again");
                failures.add(*element, ProblemKind::ConcurrencyConflict, error);
                return false;
            }
            let wrong = match draft.given(key) {
                None if taking == BatchRows::Either => return true,
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
        taking: BatchRows,
    ) -> Result<Option<Vec<Value>>, Problem> {
        let draft = if taking == BatchRows::New {
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
        let values = new_values(&self.call.context, self.shape, self.owner.as_ref(), &draft, &base(element))?;
        Ok(values.map_err(|errors| self.wrong(element, errors)).ok())
    }

    fn changed(
        &mut self,
        element: usize,
        draft: &Draft,
        was: &Stored,
    ) -> Result<Option<Vec<Value>>, Problem> {
        match changed_values(
            &self.call.context,
            self.shape,
            was,
            draft,
            (&base(element), self.call.request.merge_patch),
        )? {
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
    let (shape, key) = (call.request.op.shape, call.request.op.shape.plan().key);
    let has_new = rows.iter().any(|(_, was, _)| was.is_none());
    if has_new && !shape.is_read_back() && rows.iter().all(|(_, was, _)| was.is_none()) {
        check_postcondition(&call.context, tx, shape)?;
        if !call.request.minimal {
            write_new(call, shape, &rows);
        }
        return Ok(Answer::new(call.request.op.status));
    }
    let new = rows.iter().filter(|(_, was, _)| was.is_none());
    let keys: Vec<Value> = new.filter_map(|(_, _, values)| values.get(key).cloned()).collect();
    let mut found = load_keys(&call.context, tx, shape, owner, &keys)?;
    let mut stored = Vec::with_capacity(rows.len());
    for (element, was, values) in rows {
        let is_new = was.is_none();
        let row = match was {
            Some(was) => Some(was.with(values)),
            None => values.get(key).and_then(|value| found.remove(&key_name(value))),
        };
        stored.push((element, is_new, row.ok_or_else(|| Problem::not_found(shape.name))?));
    }
    let bodies = elements(call)?;
    let mut said = Vec::with_capacity(stored.len());
    for (element, is_new, owner) in &stored {
        let body = bodies.get(*element).unwrap_or(&Json::Null);
        said.push(RelationBody { owner, is_new: *is_new, body, base: base(*element) });
    }
    relate_body(call, tx, shape, &said)?;
    check_postcondition(&call.context, tx, shape)?;
    let rows: Vec<Stored> = stored.into_iter().map(|(.., row)| row).collect();
    if !call.request.minimal {
        write_all(call, tx, shape, &rows)?;
    }
    Ok(Answer::new(call.request.op.status))
}

pub fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let mut failures = Failures::default();
    let mut keys: Vec<(usize, Value)> = Vec::new();
    let mut seen = HashSet::new();
    for (element, body) in elements(call)?.iter().enumerate() {
        match body {
            Json::Text(text) => match shape.read_key(text) {
                Ok(key) if seen.insert(key_name(&key)) => keys.push((element, key)),
                Ok(_) => {}
                Err(_) => {
                    let detail = if shape.has_id() { "must be a UUID" } else { "is no key of this resource" };
                    failures.add_whole(element, ProblemKind::InvalidRequest, detail);
                }
            },
            other => {
                let detail = format!("must be a string, not {}", other.word());
                failures.add_whole(element, ProblemKind::InvalidRequest, detail);
            }
        }
    }
    let owner = owner_of(call, tx, shape)?;
    let wanted: Vec<Value> = keys.iter().map(|(_, key)| key.clone()).collect();
    let mut found = load_keys(&call.context, tx, shape, owner.as_ref(), &wanted)?;
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for (element, key) in keys {
        let row = found.remove(&key_name(&key));
        match row {
            Some(row) => {
                rows.push(row);
                places.push(element);
            }
            None => failures.add_whole(element, ProblemKind::NotFound, format!("names no {}", shape.name)),
        }
    }
    for (row, detail) in find_children(tx, shape, &rows)? {
        let element = places.get(row).copied().unwrap_or(0);
        failures.add_whole(element, ProblemKind::Conflict, detail);
    }
    if let Some(problem) = failures.into_problem() {
        return Err(problem);
    }
    for row in &rows {
        change::delete(&call.context, tx, shape, row)?;
    }
    if !change::hides(&call.context, shape) {
        purged(&mut call.context, tx, shape, &rows)?;
    }
    check_postcondition(&call.context, tx, shape)?;
    Ok(Answer::new(call.request.op.status))
}

fn unknown(shape: &Shape, base: &str) -> FieldError {
    let key = shape.key().map_or("id", |key| key.wire());
    FieldError::new(pointer(base, key), format!("names no {}", shape.name))
}

/// The most bytes of texts and such that the rows of a batch may hold.
const MAX_LOADED: usize = 128 << 20;

/// Loads rows by their keys, some hundred at a time; by the names of their keys.
///
/// # Errors
/// Rows that are too large together; the store's.
pub fn load_keys(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    keys: &[Value],
) -> Result<HashMap<String, Stored>, Problem> {
    let mut found = HashMap::with_capacity(keys.len());
    let place = shape.plan().key;
    let column = shape.key().map_or("id", |key| key.column);
    let mut loaded = 0;
    for chunk in keys.chunks(LIST) {
        let mut sql = shape.select(context, owner.map(|owner| owner.rid));
        sql = sql.push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().cloned());
        tx.query(&sql.text, &sql.parameters, |row| {
            if loaded <= MAX_LOADED {
                let stored = Stored::read(shape, &context.scope, owner, row)?;
                loaded += stored.values.iter().map(Value::size).sum::<usize>();
                found.insert(key_name(stored.value(place)), stored);
            }
            Ok(())
        })?;
        if loaded > MAX_LOADED {
            let detail = "The rows of this batch hold more than 128 MiB. Name fewer at once.";
            return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
        }
    }
    Ok(found)
}

/// Gives elements that name no key that of the row which has their token.
fn find_by_token(
    context: &Context,
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
            .begin(context, &format!("SELECT t.concurrency_token, t.{column} FROM {} t WHERE ", shape.table));
        shape.add_reach(&mut sql, &context.scope, None);
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
