//! Compression of the contents of audit entries that were stored before such contents were compressed, in pieces. What was
//! signed is the text, so digests, signatures, proofs and exports stay as they are.

use chancery_record::Value;
use chancery_store::{Error, StateTable, Tx, raw, selectable};
use uuid::Uuid;

use crate::{
    MasterKey, PersonKey, Personal, Shape, declare::plan::join_persons, seal::sealed::entry_associated_data,
};

/// Entries of one piece: some ten milliseconds in which others do not write to an embedded database.
const CHUNK: u64 = 200;

selectable! {
    /// The entries that are left.
    struct Left from "FROM audit_compaction" {
        /// The number of the last entry that was processed.
        position: i64 = "position",
        /// The number of the last entry that has to be processed.
        last: i64 = "last",
    }
}

selectable! {
    /// An entry, with its person and that person's key where there are some.
    struct StoredEntry<'r>(key) {
        rid: i64 = "t.rid",
        person: Option<Uuid> = "t.person",
        key: Option<&'r [u8]> = "{key}",
        original: Option<&'r str> = "t.original_content",
        current: Option<&'r str> = "t.current_content",
    }
}

/// A piece of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Number of entries that were read.
    pub entries: u64,
    /// Number of contents that were compressed.
    pub contents: u64,
    /// Whether no entry is left.
    pub is_done: bool,
}

/// The number of entries that are left.
///
/// # Errors
/// Those of the database.
pub fn count_entries_to_compact(tx: &mut Tx<'_>) -> Result<u64, Error> {
    let text = "SELECT count(*) FROM audit_compaction c JOIN audit_entry t ON t.rid > c.position AND t.rid <= c.last";
    let count = tx.one(text, &[], |row| row.int(0))?.unwrap_or(0);
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Compresses the contents of the next entries. The shape of the entries names the resources that are persons. Contents of an
/// erased person stay as they are: their key was destroyed.
///
/// # Errors
/// Those of the database. Nothing of this piece is stored then.
pub fn compact_entries(tx: &mut Tx<'_>, master: &MasterKey, entries: &Shape) -> Result<Compacted, Error> {
    let Some(left) = tx.one(Left::SELECT, &[], Left::read)? else {
        return Ok(Compacted { is_done: true, ..Compacted::default() });
    };
    let Personal::AuditOf(persons) = entries.personal else {
        return Err(Error::Internal(format!("{} has no audit entries", entries.name)));
    };
    let (key, joins) = join_persons(persons);
    let text = format!(
        "SELECT {} FROM audit_entry t{joins} WHERE t.rid > ?1 AND t.rid <= ?2 ORDER BY t.rid LIMIT {CHUNK}",
        StoredEntry::columns(&key)
    );
    let (mut done, mut position, mut shorter) = (Compacted::default(), left.position, Vec::new());
    tx.query(&text, &[Value::Int(left.position), Value::Int(left.last)], |row| {
        let entry = StoredEntry::read(row)?;
        (done.entries, position) = (done.entries + 1, entry.rid);
        let key = entry.person.zip(entry.key).and_then(|(person, key)| PersonKey::open(master, person, key));
        let Some(key) = key else { return Ok(()) };
        for (column, stored) in [("original_content", entry.original), ("current_content", entry.current)] {
            let data = entry_associated_data(entry.rid, column);
            let compressed = stored.and_then(|stored| key.compress_sealed(&data, stored));
            shorter.extend(compressed.map(|compressed| (column, entry.rid, compressed)));
        }
        Ok(())
    })?;
    done.contents = shorter.len() as u64;
    for (column, entry, compressed) in shorter {
        let update = format!("UPDATE audit_entry SET {column} = ?1 WHERE rid = ?2");
        raw::queue(tx, &update, vec![Value::Text(compressed), Value::Int(entry)])?;
    }
    done.is_done = done.entries < CHUNK;
    if done.is_done {
        tx.queue(&StateTable::AuditCompaction.delete(""), Vec::new())?;
    } else {
        tx.queue(&StateTable::AuditCompaction.update("SET position = ?1"), vec![Value::Int(position)])?;
    }
    Ok(done)
}
