//! The encryption key of a row's person.

use chancery_record::{Field, Value};
use chancery_store::{Error, Tx, raw, selectable};
use uuid::Uuid;

use crate::{Context, LIST, MasterKey, OwnerRow, PersonKey, Personal, Persons, Problem, Shape, Sql};

/// The key of the person of a row. It is created where the person has none yet.
pub fn person(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    values: &[Value],
    owner: Option<&OwnerRow>,
) -> Result<Option<PersonKey>, Problem> {
    let master = &context.app.master;
    let person = match (shape.personal, shape.owner, owner) {
        (Personal::Is(key), ..) => {
            let id = values.get(shape.plan().key);
            match (id, key.value(values)) {
                (Some(Value::Id(id)), Value::Bytes(stored)) => Some((*id, Some(stored.clone()), shape, key)),
                (Some(Value::Id(id)), _) => Some((*id, None, shape, key)),
                _ => None,
            }
        }
        (Personal::Of(person, id), ..) => {
            let Some(id) = id.id(values) else { return Ok(None) };
            match person.personal {
                Personal::Is(key) => Some((id, find_key(context, tx, person, key, id)?, person, key)),
                _ => None,
            }
        }
        (_, Some(owner), Some(row)) => match owner.shape.personal {
            Personal::Is(key) => Some((row.id, row.person_key.clone(), owner.shape, key)),
            _ => None,
        },
        _ => None,
    };
    let Some((id, stored, shape, key)) = person else { return Ok(None) };
    if let Some(stored) = stored {
        return open(master, id, &stored).map(Some);
    }
    let Value::Bytes(created) = PersonKey::generate(master, id) else {
        return Err(Error::Internal("the key of a person cannot be made".into()).into());
    };
    let (table, column) = (shape.table, key.column);
    let text = format!("UPDATE {table} SET {column} = ?1 WHERE store = ?2 AND id = ?3 AND {column} IS NULL");
    let parameters = vec![created.clone().into(), Value::Int(context.scope.store()), Value::Id(id)];
    raw::queue_one(tx, &text, parameters)?;
    open(master, id, &created).map(Some)
}

/// Opens the key of an existing person. A key that does not open is an error: entries must not be written in
/// plain text.
fn open(master: &MasterKey, id: Uuid, stored: &[u8]) -> Result<PersonKey, Problem> {
    Ok(opened(master, id, stored)?)
}

fn opened(master: &MasterKey, id: Uuid, stored: &[u8]) -> Result<PersonKey, Error> {
    let broken = || Error::Internal(format!("the key of person {id} cannot be opened with this master key"));
    PersonKey::open(master, id, stored).ok_or_else(broken)
}

/// The stored key of a person, if there is one yet, whether or not the person is in quarantine.
fn find_key(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    key: &Field,
    id: Uuid,
) -> Result<Option<Vec<u8>>, Problem> {
    let mut sql = Sql::new(format!("SELECT {} FROM {} WHERE id = ", key.column, shape.table)).bind(id);
    if shape.reach.is_store() {
        sql = sql.push(" AND store = ").bind(context.scope.store());
    }
    let key = tx.one(&sql.text, &sql.parameters, |row| {
        Ok(if row.is_null(0)? { None } else { Some(row.bytes(0)?.to_vec()) })
    })?;
    Ok(key.flatten())
}

selectable! {
    /// The sealed key of a person, if there is one.
    struct SealedPersonKey<'r>(key) {
        person: Uuid = "id",
        key: Option<&'r [u8]> = "{key}",
    }
}

/// The keys of the persons in an operation's answers about this resource, by the persons' ids; `None` where one
/// of the persons no longer exists.
pub fn keys_of_persons(
    master: &MasterKey,
    tx: &mut Tx<'_>,
    shape: &Shape,
    store: i64,
    ids: &[Uuid],
) -> Result<Option<Persons>, Error> {
    let mut persons = Persons::default();
    if ids.is_empty() {
        return Ok(Some(persons));
    }
    let person = match (shape.base().personal, shape.base().owner) {
        (Personal::Of(person, _), _) => person,
        (Personal::Is(_), _) => shape.base(),
        (_, Some(owner)) => owner.shape,
        _ => return Ok(None),
    };
    let Personal::Is(key) = person.personal else { return Ok(None) };
    for chunk in ids.chunks(LIST) {
        let columns = SealedPersonKey::columns(key.column);
        let mut sql = Sql::new(format!("SELECT {columns} FROM {} WHERE id IN ", person.table));
        sql.add_list(chunk.iter().copied().map(Value::Id));
        if person.reach.is_store() {
            sql = sql.push(" AND store = ").bind(store);
        }
        tx.query(&sql.text, &sql.parameters, |row| {
            let SealedPersonKey { person, key } = SealedPersonKey::read(row)?;
            if let Some(key) = key {
                persons.add(&opened(master, person, key)?);
            }
            Ok(())
        })?;
    }
    Ok((persons.ids().count() == ids.len()).then_some(persons))
}

/// Whether answers with rows of this resource contain several persons.
pub fn shows_persons(shape: &Shape) -> bool {
    shape.relations.iter().any(|relation| matches!(relation.target.base().personal, Personal::Is(_)))
}

/// Whether audit entries and answers about rows of this resource can be about persons.
pub fn is_personal(shape: &Shape) -> bool {
    let shape = shape.base();
    matches!(shape.personal, Personal::Is(_) | Personal::Of(..))
        || shape.owner.is_some_and(|owner| matches!(owner.shape.personal, Personal::Is(_)))
}
