//! The health of this process, for people: its probes, metrics and background jobs.

use std::{collections::BTreeMap, time::Duration};

use chancery_store::Health;

use super::{App, jobs::JobState};
use crate::connection::shutdown::ShutdownStage;

/// The health of this process.
#[derive(Debug)]
pub struct HealthReport {
    /// Why it is not ready, by the word of the probe; `None`: it is.
    pub reason: Option<&'static str>,
    /// Warnings about a process that can serve, by the job that found them.
    pub warnings: BTreeMap<&'static str, String>,
    /// The background jobs, by name.
    pub jobs: Vec<JobState>,
    /// The known figures, by name; times in milliseconds since 1970.
    pub figures: BTreeMap<&'static str, i64>,
}

impl App {
    /// Why no requests should be sent here, with a sentence about it; `None`: it is ready. From memory: a probe must not
    /// hang where the database does.
    pub fn unready(&self) -> Option<(&'static str, &'static str)> {
        let health = self.store.health();
        let detail = match health {
            _ if self.connections.stage() != ShutdownStage::Open => {
                return Some(("draining", "The server stops. Send requests to another one."));
            }
            Health::Ready => return None,
            Health::ReadOnly => "The storage takes no writes.",
            Health::Clock => "The database's clock is more than 30 seconds away from this server's.",
            Health::Unavailable => "The storage does not answer.",
        };
        Some((health.name(), detail))
    }

    /// Registers a background job of this process.
    pub fn expect_job(&self, job: &'static str, rest: Duration) {
        self.jobs.change(job, |state| state.rest = rest);
    }

    /// Records that a background job succeeded.
    pub fn note_job(&self, job: &'static str) {
        let now = self.clock.now();
        self.metrics.note_job(job, now);
        self.jobs.change(job, |state| {
            state.succeeded_on = Some(now);
            state.failed = None;
            state.runs_on_other_process = false;
        });
    }

    /// Records how far a job is that reads rows once to fill in or to convert them. Rows that came meanwhile are not counted in
    /// `rows`, so `done` is at most that.
    pub fn note_backfill(&self, job: &'static str, rows: u64, done: u64) {
        self.metrics.note_backfill(job, rows, done.min(rows));
    }

    /// Records that a background job failed.
    pub fn note_job_failure(&self, job: &'static str, why: &str) {
        let now = self.clock.now();
        self.jobs.change(job, |state| state.failed = Some((now, why.to_owned())));
    }

    /// Records a problem that a background job found although requests can be served; `None`: there is none any more.
    pub fn note_warning(&self, job: &'static str, warning: Option<String>) {
        self.warnings.set(job, warning);
    }

    /// The warnings of the background jobs.
    pub fn warnings(&self) -> BTreeMap<&'static str, String> {
        self.warnings.all()
    }

    /// Records that another process runs a background job.
    pub fn note_job_on_other_process(&self, job: &'static str) {
        self.note_warning(job, None);
        self.jobs.change(job, |state| {
            state.runs_on_other_process = true;
            state.failed = None;
        });
    }

    /// The health of this process. Figures that cannot be read are missing.
    pub async fn health(&self) -> HealthReport {
        self.metrics.figures.read(&self.store).await;
        let mut figures = self.metrics.figures.values();
        let store = self.store.figures();
        let known = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        figures.extend([
            ("store_waiting", i64::try_from(store.waiting).unwrap_or(i64::MAX)),
            ("log_dropped", known((self.dropped_lines)())),
            ("connections", i64::try_from(self.connections.count()).unwrap_or(i64::MAX)),
        ]);
        let reason = self.unready().map(|(reason, _)| reason);
        HealthReport { reason, warnings: self.warnings(), jobs: self.jobs.all(), figures }
    }
}
