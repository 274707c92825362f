//! The only way to write rows, for one and for many: read the body, find the existing rows, apply the rules,
//! validate against the data, write, confine, relate, answer. One row is a batch of one.
//!
//! Each row is written together with its audit entry and its event (see [`change`]). Postconditions are
//! checked when the operation ends (see [`run`](super::operation::run)).

use chancery_record::{Column, Field, Form, Value};
use chancery_store::Tx;

use crate::{
    Answer, Call, OwnerRow, Problem, Reply, Shape,
    read::{
        answer::{answer_with, reply},
        answer_many::{write_all, write_new, write_new_rows},
        emit::StoredRow,
        load::{key_name, load_keys, owner_of},
        precondition::minimal,
    },
    write::{
        change, elements,
        failures::Failures,
        integrity::{WrittenRow, confine},
        protect::{check_changes, check_many_new},
        relate::{RelationBody, relate_rows},
    },
};

/// The rows that a body is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// New rows.
    New,
    /// Existing rows: the one that the path names, or those whose keys the elements name.
    Existing,
    /// Existing rows where the keys in the body name some, and new ones otherwise.
    Upsert,
}

/// What an operation writes.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    /// Which rows.
    pub rows: Rows,
    /// The form in which changes of existing rows are read; new rows are read as [`Form::Create`].
    pub form: Form,
    /// The fields that the operation may write; all, where `None`.
    pub only: Option<&'static [&'static Field]>,
    /// Whether the body is an array of elements, which are all written, or none.
    pub is_many: bool,
}

impl Writing {
    /// Writes one row.
    pub const fn one(rows: Rows, form: Form) -> Self {
        Self { rows, form, only: None, is_many: false }
    }

    /// Writes these fields of the row that the path names, as a PUT does.
    pub const fn fields(fields: &'static [&'static Field]) -> Self {
        Self { only: Some(fields), ..Self::one(Rows::Existing, Form::Put) }
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

/// Creates and changes rows as the body requests.
///
/// # Errors
/// All errors of the body and of each of its elements; not found; a stale token.
pub fn write_rows(call: &mut Call, tx: &mut Tx<'_>, writing: Writing) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let Written { owner, rows, .. } = write(call, tx, writing)?;
    let is_plain = rows.iter().all(|row| row.was.is_none()) && !shape.is_read_back();
    if is_plain {
        return answer_plain(call, tx, writing, owner, rows);
    }
    let stored = store_numbers(call, tx, shape, owner.as_ref(), rows)?;
    relate(call, tx, writing, &stored)?;
    answer(call, tx, writing, owner.as_ref(), stored)
}

/// Creates the row that the body describes, and answers nothing. What is not known before it is read is its own
/// number, which is 0 here.
///
/// # Errors
/// All errors of the body.
pub fn create_row(call: &mut Call, tx: &mut Tx<'_>) -> Result<StoredRow, Problem> {
    let Written { owner, mut rows, last_entry } = write(call, tx, Writing::one(Rows::New, Form::Create))?;
    let values = rows.pop().map(|row| row.values).unwrap_or_default();
    Ok(StoredRow { rid: 0, last_entry, values, owner })
}

/// Rows that were written.
struct Written {
    owner: Option<OwnerRow>,
    rows: Vec<Row>,
    /// The number of the audit entry of the last new row.
    last_entry: i64,
}

fn write(call: &mut Call, tx: &mut Tx<'_>, writing: Writing) -> Result<Written, Problem> {
    let shape = call.request.op.shape;
    let mut failures = Failures::of(writing);
    let elements = elements::read(call, writing, &mut failures)?;
    let owner = owner_of(call, tx, shape)?;
    let rows = elements::to_rows(call, tx, (writing, owner.as_ref()), elements, &mut failures)?;
    failures.into_result()?;
    let changed = rows
        .iter()
        .filter_map(|row| Some((writing.base(row.element), row.was.as_ref()?, row.values.as_slice())));
    check_changes(&call.context, tx, shape, changed)?;
    let new = rows.iter().filter(|row| row.was.is_none());
    let new = new.map(|row| (writing.base(row.element), row.values.as_slice()));
    check_many_new(&call.context, tx, shape, owner.as_ref(), new)?;
    let mut last_entry = 0;
    for row in &rows {
        match &row.was {
            Some(was) => change::update_row(&call.context, tx, shape, was, &row.values)?,
            None => {
                last_entry = change::insert_row(&call.context, tx, shape, owner.as_ref(), &row.values)?;
            }
        }
    }
    let new = rows.iter().filter(|row| row.was.is_none());
    let written =
        new.map(|row| WrittenRow { base: writing.base(row.element), is_new: true, values: &row.values });
    confine(&call.context, tx, shape, written)?;
    Ok(Written { owner, rows, last_entry })
}

impl Writing {
    /// The JSON Pointer of an element in the body.
    pub fn base(self, element: usize) -> String {
        if self.is_many { format!("/{element}") } else { String::new() }
    }
}

/// Answers with new rows that hold nothing but what their bodies provide, without reading them back.
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

/// A row that was written.
struct Done {
    element: usize,
    is_new: bool,
    row: StoredRow,
}

/// The rows with their numbers; those of new rows are queried.
fn store_numbers(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    owner: Option<&OwnerRow>,
    rows: Vec<Row>,
) -> Result<Vec<Done>, Problem> {
    let key = shape.plan().key;
    let new = rows.iter().filter(|row| row.was.is_none());
    let keys: Vec<Value> = new.filter_map(|row| row.values.get(key).cloned()).collect();
    let mut found = load_keys(&call.context, tx, shape, owner, &keys)?;
    let done = rows.into_iter().map(|Row { element, was, values }| {
        let is_new = was.is_none();
        let row = match was {
            Some(was) => Some(was.with(values)),
            None => values
                .get(key)
                .and_then(|value| found.remove(&key_name(value)))
                .map(|row| with_unstored(shape, row, values)),
        };
        Ok(Done { element, is_new, row: row.ok_or_else(|| Problem::not_found(shape.name))? })
    });
    done.collect()
}

/// A row as it was read back, with what is in its body alone.
fn with_unstored(shape: &Shape, mut row: StoredRow, values: Vec<Value>) -> StoredRow {
    for ((field, stored), value) in shape.fields.iter().zip(&mut row.values).zip(values) {
        if field.access.column == Column::Unstored {
            *stored = value;
        }
    }
    row
}

/// Replaces the sets of the rows by those that their bodies list.
fn relate(call: &Call, tx: &mut Tx<'_>, writing: Writing, done: &[Done]) -> Result<(), Problem> {
    let bodies = elements::bodies(call, writing)?;
    let body = |element: usize| bodies.get(element).unwrap_or(&chancery_record::Json::Null);
    let bodies: Vec<RelationBody<'_>> = done
        .iter()
        .map(|Done { element, is_new, row }| RelationBody {
            owner: row,
            is_new: *is_new,
            body: body(*element),
            base: writing.base(*element),
        })
        .collect();
    relate_rows(&call.context, tx, call.request.op.shape, &bodies)
}

/// Answers with the rows as they are now.
fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    owner: Option<&OwnerRow>,
    mut done: Vec<Done>,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    if writing.is_many {
        let rows: Vec<StoredRow> = done.into_iter().map(|done| done.row).collect();
        if !call.request.minimal {
            write_all(call, tx, shape, &rows)?;
        }
        return Ok(Answer::new(call.request.op.status));
    }
    let Some(Done { is_new, row, .. }) = done.pop() else { return Ok(Answer::new(call.request.op.status)) };
    let answer = match (is_new, call.request.op.reply) {
        (true, Reply::Owner) => reply(call, tx, owner, None)?,
        (true, _) => answer_with(call, tx, shape, &row)?,
        (false, _) => reply(call, tx, owner, Some(&row))?,
    };
    let created = is_new.then(|| key_name(row.value(shape.plan().key)));
    Ok(Answer { created, ..answer })
}
