//! Background jobs: their list, and how they are run and supervised.

pub mod compact;
pub mod count;
pub mod deliver;
pub mod erasures;
pub mod floor;
pub mod heal;
mod lease;
pub mod ledger;
mod listen;
pub mod mail;
pub mod prune;
pub mod prune_events;
pub mod purge;
mod refused;
pub mod reseal;
pub mod revoke;
pub mod sequence;
pub mod sign_out;
pub mod trust;
pub mod uses;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chancery_record::Timestamp;
use chancery_store::{Store, report_panic};
use chancery_web::{App, trace};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};
use tracing::Instrument as _;

use self::mail::MailSettings;

use crate::start_error::BoxError;

pub use lease::Leases;

/// Receives the number of rows that a job reads once, and how many of them are done.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// All background jobs of a server.
pub fn jobs(app: &Arc<App>, mail_settings: &MailSettings, now: fn() -> Timestamp) -> Vec<Job> {
    let (store, context) = (&app.store, &app.context);
    let mut jobs = vec![
        prune::job(app, now),
        purge::job(store, context, now),
        revoke::job(store, context, now),
        sequence::job(app),
        heal::job(app),
        compact::job(app),
        floor::job(app, now),
        listen::job(app),
        ledger::job(app, now),
        ledger::certify(app, now),
        count::job(app),
        uses::job(app),
        refused::job(app),
    ];
    // jobs that send something to other systems run only if outbound traffic is enabled
    if let Ok(permission) = context.outbound.permission() {
        jobs.extend([
            deliver::job(app, permission, now),
            mail::job(app, permission, mail_settings, now),
            mail::job(app, permission, mail_settings, now),
            sign_out::job(app, permission, now),
        ]);
    }
    if context.master.count() > 1 {
        jobs.push(reseal::job(app));
    }
    if context.metadata.fetch.is_some() {
        jobs.push(trust::job(store, context, now));
    }
    jobs
}

/// How long calls in progress are waited for at the stop: as long as one takes at most, and its record.
const LAST_TIME: Duration = Duration::from_secs(20);
/// The longest interval of a job that has something to do only after commits, where no other process commits.
const UNSHARED_INTERVAL: Duration = Duration::from_mins(1);
/// The least interval of a job after a failure.
const FAILURE_INTERVAL: Duration = Duration::from_secs(10);

type JobFuture = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// Work that is repeated in the background.
pub struct Job {
    /// The job's name, in metrics, logs and leases.
    pub name: &'static str,
    /// The interval before each run.
    pub rest: Duration,
    /// The longest interval while this process commits nothing, so that there is probably nothing to do.
    pub idle: Duration,
    /// Whether one process at a time runs it.
    pub is_exclusive: bool,
    /// Whether a stop waits for a run, which calls other servers: the result of a call is recorded.
    pub is_finished: bool,
    /// One run. It can be dropped at any await: its state must then be consistent.
    pub work: Box<dyn Fn() -> JobFuture + Send + Sync>,
}

impl Job {
    /// A job of every process.
    pub fn new<F>(name: &'static str, rest: Duration, work: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let work: Box<dyn Fn() -> JobFuture + Send + Sync> = Box::new(move || Box::pin(work()));
        Self { name, rest, idle: rest, is_exclusive: false, is_finished: false, work }
    }

    /// A job of one process at a time that has nothing left to do after its first run without an error.
    pub fn once<F>(name: &'static str, rest: Duration, work: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let is_done = Arc::new(AtomicBool::new(false));
        let work = move || {
            let is_done = Arc::clone(&is_done);
            let run = (!is_done.load(Ordering::Relaxed)).then(&work);
            async move {
                if let Some(run) = run {
                    run.await?;
                    is_done.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
        };
        Self::new(name, rest, work).exclusive()
    }

    /// Lets the job run less often while this process commits nothing. The interval bounds how late the job notices the commits of
    /// other processes, and what becomes due by time.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Lets the job run only after commits. `idle` bounds how late it notices those of other processes, where there are some.
    #[must_use]
    pub fn after_commits(self, store: &Store, idle: Duration) -> Self {
        self.idle(if store.is_shared() { idle } else { UNSHARED_INTERVAL })
    }

    /// Lets only one process at a time run the job.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { is_exclusive: true, ..self }
    }

    /// Lets a stop wait for the end of a run. It ends soon after [`App::stopping`] changes.
    #[must_use]
    pub fn finished(self) -> Self {
        Self { is_finished: true, ..self }
    }

    async fn run(self, app: Arc<App>, leases: Arc<Leases>) {
        let mut rest = self.rest;
        app.expect_job(self.name, rest.max(self.idle));
        let mut seen = None;
        loop {
            self.wait(rest, &app.store, &mut seen).await;
            if self.is_exclusive && !leases.holds(self.name) {
                app.note_job_on_other_process(self.name);
                continue;
            }
            let stopping = self.is_finished.then(|| app.stopping.subscribe());
            if stopping.as_ref().is_some_and(|stopping| *stopping.borrow()) {
                return;
            }
            let span = trace::of_job(self.name);
            let outcome = tokio::select! {
                outcome = (self.work)().instrument(span.clone()) => outcome,
                () = leases.lost(self.name), if self.is_exclusive => Err("another process may do it now".into()),
            };
            drop(stopping);
            rest = match outcome {
                Ok(()) => {
                    app.note_job(self.name);
                    self.rest
                }
                Err(why) => {
                    app.note_job_failure(self.name, &why.to_string());
                    span.in_scope(|| tracing::warn!(%why, "failed; it is tried again"));
                    // without waiting for a commit
                    seen = None;
                    self.rest.max(FAILURE_INTERVAL)
                }
            };
        }
    }

    /// Waits for the interval, and then until this process has committed something since the last run, at most for the idle
    /// interval.
    async fn wait(&self, rest: Duration, store: &Store, seen: &mut Option<u64>) {
        let until = Instant::now() + self.idle;
        sleep(rest).await;
        if let Ok(count) = timeout_at(until, store.committed_since(*seen)).await {
            *seen = Some(count);
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

/// Waits at the stop until calls to other servers have ended and are recorded, within bounds.
pub async fn finished(app: &App) {
    if timeout(LAST_TIME, app.stopping.closed()).await.is_err() {
        tracing::warn!("what was being sent has not ended in time: some of it may be sent again");
    }
}

/// The reference time of retention: the earlier of `now` and a reference clock, so that a clock that
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

    /// Of two clocks the earlier one counts for retention.
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
