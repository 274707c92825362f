//! Statements as text, which may write any table: for the resource engine, which writes resource rows, and for
//! tests. The crates of slices do not depend on this module.

use chancery_record::Value;

use crate::{Error, Row, Tx};

/// Runs a statement now; returns the number of changed rows.
pub fn execute(tx: &mut Tx<'_>, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
    tx.execute_text(sql, parameters)
}

/// Queues a statement without reading its result: see [`Tx::queue`].
pub fn queue(tx: &mut Tx<'_>, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
    tx.queue_text(sql, parameters)
}

/// Queues a statement that must change exactly one row: see [`Tx::queue_one`].
pub fn queue_one(tx: &mut Tx<'_>, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
    tx.queue_one_text(sql, parameters)
}

/// Reads rows, also of a statement that writes.
pub fn query(
    tx: &mut Tx<'_>,
    sql: &str,
    parameters: &[Value],
    mut each: impl FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    tx.query_text(sql, parameters, &mut each)
}
