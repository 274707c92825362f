//! Finding rows: by the path, by owner, by numbers or keys.

use std::collections::HashMap;

use chancery_record::{FieldOf, FieldType, Record, Value, fold};
use chancery_store::{Row, Tx, selectable};
use uuid::Uuid;

use crate::{
    Call, Context, LIST, OwnerRow, Personal, Problem, ProblemKind, Request, Shape, Sql, StoredRow,
    read::filter_sql::add_prefix,
};

/// The owning row, which comes first in the path.
pub fn owner_of(call: &Call, tx: &mut Tx<'_>, shape: &Shape) -> Result<Option<OwnerRow>, Problem> {
    owner_in(&call.request, &call.context, tx, shape)
}

/// The owning row, which comes first in the path of a request.
pub fn owner_in(
    request: &Request,
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
) -> Result<Option<OwnerRow>, Problem> {
    let Some(owner) = shape.owner else { return Ok(None) };
    let Value::Id(id) = owner.shape.read_key(request.parameter(0))? else {
        return Err(Problem::not_found(owner.shape.name));
    };
    find_owner(context, tx, owner.shape, id).map(Some)
}

selectable! {
    /// A row that owns others.
    struct StoredOwner(person_key) {
        rid: i64 = "t.rid",
        person_key: Option<Vec<u8>> = "{person_key}",
    }
}

/// The row of a resource that owns others, by its id.
///
/// # Errors
/// Not found.
pub fn find_owner(context: &Context, tx: &mut Tx<'_>, shape: &Shape, id: Uuid) -> Result<OwnerRow, Problem> {
    let key =
        if let Personal::Is(key) = shape.personal { format!("t.{}", key.column) } else { "NULL".to_owned() };
    let mut sql = Sql::new(format!("SELECT {} FROM {} t WHERE ", StoredOwner::columns(&key), shape.table));
    shape.add_reach(&mut sql, &context.scope, None);
    let sql = sql.push(" AND t.id = ").bind(id);
    let owner = tx.one(&sql.text, &sql.parameters, StoredOwner::read)?;
    let StoredOwner { rid, person_key } = owner.ok_or_else(|| Problem::not_found(shape.name))?;
    Ok(OwnerRow { rid, id, person_key })
}

/// The key in the path, after the owner's.
pub fn key_of(call: &Call, shape: &Shape) -> Result<Value, Problem> {
    key_in(&call.request, shape)
}

/// The key in the path of a request, after the owner's.
pub fn key_in(request: &Request, shape: &Shape) -> Result<Value, Problem> {
    shape.read_key(request.parameter(usize::from(shape.owner.is_some())))
}

/// The number and the key of the row with this key in the path.
///
/// # Errors
/// Not found.
pub fn find_row(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    text: &str,
) -> Result<(i64, Value), Problem> {
    let key = shape.read_key(text)?;
    let mut sql = shape.begin(context, &format!("SELECT t.rid FROM {} t WHERE ", shape.source()));
    shape.add_reach(&mut sql, &context.scope, None);
    let column = shape.key().map_or("id", |key| key.column);
    let sql = sql.push(" AND t.").push(column).push(" = ").bind(key.clone());
    let rid = tx.one(&sql.text, &sql.parameters, |row| row.int(0))?;
    Ok((rid.ok_or_else(|| Problem::not_found(shape.name))?, key))
}

/// The statement that selects the rows whose folded field holds this text.
pub fn select_by<R: Record, T: FieldType>(
    context: &Context,
    shape: &Shape,
    field: FieldOf<R, T>,
    text: &str,
) -> Sql {
    shape.select(context, None).push(&format!(" AND t.{field}_key = ")).bind(fold(text))
}

/// The statement that selects the rows whose folded field begins with this text.
pub fn select_beginning<R: Record, T: FieldType>(
    context: &Context,
    shape: &Shape,
    field: FieldOf<R, T>,
    text: &str,
) -> Sql {
    let mut sql = shape.select(context, None);
    add_beginning(&mut sql, field, text);
    sql
}

/// Adds the condition that a folded field begins with this text.
pub fn add_beginning<R: Record, T: FieldType>(sql: &mut Sql, field: FieldOf<R, T>, text: &str) {
    sql.add(" AND ");
    add_prefix(sql, &format!("t.{field}_key"), fold(text).into());
}

/// The statement that selects the rows of an owner.
pub fn select_of(context: &Context, shape: &Shape, owner: &OwnerRow) -> Sql {
    shape.select(context, Some(owner.rid))
}

/// The statement that selects the rows whose field holds this value.
pub fn select_where<R: Record, T: FieldType>(
    context: &Context,
    shape: &Shape,
    field: FieldOf<R, T>,
    value: Value,
) -> Sql {
    shape.select(context, None).push(&format!(" AND t.{field} = ")).bind(value)
}

/// The statement that selects the row with this key.
pub fn select_key(context: &Context, shape: &Shape, owner: Option<&OwnerRow>, key: Value) -> Sql {
    let column = shape.key().map_or("id", |key| key.column);
    let mut sql = shape.select(context, owner.map(|owner| owner.rid));
    sql.add(" AND t.");
    sql.add(column);
    sql.add(" = ");
    sql.add_bound(key);
    sql
}

/// Loads the row with this key.
pub fn load(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    key: Value,
) -> Result<StoredRow, Problem> {
    let sql = select_key(context, shape, owner, key);
    load_by(context, tx, shape, owner, &sql)
}

/// Loads those rows with these numbers that are within the scope, in no order.
pub fn load_rows(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rids: &[i64],
) -> Result<Vec<StoredRow>, Problem> {
    load_some(context, tx, shape, rids, &shape.select(context, None))
}

/// The same for rows in quarantine.
pub fn load_hidden_rows(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rids: &[i64],
) -> Result<Vec<StoredRow>, Problem> {
    if shape.deletes.deletion.hiding().is_none() {
        return Ok(Vec::new());
    }
    load_some(context, tx, shape, rids, &shape.select_hidden(context))
}

fn load_some(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rids: &[i64],
    select: &Sql,
) -> Result<Vec<StoredRow>, Problem> {
    let mut rows = Vec::with_capacity(rids.len());
    for chunk in rids.chunks(LIST) {
        let mut sql = select.clone().push(" AND t.rid IN ");
        sql.add_list(chunk.iter().copied().map(Value::Int));
        tx.query(&sql.text, &sql.parameters, |row| {
            rows.push(StoredRow::read(shape, &context.scope, None, row)?);
            Ok(())
        })?;
    }
    Ok(rows)
}

/// Loads the first rows within the scope, at most this many.
pub fn load_first(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    count: usize,
) -> Result<Vec<StoredRow>, Problem> {
    let sql = shape.select(context, None).push(&format!(" ORDER BY t.rid LIMIT {count}"));
    let mut rows = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        rows.push(StoredRow::read(shape, &context.scope, None, row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Loads the row that a statement of [`Shape::select`] returns.
///
/// # Errors
/// Not found.
pub fn load_by(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    sql: &Sql,
) -> Result<StoredRow, Problem> {
    let stored =
        tx.one(&sql.text, &sql.parameters, |row| StoredRow::read(shape, &context.scope, owner, row))?;
    stored.ok_or_else(|| Problem::not_found(shape.name))
}

/// The same with only the row's number: a subquery for statements on related data of the row.
pub fn number_of(shape: &Shape, sql: &Sql) -> Sql {
    let condition = sql.text.get(shape.plan().select.len()..).unwrap_or_default();
    let text = format!("SELECT t.rid FROM {} t WHERE {condition}", shape.source());
    Sql { text, parameters: sql.parameters.clone() }
}

/// Loads the row that a statement of [`Shape::select`] returns. Passes the rows of the other statements to
/// `on_row`, with their statements' indexes, in one round trip.
///
/// # Errors
/// Not found.
pub fn load_with_related(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    sql: &Sql,
    others: &[Sql],
    on_row: OnRow<'_>,
) -> Result<StoredRow, Problem> {
    let statements: Vec<_> = std::iter::once(sql)
        .chain(others)
        .map(|sql| (sql.text.as_str(), sql.parameters.as_slice()))
        .collect();
    let mut stored = None;
    tx.query_all(&statements, &mut |index, row| {
        if let Some(index) = index.checked_sub(1) {
            return on_row(index, row);
        }
        stored = Some(StoredRow::read(shape, &context.scope, None, row)?);
        Ok(())
    })?;
    stored.ok_or_else(|| Problem::not_found(shape.name))
}

/// Receives rows of statements, each with its statement's index.
pub type OnRow<'a> = &'a mut dyn FnMut(usize, &Row<'_>) -> Result<(), chancery_store::Error>;

/// Loads the rows of several statements of [`Shape::select`], each with its statement's index, in one round
/// trip.
pub fn load_statements(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    statements: &[Sql],
) -> Result<Vec<(usize, StoredRow)>, Problem> {
    let texts: Vec<_> = statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
    let mut rows = Vec::new();
    tx.query_all(&texts, &mut |index, row| {
        rows.push((index, StoredRow::read(shape, &context.scope, None, row)?));
        Ok(())
    })?;
    Ok(rows)
}

/// Loads a row in quarantine.
///
/// # Errors
/// Not found.
pub fn load_hidden(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    key: Value,
) -> Result<StoredRow, Problem> {
    let sql = shape.select_hidden(context).push(" AND t.id = ").bind(key);
    load_by(context, tx, shape, None, &sql)
}

/// The most bytes of text and binary values in the rows of a batch.
const MAX_LOADED: usize = 128 << 20;

/// Loads rows by their keys, some hundred at a time; returns them by their keys as text (see [`key_name`]).
///
/// # Errors
/// Rows that are too large together.
pub fn load_keys(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    keys: &[Value],
) -> Result<HashMap<String, StoredRow>, Problem> {
    let mut by_key = HashMap::with_capacity(keys.len());
    let index = shape.plan().key;
    let column = shape.key().map_or("id", |key| key.column);
    let mut loaded = 0;
    for chunk in keys.chunks(LIST) {
        let mut sql = shape.select(context, owner.map(|owner| owner.rid));
        sql = sql.push(" AND t.").push(column).push(" IN ");
        sql.add_list(chunk.iter().cloned());
        tx.query(&sql.text, &sql.parameters, |row| {
            if loaded <= MAX_LOADED {
                let stored = StoredRow::read(shape, &context.scope, owner, row)?;
                loaded += stored.values.iter().map(Value::size).sum::<usize>();
                by_key.insert(key_name(stored.value(index)), stored);
            }
            Ok(())
        })?;
        if loaded > MAX_LOADED {
            let detail = "The rows of this batch hold more than 128 MiB. Name fewer at once.";
            return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
        }
    }
    Ok(by_key)
}

/// A key as text.
pub fn key_name(key: &Value) -> String {
    match key {
        Value::Id(id) => id.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
