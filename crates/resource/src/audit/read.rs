//! Reading the audit trail in the order of its tree.

use chancery_ledger::Hash;
use chancery_record::Value;
use chancery_store::{Error, Tx, selectable};

use crate::{
    LIST, MasterKey, Scope, Shape, Sql,
    audit::tree::number,
    read::emit::{write_no_relations, write_row},
};

/// Receives an entry: its position in the tree, and its JSON as in the API.
pub type OnEntry<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

selectable! {
    /// An entry to read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EntryPosition {
        /// Its position in the tree.
        pub position: u64 = "position",
        /// Its number.
        pub entry: i64 = "entry",
    }
}

const LEAVES: &str = constcat::concat!(
    "SELECT ",
    EntryPosition::COLUMNS,
    " FROM audit_leaf WHERE store = ?1 AND position >= ?2 AND position < ?3 ORDER BY position LIMIT 512"
);

selectable! {
    /// The hash of a leaf.
    struct LeafHash<'r> from "FROM audit_node \
        WHERE store = ?1 AND level = 0 AND position >= ?2 AND position < ?3 ORDER BY position LIMIT 512" {
        position: u64 = "position",
        hash: &'r [u8] = "hash",
    }
}

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
    tx.query_all(&[(LEAVES, &parameters), (LeafHash::SELECT, &parameters)], &mut |statement, row| {
        if statement == 0 {
            positions.push(EntryPosition::read(row)?);
            return Ok(());
        }
        let LeafHash { position, hash } = LeafHash::read(row)?;
        if let Some(slot) = usize::try_from(position - start).ok().and_then(|at| hashes.get_mut(at)) {
            *slot = hash.try_into().unwrap_or_default();
        }
        Ok(())
    })?;
    Ok((positions, hashes))
}

/// The position of the first entry from `start` on.
pub fn next_leaf(tx: &mut Tx<'_>, store: i64, start: u64) -> Result<Option<u64>, Error> {
    let text =
        "SELECT position FROM audit_leaf WHERE store = ?1 AND position >= ?2 ORDER BY position LIMIT 1";
    tx.one(text, &[Value::Int(store), number(start)], |row| row.get(0))
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
    let ascending = entries.chunk_by(|before, after| before.entry < after.entry);
    for ascending in ascending.flat_map(|ascending| ascending.chunks(LIST)) {
        let mut sql = Sql::new(shape.plan().select.as_str());
        shape.add_reach(&mut sql, scope, None);
        sql.add(" AND t.rid IN ");
        sql.add_list(ascending.iter().map(|one| Value::Int(one.entry)));
        sql.add(" ORDER BY t.rid");
        let mut left = ascending.iter();
        tx.query(&sql.text, &sql.parameters, |row| {
            let rid = row.int(0)?;
            let Some(EntryPosition { position, .. }) = left.find(|one| one.entry == rid) else {
                return Ok(());
            };
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

selectable! {
    /// An entry, and where it is in the tree or pending.
    struct PlacedEntry from "FROM audit_entry t LEFT JOIN audit_leaf l ON l.entry = t.rid AND l.store = t.store \
        LEFT JOIN audit_node n ON n.store = l.store AND n.level = 0 AND n.position = l.position \
        WHERE t.store = ?1 AND t.rid > ?2 ORDER BY t.rid" {
        entry: i64 = "t.rid",
        position: Option<u64> = "l.position",
        /// The position of its leaf's node; a pending leaf has none yet.
        node: Option<u64> = "n.position",
        pending: Option<i64> = "(SELECT p.event FROM event_pending p \
            WHERE p.event = t.rid AND p.tree = t.store AND p.trail IN (t.store, -1))",
        /// The same in the table into which the previous release writes.
        pending_before: Option<i64> = "(SELECT p.entry FROM audit_pending p WHERE p.entry = t.rid AND p.store = t.store)",
    }
}

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
    let leaves = tx.one(text, &[Value::Int(store)], |row| row.get(0))?.unwrap_or(0);
    let mut strays = Vec::new();
    let mut last_read = None;
    let text = format!("{} LIMIT {CHUNK}", PlacedEntry::SELECT);
    tx.query(&text, &[Value::Int(store), Value::Int(last)], |row| {
        let placed = PlacedEntry::read(row)?;
        last_read = Some(placed.entry);
        let is_in_tree = placed.position.is_some_and(|position| position < size);
        let is_pending_leaf =
            placed.node.is_none() && placed.position.is_some_and(|position| position < leaves);
        if !is_in_tree && !is_pending_leaf && placed.pending.is_none() && placed.pending_before.is_none() {
            strays.push(placed.entry);
        }
        Ok(())
    })?;
    Ok(last_read.map(|last_read| (strays, last_read)))
}
