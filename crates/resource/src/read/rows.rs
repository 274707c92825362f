//! Rows as JSON, in chunks, with their nested arrays.

use chancery_store::Tx;

use crate::{
    Call, LIST, OwnerRow, Problem, Shape, Sql,
    read::{emit::write_row, nested, page::Position},
};

/// A chunk of rows as JSON, without their nested arrays.
#[derive(Default)]
pub struct Rows {
    /// Their JSON, concatenated.
    pub json: Vec<u8>,
    /// The rows' numbers, each with the end offset of its JSON.
    pub ends: Vec<(i64, usize)>,
    /// The last row's position, if the chunk is full.
    pub last: Option<Position>,
}

impl Rows {
    /// Writes them with their nested arrays, with a comma before unless they are the first.
    pub fn write(
        &self,
        call: &mut Call,
        tx: &mut Tx<'_>,
        shape: &Shape,
        first: &mut bool,
    ) -> Result<(), Problem> {
        let mut start = 0;
        for chunk in self.ends.chunks(LIST) {
            let mut rids: Vec<i64> = chunk.iter().map(|(rid, _)| *rid).collect();
            rids.sort_unstable();
            let is_flat = call.request.minimal;
            let items =
                if is_flat { Vec::new() } else { nested::load(tx, shape, &call.context.scope, &rids)? };
            for (rid, end) in chunk {
                if !*first {
                    call.answer.bytes.push(b',');
                }
                *first = false;
                call.answer.bytes.extend_from_slice(self.json.get(start..*end).unwrap_or_default());
                start = *end;
                nested::write(tx, shape, &call.context.scope, &items, *rid, &mut call.answer)?;
                call.answer.flush_if_large()?;
            }
        }
        Ok(())
    }
}

/// Writes those rows of a resource that meet a condition as one array, in this order and at most this many, as
/// part of the answer of a custom operation. `t` is the table.
pub fn write_items(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    owner: Option<&OwnerRow>,
    condition: &dyn Fn(&mut Sql),
    order: &str,
) -> Result<(), Problem> {
    call.answer.bytes.push(b'[');
    add_items(call, tx, shape, owner, condition, order, &mut true)?;
    call.answer.bytes.push(b']');
    Ok(())
}

/// The same without brackets, with a comma before unless these are the first.
pub fn add_items(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    owner: Option<&OwnerRow>,
    condition: &dyn Fn(&mut Sql),
    order: &str,
    first: &mut bool,
) -> Result<(), Problem> {
    let mut sql = shape.select(&call.context, owner.map(|owner| owner.rid));
    condition(&mut sql);
    sql.add(order);
    let mut rows = Rows::default();
    tx.query(&sql.text, &sql.parameters, |row| {
        write_row(shape, &call.context.app.master, &call.context.scope, owner, row, &mut rows.json)?;
        rows.ends.push((row.int(0)?, rows.json.len()));
        Ok(())
    })?;
    rows.write(call, tx, shape, first)
}
