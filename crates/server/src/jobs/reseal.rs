//! After a rotation of the master key, encrypts again under the first key the values of older keys. Then these keys are no longer
//! needed: values that are not encrypted again, such as stored answers of idempotency keys and sign-ins in progress, end
//! within a day.

use std::{sync::Arc, time::Duration};

use chancery_resource::{MasterKey, SealedColumn};
use chancery_store::{Class, Error, Mode, Store, Tx};
use chancery_web::App;

use super::{Job, Progress};
use crate::services::services;
use crate::start_error::BoxError;

/// The interval before each run; nothing is left to do after the first that succeeds.
const INTERVAL: Duration = Duration::from_secs(5);
const NAME: &str = "resealing";
const DONE: &str = "stored values need the first master key alone; those that end within a day may need the others until then";
const UNKNOWN: &str = "Values in the database were encrypted under a master key that the file does not have. Add that key at the end of \
    the file and start again.";

/// Encrypts again the values of older keys, once for each start of a process.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let progress = |rows, done| app.note_backfill(NAME, rows, done);
            let store = app.store.with(Class::Background);
            let resealed = reseal(&store, &app.context.master, &progress).await;
            let (renewed, unknown) = resealed.map_err(BoxError::from)?;
            if unknown == 0 {
                tracing::info!(renewed, "{DONE}");
            } else {
                tracing::error!(renewed, unknown, "{UNKNOWN}");
                app.note_warning(NAME, Some(UNKNOWN.to_owned()));
            }
            Ok(())
        }
    };
    Job::once(NAME, INTERVAL, work)
}

/// The columns whose values the master key encrypts for longer than a day. Those of signing keys and of the root key are not among
/// them: the rotation itself encrypts them again.
fn columns() -> Vec<SealedColumn> {
    let mut columns = vec![
        SealedColumn::of_persons("user_account"),
        SealedColumn::of_persons("application_user"),
        SealedColumn::new("second_factor", "sealed", "second_factor", &["person_id", "mfa_instance_id"]),
        SealedColumn::new("sign_in_session", "provider_claims", "sign_in_session", &["id"]),
        SealedColumn::new("sign_in_grant", "sealed", "sign_in_grant", &["id"]),
        SealedColumn::new("mail_message", "sealed_data", "mail_message", &["id"]),
    ];
    for op in services().iter().flat_map(|service| service.all()) {
        for column in SealedColumn::secrets_of(op.shape) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns
}

/// Encrypts all values of older keys under the first key. Returns the number of these, and of values that no key
/// decrypts. `progress` gets the number of all rows, and of those that are done.
///
/// # Errors
/// What was encrypted until then stays.
pub async fn reseal(store: &Store, master: &MasterKey, progress: Progress<'_>) -> Result<(u64, u64), Error> {
    let columns = columns();
    let counted = columns.clone();
    let count = move |tx: &mut Tx<'_>| {
        counted.iter().try_fold(0, |rows, column| Ok::<_, Error>(rows + column.count(tx)?))
    };
    let rows = store.run("CountSealed", Mode::Long, None, count).await?;
    let (mut done, mut renewed, mut unknown) = (0, 0, 0);
    for column in columns {
        let mut after = i64::MIN;
        loop {
            progress(rows, done);
            let (reading, master) = (column.clone(), master.clone());
            let read = move |tx: &mut Tx<'_>| reading.read(tx, &master, after);
            let batch = store.run("FindFormerlySealed", Mode::Long, None, read).await?;
            (done, unknown) = (done + batch.rows, unknown + batch.unknown);
            if !batch.renewed.is_empty() {
                renewed += batch.renewed.len() as u64;
                let (sealed_column, values) = (column.clone(), batch.renewed);
                let store_values = move |tx: &mut Tx<'_>| sealed_column.store(tx, values.clone());
                store.run("Reseal", Mode::Write, None, store_values).await?;
            }
            let Some(last) = batch.last else { break };
            after = last;
        }
    }
    progress(rows, done);
    Ok((renewed, unknown))
}
