//! Records when secrets and keys of client apps were last used.

use std::{sync::Arc, time::Duration};

use chancery_auth::write_uses;
use chancery_store::{Class, Error, Mode};
use chancery_web::App;

use super::Job;
use crate::start_error::BoxError;

/// The interval between runs.
const INTERVAL: Duration = Duration::from_secs(30);
/// Uses written in one transaction.
const BATCH: usize = 500;

/// Records the uses of this process: each process does.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    Job::new("uses", INTERVAL, move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            let seen = app.token_service.uses.take();
            let mut batches = seen.chunks(BATCH);
            while let Some(batch) = batches.next() {
                let uses = batch.to_vec();
                let written =
                    store.run("WriteUses", Mode::Write, None, move |tx| write_uses(tx, &uses)).await;
                if let Err(error) = written as Result<(), Error> {
                    app.token_service.uses.put_back(batch.iter().chain(batches.flatten()).copied().collect());
                    return Err(BoxError::from(error));
                }
            }
            Ok(())
        }
    })
}
