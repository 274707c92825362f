//! The writer lane: waiting writes run one after another, each in its own savepoint of one outer
//! transaction, and one commit wakes them all. Checkpoints run beside it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError, atomic::Ordering},
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{Connection, Counters};
use crate::{Error, Tx, job::Job, tx::Engine};

/// The most writes that one commit holds.
const GROUP: usize = 256;
/// How long a group may take in more writes. It bounds how long the first one waits.
const GROUP_TIME: Duration = Duration::from_millis(20);
/// How long checkpoints rest while there are writes.
const CHECKPOINT_REST: Duration = Duration::from_millis(200);
/// How long the lane waits for readers when the log is over its bound.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(25);

/// Tells the checkpoint thread that there is something to do, or that it is over.
#[derive(Default)]
struct Bell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Default)]
struct BellState {
    dirty: bool,
    closing: bool,
}

impl Bell {
    fn ring(&self, closing: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.dirty || closing {
            state.dirty = true;
            state.closing |= closing;
            self.rung.notify_one();
        }
    }

    /// Waits for work, then rests so that a checkpoint has more than one commit to do. `false`
    /// when it is over.
    fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.rung.wait_while(state, |state| !state.dirty && !state.closing);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let rest = self.rung.wait_timeout_while(state, CHECKPOINT_REST, |state| !state.closing);
        let (mut state, _) = rest.unwrap_or_else(PoisonError::into_inner);
        state.dirty = false;
        !state.closing
    }
}

pub fn start(
    path: &Path,
    writer: Connection,
    jobs: mpsc::Receiver<Job>,
    counters: Arc<Counters>,
    log_bound: u64,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let bell = Arc::new(Bell::default());
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let checkpointer = Connection::open(path, false, 2048, &writer.epoch)?;
    let lane = Lane { writer, counters, bell: Arc::clone(&bell), log, log_bound, retry_at: log_bound };
    let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
        Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .map_err(|error| Error::Unavailable(error.to_string()))
    };
    Ok(vec![
        spawn("store-writer", Box::new(move || lane.run(jobs)))?,
        spawn("store-checkpoint", Box::new(move || checkpoint(&checkpointer, &bell)))?,
    ])
}

struct Lane {
    writer: Connection,
    counters: Arc<Counters>,
    bell: Arc<Bell>,
    log: PathBuf,
    log_bound: u64,
    retry_at: u64,
}

impl Lane {
    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            self.commit_group(first, &mut jobs);
            self.bell.ring(false);
            self.bound_log();
        }
        self.bell.ring(true);
    }

    fn commit_group(&self, first: Job, jobs: &mut mpsc::Receiver<Job>) {
        let started = Instant::now();
        let mut kept = Vec::new();
        if let Err(error) = self.writer.execute("BEGIN IMMEDIATE", &[]) {
            tracing::error!(%error, "cannot begin a write");
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            return first.finish(Err(error));
        }
        let mut next = Some(first);
        while let Some(job) = next {
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(job) = self.run_one(job) {
                kept.push(job);
            }
            let more = kept.len() < GROUP && started.elapsed() < GROUP_TIME;
            next = if more { jobs.try_recv().ok() } else { None };
        }
        let outcome = self.writer.execute("COMMIT", &[]).map(drop);
        if let Err(error) = &outcome {
            tracing::error!(%error, "cannot commit");
            let _ = self.writer.execute("ROLLBACK", &[]);
        }
        if let Err(error) = self.writer.learn_epoch() {
            tracing::error!(%error, "cannot read the security epoch");
        }
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.writes.fetch_add(kept.len() as u64, Ordering::Relaxed);
        for job in kept {
            job.finish(outcome.clone());
        }
    }

    /// Runs a write in its savepoint. What it refused is answered at once; what it did waits for
    /// the commit.
    fn run_one(&self, mut job: Job) -> Option<Job> {
        let outcome = self.writer.execute("SAVEPOINT operation", &[]).and_then(|_| {
            let kept = job.run(&mut Tx::new(Engine::Sqlite(&self.writer)));
            if !matches!(kept, Ok(true)) {
                self.writer.execute("ROLLBACK TO operation", &[])?;
            }
            self.writer.execute("RELEASE operation", &[])?;
            kept
        });
        match outcome {
            Ok(true) => return Some(job),
            Ok(false) => job.finish(Ok(())),
            Err(error) => job.finish(Err(error)),
        }
        None
    }

    /// When the log is over its bound, writes wait for a checkpoint that starts it anew. Long
    /// readers can prevent that; then it is tried again after some more growth.
    fn bound_log(&mut self) {
        let bytes = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.counters.log_bytes.store(bytes, Ordering::Relaxed);
        if bytes < self.retry_at {
            return;
        }
        let _ = self.writer.raw.busy_timeout(CHECKPOINT_WAIT);
        let outcome = self.writer.query("PRAGMA wal_checkpoint(TRUNCATE)", &[], &mut |_| Ok(()));
        let _ = self.writer.raw.busy_timeout(Duration::from_secs(5));
        let left = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.retry_at = if left < self.log_bound { self.log_bound } else { left + self.log_bound / 8 };
        tracing::debug!(bytes, left, ?outcome, "checkpoint in the lane");
    }
}

fn checkpoint(connection: &Connection, bell: &Bell) {
    while bell.wait() {
        // PASSIVE never waits and never makes others wait
        let outcome = connection.query("PRAGMA wal_checkpoint(PASSIVE)", &[], &mut |_| Ok(()));
        if let Err(error) = outcome {
            tracing::warn!(%error, "checkpoint failed");
        }
    }
    let _ = connection.query("PRAGMA wal_checkpoint(TRUNCATE)", &[], &mut |_| Ok(()));
}
