//! After an upgrade from a release that stored the contents of audit entries as they are, compresses those of people. It ends with
//! the last of these entries; in a new installation there are none.

use std::{sync::Arc, time::Duration};

use chancery_resource::{MasterKey, compact_entries, count_entries_to_compact};
use chancery_store::{Class, Error, Mode, Store, Tx};
use chancery_userstore::audit_trail::AUDIT_TRAIL;
use chancery_web::App;

use super::{Job, Progress};
use crate::start_error::BoxError;

/// The interval before each run; nothing is left to do after the first that succeeds.
const INTERVAL: Duration = Duration::from_mins(1);
const NAME: &str = "compacting";

/// Compresses what an older release stored, once for each start of a process.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let progress = |entries, done| app.note_backfill(NAME, entries, done);
            let store = app.store.with(Class::Background);
            let compressed = compact(&store, &app.context.master, &progress).await.map_err(BoxError::from)?;
            if compressed > 0 {
                tracing::info!(compressed, "contents of audit entries of an older release are compressed");
            }
            Ok(())
        }
    };
    Job::once(NAME, INTERVAL, work)
}

/// Compresses the contents of all entries that an older release stored. Returns how many contents became shorter. `progress`
/// gets the number of entries, and of those that are done.
///
/// # Errors
/// What was compressed until then stays, and the next call continues.
pub async fn compact(store: &Store, master: &MasterKey, progress: Progress<'_>) -> Result<u64, Error> {
    let entries = store.run("CountEntriesToCompact", Mode::Long, None, count_entries_to_compact).await?;
    if entries == 0 {
        return Ok(0);
    }
    let (mut done, mut compressed) = (0, 0);
    loop {
        progress(entries, done);
        let master = master.clone();
        // an entry of this trail can be about any person
        let piece = move |tx: &mut Tx<'_>| compact_entries(tx, &master, &AUDIT_TRAIL);
        let piece = store.run("CompactEntries", Mode::Write, None, piece).await?;
        (done, compressed) = (done + piece.entries, compressed + piece.contents);
        if piece.is_done {
            progress(entries, done);
            return Ok(compressed);
        }
    }
}
