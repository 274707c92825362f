//! The rows that a caller can see, by their ids.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_store::{Tx, selectable};
use uuid::Uuid;

use crate::{Context, LIST, Problem, Scope, Shape};

/// Those of these ids that are in the caller's scope, with their row numbers.
pub fn visible(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, i64>, Problem> {
    visible_to(&context.scope, context, tx, shape, ids)
}

selectable! {
    /// A row that the caller can see.
    struct VisibleRow {
        id: Uuid = "t.id",
        rid: i64 = "t.rid",
    }
}

/// Those of these ids that are in the given scope.
pub fn visible_to(
    scope: &Scope,
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, i64>, Problem> {
    let mut known = HashMap::with_capacity(ids.len());
    for chunk in ids.chunks(LIST) {
        let columns = VisibleRow::COLUMNS;
        let mut sql = shape.begin(context, &format!("SELECT {columns} FROM {} t WHERE ", shape.source()));
        shape.add_reach(&mut sql, scope, None);
        sql.add(" AND t.id IN ");
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let VisibleRow { id, rid } = VisibleRow::read(row)?;
            known.insert(id, rid);
            Ok(())
        })?;
    }
    Ok(known)
}
