//! What a body says of rows: its elements, each against the field table, then the rows that they name,
//! then the rules.

use std::collections::{HashMap, HashSet};

use chancery_record::{Draft, Field, FieldError, Form, Given, Json, Value, pointer};
use chancery_store::Tx;

use crate::{
    Call, Context, OwnerRow, Problem, ProblemKind, Shape,
    read::{
        emit::Stored,
        load::{key_name, key_of, load_keys},
        precondition::check_if_match,
        sql::LIST,
    },
    write::{
        failures::{Failures, find_retired, find_taken, validate_rows},
        pipeline::{Row, Rows, Writing},
        values::{changed_values, new_values},
    },
};

/// The most elements of a batch.
pub const MAX_BATCH: usize = 10_000;

/// An element that was read.
pub struct Element {
    number: usize,
    draft: Draft,
}

/// The bodies of the elements: one, or those of an array.
///
/// # Errors
/// There is no body, or no array; too many elements.
pub fn bodies(call: &Call, writing: Writing) -> Result<&[Json], Problem> {
    let body = call.request.body()?;
    if !writing.is_many {
        return Ok(std::slice::from_ref(body));
    }
    let Json::Array(elements) = body else {
        return Err(Problem::wrong_at("", format!("must be an array, not {}", body.word())));
    };
    if elements.len() > MAX_BATCH {
        let detail = format!("A batch takes at most {MAX_BATCH} elements, not {}.", elements.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    Ok(elements)
}

/// Reads every element against the field table; those that are wrong are left out. Whether one that may be
/// either is new shows later.
///
/// # Errors
/// There is nothing left to do.
pub fn read(call: &Call, writing: Writing, failures: &mut Failures) -> Result<Vec<Element>, Problem> {
    let shape = call.request.op.shape;
    let form = if writing.rows == Rows::New { Form::Create } else { writing.form };
    let mut elements = Vec::new();
    for (number, body) in bodies(call, writing)?.iter().enumerate() {
        let cut = writing.only.map(|fields| only_members(shape, fields, body));
        match shape.read(form, cut.as_ref().unwrap_or(body), &writing.base(number)) {
            Ok(mut draft) => {
                if let Some(fields) = writing.only {
                    draft.keep_only(shape.fields, fields);
                }
                elements.push(Element { number, draft });
            }
            Err(errors) => failures.add_wrong(number, errors),
        }
    }
    if elements.is_empty() {
        failures.take().into_result()?;
    }
    Ok(elements)
}

/// A body without the members that an operation on some members does not write.
fn only_members(shape: &Shape, kept: &[&Field], body: &Json) -> Json {
    let Json::Object(members) = body else { return body.clone() };
    let other = |name: &str| {
        shape.fields.iter().any(|field| {
            let is_kept = field.is_token() || field.access.key || kept.iter().any(|kept| kept.is(field));
            field.is_named(name) && !is_kept
        })
    };
    Json::Object(members.iter().filter(|(name, _)| !other(name)).cloned().collect())
}

/// The rows as they are to be: found, by the rules, and valid against the data. What is wrong is noted.
///
/// # Errors
/// The store's, and what is wrong with the whole body.
pub fn to_rows(
    call: &mut Call,
    tx: &mut Tx<'_>,
    (writing, owner): (Writing, Option<&OwnerRow>),
    mut elements: Vec<Element>,
    failures: &mut Failures,
) -> Result<Vec<Row>, Problem> {
    let shape = call.request.op.shape;
    if shape.found_by_token {
        find_by_token(&call.context, tx, shape, &mut elements)?;
    }
    let keys = keys(call, writing, &mut elements, failures)?;
    let mut found = load_keys(&call.context, tx, shape, owner, &keys)?;
    let mut path_key = (!writing.is_many && writing.rows == Rows::There).then(|| keys.first()).flatten();
    let (mut rows, mut brought) = (Vec::new(), Vec::new());
    for Element { number, draft } in elements {
        let key = path_key.take().or_else(|| draft.given(shape.plan().key));
        let was = key.and_then(|key| found.remove(&key_name(key)));
        let values = match (&was, writing.rows) {
            (None, Rows::There) => {
                failures.add_unknown(shape, number);
                continue;
            }
            (None, _) => {
                if let Some(id @ Value::Id(_)) = key {
                    brought.push((number, id.clone()));
                }
                new_row(call, (writing, owner), number, draft, failures)?
            }
            (Some(was), _) => changed_row(call, tx, writing, (number, &draft, was), failures)?,
        };
        rows.extend(values.map(|values| Row { element: number, was, values }));
    }
    find_retired(&call.context, tx, shape, &brought, failures)?;
    validate_rows(call, tx, shape, &mut rows, failures)?;
    find_taken(call, tx, (shape, owner), &rows, failures)?;
    Ok(rows)
}

/// The keys of rows that may be there: the path's, or those that elements name. One that is missing where
/// it is needed, or there twice, is noted, and its element left out.
fn keys(
    call: &Call,
    writing: Writing,
    elements: &mut Vec<Element>,
    failures: &mut Failures,
) -> Result<Vec<Value>, Problem> {
    let shape = call.request.op.shape;
    match (writing.rows, writing.is_many) {
        (Rows::New, _) => return Ok(Vec::new()),
        (Rows::There, false) => return Ok(vec![key_of(call, shape)?]),
        _ => {}
    }
    let (key, wire) = (shape.plan().key, shape.key().map_or("id", |key| key.wire()));
    let token = shape.plan().token.filter(|_| shape.found_by_token);
    let mut seen = HashSet::new();
    elements.retain(|Element { number, draft }| {
        if draft.given(key).is_none() && token.is_some_and(|token| draft.given(token).is_some()) {
            // the token that was to name the row is no row's any more
            let at = pointer(&writing.base(*number), "concurrencyToken");
            let error = FieldError::new(at, "is stale: no item has it now. Read the item again");
            failures.add(*number, ProblemKind::ConcurrencyConflict, error);
            return false;
        }
        let wrong = match draft.given(key) {
            None if writing.rows == Rows::Either => return true,
            None => "is missing: in a batch each element names its own",
            Some(value) if !seen.insert(key_name(value)) => "is in this batch twice",
            Some(_) => return true,
        };
        let error = FieldError::new(pointer(&writing.base(*number), wire), wrong);
        failures.add(*number, ProblemKind::InvalidRequest, error);
        false
    });
    Ok(elements.iter().filter_map(|element| element.draft.given(key).cloned()).collect())
}

/// The values of a new row by the rules.
fn new_row(
    call: &Call,
    (writing, owner): (Writing, Option<&OwnerRow>),
    number: usize,
    draft: Draft,
    failures: &mut Failures,
) -> Result<Option<Vec<Value>>, Problem> {
    let (shape, base) = (call.request.op.shape, writing.base(number));
    let draft = if writing.rows == Rows::New {
        draft
    } else {
        let body = bodies(call, writing)?.get(number).unwrap_or(&Json::Null);
        match shape.read(Form::Create, body, &base) {
            Ok(draft) => draft,
            Err(errors) => {
                failures.add_wrong(number, errors);
                return Ok(None);
            }
        }
    };
    let values = new_values(&call.context, shape, owner, &draft, &base)?;
    Ok(values.map_err(|errors| failures.add_wrong(number, errors)).ok())
}

/// The values of a changed row by the rules.
fn changed_row(
    call: &mut Call,
    tx: &mut Tx<'_>,
    writing: Writing,
    (number, draft, was): (usize, &Draft, &Stored),
    failures: &mut Failures,
) -> Result<Option<Vec<Value>>, Problem> {
    let shape = call.request.op.shape;
    if !writing.is_many {
        check_if_match(call, tx, shape, was)?;
    }
    let place = (writing.base(number), call.request.merge_patch);
    let values = changed_values(&call.context, shape, was, draft, (&place.0, place.1))?;
    Ok(values.map_err(|refusal| failures.add_refusal(number, refusal)).ok())
}

/// Gives elements that name no key that of the row which has their token.
fn find_by_token(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    elements: &mut [Element],
) -> Result<(), Problem> {
    let (key, Some(token)) = (shape.plan().key, shape.plan().token) else { return Ok(()) };
    let column = shape.key().map_or("id", |key| key.column);
    let is_unnamed = |draft: &&mut Draft| draft.given(key).is_none() && draft.given(token).is_some();
    let drafts = elements.iter_mut().map(|element| &mut element.draft);
    let mut unnamed: Vec<&mut Draft> = drafts.filter(is_unnamed).collect();
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
