//! Records refused requests of client apps, for their administrators.

use std::{sync::Arc, time::Duration};

use chancery_signin::write_refused;
use chancery_store::{Class, Mode};
use chancery_web::App;

use super::Job;
use crate::start_error::BoxError;

/// The interval between runs.
const INTERVAL: Duration = Duration::from_secs(5);
/// Requests recorded in one transaction.
const BATCH: usize = 50;

/// Records refused requests of this process: each process does. Requests that cannot be written are lost, and recorded again after an hour.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    Job::new("refused", INTERVAL, move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            for batch in app.refused_requests.take().chunks(BATCH) {
                let (requests, context) = (batch.to_vec(), Arc::clone(&app.context));
                let written = store
                    .run("WriteRefusedRequests", Mode::Write, None, move |tx| {
                        write_refused(tx, &context, &requests)
                    })
                    .await;
                written.map_err(BoxError::from)?;
            }
            Ok(())
        }
    })
}
