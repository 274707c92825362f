//! Writes the ids of erased people to the list outside the database, which a restore applies.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chancery_record::Value;
use chancery_store::{Class, Error, Mode, Store};
use chancery_web::App;

use super::Job;
use crate::erasure_list::{Erasure, ErasureList};
use crate::start_error::BoxError;

/// The interval: an erasure is listed within ten seconds.
const INTERVAL: Duration = Duration::from_secs(3);
/// Erasures read at once.
const BATCH: usize = 1000;
/// The warning of `/health/ready` while the list cannot be written.
const UNWRITTEN: &str = "The list of erased people cannot be written: who is erased now would live again after a restore. The log says why.";

/// The job that writes erasures to the list. Each process runs it, for its own list.
pub fn job(app: &Arc<App>, list: ErasureList) -> Job {
    let (app, list) = (Arc::clone(app), Arc::new(Mutex::new(list)));
    Job::new("erasures", INTERVAL, move || {
        let (app, list) = (Arc::clone(&app), Arc::clone(&list));
        async move {
            let done = write_erasures(&app.store.with(Class::Background), &list).await;
            app.note_warning("erasures", done.is_err().then(|| UNWRITTEN.to_owned()));
            done
        }
    })
}

/// Writes the erasures that are not listed yet. The position is read from the list itself, so that nothing is lost if a process is
/// killed.
async fn write_erasures(store: &Store, list: &Arc<Mutex<ErasureList>>) -> Result<(), BoxError> {
    let mut after = list.lock().unwrap_or_else(PoisonError::into_inner).position();
    loop {
        let batch = read_erasures(store, after).await?;
        let Some(newest) = batch.last() else { return Ok(()) };
        after = newest.number;
        let (list, count) = (Arc::clone(list), batch.len());
        let adding = tokio::task::spawn_blocking(move || {
            list.lock().unwrap_or_else(PoisonError::into_inner).add(&batch)
        });
        adding.await??;
        if count < BATCH {
            return Ok(());
        }
    }
}

async fn read_erasures(store: &Store, after: i64) -> Result<Vec<Erasure>, Error> {
    let read = store.run("ReadErasures", Mode::Long, None, move |tx| {
        let text = format!(
            "SELECT {} FROM erasure WHERE number > ?1 ORDER BY number LIMIT {BATCH}",
            Erasure::COLUMNS
        );
        let mut erasures = Vec::new();
        tx.query(&text, &[Value::Int(after)], |row| {
            erasures.push(Erasure::read(row)?);
            Ok(())
        })?;
        Ok::<_, Error>(erasures)
    });
    read.await
}
