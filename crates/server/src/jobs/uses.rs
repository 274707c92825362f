//! Writes when secrets and keys of client apps were last used.

use std::{sync::Arc, time::Duration};

use chancery_auth::write_uses;
use chancery_store::{Class, Error, Mode};
use chancery_web::App;

use super::Job;

/// The rest between runs.
const REST: Duration = Duration::from_secs(30);
/// Uses written in one transaction.
const PIECE: usize = 500;

/// Writes what this process saw: each process does.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    Job::new("uses", REST, move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            let seen = app.token_service.uses.take();
            let mut pieces = seen.chunks(PIECE);
            while let Some(piece) = pieces.next() {
                let uses = piece.to_vec();
                let written =
                    store.run("WriteUses", Mode::Write, None, move |tx| write_uses(tx, &uses)).await;
                if let Err(error) = written as Result<(), Error> {
                    app.token_service.uses.put_back(piece.iter().chain(pieces.flatten()).copied().collect());
                    return Err(error.to_string());
                }
            }
            Ok(())
        }
    })
}
