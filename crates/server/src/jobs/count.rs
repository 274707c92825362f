//! Counts for metrics that take too long to be counted on each scrape.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use chancery_store::{Class, Figure, FigureSource, FigureUnit, Mode};
use chancery_web::App;

use super::Job;
use crate::start_error::BoxError;

/// The metric of sessions.
pub static FIGURES: [Figure; 1] = [Figure {
    name: "sessions",
    help: "Sessions of people that have not ended",
    unit: FigureUnit::Count,
    source: FigureSource::Recorded,
}];

/// The counted rows.
const COUNTED: [&str; 1] = ["SELECT count(*) FROM sign_in_session WHERE ended_on IS NULL"];

/// The interval between checks of whether a count is due; also before the first count.
const INTERVAL: Duration = Duration::from_mins(1);
/// Intervals between two counts.
const INTERVALS: u32 = 10;

/// Counts sessions.
pub fn job(app: &Arc<App>) -> Job {
    let (app, checks) = (Arc::clone(app), Arc::new(AtomicU32::new(0)));
    Job::new("count", INTERVAL, move || {
        let (app, is_due) =
            (Arc::clone(&app), checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(INTERVALS));
        let checks = Arc::clone(&checks);
        async move {
            let counted = if is_due { count(&app).await } else { Ok(()) };
            if counted.is_err() {
                checks.store(0, Ordering::Relaxed);
            }
            counted
        }
    })
}

async fn count(app: &App) -> Result<(), BoxError> {
    let store = app.store.with(Class::Background);
    for (figure, text) in FIGURES.iter().zip(COUNTED) {
        let counting = store.run("Count", Mode::Long, None, move |tx| tx.one(text, &[], |row| row.int(0)));
        let counted = counting.await.map_err(BoxError::from)?;
        app.note_figure(figure, counted.unwrap_or(0));
    }
    Ok(())
}
