//! The answers of operations on one row: the row as it is now, with its relations.

use chancery_record::{Record, Value, write_cell, write_string};
use chancery_store::Tx;

use crate::{
    Answer, Call, Context, Out, OwnerRow, Problem, Reply, Shape, Sql, StoredRow,
    read::emit::{write_row, write_values},
    read::load::{load, number_of, select_key},
    read::nested,
    read::precondition::{minimal, token_in, version_tag},
};

/// Answers with the row that a statement of [`Shape::select`] returns.
///
/// # Errors
/// Not found.
pub fn read_one(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    owner: Option<&OwnerRow>,
    sql: &Sql,
) -> Result<Answer, Problem> {
    if tx.answers_at_once() {
        return read_sequentially(call, tx, shape, owner, sql);
    }
    // the relations use the row's condition, so that they need not wait for its number
    let number = number_of(shape, sql);
    let relations: Vec<Sql> = shape
        .relations
        .iter()
        .map(|relation| nested::of_row(relation, &call.context.scope, &number))
        .collect();
    let mut statements = vec![(sql.text.as_str(), sql.parameters.as_slice())];
    statements.extend(relations.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())));
    let mut items: Vec<nested::Items> = relations.iter().map(|_| nested::Items::default()).collect();
    let mut rid = None;
    let (out, scope, master) = (&mut call.answer, &call.context.scope, &call.context.app.master);
    tx.query_all(&statements, &mut |index, row| {
        if let Some(relation) = index.checked_sub(1) {
            nested::collect(shape.relations, &mut items, relation, row)
        } else {
            rid = Some(row.int(0)?);
            write_row(shape, master, scope, owner, row, &mut out.bytes)
        }
    })?;
    let rid = rid.ok_or_else(|| Problem::not_found(shape.name))?;
    finish(call, tx, shape, rid, &items)
}

/// The most bytes of nested items of one resource in memory.
const MAX_IN_MEMORY: usize = 4 << 20;

/// Writes the nested items of a resource after its own members, and answers with it. A large resource is
/// streamed: its tag, and so the conditions on it, are known before.
fn finish(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rid: i64,
    items: &[nested::Items],
) -> Result<Answer, Problem> {
    if nested::are_many(items, MAX_IN_MEMORY) {
        let tag = version_tag(tx, shape, &call.context.scope, rid, &call.answer.bytes)?;
        if !call.request.op.writes()
            && call.request.preconditions.evaluate(&tag, token_in(&call.answer.bytes))? == 304
        {
            call.answer.bytes.clear();
            let mut answer = Answer::new(304);
            answer.headers.push(("etag", tag));
            return Ok(answer);
        }
        call.answer.begin(call.request.op.status, vec![("etag", tag.clone())]);
        call.answer.tag = Some(tag);
    }
    nested::write(tx, shape, &call.context.scope, items, rid, &mut call.answer)?;
    Ok(Answer::resource(call.request.op.status))
}

/// Reads the row, then its relations by its number.
fn read_sequentially(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    sql: &Sql,
) -> Result<Answer, Problem> {
    let mut rid = None;
    let (out, scope, master) = (&mut call.answer, &call.context.scope, &call.context.app.master);
    tx.query(&sql.text, &sql.parameters, |row| {
        rid = Some(row.int(0)?);
        write_row(shape, master, scope, owner, row, &mut out.bytes)
    })?;
    let rid = rid.ok_or_else(|| Problem::not_found(shape.name))?;
    let items = nested::load(tx, shape, scope, &[rid])?;
    finish(call, tx, shape, rid, &items)
}

/// Writes a row whose values are already loaded, and its relations.
pub fn write_stored(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    stored: &StoredRow,
) -> Result<(), Problem> {
    write_stored_to(&call.context, tx, shape, stored, &mut call.answer)
}

/// The same, for a caller in this context.
pub fn write_stored_to(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    stored: &StoredRow,
    out: &mut Out,
) -> Result<(), Problem> {
    // an answer contains what a read does, even where the caller may change less
    let scope = context.scope.clone().to_be_changed(false);
    let items = nested::load(tx, shape, &scope, &[stored.rid])?;
    let from = out.bytes.len();
    write_values(shape, &context.app.master, &scope, &stored.values, &mut out.bytes);
    if nested::are_many(&items, MAX_IN_MEMORY) {
        let own = out.bytes.get(from..).unwrap_or_default();
        out.tag = Some(version_tag(tx, shape, &scope, stored.rid, own)?);
    }
    nested::write(tx, shape, &scope, &items, stored.rid, out)
}

/// Answers with a custom object, as [`Reply::Form`] declares.
pub fn answer_form<R: Record>(call: &mut Call, record: R) -> Answer {
    let out = &mut call.answer.bytes;
    let mut separator = b'{';
    for (field, value) in R::FIELDS.iter().zip(record.into_values()) {
        out.push(separator);
        separator = b',';
        write_string(field.wire(), out);
        out.push(b':');
        write_cell(&field.kind, value.cell(), out);
    }
    out.push(b'}');
    Answer::new(call.request.op.status)
}

/// Answers a change as the operation declares.
pub fn reply(
    call: &mut Call,
    tx: &mut Tx<'_>,
    owner: Option<&OwnerRow>,
    stored: Option<&StoredRow>,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    match (call.request.op.reply, owner, shape.owner) {
        (Reply::Empty, ..) => return Ok(Answer::new(call.request.op.status)),
        (Reply::Owner, Some(row), Some(owner)) => {
            let stored = load(&call.context, tx, owner.shape, None, Value::Id(row.id))?;
            if call.request.minimal {
                return Ok(minimal(call, owner.shape, &stored));
            }
            write_stored(call, tx, owner.shape, &stored)?;
        }
        _ => {
            let Some(stored) = stored else { return Ok(Answer::new(call.request.op.status)) };
            return answer_with(call, tx, shape, stored);
        }
    }
    Ok(Answer::resource(call.request.op.status))
}

/// Answers with a row that was just changed: now, or after the commit where the row can be large.
pub fn answer_with(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    stored: &StoredRow,
) -> Result<Answer, Problem> {
    if call.request.minimal {
        return Ok(minimal(call, shape, stored));
    }
    let mut answer = Answer::resource(call.request.op.status);
    if shape.reads.large && call.request.reads_later {
        // the headers of the answer where the row cannot be read afterwards
        answer.headers = minimal(call, shape, stored).headers;
        answer.read_later = Some(stored.value(shape.plan().key).clone());
    } else {
        write_stored(call, tx, shape, stored)?;
    }
    Ok(answer)
}

/// Reads the resource of [`Answer::read_later`], in a transaction of its own.
///
/// # Errors
/// Not found, when the resource was deleted in between.
pub fn read_later(call: &mut Call, tx: &mut Tx<'_>, key: &Value) -> Result<Answer, Problem> {
    call.answer.restart()?;
    let shape = call.request.op.shape;
    let sql = select_key(&call.context, shape, None, key.clone());
    read_one(call, tx, shape, None, &sql)
}
