//! The subscription that a row belongs to: provided, or derived from the targets of the row.

use std::collections::{HashMap, HashSet};

use chancery_record::{Field, FieldOf, FieldType, Mismatch, Record, Value, fold};
use chancery_resource::{
    Context, LIST, Problem, ProposedRow, Scope, Sql, Tx, Violation, load_first, selectable, visible,
};
use uuid::Uuid;

use crate::{
    subscription::{SUBSCRIPTION, Subscription, SubscriptionId},
    violation::violation_at,
};

/// Fields that refer to a row of a subscription, each with its table.
pub type Targets = [(&'static Field, &'static str)];

/// Adds the condition that the scope covers the whole of the subscription in this column.
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

/// Resolves the subscriptions of rows, in the field `own`. The targets of a row must belong to its
/// subscription, and provide it where the row names none. A new row without either gets `Default`, if that
/// is the caller's only one. `is_global` rows have none.
pub fn resolve_subscription<R: Record, T: FieldType>(
    context: &Context,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
    own: FieldOf<R, Option<T>>,
    targets: &Targets,
    is_global: impl Fn(&ProposedRow<'_>) -> Result<bool, Mismatch>,
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    let mut known_by_target = HashSet::new();
    for (target, table) in targets {
        let ids: HashSet<Uuid> = rows.iter().filter_map(|row| target.id(row.values)).collect();
        let owners = subscriptions_of(tx, table, &ids.into_iter().collect::<Vec<_>>())?;
        for (index, row) in rows.iter_mut().enumerate() {
            let Some(owner) = target.id(row.values).and_then(|id| owners.get(&id)) else { continue };
            match own.field().id(row.values) {
                None => own.field().set(row.values, Value::Id(*owner)),
                Some(given) if given == *owner => {}
                Some(_) => violations.push(violation_at(index, *target, "belongs to another subscription")),
            }
            known_by_target.insert(index);
        }
    }
    let named: HashSet<Uuid> = rows.iter().filter_map(|row| own.field().id(row.values)).collect();
    let visible = visible(context, tx, &SUBSCRIPTION, &named.into_iter().collect::<Vec<_>>())?;
    let mut only = None;
    for (index, row) in rows.iter_mut().enumerate() {
        if row.was.is_some() || known_by_target.contains(&index) {
            continue;
        }
        match (own.field().id(row.values), is_global(row)?) {
            (None, true) => {}
            (Some(_), true) => {
                violations.push(violation_at(index, own, "must be empty: this is everyone's"));
            }
            (Some(given), false) if visible.contains_key(&given) => {}
            (Some(_), false) => violations.push(violation_at(index, own, "names no Subscription")),
            (None, false) => {
                let only = match only {
                    Some(only) => only,
                    None => *only.insert(only_subscription(context, tx)?),
                };
                match only {
                    Some(id) => own.field().set(row.values, Value::Id(id.0)),
                    None => violations.push(violation_at(index, own, "is missing: there is more than one")),
                }
            }
        }
    }
    Ok(violations)
}

/// The subscription `Default`, if it is the only one that the caller sees.
fn only_subscription(context: &Context, tx: &mut Tx<'_>) -> Result<Option<SubscriptionId>, Problem> {
    let found = load_first(context, tx, &SUBSCRIPTION, 2)?;
    let [only] = found.as_slice() else { return Ok(None) };
    let is_default = only.text(Subscription::NAME).is_some_and(|name| fold(name) == "default");
    Ok(if is_default { Some(only.get(Subscription::ID)?) } else { None })
}

selectable! {
    /// A row with its subscription.
    struct OwnedRow(subscription) {
        id: Uuid = "id",
        subscription: Uuid = "{subscription}",
    }
}

/// The subscription of each of these rows. A subscription is its own.
pub fn subscriptions_of(tx: &mut Tx<'_>, table: &str, ids: &[Uuid]) -> Result<HashMap<Uuid, Uuid>, Problem> {
    let columns = OwnedRow::columns(if table == "subscription" { "id" } else { "subscription_id" });
    let mut found = HashMap::with_capacity(ids.len());
    for chunk in ids.chunks(LIST) {
        let mut sql = Sql::new(format!("SELECT {columns} FROM {table} WHERE id IN "));
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let owned = OwnedRow::read(row)?;
            found.insert(owned.id, owned.subscription);
            Ok(())
        })?;
    }
    Ok(found)
}
