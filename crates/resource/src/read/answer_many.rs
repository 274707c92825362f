//! Answers with rows that were just written, and with many rows.

use chancery_record::Value;
use chancery_store::Tx;

use crate::{
    Call, Context, LIST, MAX_RELATED, Problem, ProblemKind, Shape, StoredRow,
    read::emit::{shown_members, write_no_relations, write_values},
    read::nested::{self, count_links},
};

/// Writes a new row, whose sets are empty.
pub fn write_new(call: &mut Call, shape: &Shape, values: &[Value]) {
    write_values(shape, &call.context.app.master, &call.context.scope, values, &mut call.answer.bytes);
    write_no_relations(shape, &mut call.answer.bytes);
}

/// Writes new rows, whose sets are empty, as an array.
pub fn write_new_rows<'a>(call: &mut Call, shape: &Shape, rows: impl Iterator<Item = &'a [Value]>) {
    call.answer.bytes.push(b'[');
    for (index, values) in rows.enumerate() {
        if index > 0 {
            call.answer.bytes.push(b',');
        }
        write_new(call, shape, values);
    }
    call.answer.bytes.push(b']');
}

/// Writes many rows as an array, with their relations. Other writers wait for a write and its answer, so the
/// answer of a write is bounded.
///
/// # Errors
/// Sets that are too large together.
pub fn write_all(call: &mut Call, tx: &mut Tx<'_>, shape: &Shape, rows: &[StoredRow]) -> Result<(), Problem> {
    let scope = call.context.scope.clone().to_be_changed(false);
    call.answer.bytes.push(b'[');
    let (mut first, mut shown) = (true, 0);
    for chunk in rows.chunks(LIST) {
        let mut rids: Vec<i64> = chunk.iter().map(|row| row.rid).collect();
        rids.sort_unstable();
        let items = nested::load(tx, shape, &scope, &rids)?;
        if call.request.op.writes() {
            let (count, has_more) = nested::count(&items);
            shown += count;
            if shown > MAX_RELATED {
                return Err(too_much_to_show());
            }
            for relation in shape.relations.iter().filter(|_| has_more) {
                count_links(tx, relation, &rids).map_err(|problem| match problem.kind {
                    ProblemKind::PayloadTooLarge => too_much_to_show(),
                    _ => problem,
                })?;
            }
        }
        for row in chunk {
            if !first {
                call.answer.bytes.push(b',');
            }
            first = false;
            write_values(shape, &call.context.app.master, &scope, &row.values, &mut call.answer.bytes);
            nested::write(tx, shape, &scope, &items, row.rid, &mut call.answer)?;
        }
    }
    call.answer.bytes.push(b']');
    Ok(())
}

fn too_much_to_show() -> Problem {
    let detail = format!(
        "The sets of these rows have more than {MAX_RELATED} links to be shown. Send Prefer: return=minimal, or fewer rows."
    );
    Problem::new(ProblemKind::PayloadTooLarge, detail)
}

/// Rows as in answers: their own members, and the requested ones of their relations.
///
/// # Errors
/// Sets that are too large together.
pub fn represent(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[StoredRow],
    requested: &[&str],
) -> Result<Vec<serde_json::Value>, Problem> {
    let mut objects: Vec<serde_json::Value> =
        rows.iter().map(|row| shown_members(context, shape, &row.values).into()).collect();
    let scope = context.scope.clone().to_be_changed(false);
    let rids: Vec<i64> = rows.iter().map(|row| row.rid).collect();
    for relation in shape.relations.iter().filter(|relation| requested.contains(&relation.name)) {
        count_links(tx, relation, &rids)?;
        for (rids, objects) in rids.chunks(LIST).zip(objects.chunks_mut(LIST)) {
            for (set, object) in nested::sets(tx, relation, &scope, rids)?.into_iter().zip(objects) {
                if let serde_json::Value::Object(members) = object {
                    members.insert(relation.name.to_owned(), set);
                }
            }
        }
    }
    Ok(objects)
}
