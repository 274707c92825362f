//! The commits of this process, and who waits for the next.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts commits, and wakes those who wait for one.
#[derive(Default)]
pub struct Commits {
    total: AtomicU64,
    /// Those that may leave something to do for background jobs.
    changes: AtomicU64,
    change: Notify,
}

impl Commits {
    /// Counts one. A routine commit does not wake those who wait: see [`crate::Tx::note_routine`].
    pub fn add(&self, is_routine: bool) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if !is_routine {
            self.changes.fetch_add(1, Ordering::Release);
            self.change.notify_waiters();
        }
    }

    /// All commits since the start.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Waits until the number of changes is another one than `seen`; returns it.
    pub async fn changed_since(&self, seen: Option<u64>) -> u64 {
        loop {
            // created before the count is read: it is woken by each commit after that
            let change = self.change.notified();
            let changes = self.changes.load(Ordering::Acquire);
            if seen != Some(changes) {
                return changes;
            }
            change.await;
        }
    }
}
