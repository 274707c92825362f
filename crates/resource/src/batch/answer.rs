//! What a batch answers.

use chancery_store::Tx;

use super::NewRow;
use crate::{
    Call, Problem, Shape,
    emit::{Stored, write_no_relations, write_values},
    nested,
    relate::count_links,
    sql::LIST,
};

/// Writes new rows without relations as an array.
pub fn write_new(call: &mut Call, shape: &Shape, rows: &[NewRow]) {
    call.out.bytes.push(b'[');
    for (index, (_, _, values)) in rows.iter().enumerate() {
        if index > 0 {
            call.out.bytes.push(b',');
        }
        write_values((shape, &call.desk.master), &call.scope, values, &mut call.out.bytes);
        write_no_relations(shape, &mut call.out.bytes);
    }
    call.out.bytes.push(b']');
}

/// Writes many rows as an array, with their relations.
pub fn write_all(call: &mut Call, tx: &mut Tx<'_>, shape: &Shape, rows: &[Stored]) -> Result<(), Problem> {
    let scope = call.scope.clone().to_be_changed(false);
    call.out.bytes.push(b'[');
    let mut first = true;
    for chunk in rows.chunks(LIST) {
        let mut rids: Vec<i64> = chunk.iter().map(|row| row.rid).collect();
        rids.sort_unstable();
        let items = nested::load(tx, shape, &scope, &rids)?;
        for row in chunk {
            if !first {
                call.out.bytes.push(b',');
            }
            first = false;
            write_values((shape, &call.desk.master), &scope, &row.values, &mut call.out.bytes);
            nested::write(tx, shape, &scope, &items, row.rid, &mut call.out)?;
        }
    }
    call.out.bytes.push(b']');
    Ok(())
}

/// Rows as they are answered: with their relations, or their own members alone.
///
/// # Errors
/// Sets that are too large together; the store's.
pub fn represent(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[Stored],
    with_relations: bool,
) -> Result<Vec<serde_json::Value>, Problem> {
    if with_relations {
        let rids: Vec<i64> = rows.iter().map(|row| row.rid).collect();
        for relation in shape.relations {
            count_links(tx, relation, &rids)?;
        }
        write_all(call, tx, shape, rows)?;
    } else {
        call.out.bytes.push(b'[');
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                call.out.bytes.push(b',');
            }
            write_values((shape, &call.desk.master), &call.scope, &row.values, &mut call.out.bytes);
            call.out.bytes.push(b'}');
        }
        call.out.bytes.push(b']');
    }
    let bytes = std::mem::take(&mut call.out.bytes);
    serde_json::from_slice(&bytes).map_err(|_| Problem::invalid("What is there cannot be read."))
}
