//! Notifies local waiters of the last positions of their trails, whichever process sequences them.

use std::{sync::Arc, time::Duration};

use chancery_record::Value;
use chancery_resource::{LIST, Sql};
use chancery_store::{Class, Error, Mode, selectable};
use chancery_web::App;
use tokio::time::timeout;

use super::Job;
use crate::start_error::BoxError;

/// The poll interval while there are waiters.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a run without waiters waits for one.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Notifies the waiters.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    Job::new("listening", INTERVAL, move || {
        let app = Arc::clone(&app);
        async move {
            let tails = &app.context.tails;
            if tails.trails_with_waiters().is_empty() {
                let _ = timeout(IDLE_INTERVAL, tails.waiter_added()).await;
            }
            notify(&app).await.map_err(BoxError::from)
        }
    })
}

selectable! {
    /// A trail, and its last position.
    struct PlacedTrail from "FROM event_trail WHERE trail IN " {
        trail: i64 = "trail",
        placed: i64 = "placed",
    }
}

async fn notify(app: &App) -> Result<(), Error> {
    let store = app.store.with(Class::Background);
    for trails in app.context.tails.trails_with_waiters().chunks(LIST) {
        let mut sql = Sql::new(PlacedTrail::SELECT);
        sql.add_list(trails.iter().copied().map(Value::Int));
        let read = store.run("ReadTrails", Mode::Quick, None, move |tx| {
            let mut positions = Vec::new();
            tx.query(&sql.text, &sql.parameters, |row| {
                positions.push(PlacedTrail::read(row)?);
                Ok(())
            })?;
            Ok::<_, Error>(positions)
        });
        for PlacedTrail { trail, placed } in read.await? {
            app.context.tails.notify(trail, placed);
        }
    }
    Ok(())
}
