//! Reading the audit trail in the order of its tree.

use chancery_ledger::Hash;
use chancery_record::Value;
use chancery_store::{Error, Tx};

use crate::{
    LIST, MasterKey, Scope, Shape, Sql,
    audit::tree::{number, read_position},
    read::emit::{write_no_relations, write_row},
};

/// Receives an entry: its position in the tree, and its JSON as in the API.
pub type OnEntry<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

/// An entry to read: its position in the tree, and its number.
pub type EntryPosition = (u64, i64);

const LEAVES: &str = "SELECT position, entry FROM audit_leaf \
    WHERE store = ?1 AND position >= ?2 AND position < ?3 ORDER BY position LIMIT 512";
const HASHES: &str = "SELECT position, hash FROM audit_node \
    WHERE store = ?1 AND level = 0 AND position >= ?2 AND position < ?3 ORDER BY position LIMIT 512";

/// The entries and the hashes of the leaves from `start` up to but not including `end`, at most 512 of them. A
/// lost hash is all zeros.
pub fn read_leaves(
    tx: &mut Tx<'_>,
    store: i64,
    start: u64,
    end: u64,
) -> Result<(Vec<EntryPosition>, Vec<Hash>), Error> {
    let parameters = [Value::Int(store), number(start), number(end)];
    let mut positions = Vec::new();
    let mut hashes = vec![Hash::default(); usize::try_from(end - start).unwrap_or_default()];
    tx.query_all(&[(LEAVES, &parameters), (HASHES, &parameters)], &mut |statement, row| {
        let position = read_position(row, 0)?;
        if statement == 0 {
            positions.push((position, row.int(1)?));
        } else if let Some(slot) = usize::try_from(position - start).ok().and_then(|at| hashes.get_mut(at)) {
            *slot = row.bytes(1)?.try_into().unwrap_or_default();
        }
        Ok(())
    })?;
    Ok((positions, hashes))
}

/// The position of the first entry from `start` on.
pub fn next_leaf(tx: &mut Tx<'_>, store: i64, start: u64) -> Result<Option<u64>, Error> {
    let text =
        "SELECT position FROM audit_leaf WHERE store = ?1 AND position >= ?2 ORDER BY position LIMIT 1";
    tx.one(text, &[Value::Int(store), number(start)], |row| read_position(row, 0))
}

/// Reads entries in the given order, each with its JSON as in the API. Deleted ones are skipped. One row is in
/// memory at a time.
///
/// # Errors
/// The errors of `each`.
pub fn read_entries(
    tx: &mut Tx<'_>,
    shape: &Shape,
    master: &MasterKey,
    scope: &Scope,
    entries: &[EntryPosition],
    each: &mut OnEntry<'_>,
) -> Result<(), Error> {
    let mut json = Vec::new();
    // numbers ascend except for entries that were committed late, so this is mostly one query
    let ascending = entries.chunk_by(|before, after| before.1 < after.1);
    for ascending in ascending.flat_map(|ascending| ascending.chunks(LIST)) {
        let mut sql = Sql::new(shape.plan().select.as_str());
        shape.add_reach(&mut sql, scope, None);
        sql.add(" AND t.rid IN ");
        sql.add_list(ascending.iter().map(|(_, entry)| Value::Int(*entry)));
        sql.add(" ORDER BY t.rid");
        let mut left = ascending.iter();
        tx.query(&sql.text, &sql.parameters, |row| {
            let rid = row.int(0)?;
            let Some((position, _)) = left.find(|(_, entry)| *entry == rid) else { return Ok(()) };
            json.clear();
            write_row(shape, master, scope, None, row, &mut json)?;
            write_no_relations(shape, &mut json);
            each(*position, &json)
        })?;
    }
    Ok(())
}

/// The most entries of one query.
const CHUNK: u64 = 4096;

const POSITIONS: &str = "SELECT t.rid, l.position, n.position, \
    (SELECT p.event FROM event_pending p WHERE p.event = t.rid AND p.tree = t.store AND p.trail IN (t.store, -1)), \
    (SELECT p.entry FROM audit_pending p WHERE p.entry = t.rid AND p.store = t.store) \
    FROM audit_entry t LEFT JOIN audit_leaf l ON l.entry = t.rid AND l.store = t.store \
    LEFT JOIN audit_node n ON n.store = l.store AND n.level = 0 AND n.position = l.position \
    WHERE t.store = ?1 AND t.rid > ?2 ORDER BY t.rid LIMIT";

/// Stray entries: those of the next numbers after `last` that are neither in the store's tree of this size nor
/// pending. The server writes no such entries, so a third party did, or cut the tree. Also returns the last
/// number read; `None` where there are no more.
pub fn read_stray_entries(
    tx: &mut Tx<'_>,
    store: i64,
    size: u64,
    last: i64,
) -> Result<Option<(Vec<i64>, i64)>, Error> {
    let text = "SELECT leaves FROM event_trail WHERE trail = ?1";
    let leaves = tx.one(text, &[Value::Int(store)], |row| read_position(row, 0))?.unwrap_or(0);
    let mut strays = Vec::new();
    let mut last_read = None;
    tx.query(&format!("{POSITIONS} {CHUNK}"), &[Value::Int(store), Value::Int(last)], |row| {
        let entry = row.int(0)?;
        last_read = Some(entry);
        let position = if row.is_null(1)? { None } else { Some(read_position(row, 1)?) };
        let is_in_tree = position.is_some_and(|position| position < size);
        // a pending leaf has no node yet
        let is_pending_leaf = row.is_null(2)? && position.is_some_and(|position| position < leaves);
        if !is_in_tree && !is_pending_leaf && row.is_null(3)? && row.is_null(4)? {
            strays.push(entry);
        }
        Ok(())
    })?;
    Ok(last_read.map(|last_read| (strays, last_read)))
}
