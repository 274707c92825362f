//! The failures of a body's elements: errors with their pointers.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, FieldErrors, Kind, MAX_ERRORS, Value, fold, pointer};
use chancery_store::Tx;

use crate::{
    Context, LIST, OwnerRow, Problem, ProblemKind, ProposedRow, Shape, Sql, Unique, Writer,
    write::{
        integrity::find_violations,
        pipeline::{Row, Writing},
        values::Refusal,
    },
};

/// The detail for an id that is or was in use. It discloses neither by whom nor whether still.
const USED: &str = "is taken, or was once: an id is never used again";

/// The failures of a body's elements: each error with its element and its problem type. Those of the first
/// elements are stored, the others are counted.
pub struct Failures {
    writing: Writing,
    all: Vec<(usize, ProblemKind, FieldError)>,
    more: usize,
    /// The problem of an operation on one row, which is the complete answer.
    whole: Option<Problem>,
    /// The pointers at which a duplicate key was reported.
    reported: HashSet<String>,
}

impl Failures {
    /// No failures yet.
    pub fn of(writing: Writing) -> Self {
        Self { writing, all: Vec::new(), more: 0, whole: None, reported: HashSet::new() }
    }

    /// The form in which the elements are written.
    pub const fn writing(&self) -> Writing {
        self.writing
    }

    /// Takes all failures out, and leaves none.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::of(self.writing))
    }

    /// Adds an error of an element.
    pub fn add(&mut self, element: usize, kind: ProblemKind, error: FieldError) {
        self.all.push((element, kind, error));
        if self.all.len() >= 2 * MAX_ERRORS {
            self.truncate();
        }
    }

    /// Adds errors of an element's members.
    pub fn add_wrong(&mut self, element: usize, errors: impl Into<FieldErrors>) {
        let errors = errors.into();
        self.more += errors.more();
        for error in errors {
            self.add(element, ProblemKind::InvalidRequest, error);
        }
    }

    /// Adds an error of an element itself.
    pub fn add_whole(&mut self, element: usize, kind: ProblemKind, detail: impl Into<String>) {
        self.add(element, kind, FieldError::new(self.writing.base(element), detail));
    }

    /// Adds a reference of an element to an unknown row; reported at the key.
    pub fn add_unknown(&mut self, shape: &Shape, element: usize) {
        let key = shape.key().map_or("id", |key| key.wire());
        let error = FieldError::new(pointer(&self.writing.base(element), key), unknown(shape));
        self.add_or_replace(element, ProblemKind::NotFound, error, || Problem::not_found(shape.name));
    }

    /// Adds an element that is itself an unknown key.
    pub fn add_unknown_whole(&mut self, shape: &Shape, element: usize) {
        let error = FieldError::new(self.writing.base(element), unknown(shape));
        self.add_or_replace(element, ProblemKind::NotFound, error, || Problem::not_found(shape.name));
    }

    /// Adds a row that cannot be deleted because it has children.
    pub fn add_has_children(&mut self, shape: &Shape, element: usize, detail: String) {
        let whole = format!("The {} {detail}.", shape.name);
        let error = FieldError::new(self.writing.base(element), detail);
        self.add_or_replace(element, ProblemKind::Conflict, error, || Problem::conflict(whole));
    }

    /// Adds the refusal of a row's change.
    pub fn add_refusal(&mut self, element: usize, refusal: Refusal) {
        match refusal {
            Refusal::Wrong(errors) => self.add_wrong(element, errors),
            Refusal::Stale(current) => {
                let at = pointer(&self.writing.base(element), "concurrencyToken");
                let error = FieldError::new(at, format!("is stale; the current one is {current}"));
                self.add_or_replace(element, ProblemKind::ConcurrencyConflict, error, || stale(current));
            }
        }
    }

    /// Adds an error of one of many elements; for an operation on one row, sets the problem that is the answer.
    fn add_or_replace(
        &mut self,
        element: usize,
        kind: ProblemKind,
        error: FieldError,
        whole: impl FnOnce() -> Problem,
    ) {
        if self.writing.is_many { self.add(element, kind, error) } else { self.whole = Some(whole()) }
    }

    fn truncate(&mut self) {
        self.all.sort_by_key(|(element, ..)| *element);
        self.more += self.all.len().saturating_sub(MAX_ERRORS);
        self.all.truncate(MAX_ERRORS);
    }

    /// All errors in the order of their elements. The type of the first is the type of the problem.
    ///
    /// # Errors
    /// The problem with these errors, if there are any.
    pub fn into_result(mut self) -> Result<(), Problem> {
        if let Some(whole) = self.whole {
            return Err(whole);
        }
        self.truncate();
        let Some((_, kind, _)) = self.all.first() else { return Ok(()) };
        let kind = *kind;
        let mut errors: FieldErrors = self.all.into_iter().map(|(.., error)| error).collect();
        errors.count_more(self.more);
        if !self.writing.is_many {
            return Err(Problem { kind, ..Problem::wrong(errors) });
        }
        let detail = format!("{} of the elements cannot be done, so nothing was. See errors.", errors.all());
        Err(Problem { errors, ..Problem::new(kind, detail) })
    }
}

fn unknown(shape: &Shape) -> String {
    format!("names no {}", shape.name)
}

fn stale(current: String) -> Problem {
    Problem::new(
        ProblemKind::ConcurrencyConflict,
        "The item was changed since it was read. Read it again, repeat the change on what \
         it is now, and send its present concurrencyToken.",
    )
    .with_member("currentConcurrencyToken", current)
}

/// Finds elements with ids that were used before.
pub fn find_retired(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    given_ids: &[(usize, Value)],
    failures: &mut Failures,
) -> Result<(), Problem> {
    for chunk in given_ids.chunks(LIST) {
        let mut sql = Sql::new("SELECT id FROM retired_id WHERE store = ")
            .bind(context.scope.store())
            .push(" AND resource = ")
            .bind(shape.name)
            .push(" AND id IN ");
        sql.add_list(chunk.iter().map(|(_, id)| id.clone()));
        tx.query(&sql.text, &sql.parameters, |row| {
            let retired = Value::Id(row.id(0)?);
            for (element, _) in chunk.iter().filter(|(_, id)| *id == retired) {
                let error = FieldError::new(pointer(&failures.writing.base(*element), "id"), USED);
                failures.add(*element, ProblemKind::Conflict, error);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Validates the rows against the data, all at once.
///
/// # Errors
/// A request for work that is needed first.
pub fn validate_rows(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [Row],
    failures: &mut Failures,
) -> Result<(), Problem> {
    let elements: Vec<usize> = rows.iter().map(|row| row.element).collect();
    let mut proposed: Vec<ProposedRow<'_>> =
        rows.iter_mut().map(|row| ProposedRow { was: row.was.as_ref(), values: &mut row.values }).collect();
    let element = |row: usize| elements.get(row).copied().unwrap_or(0);
    let writing = failures.writing;
    for (row, kind, error) in find_violations(writer, tx, &mut proposed, |row| writing.base(element(row)))? {
        failures.add(element(row), kind, error);
    }
    Ok(())
}

/// Finds elements whose unique keys collide with each other's and, after any failure, with those of stored
/// rows. For a valid batch the database is not queried.
pub fn find_duplicates(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    owner: Option<&OwnerRow>,
    rows: &[Row],
    failures: &mut Failures,
) -> Result<(), Problem> {
    let is_needed = writer.steps.diagnose || !failures.all.is_empty();
    if !failures.writing.is_many {
        return Ok(());
    }
    let shape = writer.shape;
    for unique in shape.unique {
        let columns = unique.columns();
        let of = |values: &[Value]| -> Vec<Value> {
            let value = |index: usize| values.get(index).unwrap_or(&Value::Null);
            columns.iter().map(|(column, index)| comparable(shape, column, *index, value(*index))).collect()
        };
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut keys = Vec::new();
        for Row { element, was, values } in rows {
            let key = of(values);
            if key.iter().any(Value::is_null) || was.as_ref().is_some_and(|was| of(&was.values) == key) {
                continue;
            }
            if first.insert(format!("{key:?}"), *element).is_some() {
                add_duplicate(shape, unique, *element, failures);
            }
            keys.push((*element, key));
        }
        if is_needed {
            find_stored(writer.context, tx, shape, owner, unique, &keys, failures)?;
        }
    }
    Ok(())
}

/// A value as a unique index compares it.
fn comparable(shape: &Shape, column: &str, index: usize, value: &Value) -> Value {
    match (shape.fields.get(index), value) {
        (Some(field), Value::Text(text)) if field.access.folded && field.column != column => {
            Value::Text(fold(text))
        }
        _ => value.clone(),
    }
}

fn add_duplicate(shape: &Shape, unique: &Unique, element: usize, failures: &mut Failures) {
    let error = unique_violation(shape, unique.index, &failures.writing.base(element));
    // an element is reported once, even if two keys collide
    if let Some(error) = error
        && failures.reported.insert(error.pointer.clone())
    {
        failures.add(element, ProblemKind::Conflict, error);
    }
}

fn find_stored(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    unique: &Unique,
    keys: &[(usize, Vec<Value>)],
    failures: &mut Failures,
) -> Result<(), Problem> {
    let columns = unique.columns();
    let Some((last, _)) = columns.last() else { return Ok(()) };
    let kinds: Vec<Kind> =
        columns.iter().filter_map(|(_, index)| shape.fields.get(*index)).map(|field| field.kind).collect();
    let names: Vec<String> = columns.iter().map(|(column, _)| format!("t.{column}")).collect();
    for chunk in keys.chunks(LIST) {
        // rows in quarantine still reserve their keys, so no condition hides them
        let mut sql = Sql::new(format!("SELECT {} FROM {} t WHERE ", names.join(", "), shape.table));
        if shape.reach.is_store() {
            sql = sql.push("t.store = ").bind(context.scope.store()).push(" AND ");
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
                add_duplicate(shape, unique, *element, failures);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The error of a violation of this unique index, at the index's member.
pub fn unique_violation(shape: &Shape, index: &str, base: &str) -> Option<FieldError> {
    let unique = shape.unique.iter().find(|unique| unique.index == index)?;
    let field = shape.own(unique.reported_at)?;
    let mut error = FieldError::new(pointer(base, field.wire()), "is taken");
    if field.access.key {
        error.detail = USED.into();
    }
    Some(error)
}
