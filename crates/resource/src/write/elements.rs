//! The elements of a body: checked against the field table, matched with their rows, then checked by the rules.

use std::collections::{HashMap, HashSet};

use chancery_record::{Draft, Field, FieldError, Form, Json, Provided, Value, pointer};
use chancery_store::{Tx, selectable};
use uuid::Uuid;

use crate::{
    Context, LIST, Problem, ProblemKind, Request, Shape, Writer,
    read::load::{key_name, load_keys},
    write::{
        failures::{Failures, find_duplicates, find_retired, validate_rows},
        pipeline::{Check, Row, Rows, Target, Writing},
        values::{changed_values, new_values},
    },
};

/// A row to be written, as it was read.
pub struct Element<'a> {
    number: usize,
    draft: Draft,
    /// The body, which is read in another form where [`Rows::Upsert`] creates a row.
    body: Option<&'a Json>,
}

impl Element<'_> {
    /// The only element.
    pub const fn only(draft: Draft) -> Self {
        Self { number: 0, draft, body: None }
    }
}

/// The bodies of the elements: one, or those of an array.
///
/// # Errors
/// No body, or no array; too many elements.
pub fn bodies(request: &Request, writing: Writing) -> Result<&[Json], Problem> {
    let body = request.body()?;
    if !writing.is_many {
        return Ok(std::slice::from_ref(body));
    }
    let Json::Array(elements) = body else {
        return Err(Problem::wrong_at("", format!("must be an array, not {}", body.word())));
    };
    check_count(request.op.shape, elements.len())?;
    Ok(elements)
}

/// Refuses a batch above the maximum size.
///
/// # Errors
/// Too many, with the bound.
pub fn check_count(shape: &Shape, count: usize) -> Result<(), Problem> {
    let most = shape.max_batch();
    if count <= most {
        return Ok(());
    }
    let included = match shape.rows_each() - 1 {
        0 => String::new(),
        more => format!(" Each {} comes with up to {more} rows of its own, which count.", shape.name),
    };
    let detail = format!("A batch takes at most {most} elements, not {count}.{included}");
    Err(Problem::new(ProblemKind::PayloadTooLarge, detail))
}

/// Reads every element against the field table; invalid ones are left out. Whether an element of
/// [`Rows::Upsert`] is new is known only later.
///
/// # Errors
/// No valid element is left.
pub fn read<'a>(
    shape: &Shape,
    writing: Writing,
    bodies: &'a [Json],
    failures: &mut Failures,
) -> Result<Vec<Element<'a>>, Problem> {
    let form = if writing.rows == Rows::New { Form::Create } else { writing.form };
    let mut elements = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let reduced = writing.only.map(|fields| only_members(shape, fields, body));
        match shape.read(form, reduced.as_ref().unwrap_or(body), &writing.base(number)) {
            Ok(mut draft) => {
                if let Some(fields) = writing.only {
                    draft.retain_fields(shape.fields, fields);
                }
                elements.push(Element { number, draft, body: Some(body) });
            }
            Err(errors) => failures.add_wrong(number, errors),
        }
    }
    if elements.is_empty() {
        failures.take().into_result()?;
    }
    Ok(elements)
}

/// A body reduced to the members that an operation on some members writes.
fn only_members(shape: &Shape, allowed: &[&Field], body: &Json) -> Json {
    let Json::Object(members) = body else { return body.clone() };
    let other = |name: &str| {
        shape.fields.iter().any(|field| {
            let is_allowed =
                field.is_token() || field.access.key || allowed.iter().any(|allowed| allowed.is(field));
            field.is_named(name) && !is_allowed
        })
    };
    Json::Object(members.iter().filter(|(name, _)| !other(name)).cloned().collect())
}

/// The rows to be written: matched, with the rules applied, and valid against the data. `check` checks an
/// existing row before it is changed. Errors are added to `failures`.
///
/// # Errors
/// Errors of the body as a whole.
pub fn to_rows(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    target: &Target<'_>,
    mut elements: Vec<Element<'_>>,
    check: Check<'_>,
    failures: &mut Failures,
) -> Result<Vec<Row>, Problem> {
    let Writer { context, shape, .. } = writer;
    let Target { writing, owner, .. } = *target;
    if shape.reads.found_by_token {
        find_by_token(context, tx, shape, &mut elements)?;
    }
    let keys = keys(shape, target, &mut elements, failures);
    let mut existing = load_keys(context, tx, shape, owner, &keys)?;
    let mut path_key = (!writing.is_many && writing.rows == Rows::Existing).then(|| keys.first()).flatten();
    let (mut rows, mut given_ids) = (Vec::new(), Vec::new());
    for Element { number, draft, body } in elements {
        let key = path_key.take().or_else(|| draft.provided(shape.plan().key));
        let was = key.and_then(|key| existing.remove(&key_name(key)));
        let values = match (&was, writing.rows) {
            (None, Rows::Existing) => {
                failures.add_unknown(shape, number);
                continue;
            }
            (None, _) => {
                if let Some(id @ Value::Id(_)) = key {
                    given_ids.push((number, id.clone()));
                }
                new_row(writer, target, number, draft, body, failures)?
            }
            (Some(was), _) => {
                if !writing.is_many {
                    check(tx, was)?;
                }
                let merges = writing.form == Form::MergePatch;
                let values = changed_values(context, shape, was, &draft, &writing.base(number), merges)?;
                values.map_err(|refusal| failures.add_refusal(number, refusal)).ok()
            }
        };
        rows.extend(values.map(|values| Row { element: number, was, values }));
    }
    find_retired(context, tx, shape, &given_ids, failures)?;
    validate_rows(writer, tx, &mut rows, failures)?;
    find_duplicates(writer, tx, owner, &rows, failures)?;
    Ok(rows)
}

/// The keys of the rows that may exist: the target's, or those of the elements. An element whose required key
/// is missing, or occurs twice, is recorded as a failure and left out.
fn keys(
    shape: &Shape,
    target: &Target<'_>,
    elements: &mut Vec<Element<'_>>,
    failures: &mut Failures,
) -> Vec<Value> {
    let writing = target.writing;
    match (writing.rows, &target.key) {
        (Rows::New, _) => return Vec::new(),
        (Rows::Existing, Some(key)) => return vec![key.clone()],
        _ => {}
    }
    let (key, wire) = (shape.plan().key, shape.key().map_or("id", |key| key.wire()));
    let token = shape.plan().token.filter(|_| shape.reads.found_by_token);
    let mut seen = HashSet::new();
    elements.retain(|Element { number, draft, .. }| {
        if draft.provided(key).is_none() && token.is_some_and(|token| draft.provided(token).is_some()) {
            // no row has the token that was to identify it any more
            let at = pointer(&writing.base(*number), "concurrencyToken");
            let error = FieldError::new(at, "is stale: no item has it now. Read the item again");
            failures.add(*number, ProblemKind::ConcurrencyConflict, error);
            return false;
        }
        let wrong = match draft.provided(key) {
            None if writing.rows == Rows::Upsert => return true,
            None => "is missing: in a batch each element names its own",
            Some(value) if !seen.insert(key_name(value)) => "is in this batch twice",
            Some(_) => return true,
        };
        let error = FieldError::new(pointer(&writing.base(*number), wire), wrong);
        failures.add(*number, ProblemKind::InvalidRequest, error);
        false
    });
    elements.iter().filter_map(|element| element.draft.provided(key).cloned()).collect()
}

/// The values of a new row, with the rules applied.
fn new_row(
    writer: Writer<'_>,
    target: &Target<'_>,
    number: usize,
    draft: Draft,
    body: Option<&Json>,
    failures: &mut Failures,
) -> Result<Option<Vec<Value>>, Problem> {
    let (shape, base) = (writer.shape, target.writing.base(number));
    let draft = if target.writing.rows == Rows::New {
        draft
    } else {
        match shape.read(Form::Create, body.unwrap_or(&Json::Null), &base) {
            Ok(draft) => draft,
            Err(errors) => {
                failures.add_wrong(number, errors);
                return Ok(None);
            }
        }
    };
    let values = new_values(writer.context, shape, target.owner, &draft, &base)?;
    Ok(values.map_err(|errors| failures.add_wrong(number, errors)).ok())
}

selectable! {
    /// The token and the key of a row.
    struct TokenOfRow(key) {
        token: String = "t.concurrency_token",
        key: Uuid = "t.{key}",
    }
}

/// Gives each element without a key the key of the row with the element's token.
fn find_by_token(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    elements: &mut [Element<'_>],
) -> Result<(), Problem> {
    let (key, Some(token)) = (shape.plan().key, shape.plan().token) else { return Ok(()) };
    let column = shape.key().map_or("id", |key| key.column);
    let has_no_key = |draft: &&mut Draft| draft.provided(key).is_none() && draft.provided(token).is_some();
    let drafts = elements.iter_mut().map(|element| &mut element.draft);
    let mut drafts_without_key: Vec<&mut Draft> = drafts.filter(has_no_key).collect();
    for chunk in drafts_without_key.chunks_mut(LIST) {
        let columns = TokenOfRow::columns(column);
        let mut sql = shape.begin(context, &format!("SELECT {columns} FROM {} t WHERE ", shape.table));
        shape.add_reach(&mut sql, &context.scope, None);
        sql.add(" AND t.concurrency_token IN ");
        sql.add_list(chunk.iter().filter_map(|draft| draft.provided(token).cloned()));
        let mut ids = HashMap::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            let TokenOfRow { token, key } = TokenOfRow::read(row)?;
            ids.insert(token, key);
            Ok(())
        })?;
        for draft in chunk {
            let id = match draft.provided(token) {
                Some(Value::Text(token)) => ids.get(token).copied(),
                _ => None,
            };
            if let (Some(id), Some(slot)) = (id, draft.0.get_mut(key)) {
                *slot = Provided::Value(Value::Id(id));
            }
        }
    }
    Ok(())
}
