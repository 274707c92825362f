//! What is wrong with a batch, and where.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, FieldErrors, Kind, MOST_ERRORS, Value, fold, pointer};
use chancery_store::Tx;

use super::{NewRow, base};
use crate::{
    Call, Context, OwnerRow, Problem, ProblemKind, Shape, Sql, Unique,
    declare::rules::Proposed,
    read::sql::LIST,
    write::pattern::{USED, taken},
};

/// What is wrong with a batch: each error with its element and the kind of problem it is. Those of the
/// first elements are kept, the others are counted.
#[derive(Default)]
pub struct Failures {
    all: Vec<(usize, ProblemKind, FieldError)>,
    more: usize,
    /// Where something that is taken was told.
    taken: HashSet<String>,
}

impl Failures {
    pub fn add(&mut self, element: usize, kind: ProblemKind, error: FieldError) {
        self.all.push((element, kind, error));
        if self.all.len() >= 2 * MOST_ERRORS {
            self.keep_first();
        }
    }

    /// Counts errors that are not kept.
    pub const fn count_more(&mut self, more: usize) {
        self.more += more;
    }

    fn keep_first(&mut self) {
        self.all.sort_by_key(|(element, ..)| *element);
        self.more += self.all.len().saturating_sub(MOST_ERRORS);
        self.all.truncate(MOST_ERRORS);
    }

    /// Adds what is wrong with an element as a whole.
    pub fn add_whole(&mut self, element: usize, kind: ProblemKind, detail: impl Into<String>) {
        self.add(element, kind, FieldError::new(base(element), detail));
    }

    /// The errors in the order of the elements; the first one's kind is the answer's.
    pub fn into_problem(mut self) -> Option<Problem> {
        self.keep_first();
        let kind = self.all.first()?.1;
        let mut errors: FieldErrors = self.all.into_iter().map(|(.., error)| error).collect();
        errors.count_more(self.more);
        let detail = format!("{} of the elements cannot be done, so nothing was. See errors.", errors.all());
        Some(Problem { errors, ..Problem::new(kind, detail) })
    }
}

/// Finds elements with ids that were used once.
pub fn find_retired(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    brought: &[(usize, Value)],
    failures: &mut Failures,
) -> Result<(), Problem> {
    for chunk in brought.chunks(LIST) {
        let mut sql = Sql::new("SELECT id FROM retired_id WHERE store = ")
            .bind(context.scope.store())
            .push(" AND resource = ")
            .bind(shape.name)
            .push(" AND id IN ");
        sql.add_list(chunk.iter().map(|(_, id)| id.clone()));
        tx.query(&sql.text, &sql.parameters, |row| {
            let retired = Value::Id(row.id(0)?);
            for (element, _) in chunk.iter().filter(|(_, id)| *id == retired) {
                let error = FieldError::new(pointer(&base(*element), "id"), USED);
                failures.add(*element, ProblemKind::Conflict, error);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Asks the rule against the data about all elements at once.
pub fn validate_rows(
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
    for (row, kind, error) in shape.find_violations(call, tx, &mut proposed, |row| base(element(row)))? {
        failures.add(element(row), kind, error);
    }
    Ok(())
}

/// Finds elements that collide with each other and, once something is known to be wrong, with
/// what is stored. A batch that is right asks the database nothing.
pub fn find_taken(
    call: &Call,
    tx: &mut Tx<'_>,
    (shape, owner): (&Shape, Option<&OwnerRow>),
    rows: &[NewRow],
    failures: &mut Failures,
) -> Result<(), Problem> {
    for unique in shape.unique {
        let columns = unique.columns();
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
        if call.steps.diagnose || !failures.all.is_empty() {
            find_stored(&call.context, tx, (shape, owner), unique, &columns, &keys, failures)?;
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
        && failures.taken.insert(error.pointer.clone())
    {
        failures.add(element, ProblemKind::Conflict, error);
    }
}

fn find_stored(
    context: &Context,
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
                add_taken(shape, unique, *element, failures);
            }
            Ok(())
        })?;
    }
    Ok(())
}
