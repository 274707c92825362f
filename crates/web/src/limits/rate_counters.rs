//! Rate counters by key, in this process and in bounded memory.

use std::{collections::HashMap, hash::Hash, net::IpAddr};

use aws_lc_rs::digest::{SHA256, digest};
use chancery_record::{Timestamp, fold};

/// The most keys of one counter.
pub const REMEMBERED: usize = 65_536;
/// A minute in microseconds.
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;
/// The longest that a count can take, in microseconds: a minute, and another for requests whose times differ.
const LONGEST: i64 = 2 * MINUTE;
/// Characters of a name that count: no existing name is longer.
const LONGEST_NAME: usize = 256;

/// A name as a key: of fixed size, and the same in any case.
pub type Name = [u8; 32];

/// The key of a name.
pub fn name_of(name: &str) -> Name {
    let end = name.char_indices().nth(LONGEST_NAME).map_or(name.len(), |(end, _)| end);
    let mut key = Name::default();
    key.copy_from_slice(digest(&SHA256, fold(name.get(..end).unwrap_or(name)).as_bytes()).as_ref());
    key
}

/// The key of an address. One caller can have many IPv6 addresses, so their /64 network counts.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[derive(Default)]
struct Count {
    /// When the count is back at zero, in microseconds. Each further one moves it on.
    until: i64,
    /// Attempts in progress, which count until they end.
    pending: u32,
}

impl Count {
    /// Time until the count is back at zero. One that would take longer than the longest was counted
    /// before the clock was set back, and is over: otherwise it would block callers until the clock is there again.
    fn level(&self, now: i64) -> i64 {
        let left = self.until - now;
        if left > LONGEST { 0 } else { left.max(0) }
    }
}

/// Counts by key. Each decreases evenly, by its limit a minute.
pub struct Counts<K>(HashMap<K, Count>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

const fn micros(now: Timestamp) -> i64 {
    now.0.saturating_mul(1000)
}

/// The microseconds that one unit takes to decrease where `limit` is allowed a minute.
fn cost(limit: u32) -> i64 {
    MINUTE / i64::from(limit.max(1))
}

impl<K: Eq + Hash> Counts<K> {
    /// In how many seconds one more fits under a limit, apart from those in progress; `None`: now.
    pub fn wait(&self, key: &K, limit: u32, now: Timestamp) -> Option<i64> {
        let over = self.0.get(key)?.level(micros(now)) + cost(limit) - MINUTE;
        (over > 0).then(|| over.div_euclid(SECOND) + 1)
    }

    /// Whether one more might not fit, depending on the outcome of those in progress.
    pub fn is_held(&self, key: &K, limit: u32, now: Timestamp) -> bool {
        let over =
            |count: &Count| count.level(micros(now)) + cost(limit) * (i64::from(count.pending) + 1) > MINUTE;
        self.0.get(key).is_some_and(over)
    }

    /// Whether the key's count is above zero.
    pub fn is_counted(&self, key: &K, now: Timestamp) -> bool {
        self.0.get(key).is_some_and(|count| count.level(micros(now)) > 0)
    }

    /// Counts one more.
    pub fn add(&mut self, key: K, limit: u32, now: Timestamp) {
        let count = self.entry(key, now);
        count.until = (micros(now) + count.level(micros(now)) + cost(limit)).min(micros(now) + MINUTE);
    }

    /// Counts an attempt while it is in progress.
    pub fn begin(&mut self, key: K, now: Timestamp) {
        self.entry(key, now).pending += 1;
    }

    /// Ends an attempt in progress.
    pub fn end(&mut self, key: &K) {
        if let Some(count) = self.0.get_mut(key) {
            count.pending = count.pending.saturating_sub(1);
        }
    }

    /// Where there are too many keys, drops those back at zero; if that is not enough, half of all.
    fn entry(&mut self, key: K, now: Timestamp) -> &mut Count {
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, count| count.pending > 0 || count.level(micros(now)) > 0);
            let mut retains = every_other();
            if self.0.len() >= REMEMBERED {
                self.0.retain(|_, _| retains());
            }
        }
        self.0.entry(key).or_default()
    }

    /// The number of keys.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A filter that retains every second item.
pub fn every_other() -> impl FnMut() -> bool {
    let mut is_retained = false;
    move || {
        is_retained = !is_retained;
        is_retained
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_name_is_the_same_however_it_is_written() {
        assert_eq!(name_of("ada"), name_of("\u{ff21}DA"));
        assert_ne!(name_of("ada"), name_of("bob"));
        // no name is longer, so the rest does not matter
        assert_eq!(name_of(&"\u{e4}".repeat(60_000)), name_of(&"\u{c4}".repeat(256)));
    }
}
