//! The time by this machine's clock, held against one that can be relied on. No operation sees it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

/// The time, in milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared, and nothing is decided by it in a transaction"
)]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time that can be relied on: what another clock showed, and how long ago by one that does not jump.
#[derive(Default)]
pub struct Anchor(Mutex<Option<(i64, Instant)>>);

impl Anchor {
    /// Notes what the other clock shows now.
    pub fn set(&self, shown: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((shown, Instant::now()));
    }

    /// What that clock is ahead of a time of this machine's; nothing before it was asked.
    pub fn ahead_of(&self, now: i64) -> i64 {
        let anchor = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        anchor.map_or(0, |(shown, since)| {
            let elapsed = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
            shown.saturating_add(elapsed).saturating_sub(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Anchor;

    /// Section 1: a clock that jumps is found out at once, not when the other one is asked next.
    #[test]
    fn a_jump_is_seen_at_once() {
        let anchor = Anchor::default();
        assert_eq!(anchor.ahead_of(5_000), 0);
        anchor.set(5_000);
        let day = 24 * 3_600_000;
        assert!((-day..-day + 60_000).contains(&anchor.ahead_of(5_000 + day)));
        assert!((3_600_000..3_660_000).contains(&anchor.ahead_of(5_000 - 3_600_000)));
    }
}
