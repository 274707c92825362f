//! Whether servers use a database. An embedded one is locked by its process; on PostgreSQL each process records a heartbeat.

use chancery_record::Value;
use chancery_store::{Mode, Store};
use chancery_web::now;

use crate::start_error::BoxError;

/// The age of the last heartbeat up to which a process counts as running, in milliseconds.
const SEEN_LATELY: i64 = 30_000;

/// Refuses a database that a server uses.
pub async fn refuse(store: &Store) -> Result<(), BoxError> {
    let since = now().0.saturating_add(store.clock_offset(now().0)) - SEEN_LATELY;
    let read = store.run("FindProcesses", Mode::Long, None, move |tx| {
        tx.one("SELECT 1 FROM process WHERE seen_on >= ?1 LIMIT 1", &[Value::Int(since)], |_| Ok(()))
    });
    match read.await {
        Ok(None) => Ok(()),
        Ok(Some(())) => {
            Err("a server uses the database, or did half a minute ago: stop all of them, and begin again"
                .into())
        }
        Err(error) => Err(error.into()),
    }
}
