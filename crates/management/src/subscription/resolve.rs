//! Where a row belongs: its subscription, said or known from what it applies to.

use std::collections::{HashMap, HashSet};

use chancery_record::{Value, fold};
use chancery_resource::{
    Context, LIST, Problem, ProblemKind, Proposed, Scope, Shape, Sql, Tx, Violation, load_first, visible,
};
use uuid::Uuid;

use crate::subscription::SUBSCRIPTION;

/// Columns that name something of a subscription, each with its table.
pub type Targets = [(&'static str, &'static str)];

/// The id in a column.
pub fn id_in(shape: &Shape, values: &[Value], column: &str) -> Option<Uuid> {
    match shape.field_index(column).and_then(|place| values.get(place)) {
        Some(Value::Id(id)) => Some(*id),
        _ => None,
    }
}

/// The text in a column.
pub fn text_in<'a>(shape: &Shape, values: &'a [Value], column: &str) -> Option<&'a str> {
    match shape.field_index(column).and_then(|place| values.get(place)) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Puts a value into a column.
pub fn put(shape: &Shape, values: &mut [Value], column: &str, value: impl Into<Value>) {
    if let Some(slot) = shape.field_index(column).and_then(|place| values.get_mut(place)) {
        *slot = value.into();
    }
}

/// A member that is wrong.
pub fn wrong(row: usize, column: &'static str, detail: impl Into<String>) -> Violation {
    Violation { row, kind: ProblemKind::InvalidRequest, column, detail: detail.into() }
}

/// What the state does not allow.
pub fn conflict(row: usize, column: &'static str, detail: impl Into<String>) -> Violation {
    Violation { row, kind: ProblemKind::Conflict, column, detail: detail.into() }
}

/// Adds: the subscription in this column is within the parts that are the caller's as a whole.
pub fn is_covered(sql: &mut Sql, column: &str, scope: &Scope) {
    let Scope::Parts { customers, subscriptions, .. } = scope else { return sql.add("TRUE") };
    sql.add("(FALSE");
    if !subscriptions.is_empty() {
        sql.add(&format!(" OR {column} IN "));
        sql.add_list(subscriptions.iter().copied().map(Value::Id));
    }
    if !customers.is_empty() {
        sql.add(&format!(" OR {column} IN (SELECT id FROM subscription WHERE customer_id IN "));
        sql.add_list(customers.iter().copied().map(Value::Id));
        sql.add(")");
    }
    sql.add(")");
}

/// Settles the subscriptions of rows: what a row applies to must be of its subscription, and gives
/// it one. A new row that names none gets `Default` while that is the only one the caller has.
/// `is_global` rows have none.
///
/// # Errors
/// The store's.
pub fn resolve_subscription(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &mut [Proposed<'_>],
    targets: &Targets,
    is_global: impl Fn(&[Value]) -> bool,
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    let mut known_by_target = HashSet::new();
    for (column, table) in targets {
        let ids: HashSet<Uuid> = rows.iter().filter_map(|row| id_in(shape, row.values, column)).collect();
        let owners = subscriptions_of(tx, table, &ids.into_iter().collect::<Vec<_>>())?;
        for (place, row) in rows.iter_mut().enumerate() {
            let Some(owner) = id_in(shape, row.values, column).and_then(|id| owners.get(&id)) else {
                continue;
            };
            match id_in(shape, row.values, "subscription_id") {
                None => put(shape, row.values, "subscription_id", *owner),
                Some(own) if own == *owner => {}
                Some(_) => violations.push(wrong(place, column, "belongs to another subscription")),
            }
            known_by_target.insert(place);
        }
    }
    let named: HashSet<Uuid> =
        rows.iter().filter_map(|row| id_in(shape, row.values, "subscription_id")).collect();
    let visible = visible(context, tx, &SUBSCRIPTION, &named.into_iter().collect::<Vec<_>>())?;
    let mut only = None;
    for (place, row) in rows.iter_mut().enumerate() {
        if row.was.is_some() || known_by_target.contains(&place) {
            continue;
        }
        match (id_in(shape, row.values, "subscription_id"), is_global(row.values)) {
            (None, true) => {}
            (Some(_), true) => {
                violations.push(wrong(place, "subscription_id", "must be empty: this is everyone's"));
            }
            (Some(own), false) if visible.contains_key(&own) => {}
            (Some(_), false) => violations.push(wrong(place, "subscription_id", "names no Subscription")),
            (None, false) => {
                let only = match only {
                    Some(only) => only,
                    None => *only.insert(only_subscription(context, tx)?),
                };
                match only {
                    Some(id) => put(shape, row.values, "subscription_id", id),
                    None => {
                        violations.push(wrong(
                            place,
                            "subscription_id",
                            "is missing: there is more than one",
                        ));
                    }
                }
            }
        }
    }
    Ok(violations)
}

/// The subscription `Default`, while it is the only one the caller has.
fn only_subscription(context: &Context, tx: &mut Tx<'_>) -> Result<Option<Uuid>, Problem> {
    let found = load_first(context, tx, &SUBSCRIPTION, 2)?;
    let [only] = found.as_slice() else { return Ok(None) };
    let is_default = text_in(&SUBSCRIPTION, &only.values, "name").is_some_and(|name| fold(name) == "default");
    Ok(id_in(&SUBSCRIPTION, &only.values, "id").filter(|_| is_default))
}

/// The subscription of each of these rows.
pub fn subscriptions_of(tx: &mut Tx<'_>, table: &str, ids: &[Uuid]) -> Result<HashMap<Uuid, Uuid>, Problem> {
    let column = if table == "subscription" { "id" } else { "subscription_id" };
    let mut found = HashMap::with_capacity(ids.len());
    for chunk in ids.chunks(LIST) {
        let mut sql = Sql::new(format!("SELECT id, {column} FROM {table} WHERE id IN "));
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            found.insert(row.id(0)?, row.id(1)?);
            Ok(())
        })?;
    }
    Ok(found)
}
