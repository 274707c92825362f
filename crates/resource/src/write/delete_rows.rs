//! Deleting rows, one or many; of a batch all or none.

use std::collections::HashSet;

use chancery_record::{Form, Json, Value};
use chancery_store::Tx;

use crate::{
    Answer, Call, Context, Problem, ProblemKind, Shape, StoredRow,
    read::{
        answer::reply,
        load::{key_name, key_of, load_keys, owner_of},
        precondition::check_if_match,
    },
    write::{
        deletion,
        elements::bodies,
        failures::Failures,
        integrity::find_children,
        pipeline::{Rows, Writing},
        protect::check_deletions,
    },
};

/// Deletes the row of the path, or the rows whose keys the body lists.
///
/// # Errors
/// Each key that is malformed or unknown; a row that still has children.
pub fn delete_rows(call: &mut Call, tx: &mut Tx<'_>, is_many: bool) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let writing = Writing { is_many, ..Writing::one(Rows::Existing, Form::Put) };
    let mut failures = Failures::of(writing);
    let keys =
        if is_many { listed_keys(shape, bodies(&call.request, writing)?, &mut failures) } else { Vec::new() };
    let owner = owner_of(call, tx, shape)?;
    let keys = if is_many { keys } else { vec![(0, key_of(call, shape)?)] };
    let key_values: Vec<Value> = keys.iter().map(|(_, key)| key.clone()).collect();
    let mut rows_by_key = load_keys(&call.context, tx, shape, owner.as_ref(), &key_values)?;
    let (mut rows, mut elements) = (Vec::new(), Vec::new());
    for (element, key) in keys {
        match rows_by_key.remove(&key_name(&key)) {
            Some(row) => {
                rows.push(row);
                elements.push(element);
            }
            None => failures.add_unknown_whole(shape, element),
        }
    }
    if let (false, [row]) = (is_many, rows.as_slice()) {
        check_if_match(call, tx, shape, row)?;
    }
    delete_loaded(&mut call.context, tx, shape, &rows, &elements, failures)?;
    if is_many {
        return Ok(Answer::new(call.request.op.status));
    }
    reply(call, tx, owner.as_ref(), None)
}

/// Deletes a row that was loaded.
///
/// # Errors
/// The row still has children; it carries roles that the caller does not hold.
pub fn delete_one(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    row: StoredRow,
) -> Result<(), Problem> {
    let failures = Failures::of(Writing::one(Rows::Existing, Form::Put));
    delete_loaded(context, tx, shape, &[row], &[0], failures)
}

fn delete_loaded(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    rows: &[StoredRow],
    elements: &[usize],
    mut failures: Failures,
) -> Result<(), Problem> {
    let writing = failures.writing();
    for (row, detail) in find_children(tx, shape, rows)? {
        failures.add_has_children(shape, elements.get(row).copied().unwrap_or(0), detail);
    }
    failures.into_result()?;
    let base =
        |element: usize| elements.get(element).map_or_else(String::new, |element| writing.base(*element));
    let targets = rows.iter().enumerate().map(|(index, row)| (base(index), row));
    check_deletions(context, tx, shape, targets)?;
    for row in rows {
        deletion::delete(context, tx, shape, row)?;
    }
    if !deletion::hides(context, shape) {
        deletion::purged(context, tx, shape, rows)?;
    }
    Ok(())
}

/// The distinct keys of a body, each with the index of its element.
fn listed_keys(shape: &Shape, elements: &[Json], failures: &mut Failures) -> Vec<(usize, Value)> {
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for (element, body) in elements.iter().enumerate() {
        let Json::Text(text) = body else {
            let detail = format!("must be a string, not {}", body.word());
            failures.add_whole(element, ProblemKind::InvalidRequest, detail);
            continue;
        };
        match shape.read_key(text) {
            Ok(key) if seen.insert(key_name(&key)) => keys.push((element, key)),
            Ok(_) => {}
            Err(_) => {
                let detail = if shape.has_id() { "must be a UUID" } else { "is no key of this resource" };
                failures.add_whole(element, ProblemKind::InvalidRequest, detail);
            }
        }
    }
    keys
}
