//! The rows that a caller can see, by their ids.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_store::Tx;
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
        let mut sql = shape.begin(context, &format!("SELECT t.id, t.rid FROM {} t WHERE ", shape.source()));
        shape.add_reach(&mut sql, scope, None);
        sql.add(" AND t.id IN ");
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            known.insert(row.id(0)?, row.int(1)?);
            Ok(())
        })?;
    }
    Ok(known)
}
