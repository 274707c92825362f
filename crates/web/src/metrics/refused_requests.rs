//! Counts refused requests of client apps, and bounds the lines and the look-ups about them in a second.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

/// The most client apps that are looked up in a second for requests that the log suppresses.
const MAX_LOOKUPS: u64 = 100;
/// The most lines of a second.
const MAX_LINES: u64 = 10;

/// The metric labels of a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    pub endpoint: &'static str,
    pub error: &'static str,
}

/// Requests that were refused, and how many of them were logged within this second.
#[derive(Default)]
pub struct RefusedCounter {
    /// All of them.
    pub count: Family<Labels, Counter>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    since: Option<Instant>,
    logged: u64,
    suppressed: u64,
    lookups: u64,
}

impl RefusedCounter {
    /// Counts one. Returns the number of suppressed lines before it if the log may have a line now.
    pub fn note(&self, labels: Labels, now: Instant) -> Option<u64> {
        self.count.get_or_create(&labels).inc();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (lines.since, lines.logged, lines.lookups) = (Some(now), 0, 0);
        }
        if lines.logged >= MAX_LINES {
            lines.suppressed += 1;
            return None;
        }
        lines.logged += 1;
        Some(std::mem::take(&mut lines.suppressed))
    }

    /// Whether a client app may still be looked up within this second for a suppressed request.
    pub fn may_look_up(&self) -> bool {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.lookups += 1;
        lines.lookups <= MAX_LOOKUPS
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Labels, RefusedCounter};

    #[test]
    fn ten_lines_are_logged_in_a_second_and_the_rest_is_counted() {
        let (counter, start) = (RefusedCounter::default(), Instant::now());
        let labels = Labels { endpoint: "/connect/token", error: "invalid_client" };
        let at = |ms| counter.note(labels, start + Duration::from_millis(ms));
        let results: Vec<_> = (0..25).map(|number| at(number * 10)).collect();
        assert!(results[..10].iter().all(|one| *one == Some(0)) && results[10..].iter().all(Option::is_none));
        assert_eq!((at(1_000), at(1_001)), (Some(15), Some(0)));
        assert_eq!(counter.count.get_or_create(&labels).get(), 27);
    }
}
