//! The nested arrays of a resource: read for many rows at once, streamed where they are long.

use chancery_record::{Cell, Sealing, Value, write_cell};
use chancery_store::{Row, Tx, selectable};

use crate::{
    LIST, MAX_RELATED, Out, Problem, ProblemKind, Relation, Scope, Shape, Sql,
    read::emit::write_no_relations, seal::sealed::is_sealed,
};

/// Links of one relation that are read at a time, for all rows at hand. Where there are more, the rest is read
/// row by row while writing.
const WINDOW: usize = 8192;

/// The nested items of some rows in one relation, as JSON.
#[derive(Default)]
pub struct Items {
    json: Vec<u8>,
    /// The rows' numbers, each with the end offset of its items; they begin at the end of the row before.
    ends: Vec<(i64, usize)>,
    /// The last linked row of the last row, after which a long set continues.
    last: i64,
    count: usize,
}

impl Items {
    fn push_row(&mut self, relation: &Relation, row: &Row<'_>) -> Result<(), chancery_store::Error> {
        let Link { own, other } = Link::read(row)?;
        if self.ends.last().is_some_and(|(rid, _)| *rid == own) {
            self.json.push(b',');
        }
        write_item(relation, row, &mut self.json)?;
        match self.ends.last_mut() {
            Some((rid, end)) if *rid == own => *end = self.json.len(),
            _ => self.ends.push((own, self.json.len())),
        }
        self.last = other;
        self.count += 1;
        Ok(())
    }

    /// The size in bytes, and whether all items were read.
    const fn size(&self) -> (usize, bool) {
        (self.json.len(), self.count < WINDOW)
    }

    /// The items of a row, and whether they are all of its items.
    fn of(&self, rid: i64) -> (&[u8], bool) {
        let cut = self.count >= WINDOW;
        let Ok(at) = self.ends.binary_search_by_key(&rid, |(own, _)| *own) else {
            // beyond the row at which reading was cut off, a row's items are unknown
            let beyond = cut && self.ends.last().is_some_and(|(own, _)| rid > *own);
            return (&[], !beyond);
        };
        let from = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(_, end)| *end);
        let to = self.ends.get(at).map_or(0, |(_, end)| *end);
        (self.json.get(from..to).unwrap_or_default(), !(cut && at + 1 == self.ends.len()))
    }
}

fn write_item(relation: &Relation, row: &Row<'_>, out: &mut Vec<u8>) -> Result<(), chancery_store::Error> {
    let mut separator = b'{';
    let mut column = 1;
    for field in relation.fields() {
        out.push(separator);
        separator = b',';
        out.push(b'"');
        out.extend_from_slice(field.wire().as_bytes());
        out.extend_from_slice(b"\":");
        if field.access.column.is_read() {
            column += 1;
        }
        match row.cell(column)? {
            // a secret is shown only by its own resource
            Cell::Text(text) if field.access.sealing == Sealing::Secret && is_sealed(text) => {
                write_cell(&field.kind, Cell::Null, out);
            }
            _ if !field.access.column.is_read() => write_cell(&field.kind, Cell::Null, out),
            cell => write_cell(&field.kind, cell, out),
        }
    }
    out.push(b'}');
    Ok(())
}

selectable! {
    /// The numbers of linked rows, which precede the shown columns of an item.
    struct Link(own, other) {
        own: i64 = "m.{own}",
        other: i64 = "m.{other}",
    }
}

/// `SELECT own, other, shown.. FROM pairs m JOIN target WHERE m.own `
fn select(relation: &Relation) -> Sql {
    let read = relation.fields().filter(|field| field.access.column.is_read());
    let shown: Vec<String> = read.map(|field| format!("o.{}", field.column)).collect();
    Sql::new(format!(
        "SELECT {link}, {shown} FROM {pairs} m JOIN {target} o ON o.rid = m.{other} WHERE m.{own}",
        link = Link::columns(relation.own, relation.other),
        own = relation.own,
        other = relation.other,
        shown = shown.join(", "),
        pairs = relation.table,
        target = relation.target.table,
    ))
}

/// Limits the items to those visible to the caller, and sorts them.
fn order(relation: &Relation, scope: &Scope, mut sql: Sql) -> Sql {
    relation.target.add_nested_reach(&mut sql, scope);
    sql.push(&format!(" ORDER BY m.{}, m.{} LIMIT {WINDOW}", relation.own, relation.other))
}

/// The statement that reads a relation of the row whose number the query `row` selects.
pub fn of_row(relation: &Relation, scope: &Scope, row: &Sql) -> Sql {
    let mut sql = select(relation).push(" = (").push(&row.text).push(")");
    sql.parameters.clone_from(&row.parameters);
    order(relation, scope, sql)
}

/// The statement that reads a relation of these rows.
fn of_rows(relation: &Relation, scope: &Scope, rids: &[i64]) -> Sql {
    let mut sql = select(relation).push(" IN ");
    sql.add_list(rids.iter().copied().map(Value::Int));
    order(relation, scope, sql)
}

selectable! {
    /// The version of an item.
    pub struct ItemVersion<'r>(other, version) {
        /// The number of the linked row.
        pub rid: i64 = "m.{other}",
        /// Its token, or its number as text.
        pub version: &'r str = "{version}",
    }
}

/// The statement that reads the versions of a row's items, each an [`ItemVersion`].
pub fn versions(relation: &Relation, scope: &Scope, rid: i64, after: i64, limit: usize) -> Sql {
    let Relation { table, own, other, target, .. } = relation;
    let version = if target.plan().token.is_some() { "o.concurrency_token" } else { "CAST(o.rid AS TEXT)" };
    let mut sql = Sql::new(format!(
        "SELECT {} FROM {table} m JOIN {} o ON o.rid = m.{other} WHERE m.{own} = ",
        ItemVersion::columns(other, version),
        target.table
    ))
    .bind(rid)
    .push(&format!(" AND m.{other} > "))
    .bind(after);
    target.add_nested_reach(&mut sql, scope);
    sql.push(&format!(" ORDER BY m.{other} LIMIT {limit}"))
}

/// The number of items read, and whether there may be more.
pub fn count(items: &[Items]) -> (usize, bool) {
    let all = items.iter().map(Items::size).all(|(_, is_all)| is_all);
    (items.iter().map(|items| items.count).sum(), !all)
}

/// Whether the items of one row are too many for memory.
pub fn are_many(items: &[Items], bound: usize) -> bool {
    let sizes = items.iter().map(Items::size);
    let (size, all) = sizes.fold((0, true), |(size, all), (more, is_all)| (size + more, all && is_all));
    !all || size > bound
}

/// Collects the rows of relation statements as they arrive.
pub fn collect(
    relations: &[Relation],
    items: &mut [Items],
    index: usize,
    row: &Row<'_>,
) -> Result<(), chancery_store::Error> {
    match (relations.get(index), items.get_mut(index)) {
        (Some(relation), Some(items)) => items.push_row(relation, row),
        _ => Ok(()),
    }
}

/// Reads all relations of these rows, at most `sql::LIST` of them: one round trip.
pub fn load(tx: &mut Tx<'_>, shape: &Shape, scope: &Scope, rids: &[i64]) -> Result<Vec<Items>, Problem> {
    let mut items: Vec<Items> = shape.relations.iter().map(|_| Items::default()).collect();
    if rids.is_empty() {
        return Ok(items);
    }
    let statements: Vec<Sql> =
        shape.relations.iter().map(|relation| of_rows(relation, scope, rids)).collect();
    let statements: Vec<_> =
        statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
    tx.query_all(&statements, &mut |index, row| collect(shape.relations, &mut items, index, row))?;
    Ok(items)
}

/// Writes the nested arrays of a row and closes the object. Sets that were cut off are read to their end.
pub fn write(
    tx: &mut Tx<'_>,
    shape: &Shape,
    scope: &Scope,
    items: &[Items],
    rid: i64,
    out: &mut Out,
) -> Result<(), Problem> {
    if items.is_empty() {
        write_no_relations(shape, &mut out.bytes);
        return Ok(());
    }
    for ((relation, label), items) in shape.relations.iter().zip(&shape.plan().array_labels).zip(items) {
        out.bytes.extend_from_slice(label.as_bytes());
        write_set(tx, relation, scope, items, rid, out)?;
    }
    out.bytes.push(b'}');
    Ok(())
}

/// Writes the items of a row, and the closing bracket.
fn write_set(
    tx: &mut Tx<'_>,
    relation: &Relation,
    scope: &Scope,
    items: &Items,
    rid: i64,
    out: &mut Out,
) -> Result<(), Problem> {
    let (json, all) = items.of(rid);
    out.bytes.extend_from_slice(json);
    out.flush_if_large()?;
    if !all {
        let after = if json.is_empty() { 0 } else { items.last };
        write_rest(tx, relation, scope, rid, after, json.is_empty(), out)?;
    }
    if !relation.single {
        out.bytes.push(b']');
    } else if json.is_empty() {
        out.bytes.extend_from_slice(b"null");
    }
    Ok(())
}

/// Reads one relation of these rows, at most `sql::LIST` of them: for each the JSON of [`write()`].
pub fn sets(
    tx: &mut Tx<'_>,
    relation: &Relation,
    scope: &Scope,
    rids: &[i64],
) -> Result<Vec<serde_json::Value>, Problem> {
    let (mut items, mut out, sql) = (Items::default(), Out::default(), of_rows(relation, scope, rids));
    tx.query(&sql.text, &sql.parameters, |row| items.push_row(relation, row))?;
    let mut sets = Vec::with_capacity(rids.len());
    for rid in rids {
        if !relation.single {
            out.bytes.push(b'[');
        }
        write_set(tx, relation, scope, &items, *rid, &mut out)?;
        let set = serde_json::from_slice(&std::mem::take(&mut out.bytes));
        sets.push(set.map_err(|_| Problem::invalid("What is there cannot be read."))?);
    }
    Ok(sets)
}

fn write_rest(
    tx: &mut Tx<'_>,
    relation: &Relation,
    scope: &Scope,
    rid: i64,
    mut after: i64,
    mut first: bool,
    out: &mut Out,
) -> Result<(), Problem> {
    loop {
        let sql = select(relation).push(" = ").bind(rid).push(" AND m.").push(relation.other);
        let sql = order(relation, scope, sql.push(" > ").bind(after));
        let mut count = 0;
        let bytes = &mut out.bytes;
        tx.query(&sql.text, &sql.parameters, |row| {
            if !first {
                bytes.push(b',');
            }
            first = false;
            count += 1;
            after = Link::read(row)?.other;
            write_item(relation, row, bytes)
        })?;
        out.flush_if_large()?;
        if count < WINDOW {
            return Ok(());
        }
    }
}

/// Refuses rows whose sets hold more than [`MAX_RELATED`] together.
///
/// # Errors
/// Too many.
pub fn count_links(tx: &mut Tx<'_>, relation: &Relation, rows: &[i64]) -> Result<(), Problem> {
    let mut count = 0;
    for chunk in rows.chunks(LIST) {
        let Relation { table, own, .. } = relation;
        let mut sql = Sql::new(format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} m WHERE m.{own} IN "));
        sql.add_list(chunk.iter().copied().map(Value::Int));
        sql.add(&format!(" LIMIT {}) n", MAX_RELATED + 1));
        count += tx.one(&sql.text, &sql.parameters, |row| row.int(0))?.unwrap_or(0);
        if usize::try_from(count).is_ok_and(|count| count > MAX_RELATED) {
            return Err(too_many(relation));
        }
    }
    Ok(())
}

/// The problem of a set that is too large for one call.
pub fn too_many(relation: &Relation) -> Problem {
    let detail = format!(
        "{} holds too many to be replaced or patched as a whole. Add and remove by ids instead.",
        relation.name
    );
    Problem::new(ProblemKind::PayloadTooLarge, detail)
}
