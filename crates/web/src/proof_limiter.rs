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
struct State {
    counts: Counts<Key>,
    /// Client apps, with the addresses from which they authenticated.
    right: HashSet<(IpAddr, Name)>,
}

/// The counts of this process.
pub struct ProofLimiter {
    by_minute: Option<u32>,
    state: Mutex<State>,
    /// Notifies when an attempt has ended.
    ended: Notify,
}

/// Why an attempt is not admitted.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// Too many failed; the next is admitted in so many seconds.
    Wrong(i64),
    /// Those in progress might be too many.
    Held,
}

/// An attempt in progress. When it ends without an outcome it is not counted.
pub struct Attempt<'a> {
    limiter: &'a ProofLimiter,
    address: IpAddr,
    client: Name,
    has_proof: bool,
    is_pending: bool,
}

impl ProofLimiter {
    /// This many wrong proofs a minute from one address, a third for one client app; `None` is no limit.
    pub fn new(by_minute: Option<u32>) -> Self {
        Self { by_minute, state: Mutex::default(), ended: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    ) -> Result<Attempt<'_>, i64> {
        let admitted = async {
            loop {
                let mut ended = std::pin::pin!(self.ended.notified());
                ended.as_mut().enable();
                match self.begin(address, client, now) {
                    Ok(attempt) => return Ok(attempt),
                    Err(Refusal::Wrong(seconds)) => return Err(seconds),
                    Err(Refusal::Held) => ended.await,
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
    ) -> Result<Attempt<'_>, Refusal> {
        // an id or a name is the same client in any case
        let client = name_of(client);
        let address = network(address);
        let mut attempt = Attempt { limiter: self, address, client, has_proof, is_pending: false };
        let Some(limit) = self.by_minute else { return Ok(attempt) };
        let mut state = self.state();
        let is_right = state.right.contains(&(address, client));
        let was_wrong = state.counts.is_counted(&Key::Both(address, client), now);
        let counts = |key: &Key| match key {
            Key::Both(..) => true,
            Key::Address(_) => !is_right,
            Key::Client(_) => !is_right && was_wrong,
        };
        let keys = attempt.keys(limit);
        let counted = || keys.iter().filter(|(key, _)| counts(key));
        let wait = counted().filter_map(|(key, limit)| state.counts.wait(key, *limit, now)).max();
        if let Some(seconds) = wait {
            return Err(Refusal::Wrong(seconds));
        }
        if counted().any(|(key, limit)| state.counts.is_held(key, *limit, now)) {
            return Err(Refusal::Held);
        }
        if has_proof && !is_right {
            attempt.is_pending = true;
            for (key, _) in keys {
                state.counts.begin(key, now);
            }
        }
        drop(state);
        Ok(attempt)
    }
}

impl Attempt<'_> {
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
        let Some(limit) = self.limiter.by_minute else { return };
        let mut state = self.limiter.state();
        for (key, limit) in self.keys(limit) {
            state.counts.add(key, limit, now);
        }
    }

    /// Remembers the address from which a client app authenticated.
    pub fn was_right(self) {
        if self.limiter.by_minute.is_none() || !self.has_proof {
            return;
        }
        let mut state = self.limiter.state();
        if state.right.len() >= REMEMBERED {
            let mut keeps = every_other();
            state.right.retain(|_| keeps());
        }
        state.right.insert((self.address, self.client));
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let (true, Some(limit)) = (self.is_pending, self.limiter.by_minute) {
            let mut state = self.limiter.state();
            for (key, _) in self.keys(limit) {
                state.counts.end(&key);
            }
            drop(state);
            self.limiter.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use chancery_record::Timestamp;
    use tokio::task::JoinSet;

    use super::{Attempt, ProofLimiter, Refusal};
    use crate::counts::REMEMBERED;

    fn begin<'a>(
        limiter: &'a ProofLimiter,
        address: [u8; 4],
        client: &str,
        now: i64,
    ) -> Result<Attempt<'a>, Refusal> {
        limiter.begin(IpAddr::from(address), (client, true), Timestamp(now))
    }

    fn wrong(limiter: &ProofLimiter, address: [u8; 4], client: &str, now: i64) -> Result<(), Refusal> {
        begin(limiter, address, client, now)?.was_wrong(Timestamp(now));
        Ok(())
    }

    #[test]
    fn a_minute_s_guesses_and_a_third_of_them_for_a_client() {
        let limiter = ProofLimiter::new(Some(6));
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        assert!(wrong(&limiter, one, "root", 0).is_ok() && wrong(&limiter, one, "ROOT", 0).is_ok());
        assert_eq!(wrong(&limiter, one, "root", 0), Err(Refusal::Wrong(31)), "a client has a third");
        assert!(wrong(&limiter, other, "root", 0).is_ok(), "another address has its first try");
        assert_eq!(wrong(&limiter, other, "root", 0), Err(Refusal::Wrong(31)), "and then the client's count");
        for client in ["a", "b", "c", "d"] {
            assert!(wrong(&limiter, one, client, 0).is_ok(), "{client}");
        }
        assert_eq!(wrong(&limiter, one, "e", 0), Err(Refusal::Wrong(11)), "an address has its own count");
        assert!(wrong(&limiter, other, "e", 0).is_ok());
        assert!(
            wrong(&limiter, one, "root", 29_000).is_err() && wrong(&limiter, one, "root", 31_000).is_ok()
        );
    }

    #[test]
    fn who_is_right_is_not_limited_by_strangers() {
        let limiter = ProofLimiter::new(Some(6));
        let (home, stranger) = ([192, 0, 2, 1], [192, 0, 2, 9]);
        begin(&limiter, home, "app", 0).unwrap().was_right();
        while wrong(&limiter, stranger, "app", 0).is_ok() {}
        while wrong(&limiter, home, "x", 0).is_ok() {}
        let at_once: Vec<_> = (0..100).map(|_| begin(&limiter, home, "app", 0).unwrap()).collect();
        at_once.into_iter().for_each(Attempt::was_right);
        while wrong(&limiter, home, "app", 0).is_ok() {}
        assert!(begin(&limiter, home, "app", 0).is_err(), "their own guesses count");
    }

    /// A process that just started, or a new address, knows no client that authenticated: a right proof is
    /// admitted all the same while strangers attempt.
    #[test]
    fn strangers_shut_nobody_out_of_a_process_that_knows_nobody() {
        let limiter = ProofLimiter::new(Some(6));
        for stranger in 1..100 {
            while wrong(&limiter, [192, 0, 2, stranger], "root", 0).is_ok() {}
        }
        let home = [198, 51, 100, 1];
        begin(&limiter, home, "root", 0).unwrap().was_right();
        begin(&limiter, home, "root", 0).unwrap().was_right();
    }

    /// A clock that was ahead shuts nobody out when it is set back.
    #[test]
    fn a_clock_that_was_ahead_shuts_nobody_out() {
        const DAYS: i64 = 8 * 24 * 3_600_000;
        let limiter = ProofLimiter::new(Some(6));
        let one = [192, 0, 2, 1];
        while wrong(&limiter, one, "root", DAYS).is_ok() {}
        assert!(wrong(&limiter, one, "root", 0).is_ok() && wrong(&limiter, one, "root", 0).is_ok());
        assert_eq!(wrong(&limiter, one, "root", 0), Err(Refusal::Wrong(31)), "the limit stands");
    }

    /// Concurrent attempts are limited like attempts one after another.
    #[test]
    fn concurrent_attempts_are_limited_alike() {
        let limiter = ProofLimiter::new(Some(6));
        let one = [192, 0, 2, 1];
        let first = begin(&limiter, one, "root", 0).unwrap();
        let second = begin(&limiter, one, "root", 0).unwrap();
        assert!(matches!(begin(&limiter, one, "root", 0), Err(Refusal::Held)));
        drop(first);
        let third = begin(&limiter, one, "root", 0).unwrap();
        second.was_wrong(Timestamp(0));
        assert!(
            matches!(begin(&limiter, one, "root", 0), Err(Refusal::Held)),
            "one was wrong, one is under way"
        );
        drop(third);
        assert!(begin(&limiter, one, "root", 0).is_ok(), "what came to nothing is not counted");
    }

    /// A fleet whose members request tokens all at once is admitted, one after another.
    #[tokio::test]
    async fn a_fleet_is_admitted_one_after_another() {
        let limiter = Arc::new(ProofLimiter::new(Some(6)));
        let mut fleet = JoinSet::new();
        for _ in 0..100 {
            let limiter = Arc::clone(&limiter);
            fleet.spawn(async move {
                let attempt =
                    limiter.admit(IpAddr::from([192, 0, 2, 1]), ("root", true), Timestamp(0)).await?;
                tokio::task::yield_now().await;
                attempt.was_right();
                Ok::<(), i64>(())
            });
        }
        assert!(fleet.join_all().await.into_iter().all(|admitted| admitted.is_ok()));
    }

    /// A public client shows no proof: it does not count while in progress, nor is it remembered.
    #[test]
    fn a_client_without_proof_is_not_remembered() {
        let limiter = ProofLimiter::new(Some(6));
        let home = IpAddr::from([192, 0, 2, 1]);
        let bare = || limiter.begin(home, ("public", false), Timestamp(0)).unwrap();
        let at_once: Vec<_> = (0..100).map(|_| bare()).collect();
        at_once.into_iter().for_each(Attempt::was_right);
        assert!(limiter.state().right.is_empty());
        bare().was_wrong(Timestamp(0));
        bare().was_wrong(Timestamp(0));
        assert!(limiter.begin(home, ("public", false), Timestamp(0)).is_err(), "a wrong id is counted");
    }

    #[test]
    fn no_limit_and_bounded_memory() {
        let none = ProofLimiter::new(None);
        assert!((0..1000).all(|_| wrong(&none, [127, 0, 0, 1], "root", 0).is_ok()));
        let limiter = ProofLimiter::new(Some(60));
        for number in 0..70_000_u32 {
            let _ = wrong(&limiter, number.to_be_bytes(), &number.to_string(), 60_000);
            if let Ok(attempt) = begin(&limiter, [10, 0, 0, 1], &number.to_string(), 60_000) {
                attempt.was_right();
            }
            let state = limiter.state();
            assert!(state.counts.len() <= REMEMBERED && state.right.len() <= REMEMBERED);
            assert!(number < 1000 || state.right.len() >= 1000, "never are all forgotten");
        }
    }
}
