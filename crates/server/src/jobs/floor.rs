//! Raises the floor of the schema: the oldest program that the database serves. From then on older programs end with an
//! error, so it waits until none is connected; no start waits for it.

use std::{sync::Arc, time::Duration};

use chancery_record::{Timestamp, Value};
use chancery_store::{Class, Error, FLOOR, Mode, READ_FLOOR, StateTable, Store};
use chancery_web::App;

use super::Job;
use crate::start_error::BoxError;

/// The interval of checks.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long no older program may have sent a heartbeat, in milliseconds.
const UNSEEN: i64 = 60_000;
/// The warning of readiness until then.
const OLDER: &str = "Programs of a release that is not supported beside this one are connected to the database. Upgrade or stop them.";

/// Raises the floor once no older program is connected.
pub fn job(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            let now = now().0;
            let older = raise(&store, now.saturating_add(store.clock_offset(now)));
            let older = older.await.map_err(BoxError::from)?;
            let is_waiting = !older.is_empty();
            if is_waiting {
                tracing::warn!(?older, "programs of an older release are connected: upgrade or stop them");
            }
            app.note_warning("floor", is_waiting.then(|| OLDER.to_owned()));
            Ok(())
        }
    };
    Job::new("floor", INTERVAL, work).exclusive()
}

/// Raises the floor to that of this release, unless older programs are connected: returns their versions.
pub async fn raise(store: &Store, now: i64) -> Result<Vec<String>, Error> {
    let read = store.run("ReadFloor", Mode::Quick, None, |tx| tx.one(READ_FLOOR, &[], |row| row.int(0)));
    if read.await?.unwrap_or(0) >= FLOOR {
        return Ok(Vec::new());
    }
    let raise = store.run("RaiseFloor", Mode::Write, None, move |tx| {
        let mut older = Vec::new();
        let text =
            "SELECT DISTINCT version FROM process WHERE schema < ?1 AND seen_on >= ?2 ORDER BY version";
        tx.query(text, &[Value::Int(FLOOR), Value::Int(now - UNSEEN)], |row| {
            older.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        if older.is_empty() {
            let raise = StateTable::SchemaFloor.update("SET floor = ?1 WHERE floor < ?1");
            tx.queue(&raise, vec![Value::Int(FLOOR)])?;
        }
        Ok::<_, Error>(older)
    });
    raise.await
}
