//! The process's clock, compared with a reliable reference clock. Operations never see it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

/// The process's time, in milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared, and nothing is decided by it in a transaction"
)]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A reference time: the reading of the reference clock, and the monotonic time since.
#[derive(Default)]
pub struct Anchor(Mutex<Option<(i64, Instant)>>);

impl Anchor {
    /// Records the reading of the reference clock.
    pub fn set(&self, reading: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((reading, Instant::now()));
    }

    /// How far the reference clock is ahead of `now`, in milliseconds; 0 before the first [`Anchor::set`].
    pub fn ahead_of(&self, now: i64) -> i64 {
        let anchor = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        anchor.map_or(0, |(reading, since)| {
            let elapsed = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
            reading.saturating_add(elapsed).saturating_sub(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Anchor;

    /// Section 1: a clock that jumps is detected at once, not when the reference clock is read next.
    #[test]
    fn a_clock_jump_is_detected_at_once() {
        let anchor = Anchor::default();
        assert_eq!(anchor.ahead_of(5_000), 0);
        anchor.set(5_000);
        let day = 24 * 3_600_000;
        assert!((-day..-day + 60_000).contains(&anchor.ahead_of(5_000 + day)));
        assert!((3_600_000..3_660_000).contains(&anchor.ahead_of(5_000 - 3_600_000)));
    }
}
