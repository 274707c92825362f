//! What metrics count of sign-ins that neither pages nor endpoints see.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count since the start.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// Refresh tokens that were shown after they had been replaced.
    pub reused: Count,
    /// Codes sent by mail.
    pub mailed: Count,
    /// Codes sent by SMS.
    pub texted: Count,
}
