//! Whether the store serves, looked at again and again, so that `/health/ready` need not ask it.

use std::{sync::Arc, time::Duration};

use chancery_store::{Error, Mode};
use chancery_web::App;

/// How often it is looked.
const REST: Duration = Duration::from_secs(1);
/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks until the server stops.
pub async fn watch(app: Arc<App>) {
    loop {
        tokio::time::sleep(REST).await;
        let asked = app.store.run("Ready", Mode::Quick, None, |tx| tx.epoch().map(drop));
        let answered: Result<Result<(), Error>, _> = tokio::time::timeout(PATIENCE, asked).await;
        app.note_store(matches!(answered, Ok(Ok(()))));
    }
}
