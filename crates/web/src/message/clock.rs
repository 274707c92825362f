//! The clock of the edge.

use std::time::SystemTime;

use chancery_record::Timestamp;

/// The current time: only the edge reads the clock, and hands it to operations.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
