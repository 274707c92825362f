//! Re-encryption after a rotation of the master key: stored values under an older key are encrypted again under
//! the first one, in chunks, so that the older key is no longer needed.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use chancery_record::{Cell, Column, Kind, Sealing, Value};
use chancery_store::{Error, Tx, raw, selectable};

use crate::{MasterKey, Shape, seal::sealed::MARK};

/// Rows of one chunk: some ten milliseconds in which others do not write to an embedded database.
const CHUNK: usize = 200;

/// A column whose values the master key encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedColumn {
    /// The table, which has a row number `rid`.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The prefix of a value's associated data; the ids of these columns follow.
    prefix: String,
    ids: Vec<&'static str>,
}

/// Rows of a column that were read, with the values to store.
#[derive(Clone, Debug, Default)]
pub struct Resealed {
    /// The row number of the last row that was read; none after the last chunk.
    pub last: Option<i64>,
    /// Number of rows read.
    pub rows: u64,
    /// Values that no key of the file decrypts.
    pub unknown: u64,
    /// For each value under an older key: the row number, the old value, and the new value.
    pub renewed: Vec<(i64, Value, Value)>,
}

selectable! {
    /// A row with a value in a sealed column; the ids of its associated data follow.
    struct SealedRow<'r>(column) {
        rid: i64 = "rid",
        sealed: Cell<'r> = "{column}",
    }
}

impl SealedColumn {
    /// A column of bytes with associated data such as `prefix/id`, with the ids of the row in these columns.
    pub fn new(table: &'static str, column: &'static str, prefix: &str, ids: &[&'static str]) -> Self {
        Self { table, column, prefix: prefix.to_owned(), ids: ids.to_vec() }
    }

    /// The keys of persons, in a table with an `id`.
    pub fn of_persons(table: &'static str) -> Self {
        Self::new(table, "audit_key", "person", &["id"])
    }

    /// The secrets of a resource.
    pub fn secrets_of(shape: &Shape) -> Vec<Self> {
        let secrets = shape
            .fields
            .iter()
            .filter(|field| field.access.sealing == Sealing::Secret && field.access.column == Column::Own);
        let key = shape.key().filter(|key| matches!(key.kind, Kind::Id)).map(|key| key.column);
        secrets
            .map(|field| Self {
                table: shape.table,
                column: field.column,
                prefix: format!("{}/{}", shape.table, field.column),
                ids: key.into_iter().collect(),
            })
            .collect()
    }

    /// The number of rows that have a value, encrypted or not.
    pub fn count(&self, tx: &mut Tx<'_>) -> Result<u64, Error> {
        let text = format!("SELECT count(*) FROM {} WHERE {} IS NOT NULL", self.table, self.column);
        let count = tx.one(&text, &[], |row| row.int(0))?.unwrap_or(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Reads the next rows, and re-encrypts their values under an older key.
    pub fn read(&self, tx: &mut Tx<'_>, master: &MasterKey, after: i64) -> Result<Resealed, Error> {
        let Self { table, column, ids, .. } = self;
        let columns = SealedRow::columns(column).to_string();
        let read = [&[columns.as_str()], ids.as_slice()].concat().join(", ");
        let text = format!(
            "SELECT {read} FROM {table} WHERE rid > ?1 AND {column} IS NOT NULL ORDER BY rid LIMIT {CHUNK}"
        );
        let mut done = Resealed::default();
        tx.query(&text, &[Value::Int(after)], |row| {
            let SealedRow { rid, sealed: cell } = SealedRow::read(row)?;
            (done.last, done.rows) = (Some(rid), done.rows + 1);
            let mut associated_data = self.prefix.clone();
            for at in 0..ids.len() {
                associated_data = format!("{associated_data}/{}", row.id(at + 2)?);
            }
            let Some(sealed) = sealed_bytes(&cell).filter(|sealed| !master.is_first(sealed)) else {
                return Ok(());
            };
            match master
                .open(&associated_data, &sealed)
                .map(|plain| master.seal(&associated_data, plain.expose()))
            {
                Some(new) => done.renewed.push((rid, cell.to_value(), as_stored(&cell, new))),
                None => done.unknown += 1,
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Stores re-encrypted values. A value that was changed in the meantime stays: it is under the first key
    /// already.
    pub fn store(&self, tx: &mut Tx<'_>, renewed: Vec<(i64, Value, Value)>) -> Result<(), Error> {
        let Self { table, column, .. } = self;
        let update = format!("UPDATE {table} SET {column} = ?1 WHERE rid = ?2 AND {column} = ?3");
        renewed
            .into_iter()
            .try_for_each(|(rid, was, new)| raw::queue(tx, &update, vec![new, Value::Int(rid), was]))
    }
}

/// The encrypted bytes of a value; `None` if it is not encrypted.
fn sealed_bytes(cell: &Cell<'_>) -> Option<Vec<u8>> {
    match cell {
        Cell::Bytes(bytes) => Some(bytes.to_vec()),
        Cell::Text(text) => BASE64_STANDARD_NO_PAD.decode(text.strip_prefix(MARK)?).ok(),
        _ => None,
    }
}

/// Encrypted bytes in the form of the value that they replace.
fn as_stored(cell: &Cell<'_>, sealed: Vec<u8>) -> Value {
    match cell {
        Cell::Text(_) => Value::Text(format!("{MARK}{}", BASE64_STANDARD_NO_PAD.encode(sealed))),
        _ => Value::Bytes(sealed),
    }
}
