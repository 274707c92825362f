//! Rate limits of operations without a token: by address, and by login name.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use chancery_record::Timestamp;
use chancery_resource::{Problem, ProblemKind};

use super::rate_counters::{Counts, Name, name_of, network};

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Name(i64, Name),
}

/// The counts of this process.
pub struct Limiter {
    by_minute: Option<u32>,
    counts: Mutex<Counts<Key>>,
}

impl Limiter {
    /// This many requests a minute from one address, a third for one login name; `None` is no limit.
    pub fn new(by_minute: Option<u32>) -> Self {
        Self { by_minute, counts: Mutex::default() }
    }

    /// Admits a request from an address, or refuses it with the time to wait.
    ///
    /// # Errors
    /// Too many requests.
    pub fn admit_address(&self, address: IpAddr, now: Timestamp) -> Result<(), Problem> {
        self.take(Key::Address(network(address)), |limit| limit, now)
    }

    /// Admits a request for a login name of a store, or refuses it with the time to wait. The store is given
    /// by its number, since a path can name it in many ways.
    ///
    /// # Errors
    /// Too many requests.
    pub fn admit_name(&self, store: i64, name: &str, now: Timestamp) -> Result<(), Problem> {
        self.take(Key::Name(store, name_of(name)), |limit| (limit / 3).max(1), now)
    }

    fn take(&self, key: Key, part: fn(u32) -> u32, now: Timestamp) -> Result<(), Problem> {
        let Some(limit) = self.by_minute.map(part) else { return Ok(()) };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = counts.wait(&key, limit, now) {
            let detail = format!("Too many requests. Try again in {wait} seconds.");
            let problem = Problem::new(ProblemKind::TooManyRequests, detail);
            return Err(problem.with_header("retry-after", wait.to_string()));
        }
        counts.add(key, limit, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;

    use super::{Key, Limiter};
    use crate::limits::rate_counters::REMEMBERED;

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

    /// A clock that was ahead blocks no caller when it is set back.
    #[test]
    fn a_clock_that_is_set_back_blocks_no_caller() {
        const DAYS: i64 = 8 * 24 * 3_600_000;
        let limiter = Limiter::new(Some(6));
        let admit = |now| {
            limiter.admit_address([192, 0, 2, 1].into(), Timestamp(now)).map_err(|refused| refused.headers)
        };
        while admit(DAYS).is_ok() {}
        assert!((0..6).all(|_| admit(0).is_ok()), "what was counted ahead is over");
        assert!(admit(0).is_err(), "the limit stands");
        // requests whose times differ by less than a minute have one count
        assert!(admit(-30_000).is_err());
    }

    /// A name takes a fixed size, however long the path that contains it: anonymous callers choose it.
    #[test]
    fn no_limit_admits_all_in_bounded_memory() {
        let limiter = Limiter::new(None);
        assert!((0..100).all(|_| limiter.admit_address([127, 0, 0, 1].into(), Timestamp(0)).is_ok()));
        let limiter = Limiter::new(Some(60));
        for number in 0..100_000_u32 {
            let _ = limiter.admit_address(number.to_be_bytes().into(), Timestamp(60_000));
            let _ = limiter.admit_name(1, &number.to_string(), Timestamp(60_000));
        }
        assert!(limiter.counts.lock().unwrap().len() <= REMEMBERED);
        // a key owns no memory of its own
        assert!(!std::mem::needs_drop::<Key>() && size_of::<Key>() <= 64);
    }
}
