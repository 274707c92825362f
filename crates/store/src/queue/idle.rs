//! Idle threads. The one that was busy last is woken first: its connection, caches and memory are warm, and
//! threads that stay idle can release theirs.

use std::thread::{self, Thread};

#[derive(Default)]
pub struct Idle(Vec<Thread>);

impl Idle {
    /// Registers this thread before it parks.
    pub fn enter(&mut self) {
        self.0.push(thread::current());
    }

    /// Removes this thread, whatever woke it.
    pub fn leave(&mut self) {
        let own = thread::current().id();
        self.0.retain(|thread| thread.id() != own);
    }

    /// Removes and returns the thread to wake.
    pub fn pop(&mut self) -> Option<Thread> {
        self.0.pop()
    }

    /// Wakes all threads. Each removes itself.
    pub fn wake_all(&self) {
        self.0.iter().for_each(Thread::unpark);
    }

    #[cfg(test)]
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}
