//! Latencies, counted in buckets whose width grows with the value: 32 for each doubling.

use std::time::Duration;

const STEPS: u64 = 32;
const BUCKETS: usize = 40 * 32;

/// Counts of durations. Percentiles are exact to about three in a hundred.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, longest: Duration::ZERO }
    }
}

/// The bucket of a number of nanoseconds: the power of two, then the five bits after it.
fn bucket(nanoseconds: u64) -> usize {
    let value = nanoseconds.max(STEPS);
    let power = u64::from(value.ilog2()) - 5;
    usize::try_from(power * STEPS + (value >> power) - STEPS).unwrap_or(usize::MAX)
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let (power, step) = (bucket / STEPS, bucket % STEPS);
    ((STEPS + step) << power) + ((1 << power) >> 1)
}

impl Histogram {
    /// Counts a duration.
    pub fn add(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let last = BUCKETS - 1;
        if let Some(count) = self.counts.get_mut(bucket(nanoseconds).min(last)) {
            *count += 1;
        }
        self.total += 1;
        self.longest = self.longest.max(duration);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// The number of durations.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The longest duration.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The duration that this many of a thousand do not exceed.
    pub fn per_mille(&self, part: u64) -> Duration {
        let rank = (self.total * part).div_ceil(1000).max(1);
        let mut counted = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            counted += u64::from(*count);
            if counted >= rank {
                return Duration::from_nanos(middle(bucket)).min(self.longest);
            }
        }
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Histogram;

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.add(Duration::from_micros(micros));
        }
        let near = |part, micros: f64| {
            let measured = histogram.per_mille(part).as_secs_f64() * 1e6;
            assert!((measured / micros - 1.0).abs() < 0.04, "{part}: {measured} is not near {micros}");
        };
        near(500, 500.0);
        near(990, 990.0);
        assert_eq!(histogram.longest(), Duration::from_millis(1));
    }
}
