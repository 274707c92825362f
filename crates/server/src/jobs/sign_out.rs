//! Tells client apps by their back channel that a session ended.

use std::{sync::Arc, time::Duration};

use chancery_fetch::Permission;
use chancery_record::Timestamp;
use chancery_web::App;

use super::Job;

/// The rest between checks of what is due.
const REST: Duration = Duration::from_secs(1);

/// Tells the client apps that are due. Each of them has a lease of its own.
pub fn job(app: &Arc<App>, permission: Permission, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let destinations = app.token_service.destinations().clone();
            // until nothing is due any more: those that failed are due later
            let tell = || app.tell_sign_outs(permission, &destinations, now());
            while tell().await.map_err(|error| error.to_string())?.any() && !*app.stopping.borrow() {}
            Ok(())
        }
    };
    Job::new("sign-out", REST, work).finished()
}
