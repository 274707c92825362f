//! The only way to write rows, for one and for many: read the body, find the existing rows, apply the rules,
//! validate against the data, write, confine, relate, answer. One row is a batch of one.
//!
//! Each row is written together with its audit entry and its event (see [`change`]). Postconditions are
//! checked when the operation ends (see [`run`](super::operation::run)).

use chancery_record::{Column, Draft, Field, Form, Json, Value};
use chancery_store::Tx;

use crate::{
    Answer, Call, Context, Out, OwnerRow, Problem, Reply, Request, Shape, Steps, StoredRow, Writer,
    read::{
        answer::{answer_with, reply},
        answer_many::{write_all, write_new, write_new_rows},
        load::{key_in, key_name, load_keys, owner_in},
        precondition::{check_match, minimal},
    },
    write::{
        change,
        elements::{self, Element},
        failures::Failures,
        integrity::{WrittenRow, confine},
        protect::{check_changes, check_many_new},
        relate::{RelationBody, relate_rows},
    },
};

/// The rows of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// New rows.
    New,
    /// Existing rows: that of the path, or those whose keys the elements contain.
    Existing,
    /// Existing rows where the keys in the body match, and new ones otherwise.
    Upsert,
}

/// The mode of a write.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    /// The rows.
    pub rows: Rows,
    /// The form in which changes of existing rows are read; new rows are read as [`Form::Create`].
    pub form: Form,
    /// The fields that the operation may write; all, where `None`.
    pub only: Option<&'static [&'static Field]>,
    /// Whether the body is an array of elements, which are all written, or none.
    pub is_many: bool,
    /// Whether `If-Match` was checked already.
    pub is_checked: bool,
}

impl Writing {
    /// Writes one row.
    pub const fn one(rows: Rows, form: Form) -> Self {
        Self { rows, form, only: None, is_many: false, is_checked: false }
    }

    /// Writes these fields of the row of the path, as a PUT does.
    pub const fn fields(fields: &'static [&'static Field]) -> Self {
        Self { only: Some(fields), ..Self::one(Rows::Existing, Form::Put) }
    }

    /// The same, where `If-Match` was checked already.
    #[must_use]
    pub const fn checked(self) -> Self {
        Self { is_checked: true, ..self }
    }

    /// Writes many rows, all or none.
    pub const fn many(rows: Rows, form: Form) -> Self {
        Self { is_many: true, ..Self::one(rows, form) }
    }
}

/// A row to be written.
pub struct Row {
    /// The number of its element.
    pub element: usize,
    /// The row as it is stored now; `None` for a new one.
    pub was: Option<StoredRow>,
    /// The values of its fields, in order.
    pub values: Vec<Value>,
}

/// The rows that are written.
pub struct Target<'a> {
    /// The mode of the write.
    pub writing: Writing,
    /// The owner of the rows.
    pub owner: Option<&'a OwnerRow>,
    /// The key of the only existing row; none for a batch, whose elements contain theirs.
    pub key: Option<Value>,
}

/// A condition on an existing row, such as `If-Match`, checked before the row is changed.
pub type Check<'a> = &'a mut dyn FnMut(&mut Tx<'_>, &StoredRow) -> Result<(), Problem>;

/// Writes rows, all or none, each with its audit entry and its event, independent of request and answer. New
/// rows are confined to the scope here, and changed ones by the caller, once their sets are written, too.
///
/// # Errors
/// All errors of the elements; not found; a stale token.
fn write(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    target: &Target<'_>,
    elements: Vec<Element<'_>>,
    check: Check<'_>,
    mut failures: Failures,
) -> Result<Written, Problem> {
    let Writer { context, shape, .. } = writer;
    let Target { writing, owner, .. } = *target;
    let rows = elements::to_rows(writer, tx, target, elements, check, &mut failures)?;
    failures.into_result()?;
    let changed = rows
        .iter()
        .filter_map(|row| Some((writing.base(row.element), row.was.as_ref()?, row.values.as_slice())));
    check_changes(context, tx, shape, changed)?;
    let new = rows.iter().filter(|row| row.was.is_none());
    let new = new.map(|row| (writing.base(row.element), row.values.as_slice()));
    check_many_new(context, tx, shape, owner, new)?;
    let mut last_entry = 0;
    for row in &rows {
        match &row.was {
            Some(was) => change::update_row(context, tx, shape, was, &row.values)?,
            None => last_entry = change::insert_row(context, tx, shape, owner, &row.values)?,
        }
    }
    let new = rows.iter().filter(|row| row.was.is_none());
    let written =
        new.map(|row| WrittenRow { base: writing.base(row.element), is_new: true, values: &row.values });
    confine(context, tx, shape, written)?;
    Ok(Written { rows, last_entry })
}

/// Rows that were written.
struct Written {
    rows: Vec<Row>,
    /// The number of the audit entry of the last new row.
    last_entry: i64,
}

/// Creates a row from a draft. Its row number is known only after a read, and is 0 here.
///
/// # Errors
/// All errors of the draft.
pub fn create_row(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    owner: Option<OwnerRow>,
    draft: Draft,
) -> Result<StoredRow, Problem> {
    let writing = Writing::one(Rows::New, Form::Create);
    let target = Target { writing, owner: owner.as_ref(), key: None };
    let elements = vec![Element::only(draft)];
    let Written { mut rows, last_entry } =
        write(writer, tx, &target, elements, &mut |_, _| Ok(()), Failures::of(writing))?;
    let values = rows.pop().map(|row| row.values).unwrap_or_default();
    Ok(StoredRow { rid: 0, last_entry, values, owner })
}

/// Changes the row with this key by a draft, as a body of this form would.
///
/// # Errors
/// All errors of the draft; not found; a stale token.
pub fn change_row(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    owner: Option<&OwnerRow>,
    key: Value,
    form: Form,
    draft: Draft,
) -> Result<(), Problem> {
    let writing = Writing::one(Rows::Existing, form);
    let target = Target { writing, owner, key: Some(key) };
    let elements = vec![Element::only(draft)];
    let written = write(writer, tx, &target, elements, &mut |_, _| Ok(()), Failures::of(writing))?;
    let existing = written.rows.iter().filter(|row| row.was.is_some());
    let existing = existing.map(|row| WrittenRow { base: String::new(), is_new: false, values: &row.values });
    confine(writer.context, tx, writer.shape, existing)
}

/// Creates and changes rows as the body requests, and answers.
///
/// # Errors
/// All errors of the body and of each of its elements; not found; a stale token.
pub fn write_rows(call: &mut Call, tx: &mut Tx<'_>, writing: Writing) -> Result<Answer, Problem> {
    let Call { request, context, steps, answer } = &mut *call;
    let input = WriteInput { request, context, steps };
    let (owner, outcome) = input.write(tx, writing, elements::bodies(request, writing)?, answer)?;
    respond(call, tx, writing, owner, outcome)
}

/// The same, with other bodies than the one of the request, such as those in the form of another version.
///
/// # Errors
/// As [`write_rows`].
pub fn write_bodies(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    bodies: &[Json],
) -> Result<Answer, Problem> {
    let Call { request, context, steps, answer } = &mut *call;
    let (owner, outcome) = WriteInput { request, context, steps }.write(tx, writing, bodies, answer)?;
    respond(call, tx, writing, owner, outcome)
}

/// The parts of a call that a write reads.
struct WriteInput<'a> {
    request: &'a Request,
    context: &'a Context,
    steps: &'a Steps,
}

/// The written rows, as the answer needs them.
enum WriteOutcome {
    /// New rows with no values beyond those of their bodies.
    Plain(Vec<Row>),
    /// Rows with their numbers.
    Stored(Vec<StoredElement>),
}

impl WriteInput<'_> {
    /// Reads the bodies, writes the rows, and replaces the sets that the bodies list.
    fn write(
        &self,
        tx: &mut Tx<'_>,
        writing: Writing,
        bodies: &[Json],
        out: &mut Out,
    ) -> Result<(Option<OwnerRow>, WriteOutcome), Problem> {
        let Self { request, context, steps } = *self;
        let shape = request.op.shape;
        let mut failures = Failures::of(writing);
        let elements = elements::read(shape, writing, bodies, &mut failures)?;
        let owner = owner_in(request, context, tx, shape)?;
        let is_of_path = writing.rows == Rows::Existing && !writing.is_many;
        let key = if is_of_path { Some(key_in(request, shape)?) } else { None };
        let target = Target { writing, owner: owner.as_ref(), key };
        let mut check = |tx: &mut Tx<'_>, was: &StoredRow| {
            if writing.is_checked {
                return Ok(());
            }
            check_match(&request.preconditions, context, tx, shape, was, out)
        };
        let writer = Writer { context, steps, shape };
        let Written { rows, .. } = write(writer, tx, &target, elements, &mut check, failures)?;
        if rows.iter().all(|row| row.was.is_none()) && !shape.is_read_back() {
            return Ok((owner, WriteOutcome::Plain(rows)));
        }
        let stored = store_numbers(context, tx, shape, owner.as_ref(), rows)?;
        relate(context, tx, shape, writing, bodies, &stored)?;
        Ok((owner, WriteOutcome::Stored(stored)))
    }
}

fn respond(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    owner: Option<OwnerRow>,
    outcome: WriteOutcome,
) -> Result<Answer, Problem> {
    match outcome {
        WriteOutcome::Plain(rows) => answer_plain(call, tx, writing, owner, rows),
        WriteOutcome::Stored(stored) => answer(call, tx, writing, owner.as_ref(), stored),
    }
}

impl Writing {
    /// The JSON Pointer of an element in the body.
    pub fn base(self, element: usize) -> String {
        if self.is_many { format!("/{element}") } else { String::new() }
    }
}

/// Answers with new rows that have no values beyond those of their bodies, without reading them back.
fn answer_plain(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    owner: Option<OwnerRow>,
    mut rows: Vec<Row>,
) -> Result<Answer, Problem> {
    let (shape, status) = (call.request.op.shape, call.request.op.status);
    if writing.is_many {
        if !call.request.minimal {
            write_new_rows(call, shape, rows.iter().map(|row| row.values.as_slice()));
        }
        return Ok(Answer::new(status));
    }
    let Some(Row { values, .. }) = rows.pop() else { return Ok(Answer::new(status)) };
    let created = values.get(shape.plan().key).map(key_name);
    let answer = if call.request.op.reply == Reply::Owner {
        reply(call, tx, owner.as_ref(), None)?
    } else if call.request.minimal {
        minimal(call, shape, &StoredRow { rid: 0, last_entry: 0, values, owner })
    } else {
        write_new(call, shape, &values);
        Answer::resource(status)
    };
    Ok(Answer { created, ..answer })
}

/// A written row with its number.
struct StoredElement {
    element: usize,
    is_new: bool,
    row: StoredRow,
}

/// The rows with their numbers; those of new rows are queried.
fn store_numbers(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    owner: Option<&OwnerRow>,
    rows: Vec<Row>,
) -> Result<Vec<StoredElement>, Problem> {
    let key = shape.plan().key;
    let new = rows.iter().filter(|row| row.was.is_none());
    let keys: Vec<Value> = new.filter_map(|row| row.values.get(key).cloned()).collect();
    let mut by_key = load_keys(context, tx, shape, owner, &keys)?;
    let stored = rows.into_iter().map(|Row { element, was, values }| {
        let is_new = was.is_none();
        let row = match was {
            Some(was) => Some(was.with(values)),
            None => values
                .get(key)
                .and_then(|value| by_key.remove(&key_name(value)))
                .map(|row| with_unstored(shape, row, values)),
        };
        Ok(StoredElement { element, is_new, row: row.ok_or_else(|| Problem::not_found(shape.name))? })
    });
    stored.collect()
}

/// A row as it was read back, with the values that only its body has.
fn with_unstored(shape: &Shape, mut row: StoredRow, values: Vec<Value>) -> StoredRow {
    for ((field, stored), value) in shape.fields.iter().zip(&mut row.values).zip(values) {
        if field.access.column == Column::Unstored {
            *stored = value;
        }
    }
    row
}

/// Replaces the sets of the rows by those that their bodies list.
fn relate(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    writing: Writing,
    bodies: &[Json],
    stored: &[StoredElement],
) -> Result<(), Problem> {
    let body = |element: usize| bodies.get(element).unwrap_or(&Json::Null);
    let bodies: Vec<RelationBody<'_>> = stored
        .iter()
        .map(|StoredElement { element, is_new, row }| RelationBody {
            owner: row,
            is_new: *is_new,
            body: body(*element),
            base: writing.base(*element),
        })
        .collect();
    relate_rows(context, tx, shape, &bodies)
}

/// Answers with the rows as they are now.
fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    owner: Option<&OwnerRow>,
    mut stored: Vec<StoredElement>,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    if writing.is_many {
        let rows: Vec<StoredRow> = stored.into_iter().map(|stored| stored.row).collect();
        if !call.request.minimal {
            write_all(call, tx, shape, &rows)?;
        }
        return Ok(Answer::new(call.request.op.status));
    }
    let Some(StoredElement { is_new, row, .. }) = stored.pop() else {
        return Ok(Answer::new(call.request.op.status));
    };
    let answer = match (is_new, call.request.op.reply) {
        (true, Reply::Owner) => reply(call, tx, owner, None)?,
        (true, _) => answer_with(call, tx, shape, &row)?,
        (false, _) => reply(call, tx, owner, Some(&row))?,
    };
    let created = is_new.then(|| key_name(row.value(shape.plan().key)));
    Ok(Answer { created, ..answer })
}
