//! Background jobs: their list, and how they are run and supervised.

pub mod count;
pub mod deliver;
pub mod floor;
pub mod heal;
mod lease;
pub mod ledger;
mod listen;
pub mod mail;
pub mod place;
pub mod prune;
pub mod prune_events;
pub mod purge;
pub mod revoke;
pub mod sign_out;
pub mod trust;
pub mod uses;

use std::{pin::Pin, sync::Arc, time::Duration};

use chancery_record::Timestamp;
use chancery_store::{Store, report_panic};
use chancery_web::{App, trace};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use self::mail::MailSettings;

pub use lease::Leases;

/// All background jobs of a server.
pub fn jobs(app: &Arc<App>, mail_settings: &MailSettings, now: fn() -> Timestamp) -> Vec<Job> {
    let (store, context) = (&app.store, &app.context);
    let mut jobs = vec![
        prune::job(app, now),
        purge::job(store, context, now),
        revoke::job(store, context, now),
        place::job(app),
        heal::job(app),
        floor::job(app, now),
        listen::job(app),
        deliver::job(app, now),
        ledger::job(app, now),
        ledger::certify(app, now),
        mail::job(store, mail_settings, now),
        mail::job(store, mail_settings, now),
        count::job(app),
        sign_out::job(app, now),
        uses::job(app),
    ];
    if context.metadata.fetch.is_some() {
        jobs.push(trust::job(store, context, now));
    }
    jobs
}

/// The least rest of a job after a failure.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(10);

type Doing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Work that is repeated in the background.
pub struct Job {
    /// The job's name, in metrics, logs and leases.
    pub name: &'static str,
    /// The rest before each run.
    pub rest: Duration,
    /// Whether one process at a time does it.
    pub is_exclusive: bool,
    /// One run. It can be dropped at any await: what it did by then must be consistent.
    pub work: Box<dyn Fn() -> Doing + Send + Sync>,
}

impl Job {
    /// A job that every process does.
    pub fn new<F>(name: &'static str, rest: Duration, work: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self { name, rest, is_exclusive: false, work: Box::new(move || Box::pin(work())) }
    }

    /// Lets only one process at a time do the job.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { is_exclusive: true, ..self }
    }

    async fn run(self, app: Arc<App>, leases: Arc<Leases>) {
        let mut rest = self.rest;
        app.expect_job(self.name, rest);
        loop {
            tokio::time::sleep(rest).await;
            if self.is_exclusive && !leases.holds(self.name) {
                app.note_job_elsewhere(self.name);
                continue;
            }
            let span = trace::of_job(self.name);
            let outcome = tokio::select! {
                outcome = (self.work)().instrument(span.clone()) => outcome,
                () = leases.lost(self.name), if self.is_exclusive => Err("another process may do it now".to_owned()),
            };
            rest = match outcome {
                Ok(()) => {
                    app.note_job(self.name);
                    self.rest
                }
                Err(why) => {
                    app.note_job_failure(self.name, &why);
                    span.in_scope(|| tracing::warn!(why, "failed; it is tried again"));
                    self.rest.max(REST_AFTER_FAILURE)
                }
            };
        }
    }
}

/// Runs jobs until it is dropped. A panic would go unnoticed, so it ends the process.
pub async fn supervise(app: Arc<App>, leases: Arc<Leases>, jobs: Vec<Job>) {
    let names = jobs.iter().filter(|job| job.is_exclusive).map(|job| job.name).collect();
    let mut running = JoinSet::new();
    running.spawn(Arc::clone(&leases).renew(names));
    for job in jobs {
        running.spawn(job.run(Arc::clone(&app), Arc::clone(&leases)));
    }
    while let Some(ended) = running.join_next().await {
        if ended.is_err_and(|error| error.is_panic()) {
            report_panic("a job");
        }
    }
}

/// The time by which retention is judged: the earlier of `now` and a reference clock, so that a clock that
/// jumped ahead deletes nothing too early.
pub fn bounded(store: &Store, now: Timestamp) -> Timestamp {
    earlier(now, store.clock_offset(now.0))
}

/// A time, moved back where it is ahead of the reference clock.
fn earlier(now: Timestamp, offset: i64) -> Timestamp {
    Timestamp(now.0.saturating_add(offset.min(0)))
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;

    use super::earlier;

    /// Section 1: of two clocks the earlier one counts for retention.
    #[test]
    fn the_clock_that_is_behind_counts() {
        let eight_days = 8 * 24 * 3_600_000;
        for (now, offset, counts) in [
            (1_000, 0, 1_000),
            (1_000 + eight_days, -eight_days, 1_000),
            (1_000, eight_days, 1_000),
            (i64::MIN, -1, i64::MIN),
        ] {
            assert_eq!(earlier(Timestamp(now), offset), Timestamp(counts));
        }
    }
}
