//! How often a client may be wrong about its secret.
//!
//! Wrong proofs are counted by address, by client app, and by both. Who is right is not limited: an address
//! that a client app was proven from is refused by their common count alone, so that a stranger's guesses
//! shut nobody out.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use aws_lc_rs::digest::{SHA256, digest};
use chancery_record::{Timestamp, fold};
use uuid::Uuid;

use crate::limiter::network;

/// Counts remembered, and pairs of client app and address that were right.
const REMEMBERED: usize = 65_536;
const MINUTE: i64 = 60_000;
/// The longest that anybody waits: many may be wrong at once before the first is known to be.
const LONGEST: i64 = 10 * MINUTE;

/// What a client calls itself, so that it takes little room.
type Client = [u8; 32];

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Client(Client),
    Both(IpAddr, Client),
}

/// When a count is back at nothing, in milliseconds. Each wrong proof moves it on.
type Counts = HashMap<Key, i64>;

#[derive(Default)]
struct Known {
    counts: Counts,
    right: HashSet<(IpAddr, Client)>,
}

/// Counts of this process.
pub struct Guesses {
    by_minute: Option<u32>,
    known: Mutex<Known>,
}

/// Somebody who is about to be proven.
pub struct Guess {
    address: IpAddr,
    client: Client,
}

impl Guesses {
    /// So many wrong proofs a minute from one address, a third of it for one client app; none is no limit.
    pub fn new(by_minute: Option<u32>) -> Self {
        Self { by_minute, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets somebody try.
    ///
    /// # Errors
    /// In how many seconds it may be tried again.
    pub fn begin(&self, address: IpAddr, client: &str, now: Timestamp) -> Result<Guess, i64> {
        let guess = Guess { address: network(address), client: name_of(client) };
        let Some(limit) = self.by_minute else { return Ok(guess) };
        let known = self.known();
        let pair = (guess.address, guess.client);
        let is_right = known.right.contains(&pair);
        let waits = guess.keys(limit).map(|(key, limit)| {
            let is_theirs = matches!(key, Key::Both(..)) || !is_right;
            let until = known.counts.get(&key).filter(|_| is_theirs).copied().unwrap_or(0);
            // a whole minute's worth of wrong ones is the most that may be open
            until - now.0 + MINUTE / i64::from(limit) - MINUTE
        });
        match waits.into_iter().max().filter(|wait| *wait > 0) {
            Some(wait) => Err(wait.div_euclid(1000) + 1),
            None => Ok(guess),
        }
    }

    /// Counts a wrong proof.
    pub fn was_wrong(&self, guess: &Guess, now: Timestamp) {
        let Some(limit) = self.by_minute else { return };
        let mut known = self.known();
        if known.counts.len() + 3 > REMEMBERED {
            forget(&mut known.counts, now);
        }
        for (key, limit) in guess.keys(limit) {
            let until = known.counts.entry(key).or_default();
            *until = ((*until).max(now.0) + MINUTE / i64::from(limit)).min(now.0 + LONGEST);
        }
    }

    /// Remembers from where a client app was proven.
    pub fn was_right(&self, guess: &Guess) {
        if self.by_minute.is_none() {
            return;
        }
        let mut known = self.known();
        if known.right.len() >= REMEMBERED {
            known.right.clear();
        }
        known.right.insert((guess.address, guess.client));
    }
}

impl Guess {
    fn keys(&self, limit: u32) -> [(Key, u32); 3] {
        let third = (limit / 3).max(1);
        [
            (Key::Address(self.address), limit),
            (Key::Client(self.client), third),
            (Key::Both(self.address, self.client), third),
        ]
    }
}

/// However it writes its id or name, it is the same client.
fn name_of(client: &str) -> Client {
    let name = Uuid::try_parse(client).map_or_else(|_| fold(client), |id| id.to_string());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
    bytes
}

/// Forgets what is back at nothing; if that is not enough, half of it.
fn forget(counts: &mut Counts, now: Timestamp) {
    counts.retain(|_, until| *until > now.0);
    if counts.len() + 3 > REMEMBERED {
        let mut keep = false;
        counts.retain(|_, _| {
            keep = !keep;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use chancery_record::Timestamp;

    use super::{Guesses, MINUTE, REMEMBERED};

    fn wrong(guesses: &Guesses, address: [u8; 4], client: &str, now: i64) -> Result<(), i64> {
        let guess = guesses.begin(IpAddr::from(address), client, Timestamp(now))?;
        guesses.was_wrong(&guess, Timestamp(now));
        Ok(())
    }

    #[test]
    fn a_minute_s_guesses_and_a_third_of_them_for_a_client() {
        let guesses = Guesses::new(Some(6));
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        assert!(wrong(&guesses, one, "root", 0).is_ok() && wrong(&guesses, one, "ROOT", 0).is_ok());
        assert_eq!(wrong(&guesses, one, "root", 0), Err(31), "a client has a third");
        assert_eq!(wrong(&guesses, other, "root", 0), Err(31), "from wherever");
        for client in ["a", "b", "c", "d"] {
            assert!(wrong(&guesses, one, client, 0).is_ok(), "{client}");
        }
        assert_eq!(wrong(&guesses, one, "e", 0), Err(11), "an address has its own count");
        assert!(wrong(&guesses, other, "e", 0).is_ok());
        assert!(
            wrong(&guesses, one, "root", 29_000).is_err() && wrong(&guesses, one, "root", 31_000).is_ok()
        );
    }

    #[test]
    fn who_is_right_is_not_limited_by_strangers() {
        let guesses = Guesses::new(Some(6));
        let (home, stranger) = ([192, 0, 2, 1], [192, 0, 2, 9]);
        let begin = || guesses.begin(IpAddr::from(home), "app", Timestamp(0));
        guesses.was_right(&begin().unwrap());
        while wrong(&guesses, stranger, "app", 0).is_ok() {}
        while wrong(&guesses, home, "x", 0).is_ok() {}
        for _ in 0..100 {
            guesses.was_right(&begin().unwrap());
        }
        while wrong(&guesses, home, "app", 0).is_ok() {}
        assert!(begin().is_err(), "their own guesses count");
    }

    #[test]
    fn no_limit_and_bounded_memory() {
        let none = Guesses::new(None);
        assert!((0..1000).all(|_| wrong(&none, [127, 0, 0, 1], "root", 0).is_ok()));
        let guesses = Guesses::new(Some(60));
        for number in 0..70_000_u32 {
            let _ = wrong(&guesses, number.to_be_bytes(), &number.to_string(), MINUTE);
            let guess = guesses.begin(IpAddr::from([10, 0, 0, 1]), &number.to_string(), Timestamp(MINUTE));
            if let Ok(guess) = guess {
                guesses.was_right(&guess);
            }
        }
        let known = guesses.known();
        assert!(known.counts.len() <= REMEMBERED && known.right.len() <= REMEMBERED);
    }
}
