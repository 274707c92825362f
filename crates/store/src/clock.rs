//! The time by this machine's clock, to be held against the database's. No operation sees it.

use std::time::SystemTime;

/// The time, in milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared, and nothing is decided by it in a transaction"
)]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
