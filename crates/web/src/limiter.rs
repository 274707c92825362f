//! How often operations without a token may be called: by address, and by login name.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use chancery_record::{Timestamp, fold};
use chancery_resource::{Problem, ProblemKind};

/// Addresses and names remembered.
const REMEMBERED: usize = 65_536;
const MINUTE: i64 = 60_000;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Name(i64, String),
}

/// What is left of a minute's requests, in thousandths of a millisecond's worth.
struct Bucket {
    level: i64,
    at: i64,
}

/// Counts in this process. A bucket holds one minute's requests and fills evenly.
pub struct Limiter {
    by_minute: Option<u32>,
    buckets: Mutex<HashMap<Key, Bucket>>,
}

impl Limiter {
    /// So many requests a minute from one address, and a third of it for one login name; none is
    /// no limit.
    pub fn new(by_minute: Option<u32>) -> Self {
        Self { by_minute, buckets: Mutex::default() }
    }

    /// Lets a request from an address through, or says when to come back.
    ///
    /// # Errors
    /// Too many.
    pub fn admit_address(&self, address: IpAddr, now: Timestamp) -> Result<(), Problem> {
        self.take(Key::Address(network(address)), |limit| limit, now)
    }

    /// Lets a request for a login name of a store through, or says when to come back. The store is
    /// told by its number, since a path can name it in many ways.
    ///
    /// # Errors
    /// Too many.
    pub fn admit_name(&self, store: i64, name: &str, now: Timestamp) -> Result<(), Problem> {
        self.take(Key::Name(store, fold(name)), |limit| limit.div_euclid(3).max(1), now)
    }

    fn take(&self, key: Key, part: fn(i64) -> i64, now: Timestamp) -> Result<(), Problem> {
        let Some(limit) = self.by_minute.map(i64::from) else { return Ok(()) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= REMEMBERED {
            forget(&mut buckets, now);
        }
        take(&mut buckets, key, part(limit), now)
    }
}

/// A request costs a minute; in each millisecond as much comes back as the limit is.
fn take(buckets: &mut HashMap<Key, Bucket>, key: Key, limit: i64, now: Timestamp) -> Result<(), Problem> {
    let full = limit * MINUTE;
    let bucket = buckets.entry(key).or_insert(Bucket { level: full, at: now.0 });
    let passed = (now.0 - bucket.at).clamp(0, MINUTE);
    bucket.level = (bucket.level + passed * limit).min(full);
    bucket.at = now.0;
    if bucket.level < MINUTE {
        let wait = (MINUTE - bucket.level).div_euclid(limit * 1000) + 1;
        let detail = format!("Too many requests. Try again in {wait} seconds.");
        return Err(
            Problem::new(ProblemKind::TooManyRequests, detail).with_header("retry-after", wait.to_string())
        );
    }
    bucket.level -= MINUTE;
    Ok(())
}

/// Forgets whoever has not called for a minute; if all have, half of them.
fn forget(buckets: &mut HashMap<Key, Bucket>, now: Timestamp) {
    buckets.retain(|_, bucket| now.0 - bucket.at < MINUTE);
    if buckets.len() >= REMEMBERED {
        let mut keep = false;
        buckets.retain(|_, _| {
            keep = !keep;
            keep
        });
    }
}

/// One caller can have many IPv6 addresses: its network counts.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;

    use super::{Limiter, MINUTE, REMEMBERED};

    #[test]
    fn a_minute_s_requests_and_a_third_of_them_for_a_name() {
        let limiter = Limiter::new(Some(6));
        let address = "192.0.2.1".parse().unwrap();
        let admit = |address, name: &str, now| {
            limiter
                .admit_address(address, Timestamp(now))
                .and_then(|()| limiter.admit_name(1, name, Timestamp(now)))
        };
        let admitted = |name: &str, now| admit(address, name, now).is_ok();
        assert!(admitted("ada", 0) && admitted("Ada", 0));
        assert!(!admitted("ADA", 0), "a name has a third");
        assert!(admitted("b", 0) && admitted("c", 0) && admitted("d", 0), "the refused one was counted");
        let refused = admit(address, "e", 0).unwrap_err();
        assert_eq!((refused.status(), refused.headers[0].1.as_str()), (429, "11"));
        assert!(!admitted("e", 9_000) && admitted("e", 10_000));
        assert!(admit("192.0.2.2".parse().unwrap(), "e", 10_000).is_ok());
        assert!(limiter.admit_name(2, "ada", Timestamp(0)).is_ok(), "each store has names of its own");
    }

    #[test]
    fn no_limit_and_bounded_memory() {
        let limiter = Limiter::new(None);
        assert!((0..100).all(|_| limiter.admit_address([127, 0, 0, 1].into(), Timestamp(0)).is_ok()));
        let limiter = Limiter::new(Some(60));
        for number in 0..100_000_u32 {
            let _ = limiter.admit_address(number.to_be_bytes().into(), Timestamp(MINUTE));
            let _ = limiter.admit_name(1, &number.to_string(), Timestamp(MINUTE));
        }
        assert!(limiter.buckets.lock().unwrap().len() <= REMEMBERED + 2);
    }
}
