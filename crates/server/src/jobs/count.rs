//! Counts what takes too long to be counted each time that somebody reads the metrics.

use std::{sync::Arc, time::Duration};

use chancery_store::{Error, Mode};
use chancery_web::App;

/// How often it is counted.
const REST: Duration = Duration::from_mins(10);

/// Counts the events of the outbox until the server stops.
pub async fn count(app: Arc<App>) {
    loop {
        let text = "SELECT count(*) FROM outbox_event";
        let counted =
            app.store.run("CountEvents", Mode::Long, None, |tx| tx.one(text, &[], |row| row.int(0)));
        match counted.await {
            Ok(events) => app.note_events(events.unwrap_or(0)),
            Err(error) => {
                let error: Error = error;
                tracing::warn!(%error, "the events of the outbox were not counted");
            }
        }
        tokio::time::sleep(REST).await;
    }
}
