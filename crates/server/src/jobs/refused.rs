//! Records refused requests of client apps, for their administrators.

use std::{sync::Arc, time::Duration};

use chancery_signin::write_refused;
use chancery_store::{Class, Error, Mode};
use chancery_web::App;

use super::Job;

/// The rest between runs.
const REST: Duration = Duration::from_secs(5);
/// Requests recorded in one transaction.
const PIECE: usize = 50;

/// Records what this process refused: each process does. What cannot be written is lost, and is noted again after an hour.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    Job::new("refused", REST, move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            for piece in app.refused_requests.take().chunks(PIECE) {
                let (requests, context) = (piece.to_vec(), Arc::clone(&app.context));
                let written = store
                    .run("WriteRefusedRequests", Mode::Write, None, move |tx| {
                        write_refused(tx, &context, &requests)
                    })
                    .await;
                written.map_err(|error: Error| error.to_string())?;
            }
            Ok(())
        }
    })
}
