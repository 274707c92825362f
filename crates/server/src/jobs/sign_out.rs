//! Sends logout tokens to client apps by their back channel.

use std::{sync::Arc, time::Duration};

use chancery_fetch::Permission;
use chancery_record::Timestamp;
use chancery_web::App;

use super::Job;
use crate::start_error::BoxError;

/// The interval between checks for due sign-outs.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval while this process commits nothing: tokens that are sent again wait so long.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// Sends the logout tokens that are due. Each of them has a lease of its own.
pub fn job(app: &Arc<App>, permission: Permission, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let destinations = app.token_service.destinations().clone();
            // until nothing is due any more: failed ones are due later
            let send = || app.deliver_sign_outs(permission, &destinations, now());
            while send().await.map_err(BoxError::from)?.any() && !*app.stopping.borrow() {}
            Ok(())
        }
    };
    Job::new("sign-out", INTERVAL, work).idle(IDLE_INTERVAL).finished()
}
