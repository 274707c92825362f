//! The clock of the edge.

use std::{sync::OnceLock, time::SystemTime};

use chancery_record::Timestamp;

/// The current time: only the edge reads the clock, and hands it to operations.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The clock of one server's requests.
#[derive(Debug, Default)]
pub struct Clock {
    stopped_at: OnceLock<Timestamp>,
}

impl Clock {
    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.stopped_at.get().copied().unwrap_or_else(now)
    }

    /// Stops the clock. Limits over time grant nothing anew afterwards, so a test of them does not depend on how long it takes.
    pub fn stop(&self) {
        self.stopped_at.get_or_init(now);
    }
}
