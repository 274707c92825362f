//! Long work that would block other requests.

use std::sync::Arc;

use chancery_resource::Problem;
use chancery_store::Error;
use tracing::Span;

use crate::app::App;

/// Runs long work off the workers, on one of as many threads as there are processors.
pub async fn run_blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let permit = Arc::clone(&app.readers).acquire_owned().await.map_err(|_| Error::Busy)?;
    let span = Span::current();
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        span.in_scope(work)
    });
    Ok(read.await.map_err(|_| Error::Internal("work off the workers broke".into()))?)
}
