//! Background work of the writer: checkpoints while there are writes, an empty log once there are none, and a check of
//! the disk once a second.

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use super::Counters;
use crate::{
    Class, Error, Mode,
    connection::sqlite::{BUSY_TIMEOUT, Connection},
    job::Job,
    queue::Queue,
    raw,
};

/// The pause between checkpoints while there are writes.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);
/// The interval of disk checks. Without a write for as long, the log is emptied.
const PERIOD: Duration = Duration::from_secs(1);
/// A log that is no longer than this is left as it is, in bytes: the next writes need it.
const SHORT_LOG: u64 = 1 << 20;

/// Signals that there was a write, or that the store is closing.
#[derive(Default)]
pub struct WriteSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    dirty: bool,
    closing: bool,
}

impl WriteSignal {
    /// Signals a write.
    pub fn notify_write(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.dirty {
            state.dirty = true;
            self.changed.notify_one();
        }
    }

    /// Signals the end.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.changed.notify_all();
    }

    /// Waits up to a second for a write, then pauses so that a checkpoint covers more than one commit.
    fn wait(&self) -> State {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.changed.wait_timeout_while(state, PERIOD, |state| !state.dirty && !state.closing);
        let (state, _) = changed.unwrap_or_else(PoisonError::into_inner);
        if !state.dirty {
            return *state;
        }
        let paused = self.changed.wait_timeout_while(state, CHECKPOINT_PAUSE, |state| !state.closing);
        let (mut state, _) = paused.unwrap_or_else(PoisonError::into_inner);
        let observed = *state;
        state.dirty = false;
        observed
    }
}

pub struct Checkpointer {
    pub connection: Connection,
    pub path: PathBuf,
    pub log: PathBuf,
    pub reserve: u64,
    pub counters: Arc<Counters>,
    pub queue: Arc<Queue>,
    pub signal: Arc<WriteSignal>,
}

impl Checkpointer {
    pub fn run(self) {
        self.check_disk();
        let mut checked = Instant::now();
        loop {
            let state = self.signal.wait();
            if state.closing {
                break;
            }
            if state.dirty {
                // a passive checkpoint neither waits nor blocks others
                self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
            } else if self.counters.log_bytes.load(Ordering::Relaxed) > SHORT_LOG {
                self.empty_log();
            }
            if self.counters.has_erased.load(Ordering::Relaxed) {
                self.request_truncation();
            }
            if checked.elapsed() >= PERIOD {
                self.check_disk();
                checked = Instant::now();
            }
        }
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    fn checkpoint(&self, pragma: &str) {
        if let Err(error) = self.connection.returning(pragma, &[], &mut |_| Ok(())) {
            tracing::warn!(%error, "checkpoint failed");
        }
    }

    /// Truncates the log, unless there is a reader or a writer: it waits for neither, as it would delay writes meanwhile.
    fn empty_log(&self) {
        let _ = self.connection.raw.busy_timeout(Duration::ZERO);
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        let _ = self.connection.raw.busy_timeout(BUSY_TIMEOUT);
        let left = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.counters.log_bytes.store(left, Ordering::Relaxed);
    }

    /// Lets the lane truncate the log by a write without changes.
    fn request_truncation(&self) {
        let (job, ..) = Job::new("EmptyLog", None, Box::new(|_| Ok::<_, Error>(())));
        let _: Result<(), Error> = self.queue.push(job, Mode::Write, Class::Background);
    }

    /// Checks the free space. After a failed commit it queues a write without changes: a server that is not
    /// ready gets no requests, so no other write would detect that writing works again.
    fn check_disk(&self) {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(disk) = rustix::fs::statvfs(folder.unwrap_or_else(|| ".".as_ref())) {
            let is_full = disk.f_bavail.saturating_mul(disk.f_frsize) < self.reserve;
            if self.counters.is_full.swap(is_full, Ordering::Relaxed) != is_full {
                tracing::warn!(is_full, "the space left for the database");
            }
        }
        if self.counters.failed.load(Ordering::Relaxed) {
            let touch = |tx: &mut crate::Tx<'_>| {
                raw::queue(tx, "UPDATE security_epoch SET value = value", Vec::new())
            };
            let (job, ..) = Job::new("TryToWrite", None, Box::new(touch));
            let _: Result<(), Error> = self.queue.push(job, Mode::Write, Class::Background);
        }
    }
}
