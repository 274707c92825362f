//! Threads that have nothing to do. Who was busy last is woken first: its connection, its caches and its memory
//! are warm, and those that are not needed for long can give theirs back.

use std::thread::{self, Thread};

#[derive(Default)]
pub struct Idle(Vec<Thread>);

impl Idle {
    /// Notes that this thread is about to park.
    pub fn enter(&mut self) {
        self.0.push(thread::current());
    }

    /// Notes that this thread goes on, whatever woke it.
    pub fn leave(&mut self) {
        let own = thread::current().id();
        self.0.retain(|thread| thread.id() != own);
    }

    /// Takes out the one to wake.
    pub fn pop(&mut self) -> Option<Thread> {
        self.0.pop()
    }

    /// Wakes all. They leave by themselves.
    pub fn wake_all(&self) {
        self.0.iter().for_each(Thread::unpark);
    }

    #[cfg(test)]
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}
