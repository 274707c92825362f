//! The only module that writes a resource's row, together with its audit entry and its event. Slices write
//! through [`insert`], [`update`] and their like in [`write`](super).

use std::collections::BTreeMap;

use chancery_record::{Column, Field, Sealing, Value, fold};
use chancery_store::{Tx, raw};
use uuid::Uuid;

use crate::{
    Context, OwnerRow, Problem, Relation, Shape, StoredRow,
    audit::entry::{
        Details, Entry, Links, RowAction, changed_members, content, fields_with, record, record_move, to_json,
    },
    audit::person::person,
    audit::placement::Placement,
    declare::event_name::EventName,
    event_name,
    seal::sealed::seal_secret,
    write::integrity::{WrittenRow, confine, register_postcondition},
    write::protect::{check_change, check_new, check_part},
    write::setter::with_setter,
};

/// The event of a change of fields that is no action of its own on the row.
pub const UPDATED: EventName = event_name!("updated");

/// The audit of a change that no body requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAction {
    /// Not audited, and no event: run-time state, such as a counter.
    Silent,
    /// Audited as a modification, with an event of this name.
    Modified(EventName),
}

impl AuditAction {
    /// Audited as a change of fields.
    pub const UPDATED: Self = Self::Modified(UPDATED);
}

/// Writes a new row.
pub fn insert(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    insert_row(context, tx, shape, owner, values)?;
    confine_one(context, tx, shape, true, values)
}

/// Writes a new row, which the caller confines; returns the number of its audit entry.
pub fn insert_row(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<i64, Problem> {
    let shape = shape.base();
    let values = &*with_setter(context, shape, None, owner, values);
    check_new(context, tx, shape, owner, values)?;
    let number = context.app.audit_signer.number(context.now, 0);
    write_new(context, tx, shape, owner, values, number)?;
    let current = content(shape, values);
    let changed = fields_with(shape, values).filter(|(_, value)| !value.is_null());
    finish(context, tx, shape, values)?;
    let person = person(context, tx, shape, values, owner)?;
    record(
        context,
        tx,
        Entry {
            number,
            person,
            shape,
            values,
            action: RowAction::Added,
            event: event_name!("created"),
            original: None,
            current: Some(current),
            details: changed_members(changed.map(|(field, _)| field)),
        },
    )?;
    shape.writes.after_insert.map_or(Ok(()), |after_insert| after_insert(context, tx, values))?;
    Ok(number)
}

/// Writes a new row that is itself a record of an event, and so is not audited.
pub fn insert_unaudited(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    write_new(context, tx, shape.base(), owner, values, 0)
}

fn write_new(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
    number: i64,
) -> Result<(), Problem> {
    let stored = stored(context, shape, values);
    let own = || fields_with(shape, &stored).filter(|(field, _)| field.access.column == Column::Own);
    let mut parameters = Vec::with_capacity(values.len() + 8);
    if shape.reach.is_store() {
        parameters.push(Value::Int(context.scope.store()));
    }
    parameters.extend(owner.map(|owner| Value::Int(owner.rid)));
    parameters.extend(own().map(|(_, value)| value.clone()));
    parameters.extend(own().filter(|(field, _)| field.access.folded).map(|(_, value)| folded(value)));
    parameters.push(Value::Int(number));
    raw::queue(tx, &shape.plan().insert, parameters)?;
    Ok(())
}

/// Writes the changed columns of a row and its new token, if the row is unchanged since it was read.
///
/// # Errors
/// A row that would be outside of the scope of the actor's roles.
pub fn update(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
) -> Result<(), Problem> {
    update_row(context, tx, shape, was, values)?;
    confine_one(context, tx, shape, false, values)
}

/// The same, which the caller confines.
pub fn update_row(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
) -> Result<(), Problem> {
    let shape = shape.base();
    let change = RowChange { was, values, token: shape.plan().token, event: UPDATED };
    change.write(context, tx, shape)
}

/// Writes the changed columns of a row, whatever its token: a change of state. Without a change, nothing is
/// written or audited.
///
/// # Errors
/// A row that would be outside of the scope of the actor's roles.
pub fn update_unversioned(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    action: AuditAction,
) -> Result<(), Problem> {
    let base = shape.base();
    if was.values == values {
        return Ok(());
    }
    match action {
        AuditAction::Silent => {
            let values = &*with_setter(context, base, Some(was), was.owner.as_ref(), values);
            check_change(context, tx, base, was, values, UPDATED)?;
            write_columns(context, tx, base, was, values, None, None).map(drop)?;
        }
        AuditAction::Modified(event) => {
            RowChange { was, values, token: None, event }.write(context, tx, base)?;
        }
    }
    confine_one(context, tx, shape, false, values)
}

/// Writes the changed columns of a row and its new token, if the row is unchanged since it was read, and audits
/// the change as given: a step of a workflow. Of two concurrent steps from the same state, one succeeds; the
/// other runs again and finds the new state.
///
/// # Errors
/// A row that would be outside of the scope of the actor's roles.
pub fn advance(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    mut values: Vec<Value>,
    event: EventName,
) -> Result<(), Problem> {
    let base = shape.base();
    let token = base.plan().token;
    if let Some(value) = token.and_then(|index| values.get_mut(index)) {
        *value = context.new_token();
    }
    RowChange { was, values: &values, token, event }.write(context, tx, base)?;
    confine_one(context, tx, shape, false, &values)
}

/// Audits a change of a row of a state table, which the caller writes.
pub fn audit_state(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    event: EventName,
) -> Result<(), Problem> {
    record_state(context, tx, shape, was, StateChange { values, action: RowAction::Modified, event })
}

/// Audits the deletion of a row of a state table, which the caller deletes.
pub fn audit_removal(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    event: EventName,
) -> Result<(), Problem> {
    let change = StateChange { values: &was.values, action: RowAction::Deleted, event };
    record_state(context, tx, shape, was, change)
}

/// A change of a row of a state table.
struct StateChange<'a> {
    values: &'a [Value],
    action: RowAction,
    event: EventName,
}

fn record_state(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    StateChange { values, action, event }: StateChange<'_>,
) -> Result<(), Problem> {
    check_part(context, tx, shape, was)?;
    let person = person(context, tx, shape, &was.values, was.owner.as_ref())?;
    let fields = shape.fields.iter().zip(&was.values).zip(values);
    let changed = fields.filter(|((_, before), now)| before != now).map(|((field, _), _)| field);
    record(
        context,
        tx,
        Entry {
            number: next_number(context, was),
            person,
            shape,
            values,
            action,
            event,
            original: Some(content(shape, &was.values)),
            current: Some(content(shape, values)),
            details: changed_members(changed),
        },
    )
}

fn confine_one(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    is_new: bool,
    values: &[Value],
) -> Result<(), Problem> {
    confine(context, tx, shape, std::iter::once(WrittenRow { base: String::new(), is_new, values }))
}

/// An audited change of a row.
struct RowChange<'a> {
    was: &'a StoredRow,
    values: &'a [Value],
    /// The index of the token, where the row must be unchanged since it was read.
    token: Option<usize>,
    /// The name of the event.
    event: EventName,
}

impl RowChange<'_> {
    /// Writes the changed columns, and the change's audit entry and event.
    fn write(self, context: &Context, tx: &mut Tx<'_>, shape: &Shape) -> Result<(), Problem> {
        let Self { was, values, token, event } = self;
        let values = &*with_setter(context, shape, Some(was), was.owner.as_ref(), values);
        check_change(context, tx, shape, was, values, event)?;
        let named = (event == UPDATED).then_some(shape.writes.name_change).flatten();
        let event = named.and_then(|name| name(&was.values, values)).unwrap_or(event);
        let number = next_number(context, was);
        let (before, after) =
            (Placement::of(context, shape, &was.values), Placement::of(context, shape, values));
        let moved = (before != after).then(|| context.app.audit_signer.number(context.now, number));
        let last = moved.unwrap_or(number);
        let changed = write_columns(context, tx, shape, was, values, token, Some(last))?;
        let person = person(context, tx, shape, &was.values, was.owner.as_ref())?;
        record(
            context,
            tx,
            Entry {
                number,
                person,
                shape,
                values: &was.values,
                action: RowAction::Modified,
                event,
                original: Some(content(shape, &was.values)),
                current: Some(content(shape, values)),
                details: changed_members(changed.into_iter()),
            },
        )?;
        moved.map_or(Ok(()), |number| record_move(context, tx, shape, values, number))
    }
}

/// The number of the next audit entry of a row.
pub(super) fn next_number(context: &Context, was: &StoredRow) -> i64 {
    context.app.audit_signer.number(context.now, was.last_entry)
}

fn write_columns(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    token: Option<usize>,
    number: Option<i64>,
) -> Result<Vec<&'static Field>, Problem> {
    let mut sql = crate::Sql::new(format!("UPDATE {} SET ", shape.table));
    let mut changed = Vec::new();
    let stored = stored(context, shape, values);
    for ((field, value), before) in shape.fields.iter().zip(stored.iter()).zip(&was.values) {
        if value == before || field.access.column != Column::Own {
            continue;
        }
        if !changed.is_empty() {
            sql.add(", ");
        }
        sql = sql.push(field.column).push(" = ").bind(value.clone());
        if field.access.folded {
            sql = sql.push(", ").push(field.column).push("_key = ").bind(folded(value));
        }
        changed.push(field);
    }
    if changed.is_empty() {
        return Ok(changed);
    }
    if let Some(number) = number {
        sql = sql.push(", last_entry = ").bind(number);
    }
    sql = sql.push(" WHERE rid = ").bind(was.rid);
    if let Some(index) = token {
        sql = sql.push(" AND concurrency_token = ").bind(was.value(index).clone());
    }
    raw::queue_one(tx, &sql.text, sql.parameters)?;
    finish(context, tx, shape, values)?;
    Ok(changed)
}

/// Applies the effects of any write of a row: after-write function, postcondition, epoch.
pub(super) fn finish(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    values: &[Value],
) -> Result<(), Problem> {
    if let Some(after_write) = shape.writes.after_write {
        after_write(context, tx, values)?;
    }
    register_postcondition(context, shape);
    if shape.writes.bumps_epoch {
        tx.advance_epoch()?;
    }
    Ok(())
}

/// The stored values, with secrets encrypted.
fn stored<'a>(context: &Context, shape: &Shape, values: &'a [Value]) -> std::borrow::Cow<'a, [Value]> {
    if !shape.plan().seals || !(shape.writes.secret)(values) {
        return values.into();
    }
    let key = values.get(shape.plan().key).unwrap_or(&Value::Null);
    let stored = fields_with(shape, values).map(|(field, value)| match field.access.sealing {
        Sealing::Secret => seal_secret(&context.app.master, shape.table, field, key, value),
        _ => value.clone(),
    });
    stored.collect()
}

/// Audits added and removed links: one entry with the ids, not the complete set. `relate` writes the links
/// themselves.
pub fn audit_links(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    relation: &Relation,
    owner: &StoredRow,
    added: &[Uuid],
    removed: &[Uuid],
) -> Result<(), Problem> {
    let shape = shape.base();
    if added.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let links = Links { added, removed };
    let change = to_json(&BTreeMap::from([(relation.audited_as, links)]))?;
    if shape.writes.bumps_epoch {
        tx.advance_epoch()?;
    }
    let person = person(context, tx, shape, &owner.values, None)?;
    record(
        context,
        tx,
        Entry {
            number: next_number(context, owner),
            person,
            shape,
            values: &owner.values,
            action: RowAction::Modified,
            event: event_name!("related"),
            original: None,
            current: Some(change),
            details: Details::of_links(relation.audited_as, links),
        },
    )
}

fn folded(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(fold(text)),
        other => other.clone(),
    }
}
