//! Copies of whole databases, from either engine to either: table by table in chunks, compared by digests of
//! all rows.

mod catalogue;
mod digest;

use chancery_record::Value;

use crate::{Error, Tx, row::Row};

pub use catalogue::{Table, set_last_number, tables};
pub use digest::TableDigest;

/// The most rows that one statement reads.
const ROWS: usize = 500;
/// Approximate maximum of bytes of rows in memory.
const BYTES: usize = 4 << 20;

/// Rows of a table, each with the values of its columns in order.
pub type Rows = Vec<Vec<Value>>;

/// Reads a whole table in the order of its key, in chunks of bounded size.
///
/// # Errors
/// The database's, and those of `on_rows`.
pub fn read(
    tx: &mut Tx<'_>,
    table: &Table,
    on_rows: &mut dyn FnMut(Rows) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut last: Option<Vec<Value>> = None;
    loop {
        let (text, parameters) = select(table, last.take());
        let (mut chunk, mut bytes, mut count) = (Rows::new(), 0, 0);
        tx.query(&text, &parameters, |row| {
            let values = values_of(row, table.columns.len())?;
            bytes += values.iter().map(Value::size).sum::<usize>();
            count += 1;
            last = table.key_of(&values);
            chunk.push(values);
            if bytes >= BYTES {
                bytes = 0;
                on_rows(std::mem::take(&mut chunk))?;
            }
            Ok(())
        })?;
        if !chunk.is_empty() {
            on_rows(chunk)?;
        }
        // a table without a key has one row, and is read at once
        if count < ROWS || last.is_none() {
            return Ok(());
        }
    }
}

/// The statement that reads the rows after a key.
fn select(table: &Table, after: Option<Vec<Value>>) -> (String, Vec<Value>) {
    let mut text = format!("SELECT {} FROM {}", table.columns.join(", "), table.name);
    let key: Vec<&str> =
        table.key.iter().filter_map(|at| table.columns.get(*at)).map(String::as_str).collect();
    if after.is_some() {
        let marks: Vec<String> = (1..=key.len()).map(|number| format!("?{number}")).collect();
        text = format!("{text} WHERE ({}) > ({})", key.join(", "), marks.join(", "));
    }
    if !key.is_empty() {
        text = format!("{text} ORDER BY {} LIMIT {ROWS}", key.join(", "));
    }
    (text, after.unwrap_or_default())
}

fn values_of(row: &Row<'_>, columns: usize) -> Result<Vec<Value>, Error> {
    (0..columns).map(|column| Ok(row.cell(column)?.to_value())).collect()
}

/// Inserts rows unchanged.
pub fn write(tx: &mut Tx<'_>, table: &Table, rows: &[Vec<Value>]) -> Result<(), Error> {
    let marks: Vec<String> = (1..=table.columns.len()).map(|number| format!("?{number}")).collect();
    let text =
        format!("INSERT INTO {} ({}) VALUES ({})", table.name, table.columns.join(", "), marks.join(", "));
    rows.iter().try_for_each(|row| tx.queue_text(&text, row.clone()))?;
    tx.flush()
}

/// Whether a table has no row.
pub fn is_empty(tx: &mut Tx<'_>, table: &Table) -> Result<bool, Error> {
    let row = tx.one(&format!("SELECT 1 FROM {} LIMIT 1", table.name), &[], |_| Ok(()))?;
    Ok(row.is_none())
}

/// Deletes all rows of a table that migrations inserted.
pub fn clear(tx: &mut Tx<'_>, table: &Table) -> Result<(), Error> {
    tx.queue_text(&format!("DELETE FROM {}", table.name), Vec::new())
}
