//! The one place that writes a resource's row, and with it its audit entry and its event.

use chancery_ledger::Stamp;
use chancery_record::{Column, Field, Sealing, Value, canonical_json, fold, format_timestamp, write_string};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    Call, Deletion, Problem, Reach, Relation, Scope, Shape,
    emit::Stored,
    seal::{Seal, Sealed},
    sealed::{PersonKey, entry_place, seal_secret},
    shape::Personal,
};

const CATEGORY: &str = "DatabaseRecordChange";

/// The owning row of an owned resource.
#[derive(Clone, Debug)]
pub struct OwnerRow {
    /// Its number.
    pub rid: i64,
    /// Its id.
    pub id: Uuid,
    /// Its key, as it is kept, when it is a person.
    pub person_key: Option<Vec<u8>>,
}

/// What a change that no body asks for is told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Not at all: run-time state, such as a counter.
    Silent,
    /// As an entry of this action, and an event of this name.
    As(&'static str, &'static str),
}

/// Writes a new row.
///
/// # Errors
/// The store's.
pub fn insert(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    append(call, tx, shape, owner, values)?;
    let current = content(shape, values);
    let changed = fields_with(shape, values).filter(|(_, value)| !value.is_null());
    settle(tx, shape)?;
    let person = person(call, tx, shape, values, owner)?;
    record(
        call,
        tx,
        Entry {
            person,
            area: shape.name,
            key: key_text(shape, values),
            action: "Added",
            event: "created",
            original: None,
            current: Some(current),
            data: changed_members(changed.map(|(field, _)| field)),
        },
    )
}

/// Writes a new row that is itself a record of what happened: no entry tells of it.
///
/// # Errors
/// The store's.
pub fn append(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    let kept = kept(call, shape, values);
    let own = || fields_with(shape, &kept).filter(|(field, _)| field.access.column == Column::Own);
    let mut parameters = Vec::with_capacity(values.len() + 8);
    if shape.reach == Reach::Store {
        parameters.push(Value::Int(call.scope.store()));
    }
    parameters.extend(owner.map(|owner| Value::Int(owner.rid)));
    parameters.extend(own().map(|(_, value)| value.clone()));
    parameters.extend(own().filter(|(field, _)| field.access.folded).map(|(_, value)| folded(value)));
    tx.queue(&shape.plan().insert, parameters)?;
    Ok(())
}

/// Writes the changed columns of a row and its new token, if it is still the row that was read.
///
/// # Errors
/// The store's.
pub fn update(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
) -> Result<(), Problem> {
    let token = shape.plan().token;
    let changed = write_columns(call, tx, shape, was, values, token)?;
    tell_change(call, tx, shape, was, values, &changed, ("Modified", "updated"))
}

/// Writes the changed columns of a row, whatever its token: a change of state. Nothing is done
/// and nothing told when nothing changed.
///
/// # Errors
/// The store's.
pub fn amend(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
    telling: Telling,
) -> Result<(), Problem> {
    if was.values == values {
        return Ok(());
    }
    let changed = write_columns(call, tx, shape, was, values, None)?;
    match telling {
        Telling::Silent => Ok(()),
        Telling::As(action, event) => tell_change(call, tx, shape, was, values, &changed, (action, event)),
    }
}

fn tell_change(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
    changed: &[&Field],
    (action, event): (&'static str, &'static str),
) -> Result<(), Problem> {
    let person = person(call, tx, shape, &was.values, was.owner.as_ref())?;
    record(
        call,
        tx,
        Entry {
            person,
            area: shape.name,
            key: key_text(shape, values),
            action,
            event,
            original: Some(content(shape, &was.values)),
            current: Some(content(shape, values)),
            data: changed_members(changed.iter().copied()),
        },
    )
}

fn write_columns(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    values: &[Value],
    token: Option<usize>,
) -> Result<Vec<&'static Field>, Problem> {
    let mut sql = crate::Sql::new(format!("UPDATE {} SET ", shape.table));
    let mut changed = Vec::new();
    let kept = kept(call, shape, values);
    for ((field, value), before) in shape.fields.iter().zip(kept.iter()).zip(&was.values) {
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
    sql = sql.push(" WHERE rid = ").bind(was.rid);
    if let Some(place) = token {
        sql = sql.push(" AND concurrency_token = ").bind(was.value(place).clone());
    }
    tx.queue_one(&sql.text, sql.parameters)?;
    settle(tx, shape)?;
    Ok(changed)
}

/// Removes a row, or hides it where the resource has a quarantine that is on.
///
/// # Errors
/// The store's.
pub fn delete(call: &Call, tx: &mut Tx<'_>, shape: &Shape, was: &Stored) -> Result<(), Problem> {
    let hides = hides(call, shape);
    if matches!(shape.personal, Personal::Is(_)) && !hides {
        // the key goes with the person: contents sealed now could never be read
        return destroy(call, tx, shape, was, "deleted");
    }
    let person = person(call, tx, shape, &was.values, was.owner.as_ref())?;
    match shape.deletion {
        Deletion::Quarantine { column, .. } if hides => {
            let text =
                format!("UPDATE {} SET {column} = ?1 WHERE rid = ?2 AND {column} IS NULL", shape.table);
            tx.queue_one(&text, vec![Value::Int(call.now.0), Value::Int(was.rid)])?;
        }
        _ => remove(call, tx, shape, was)?,
    }
    settle(tx, shape)?;
    record(
        call,
        tx,
        Entry {
            person,
            area: shape.name,
            key: key_text(shape, &was.values),
            action: "Deleted",
            event: "deleted",
            original: Some(content(shape, &was.values)),
            current: None,
            data: Vec::new(),
        },
    )
}

/// Removes a row for good, and with a person its key: what the trail says of them is gone. An entry
/// `Deleted` without contents tells of it, and nothing else does: it is what excuses the gaps.
///
/// # Errors
/// The store's.
pub fn purge(call: &Call, tx: &mut Tx<'_>, shape: &Shape, was: &Stored) -> Result<(), Problem> {
    destroy(call, tx, shape, was, "purged")
}

fn destroy(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &Stored,
    event: &'static str,
) -> Result<(), Problem> {
    remove(call, tx, shape, was)?;
    settle(tx, shape)?;
    record(
        call,
        tx,
        Entry {
            person: None,
            area: shape.name,
            key: key_text(shape, &was.values),
            action: "Deleted",
            event,
            original: None,
            current: None,
            data: Vec::new(),
        },
    )
}

fn remove(call: &Call, tx: &mut Tx<'_>, shape: &Shape, was: &Stored) -> Result<(), Problem> {
    let text = format!("DELETE FROM {} WHERE rid = ?1", shape.table);
    tx.queue_one(&text, vec![Value::Int(was.rid)])?;
    retire_id(call, tx, shape, was)
}

/// Whether a DELETE hides rows of this resource, here and now.
pub fn hides(call: &Call, shape: &Shape) -> bool {
    matches!(shape.deletion, Deletion::Quarantine { option, .. } if is_on(call, option))
}

fn is_on(call: &Call, option: &str) -> bool {
    matches!(&call.scope, Scope::Store(store) if store.options.flag(option))
}

fn settle(tx: &mut Tx<'_>, shape: &Shape) -> Result<(), Problem> {
    if shape.settles {
        tx.advance_epoch()?;
    }
    Ok(())
}

/// The values as they are kept: secrets sealed.
fn kept<'a>(call: &Call, shape: &Shape, values: &'a [Value]) -> std::borrow::Cow<'a, [Value]> {
    let seals = shape.fields.iter().any(|field| field.access.sealing == Sealing::Secret);
    if !seals || !(shape.secret)(values) {
        return values.into();
    }
    let key = values.get(shape.plan().key).unwrap_or(&Value::Null);
    let kept = fields_with(shape, values).map(|(field, value)| match field.access.sealing {
        Sealing::Secret => seal_secret(&call.desk.master, shape, field, key, value),
        _ => value.clone(),
    });
    kept.collect()
}

/// The key of the person that a row is or belongs to. One that has none yet gets it.
fn person(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    values: &[Value],
    owner: Option<&OwnerRow>,
) -> Result<Option<PersonKey>, Problem> {
    let master = &call.desk.master;
    let found = match (shape.personal, shape.owner, owner) {
        (Personal::Is(column), ..) => {
            let id = values.get(shape.plan().key);
            let kept = shape.place(column).and_then(|place| values.get(place));
            match (id, kept) {
                (Some(Value::Id(id)), Some(Value::Bytes(kept))) => {
                    Some((*id, Some(kept.clone()), shape, column))
                }
                (Some(Value::Id(id)), _) => Some((*id, None, shape, column)),
                _ => None,
            }
        }
        (Personal::Of(person, column), ..) => {
            let Some(Value::Id(id)) = shape.place(column).and_then(|place| values.get(place)) else {
                return Ok(None);
            };
            match person.personal {
                Personal::Is(column) => Some((*id, find_key(call, tx, person, column, *id)?, person, column)),
                _ => None,
            }
        }
        (_, Some(owner), Some(row)) => match owner.shape.personal {
            Personal::Is(column) => Some((row.id, row.person_key.clone(), owner.shape, column)),
            _ => None,
        },
        _ => None,
    };
    let Some((id, kept, shape, column)) = found else { return Ok(None) };
    if let Some(kept) = kept {
        return Ok(PersonKey::open(master, id, &kept));
    }
    let Value::Bytes(made) = PersonKey::make(master, id) else { return Ok(None) };
    let text =
        format!("UPDATE {} SET {column} = ?1 WHERE store = ?2 AND id = ?3 AND {column} IS NULL", shape.table);
    let parameters = vec![made.clone().into(), Value::Int(call.scope.store()), Value::Id(id)];
    tx.queue_one(&text, parameters)?;
    Ok(PersonKey::open(master, id, &made))
}

/// The key of a person as it is kept, if the person has one yet; hidden or not.
fn find_key(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    column: &str,
    id: Uuid,
) -> Result<Option<Vec<u8>>, Problem> {
    let text = format!("SELECT {column} FROM {} WHERE store = ?1 AND id = ?2", shape.table);
    let found = tx.one(&text, &[Value::Int(call.scope.store()), Value::Id(id)], |row| {
        Ok(if row.is_null(0)? { None } else { Some(row.bytes(0)?.to_vec()) })
    })?;
    Ok(found.flatten())
}

fn retire_id(call: &Call, tx: &mut Tx<'_>, shape: &Shape, was: &Stored) -> Result<(), Problem> {
    if let id @ Value::Id(_) = was.value(shape.plan().key) {
        let parameters = vec![Value::Int(call.scope.store()), shape.name.into(), id.clone()];
        tx.queue("INSERT INTO retired_id (store, resource, id) VALUES (?1, ?2, ?3)", parameters)?;
    }
    Ok(())
}

/// Records that links were added and removed: one entry with the ids, not the whole set. The
/// links themselves are written by `relate`.
pub fn related(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    relation: &Relation,
    owner: &Stored,
    added: &[Uuid],
    removed: &[Uuid],
) -> Result<(), Problem> {
    if added.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let mut change = Vec::new();
    change.extend_from_slice(b"{");
    write_string(relation.name, &mut change);
    change.extend_from_slice(b":{\"added\":");
    write_ids(added, &mut change);
    change.extend_from_slice(b",\"removed\":");
    write_ids(removed, &mut change);
    change.extend_from_slice(b"}}");
    let mut data = b",\"relation\":".to_vec();
    write_string(relation.name, &mut data);
    data.extend_from_slice(b",\"added\":");
    write_ids(added, &mut data);
    data.extend_from_slice(b",\"removed\":");
    write_ids(removed, &mut data);
    let person = person(call, tx, shape, &owner.values, None)?;
    record(
        call,
        tx,
        Entry {
            person,
            area: shape.name,
            key: key_text(shape, &owner.values),
            action: "Modified",
            event: "related",
            original: None,
            current: Some(String::from_utf8(change).unwrap_or_default()),
            data,
        },
    )
}

fn write_ids(ids: &[Uuid], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(&id.to_string(), out);
    }
    out.push(b']');
}

struct Entry<'a> {
    person: Option<PersonKey>,
    area: &'a str,
    key: String,
    action: &'static str,
    event: &'static str,
    original: Option<String>,
    current: Option<String>,
    /// Members of the event's data after its id, each with a leading comma.
    data: Vec<u8>,
}

const ENTRY: &str = "INSERT INTO audit_entry (rid, store, timestamp, actor, area, primary_key, \
    category, action, data_source, original_content, current_content, original_salt, \
    current_salt, original_digest, current_digest, signature, signature_public_key_info, person) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

/// Writes the audit entry and the event of a change.
fn record(call: &Call, tx: &mut Tx<'_>, entry: Entry<'_>) -> Result<(), Problem> {
    let seal = &call.desk.seal;
    let id = seal.number(call.now);
    let envelope = envelope(call, id, &entry);
    let user = call.actor.map(|actor| actor.to_string());
    let original = entry.original.map(Seal::seal);
    let current = entry.current.map(Seal::seal);
    let stamp = Stamp {
        id,
        timestamp: call.now,
        user: user.as_deref(),
        area: entry.area,
        primary_key: &entry.key,
        category: CATEGORY,
        action: entry.action,
        data_source: call.scope.source(),
    };
    let digest = |sealed: &Option<Sealed>| sealed.as_ref().map(|sealed| sealed.digest.clone());
    let (original_digest, current_digest) = (digest(&original), digest(&current));
    let signature = seal.sign(&stamp, original_digest.as_deref(), current_digest.as_deref());
    let (original, original_salt) = hidden(id, original, entry.person.as_ref(), ORIGINAL);
    let (current, current_salt) = hidden(id, current, entry.person.as_ref(), CURRENT);
    tx.queue(
        ENTRY,
        vec![
            Value::Int(id),
            Value::Int(call.scope.store()),
            Value::Int(call.now.0),
            user.into(),
            entry.area.into(),
            entry.key.as_str().into(),
            CATEGORY.into(),
            entry.action.into(),
            call.scope.source().into(),
            original.into(),
            current.into(),
            original_salt.into(),
            current_salt.into(),
            original_digest.into(),
            current_digest.into(),
            signature.into(),
            seal.public_key_info().to_vec().into(),
            entry.person.as_ref().map(|person| person.id).into(),
        ],
    )?;
    tx.queue(
        "INSERT INTO audit_pending (entry, store) VALUES (?1, ?2)",
        vec![Value::Int(id), Value::Int(call.scope.store())],
    )?;
    let parameters = vec![Value::Int(id), Value::Int(call.scope.store()), envelope.into()];
    tx.queue("INSERT INTO outbox_event (id, store, envelope) VALUES (?1, ?2, ?3)", parameters)?;
    Ok(())
}

type Side = (&'static str, &'static str);
const ORIGINAL: Side = ("original_content", "original_salt");
const CURRENT: Side = ("current_content", "current_salt");

/// Content and salt as they are kept: what belongs to a person under that person's key.
fn hidden(
    entry: i64,
    sealed: Option<Sealed>,
    person: Option<&PersonKey>,
    (content, salt): Side,
) -> (Option<String>, Option<Vec<u8>>) {
    match (sealed, person) {
        (None, _) => (None, None),
        (Some(sealed), None) => (Some(sealed.content), Some(sealed.salt.to_vec())),
        (Some(sealed), Some(person)) => (
            Some(person.seal_text(&entry_place(entry, content), &sealed.content)),
            Some(person.seal_bytes(&entry_place(entry, salt), &sealed.salt)),
        ),
    }
}

/// The event as a `CloudEvents` 1.0 envelope. It names ids and members, never values.
fn envelope(call: &Call, id: i64, entry: &Entry<'_>) -> String {
    let service = if call.scope.store() == 0 { "management" } else { "userstore" };
    let kind = format!("platform.{service}.{}.{}", entry.area.to_lowercase(), entry.event);
    let mut out = Vec::with_capacity(384 + entry.data.len());
    out.extend_from_slice(format!("{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":").as_bytes());
    write_string(&format!("/{service}/{}", call.scope.source()), &mut out);
    out.extend_from_slice(b",\"type\":");
    write_string(&kind, &mut out);
    out.extend_from_slice(b",\"subject\":");
    write_string(&entry.key, &mut out);
    out.extend_from_slice(b",\"time\":\"");
    format_timestamp(call.now, &mut out);
    out.extend_from_slice(b"\",\"datacontenttype\":\"application/json\",\"data\":{\"id\":");
    write_string(&entry.key, &mut out);
    out.extend_from_slice(&entry.data);
    out.extend_from_slice(b"}}");
    String::from_utf8(out).unwrap_or_default()
}

fn changed_members<'a>(fields: impl Iterator<Item = &'a Field>) -> Vec<u8> {
    let mut out = b",\"changed\":[".to_vec();
    let mut first = true;
    for field in fields.filter(|field| field.access.shown && !field.is_token()) {
        if !first {
            out.push(b',');
        }
        first = false;
        write_string(field.wire(), &mut out);
    }
    out.push(b']');
    out
}

fn fields_with<'a>(shape: &'a Shape, values: &'a [Value]) -> impl Iterator<Item = (&'a Field, &'a Value)> {
    shape.fields.iter().zip(values)
}

/// The audit form: the resource's own fields as canonical JSON, without secrets.
fn content(shape: &Shape, values: &[Value]) -> String {
    let is_secret = |field: &Field| field.access.sealing == Sealing::Secret && (shape.secret)(values);
    let shown = fields_with(shape, values).filter(|(field, _)| field.access.shown);
    canonical_json(
        shown.map(|(field, value)| if is_secret(field) { (field, &Value::Null) } else { (field, value) }),
    )
}

/// The key as the audit trail names it: a composite one joined by `|`.
fn key_text(shape: &Shape, values: &[Value]) -> String {
    let of = |wanted: fn(&Shape, &Field) -> bool| {
        fields_with(shape, values).filter(move |(field, _)| wanted(shape, field))
    };
    // whose it is comes first, so that what belongs to a person is known by the person's id
    let person =
        of(|shape, field| matches!(shape.personal, Personal::Of(_, column) if column == field.column));
    let owner = of(|_, field| field.access.column == Column::Owner);
    let key = of(|_, field| field.access.key && field.access.column != Column::Owner);
    let texts = person.chain(owner).chain(key).map(|(_, value)| match value {
        Value::Id(id) => id.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("|")
}

fn folded(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(fold(text)),
        other => other.clone(),
    }
}
