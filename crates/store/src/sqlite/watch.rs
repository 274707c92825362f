//! Work beside the writer: checkpoints while there are writes, and a check of the disk once a second.

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Connection, Counters};
use crate::{Class, Error, Mode, job::Job, queue::Queue, raw};

/// The rest between checkpoints while there are writes.
const CHECKPOINT_REST: Duration = Duration::from_millis(200);
/// The interval of disk checks.
const PERIOD: Duration = Duration::from_secs(1);

/// Signals that there was a write, or that the store is closing.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    dirty: bool,
    closing: bool,
}

impl Bell {
    /// Signals a write.
    pub fn ring(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.dirty {
            state.dirty = true;
            self.rung.notify_one();
        }
    }

    /// Signals the end.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.rung.notify_all();
    }

    /// Waits up to a second for a write, then rests so that a checkpoint covers more than one commit.
    fn wait(&self) -> State {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = self.rung.wait_timeout_while(state, PERIOD, |state| !state.dirty && !state.closing);
        let (state, _) = rung.unwrap_or_else(PoisonError::into_inner);
        if !state.dirty {
            return *state;
        }
        let rested = self.rung.wait_timeout_while(state, CHECKPOINT_REST, |state| !state.closing);
        let (mut state, _) = rested.unwrap_or_else(PoisonError::into_inner);
        let seen = *state;
        state.dirty = false;
        seen
    }
}

pub struct Watch {
    pub connection: Connection,
    pub path: PathBuf,
    pub reserve: u64,
    pub counters: Arc<Counters>,
    pub queue: Arc<Queue>,
    pub bell: Arc<Bell>,
}

impl Watch {
    pub fn run(self) {
        self.look();
        let mut looked = Instant::now();
        loop {
            let state = self.bell.wait();
            if state.closing {
                break;
            }
            if state.dirty {
                // a passive checkpoint neither waits nor makes others wait
                self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
            }
            if looked.elapsed() >= PERIOD {
                self.look();
                looked = Instant::now();
            }
        }
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    fn checkpoint(&self, pragma: &str) {
        if let Err(error) = self.connection.returning(pragma, &[], &mut |_| Ok(())) {
            tracing::warn!(%error, "checkpoint failed");
        }
    }

    /// Checks the free space. After a failed commit it queues a write that changes nothing: a server that is
    /// not ready gets no requests, so no other write would show that writing works again.
    fn look(&self) {
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
            let (job, _) = Job::new("TryToWrite", None, touch);
            let _: Result<(), Error> = self.queue.push(job, Mode::Write, Class::Background);
        }
    }
}
