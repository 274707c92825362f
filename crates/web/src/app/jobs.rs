//! The state of the background jobs of this process, and their warnings.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chancery_record::Timestamp;

/// The state of a background job on this process.
#[derive(Clone, Debug)]
pub struct JobState {
    /// The job's name.
    pub name: &'static str,
    /// The rest before each run.
    pub rest: Duration,
    /// When it last succeeded here.
    pub succeeded_on: Option<Timestamp>,
    /// When and why it failed, where that was after its last success.
    pub failed: Option<(Timestamp, String)>,
    /// Whether another process runs it.
    pub runs_on_other_process: bool,
}

/// Warnings about a process that can serve requests, by the job that found them.
#[derive(Debug, Default)]
pub struct JobWarnings(Mutex<BTreeMap<&'static str, String>>);

impl JobWarnings {
    /// Records the warning of a job; `None`: it has none any more.
    pub fn set(&self, job: &'static str, warning: Option<String>) {
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match warning {
            Some(warning) => warnings.insert(job, warning),
            None => warnings.remove(job),
        };
    }

    /// All warnings.
    pub fn all(&self) -> BTreeMap<&'static str, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The jobs of this process.
#[derive(Debug, Default)]
pub struct JobStates(Mutex<BTreeMap<&'static str, JobState>>);

impl JobStates {
    /// Changes the state of a job.
    pub fn change(&self, name: &'static str, change: impl FnOnce(&mut JobState)) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = JobState {
            name,
            rest: Duration::ZERO,
            succeeded_on: None,
            failed: None,
            runs_on_other_process: false,
        };
        change(jobs.entry(name).or_insert(fresh));
    }

    /// All jobs, by name.
    pub fn all(&self) -> Vec<JobState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
