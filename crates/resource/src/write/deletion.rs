//! Deleting a resource's row, with its audit entry and its event: hidden in the quarantine, or deleted
//! permanently.

use chancery_record::{Timestamp, Value};
use chancery_store::{StateTable, Tx, raw};
use uuid::Uuid;

use crate::{
    Context, Deletion, LIST, Personal, Problem, Scope, Shape, StoredRow,
    audit::entry::{Details, Entry, RowAction, content, record},
    audit::person::person,
    declare::event_name::EventName,
    event_name,
    settings::{Flag, Setting, UserStoreOption},
    write::change::{finish, next_number},
    write::protect::check_act,
};

/// Deletes a row, or hides it where the resource's quarantine is enabled.
pub fn delete(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    let shape = shape.base();
    if !shape.writes.is_removable {
        check_act(context, tx, shape, was)?;
    }
    let hides = hides(context, shape);
    if matches!(shape.personal, Personal::Is(_)) && !hides {
        // the key is deleted with the person: contents encrypted now could never be read
        return destroy(context, tx, shape, was, event_name!("deleted"));
    }
    let person = person(context, tx, shape, &was.values, was.owner.as_ref())?;
    let number = next_number(context, was);
    let mut values = was.values.clone();
    match shape.deletes.deletion {
        Deletion::Quarantine { field, .. } if hides => {
            field.set(&mut values, Value::Int(context.now.0));
            let column = field.column;
            let text = format!(
                "UPDATE {} SET {column} = ?1, last_entry = ?3 WHERE rid = ?2 AND {column} IS NULL",
                shape.table
            );
            raw::queue_one(
                tx,
                &text,
                vec![Value::Int(context.now.0), Value::Int(was.rid), Value::Int(number)],
            )?;
        }
        _ => remove(context, tx, shape, was)?,
    }
    finish(context, tx, shape, &values)?;
    record(
        context,
        tx,
        Entry {
            number,
            person,
            shape,
            values: &was.values,
            action: RowAction::Deleted,
            event: event_name!("deleted"),
            original: Some(content(shape, &was.values)),
            current: None,
            details: Details::None {},
        },
    )
}

/// Purges a row, and with a person the person's key, so that contents in the audit trail can no longer be read.
/// The entry `Deleted`, without contents, is the only one about it: it explains the gaps.
pub fn purge(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    let shape = shape.base();
    check_act(context, tx, shape, was)?;
    destroy(context, tx, shape, was, event_name!("purged"))
}

fn destroy(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    event: EventName,
) -> Result<(), Problem> {
    remove(context, tx, shape, was)?;
    if matches!(shape.personal, Personal::Is(_)) {
        tx.note_erasure();
        // stored answers that show several people are not encrypted under a key of this person alone; a job blanks them, since
        // there may be any number. Clocks of processes differ: the newest answer counts, however new it claims to be
        let text = StateTable::IdempotentErasure.insert(
            "(store, erased_on) SELECT ?1, CASE WHEN a.newest > ?2 THEN a.newest ELSE ?2 END \
             FROM (SELECT max(started_on) AS newest FROM idempotent_answer WHERE shows_of = ?1) a \
             WHERE a.newest IS NOT NULL \
             ON CONFLICT (store) DO UPDATE SET erased_on = excluded.erased_on \
             WHERE idempotent_erasure.erased_on < excluded.erased_on",
        );
        tx.queue(&text, vec![Value::Int(context.scope.store()), Value::Int(context.now.0)])?;
    }
    finish(context, tx, shape, &was.values)?;
    let number = next_number(context, was);
    record(
        context,
        tx,
        Entry {
            number,
            person: None,
            shape,
            values: &was.values,
            action: RowAction::Deleted,
            event,
            original: None,
            current: None,
            details: Details::None {},
        },
    )?;
    if let (Personal::Is(_), id @ Value::Id(_)) = (&shape.personal, was.value(shape.plan().key)) {
        let parameters =
            vec![Value::Int(number), Value::Int(context.scope.store()), shape.name.into(), id.clone()];
        let text = "(number, store, resource, person) VALUES (?1, ?2, ?3, ?4)";
        tx.queue(&StateTable::Erasure.insert(text), parameters)?;
    }
    Ok(())
}

fn remove(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    let text = format!("DELETE FROM {} WHERE rid = ?1", shape.table);
    raw::queue_one(tx, &text, vec![Value::Int(was.rid)])?;
    retire_id(context, tx, shape, was)
}

/// Deletes or checks the dependents of purged rows, by the resource's `on_purge`.
pub fn purged(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[StoredRow],
) -> Result<(), Problem> {
    let shape = shape.base();
    let Some(on_purge) = shape.deletes.on_purge else { return Ok(()) };
    let id = |row: &StoredRow| if let Value::Id(id) = row.value(shape.plan().key) { Some(*id) } else { None };
    let ids: Vec<Uuid> = rows.iter().filter_map(id).collect();
    ids.chunks(LIST).try_for_each(|chunk| on_purge(context, tx, chunk))
}

/// Purges the rows that have been in quarantine since this moment or longer, the oldest first, and at most
/// `limit`. Returns their number.
pub fn purge_due(
    context: &mut Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    since: Timestamp,
    limit: usize,
) -> Result<usize, Problem> {
    let Some(column) = shape.deletes.deletion.hiding().map(|field| field.column) else { return Ok(0) };
    let sql = shape.select_hidden(context).push(&format!(" AND t.{column} <= ")).bind(since.0);
    let sql = sql.push(&format!(" ORDER BY t.{column} LIMIT {limit}"));
    let mut due = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        due.push(StoredRow::read(shape, &context.scope, None, row)?);
        Ok(())
    })?;
    due.iter().try_for_each(|row| purge(context, tx, shape, row))?;
    purged(context, tx, shape, &due)?;
    Ok(due.len())
}

/// Whether a DELETE hides rows of this resource, in this store, instead of removing them.
pub fn hides(context: &Context, shape: &Shape) -> bool {
    matches!(shape.deletes.deletion, Deletion::Quarantine { option, .. } if is_on(context, option))
}

fn is_on(context: &Context, option: Setting<UserStoreOption, Flag>) -> bool {
    matches!(&context.scope, Scope::Store(store) if store.options.get(option))
}

fn retire_id(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    // rows that are identified by another row's id can be created again
    if let (id @ Value::Id(_), Some("id")) = (was.value(shape.plan().key), shape.key().map(|key| key.column))
    {
        let parameters = vec![Value::Int(context.scope.store()), shape.name.into(), id.clone()];
        raw::queue(tx, "INSERT INTO retired_id (store, resource, id) VALUES (?1, ?2, ?3)", parameters)?;
    }
    Ok(())
}
