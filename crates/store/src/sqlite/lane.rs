//! The writer lane: waiting writes run one after another, each in its own savepoint of one outer transaction,
//! and one commit wakes them all. Checkpoints run in another thread.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    Counters, SINGLE_USE, Sqlite,
    checkpointer::{Checkpointer, WriteSignal},
};
use crate::{
    Class, Error, Settings, Tx,
    connection::sqlite::{BUSY_TIMEOUT, Connection},
    guard::spawn,
    job::Job,
    queue::{JobKind, Next, Queue, QueuedJob, WorkerKind},
    tx::Engine,
};

/// The most writes in one commit.
const GROUP: usize = 256;
/// How long a group accepts further writes, which bounds how long the first one waits.
const GROUP_TIME: Duration = Duration::from_millis(20);
/// How long the lane waits for readers when the write-ahead log exceeds its bound.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(25);
/// Retries of a write.
const RETRIES: usize = 3;
/// The longest sleep without writes.
const IDLE: Duration = Duration::from_hours(1);

pub fn start(
    path: &Path,
    writer: Connection,
    store: &Sqlite,
    settings: Settings,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let (counters, queue, signal) = (&store.counters, &store.writing, Arc::new(WriteSignal::default()));
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let connection = Connection::open(path, false, SINGLE_USE, &writer.epoch)?;
    let lane = Lane {
        writer,
        counters: Arc::clone(counters),
        queue: Arc::clone(queue),
        signal: Arc::clone(&signal),
        log: log.clone(),
        log_bound: settings.log_bytes,
        retry_at: settings.log_bytes,
    };
    let checkpointer = Checkpointer {
        connection,
        path: path.to_owned(),
        log,
        reserve: settings.disk_reserve,
        counters: Arc::clone(counters),
        queue: Arc::clone(queue),
        signal: Arc::clone(&signal),
    };
    let abort = || {
        let (counters, queue, signal) = (Arc::clone(counters), Arc::clone(queue), Arc::clone(&signal));
        move || {
            counters.is_broken.store(true, Ordering::Relaxed);
            queue.abort();
            signal.close();
        }
    };
    Ok(vec![
        spawn("store-writer".into(), move || lane.run(), abort())?,
        spawn("store-checkpoint".into(), move || checkpointer.run(), abort())?,
    ])
}

struct Lane {
    writer: Connection,
    counters: Arc<Counters>,
    queue: Arc<Queue>,
    signal: Arc<WriteSignal>,
    log: PathBuf,
    log_bound: u64,
    retry_at: u64,
}

impl Lane {
    fn run(mut self) {
        let mut next_heavy = None;
        loop {
            let first = match next_heavy.take() {
                Some(first) => first,
                None => match self.queue.take(WorkerKind::Any, IDLE) {
                    Next::Run(first) => first,
                    Next::Idle => continue,
                    Next::Closed => return self.signal.close(),
                },
            };
            next_heavy = self.commit_group(first);
            self.signal.notify_write();
            self.bound_log();
        }
    }

    /// Runs an operation and the waiting ones, and commits them. A heavy one has its own commit, so that no
    /// earlier write waits for it: the next heavy one is returned.
    fn commit_group(&self, QueuedJob { job: first, class, .. }: QueuedJob) -> Option<QueuedJob> {
        let (started, is_heavy) = (Instant::now(), class == Class::Heavy);
        let mut succeeded = Vec::new();
        if let Err(error) = self.writer.execute("BEGIN IMMEDIATE", &[]) {
            first.span().in_scope(|| tracing::error!(%error, "cannot begin a write"));
            self.counters.failed.store(true, Ordering::Relaxed);
            first.finish(Err(error));
            return None;
        }
        let (mut next, mut heavy) = (Some(first), None);
        while let Some(job) = next {
            if let Some(job) = self.run_one(job) {
                succeeded.push(job);
            }
            if self.writer.raw.is_autocommit() {
                self.fail_group(succeeded);
                return None;
            }
            let more = !is_heavy && succeeded.len() < GROUP && started.elapsed() < GROUP_TIME;
            next = match if more { self.queue.take_now(WorkerKind::Any) } else { None } {
                Some(waiting) if waiting.class == Class::Heavy => {
                    heavy = Some(waiting);
                    None
                }
                waiting => waiting.map(|waiting| waiting.job),
            };
        }
        let committing = Instant::now();
        let outcome = self.writer.execute("COMMIT", &[]).map(drop);
        if let Err(error) = &outcome {
            tracing::error!(%error, "cannot commit");
            if !self.writer.raw.is_autocommit() {
                let _ = self.writer.execute("ROLLBACK", &[]);
            }
        }
        self.counters.report_hold("Commit", committing.elapsed());
        self.counters.failed.store(outcome.is_err(), Ordering::Relaxed);
        if let Err(error) = self.writer.reload_epoch() {
            tracing::error!(%error, "cannot read the security epoch");
        }
        if outcome.is_ok() {
            self.counters.commits.add(false);
            self.counters.writes.fetch_add(succeeded.len() as u64, Ordering::Relaxed);
        }
        for job in succeeded {
            job.finish(outcome.clone());
        }
        // one lane runs all kinds
        self.queue.note_progress(JobKind::Write);
        self.queue.note_progress(JobKind::Heavy);
        if is_heavy {
            self.queue.note_heavy_end();
        }
        heavy
    }

    /// Answers a group after a disk error, which ended the outer transaction with all changes of the group;
    /// continuing would write outside of a transaction.
    fn fail_group(&self, succeeded: Vec<Job>) {
        tracing::error!(writes = succeeded.len(), "the disk failed: the writes of a commit were given up");
        self.counters.failed.store(true, Ordering::Relaxed);
        for job in succeeded {
            job.finish(Err(Error::Unavailable("the disk failed".into())));
        }
    }

    /// Runs a write in its savepoint, with retries. A refusal is answered at once; a success waits for the
    /// commit.
    fn run_one(&self, mut job: Job) -> Option<Job> {
        let began = Instant::now();
        let mut outcome = self.attempt(&mut job);
        for _ in 0..RETRIES {
            if outcome != Err(Error::Retry) {
                break;
            }
            outcome = self.attempt(&mut job);
        }
        self.counters.report_hold(job.name, began.elapsed());
        match outcome {
            Ok(true) => return Some(job),
            Ok(false) => job.finish(Ok(())),
            Err(error) => job.finish(Err(error)),
        }
        None
    }

    fn attempt(&self, job: &mut Job) -> Result<bool, Error> {
        self.writer.execute("SAVEPOINT operation", &[]).and_then(|_| {
            let mut tx = Tx::new(Engine::Sqlite(&self.writer));
            let result = job.run(&mut tx);
            self.counters.statements.fetch_add(tx.statements(), Ordering::Relaxed);
            if matches!(result, Ok(true)) && tx.erases() {
                self.counters.has_erased.store(true, Ordering::Relaxed);
            }
            if self.writer.raw.is_autocommit() {
                return Err(result.err().unwrap_or_else(|| Error::Unavailable("the disk failed".into())));
            }
            if !matches!(result, Ok(true)) {
                self.writer.execute("ROLLBACK TO operation", &[])?;
            }
            self.writer.execute("RELEASE operation", &[])?;
            result
        })
    }

    /// When the write-ahead log exceeds its bound, or contains erased data, writes wait for a checkpoint that
    /// truncates it. Long readers can prevent that; then it is retried after further growth, and with erased
    /// data after the next commit, which the checkpointer ensures.
    fn bound_log(&mut self) {
        let bytes = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.counters.log_bytes.store(bytes, Ordering::Relaxed);
        let has_erased = self.counters.has_erased.load(Ordering::Relaxed);
        if bytes < self.retry_at && !has_erased {
            return;
        }
        let _ = self.writer.raw.busy_timeout(CHECKPOINT_WAIT);
        let outcome = self.writer.returning("PRAGMA wal_checkpoint(TRUNCATE)", &[], &mut |_| Ok(()));
        let _ = self.writer.raw.busy_timeout(BUSY_TIMEOUT);
        let left = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        if left == 0 {
            self.counters.has_erased.store(false, Ordering::Relaxed);
        }
        self.retry_at = if left < self.log_bound { self.log_bound } else { left + self.log_bound / 8 };
        tracing::debug!(bytes, left, ?outcome, "checkpoint in the lane");
    }
}
