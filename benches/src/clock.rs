//! The time of day. It is used only for numbers that must be new.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness stands outside the server, whose clock is given to it"
)]
pub fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}
