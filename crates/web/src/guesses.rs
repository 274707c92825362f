//! Limits on failed client authentication.
//!
//! Wrong proofs are counted by address, by client app, and by both. Proofs being verified count while they
//! are, so one that comes on top of many waits for their outcome. A stranger's attempts lock nobody out: an
//! address from which a client app has authenticated is refused by their common count alone, and any other
//! address has its first attempts, however many others failed.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chancery_record::Timestamp;
use tokio::sync::Notify;

use crate::counts::{Counts, Name, REMEMBERED, every_other, name_of, network};

/// How long an attempt waits for the outcome of others.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Client(Name),
    Both(IpAddr, Name),
}

#[derive(Default)]
struct Known {
    counts: Counts<Key>,
    /// Client apps, with the addresses from which they authenticated.
    right: HashSet<(IpAddr, Name)>,
}

/// The counts of this process.
pub struct Guesses {
    by_minute: Option<u32>,
    known: Mutex<Known>,
    /// Notifies when an attempt has ended.
    ended: Notify,
}

/// Why an attempt is not admitted.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// Too many failed; the next is admitted in so many seconds.
    Wrong(i64),
    /// Those in progress might be too many.
    Held,
}

/// An attempt in progress. When it ends without an outcome it is not counted.
pub struct Guess<'a> {
    guesses: &'a Guesses,
    address: IpAddr,
    client: Name,
    has_proof: bool,
    is_pending: bool,
}

impl Guesses {
    /// This many wrong proofs a minute from one address, a third for one client app; `None` is no limit.
    pub fn new(by_minute: Option<u32>) -> Self {
        Self { by_minute, known: Mutex::default(), ended: Notify::new() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits an attempt, after those in progress where they might be too many. A public client shows no
    /// proof, so its attempt does not count while it is in progress.
    ///
    /// # Errors
    /// In how many seconds the next attempt is admitted.
    pub async fn admit(
        &self,
        address: IpAddr,
        client: (&str, bool),
        now: Timestamp,
    ) -> Result<Guess<'_>, i64> {
        let admitted = async {
            loop {
                let mut ended = std::pin::pin!(self.ended.notified());
                ended.as_mut().enable();
                match self.begin(address, client, now) {
                    Ok(guess) => return Ok(guess),
                    Err(Refused::Wrong(seconds)) => return Err(seconds),
                    Err(Refused::Held) => ended.await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, admitted).await.unwrap_or(Err(1))
    }

    fn begin(
        &self,
        address: IpAddr,
        (client, has_proof): (&str, bool),
        now: Timestamp,
    ) -> Result<Guess<'_>, Refused> {
        // an id or a name is the same client in any case
        let client = name_of(client);
        let address = network(address);
        let mut guess = Guess { guesses: self, address, client, has_proof, is_pending: false };
        let Some(limit) = self.by_minute else { return Ok(guess) };
        let mut known = self.known();
        let is_right = known.right.contains(&(address, client));
        let was_wrong = known.counts.is_counted(&Key::Both(address, client), now);
        let counts = |key: &Key| match key {
            Key::Both(..) => true,
            Key::Address(_) => !is_right,
            Key::Client(_) => !is_right && was_wrong,
        };
        let keys = guess.keys(limit);
        let asked = || keys.iter().filter(|(key, _)| counts(key));
        let wait = asked().filter_map(|(key, limit)| known.counts.wait(key, *limit, now)).max();
        if let Some(seconds) = wait {
            return Err(Refused::Wrong(seconds));
        }
        if asked().any(|(key, limit)| known.counts.is_held(key, *limit, now)) {
            return Err(Refused::Held);
        }
        if has_proof && !is_right {
            guess.is_pending = true;
            for (key, _) in keys {
                known.counts.begin(key, now);
            }
        }
        drop(known);
        Ok(guess)
    }
}

impl Guess<'_> {
    const fn keys(&self, limit: u32) -> [(Key, u32); 3] {
        let third = if limit < 3 { 1 } else { limit / 3 };
        [
            (Key::Address(self.address), limit),
            (Key::Client(self.client), third),
            (Key::Both(self.address, self.client), third),
        ]
    }

    /// Counts a wrong proof.
    pub fn was_wrong(self, now: Timestamp) {
        let Some(limit) = self.guesses.by_minute else { return };
        let mut known = self.guesses.known();
        for (key, limit) in self.keys(limit) {
            known.counts.add(key, limit, now);
        }
    }

    /// Remembers the address from which a client app authenticated.
    pub fn was_right(self) {
        if self.guesses.by_minute.is_none() || !self.has_proof {
            return;
        }
        let mut known = self.guesses.known();
        if known.right.len() >= REMEMBERED {
            let mut keeps = every_other();
            known.right.retain(|_| keeps());
        }
        known.right.insert((self.address, self.client));
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        if let (true, Some(limit)) = (self.is_pending, self.guesses.by_minute) {
            let mut known = self.guesses.known();
            for (key, _) in self.keys(limit) {
                known.counts.end(&key);
            }
            drop(known);
            self.guesses.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use chancery_record::Timestamp;
    use tokio::task::JoinSet;

    use super::{Guess, Guesses, Refused};
    use crate::counts::REMEMBERED;

    fn begin<'a>(
        guesses: &'a Guesses,
        address: [u8; 4],
        client: &str,
        now: i64,
    ) -> Result<Guess<'a>, Refused> {
        guesses.begin(IpAddr::from(address), (client, true), Timestamp(now))
    }

    fn wrong(guesses: &Guesses, address: [u8; 4], client: &str, now: i64) -> Result<(), Refused> {
        begin(guesses, address, client, now)?.was_wrong(Timestamp(now));
        Ok(())
    }

    #[test]
    fn a_minute_s_guesses_and_a_third_of_them_for_a_client() {
        let guesses = Guesses::new(Some(6));
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        assert!(wrong(&guesses, one, "root", 0).is_ok() && wrong(&guesses, one, "ROOT", 0).is_ok());
        assert_eq!(wrong(&guesses, one, "root", 0), Err(Refused::Wrong(31)), "a client has a third");
        assert!(wrong(&guesses, other, "root", 0).is_ok(), "another address has its first try");
        assert_eq!(wrong(&guesses, other, "root", 0), Err(Refused::Wrong(31)), "and then the client's count");
        for client in ["a", "b", "c", "d"] {
            assert!(wrong(&guesses, one, client, 0).is_ok(), "{client}");
        }
        assert_eq!(wrong(&guesses, one, "e", 0), Err(Refused::Wrong(11)), "an address has its own count");
        assert!(wrong(&guesses, other, "e", 0).is_ok());
        assert!(
            wrong(&guesses, one, "root", 29_000).is_err() && wrong(&guesses, one, "root", 31_000).is_ok()
        );
    }

    #[test]
    fn who_is_right_is_not_limited_by_strangers() {
        let guesses = Guesses::new(Some(6));
        let (home, stranger) = ([192, 0, 2, 1], [192, 0, 2, 9]);
        begin(&guesses, home, "app", 0).unwrap().was_right();
        while wrong(&guesses, stranger, "app", 0).is_ok() {}
        while wrong(&guesses, home, "x", 0).is_ok() {}
        let at_once: Vec<_> = (0..100).map(|_| begin(&guesses, home, "app", 0).unwrap()).collect();
        at_once.into_iter().for_each(Guess::was_right);
        while wrong(&guesses, home, "app", 0).is_ok() {}
        assert!(begin(&guesses, home, "app", 0).is_err(), "their own guesses count");
    }

    /// A process that just started, or a new address, knows no client that authenticated: a right proof is
    /// admitted all the same while strangers attempt.
    #[test]
    fn strangers_shut_nobody_out_of_a_process_that_knows_nobody() {
        let guesses = Guesses::new(Some(6));
        for stranger in 1..100 {
            while wrong(&guesses, [192, 0, 2, stranger], "root", 0).is_ok() {}
        }
        let home = [198, 51, 100, 1];
        begin(&guesses, home, "root", 0).unwrap().was_right();
        begin(&guesses, home, "root", 0).unwrap().was_right();
    }

    /// Concurrent attempts are limited like attempts one after another.
    #[test]
    fn concurrent_attempts_are_limited_alike() {
        let guesses = Guesses::new(Some(6));
        let one = [192, 0, 2, 1];
        let first = begin(&guesses, one, "root", 0).unwrap();
        let second = begin(&guesses, one, "root", 0).unwrap();
        assert!(matches!(begin(&guesses, one, "root", 0), Err(Refused::Held)));
        drop(first);
        let third = begin(&guesses, one, "root", 0).unwrap();
        second.was_wrong(Timestamp(0));
        assert!(
            matches!(begin(&guesses, one, "root", 0), Err(Refused::Held)),
            "one was wrong, one is under way"
        );
        drop(third);
        assert!(begin(&guesses, one, "root", 0).is_ok(), "what came to nothing is not counted");
    }

    /// A fleet whose members request tokens all at once is admitted, one after another.
    #[tokio::test]
    async fn a_fleet_is_admitted_one_after_another() {
        let guesses = Arc::new(Guesses::new(Some(6)));
        let mut fleet = JoinSet::new();
        for _ in 0..100 {
            let guesses = Arc::clone(&guesses);
            fleet.spawn(async move {
                let guess = guesses.admit(IpAddr::from([192, 0, 2, 1]), ("root", true), Timestamp(0)).await?;
                tokio::task::yield_now().await;
                guess.was_right();
                Ok::<(), i64>(())
            });
        }
        assert!(fleet.join_all().await.into_iter().all(|admitted| admitted.is_ok()));
    }

    /// A public client shows no proof: it does not count while in progress, nor is it remembered.
    #[test]
    fn a_client_without_proof_is_not_remembered() {
        let guesses = Guesses::new(Some(6));
        let home = IpAddr::from([192, 0, 2, 1]);
        let bare = || guesses.begin(home, ("public", false), Timestamp(0)).unwrap();
        let at_once: Vec<_> = (0..100).map(|_| bare()).collect();
        at_once.into_iter().for_each(Guess::was_right);
        assert!(guesses.known().right.is_empty());
        bare().was_wrong(Timestamp(0));
        bare().was_wrong(Timestamp(0));
        assert!(guesses.begin(home, ("public", false), Timestamp(0)).is_err(), "a wrong id is counted");
    }

    #[test]
    fn no_limit_and_bounded_memory() {
        let none = Guesses::new(None);
        assert!((0..1000).all(|_| wrong(&none, [127, 0, 0, 1], "root", 0).is_ok()));
        let guesses = Guesses::new(Some(60));
        for number in 0..70_000_u32 {
            let _ = wrong(&guesses, number.to_be_bytes(), &number.to_string(), 60_000);
            if let Ok(guess) = begin(&guesses, [10, 0, 0, 1], &number.to_string(), 60_000) {
                guess.was_right();
            }
            let known = guesses.known();
            assert!(known.counts.len() <= REMEMBERED && known.right.len() <= REMEMBERED);
            assert!(number < 1000 || known.right.len() >= 1000, "never are all forgotten");
        }
    }
}
