//! Commits that others of this process wait for.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts commits that may leave something to do for background jobs.
#[derive(Default)]
pub struct Commits {
    count: AtomicU64,
    next: Notify,
}

impl Commits {
    /// Counts one, and wakes who waits.
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.next.notify_waiters();
    }

    /// Waits until the count is another one than `seen`; returns it.
    pub async fn after(&self, seen: Option<u64>) -> u64 {
        loop {
            // a commit after the look at the count wakes it
            let next = self.next.notified();
            let count = self.count.load(Ordering::Acquire);
            if seen != Some(count) {
                return count;
            }
            next.await;
        }
    }
}
