//! Limits on failed authentication, of client apps and of people.
//!
//! Wrong proofs are counted by address, by client app or person, and by both. Proofs being verified count while
//! they are, so one that comes on top of many waits for their outcome. An attempt whose caller closes the
//! connection before the outcome is known counts as wrong. Anonymous attempts lock no client app or person out: an address from
//! which a client app has authenticated is refused by their common count alone, and any other address has its
//! first attempts, however many others failed.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chancery_record::Timestamp;
use tokio::sync::Notify;

use super::rate_counters::{Counts, Name, REMEMBERED, every_other, name_of, network};

/// How long an attempt waits for the outcome of others.
const PATIENCE: Duration = Duration::from_secs(3);

/// The subject of a proof.
#[derive(Clone, Copy)]
pub enum About<'a> {
    /// A client app of this id or name. A public one shows no proof, or none but a certificate.
    Client { id: &'a str, has_proof: bool, may_be_public: bool },
    /// A person: by a login name, by an id, or by the sign-in where the person is not known yet.
    Person(&'a str),
    /// A code or a link of this kind. It has no subject, so it is counted by address alone: a count that all people
    /// shared would let anonymous callers lock everybody out.
    Bearer(&'static str),
}

impl About<'_> {
    /// Each kind has counts of its own: a login name that is the name of a kind shares nothing with it.
    fn subject(self) -> Subject {
        match self {
            Self::Client { id, .. } => Subject { kind: "client", name: Some(name_of(id)) },
            Self::Person(name) => Subject { kind: "person", name: Some(name_of(name)) },
            Self::Bearer(kind) => Subject { kind, name: None },
        }
    }

    fn grants(self, address: IpAddr) -> Option<Key> {
        matches!(self, Self::Client { may_be_public: true, .. }).then_some(Key::Both(address, GRANTS))
    }

    const fn has_proof(self) -> bool {
        match self {
            Self::Client { has_proof, .. } => has_proof,
            Self::Person(_) | Self::Bearer(_) => true,
        }
    }
}

/// The counted subject besides the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Subject {
    kind: &'static str,
    name: Option<Name>,
}

/// The codes and tokens that public client apps present. Guesses at them are counted by address.
const GRANTS: Subject = Subject { kind: "grant", name: None };

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Subject(Subject),
    Both(IpAddr, Subject),
}

#[derive(Default)]
struct State {
    counts: Counts<Key>,
    /// The subjects that authenticated, with their addresses.
    right: HashSet<(IpAddr, Subject)>,
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
enum Rejection {
    /// Too many failed; the next is admitted in so many seconds.
    Wrong(i64),
    /// The attempts in progress might be too many.
    Held,
}

/// An attempt in progress. One that shows a proof and ends without an outcome counts as wrong: its caller closed the
/// connection, and would otherwise guess for free.
pub struct Attempt<'a> {
    limiter: &'a ProofLimiter,
    address: IpAddr,
    subject: Subject,
    has_proof: bool,
    /// Where guesses at codes and tokens are counted, if the client app may be public.
    grants: Option<Key>,
    is_pending: bool,
    is_wrong: bool,
    began_on: Timestamp,
}

impl ProofLimiter {
    /// This many wrong proofs a minute from one address, a third for one client app or person; `None` is no limit.
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
    pub async fn admit(&self, address: IpAddr, about: About<'_>, now: Timestamp) -> Result<Attempt<'_>, i64> {
        let admitted = async {
            loop {
                let mut ended = std::pin::pin!(self.ended.notified());
                ended.as_mut().enable();
                match self.begin(address, about, now) {
                    Ok(attempt) => return Ok(attempt),
                    Err(Rejection::Wrong(seconds)) => return Err(seconds),
                    Err(Rejection::Held) => ended.await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, admitted).await.unwrap_or(Err(1))
    }

    fn begin(&self, address: IpAddr, about: About<'_>, now: Timestamp) -> Result<Attempt<'_>, Rejection> {
        let (subject, has_proof) = (about.subject(), about.has_proof());
        let address = network(address);
        let mut attempt = Attempt {
            limiter: self,
            address,
            subject,
            has_proof,
            grants: about.grants(address),
            is_pending: false,
            is_wrong: false,
            began_on: now,
        };
        let Some(limit) = self.by_minute else { return Ok(attempt) };
        let mut state = self.state();
        let is_right = state.right.contains(&(address, subject));
        let was_wrong = state.counts.is_counted(&Key::Both(address, subject), now);
        let counts = |key: &Key| match key {
            Key::Both(..) => true,
            Key::Address(_) => !is_right,
            Key::Subject(_) => !is_right && was_wrong,
        };
        let keys: Vec<_> = attempt.keys(limit).collect();
        let grants = attempt.grants.map(|key| (key, limit));
        let counted = || keys.iter().filter(|(key, _)| counts(key)).chain(&grants);
        let wait = counted().filter_map(|(key, limit)| state.counts.wait(key, *limit, now)).max();
        if let Some(seconds) = wait {
            return Err(Rejection::Wrong(seconds));
        }
        if counted().any(|(key, limit)| state.counts.is_held(key, *limit, now)) {
            return Err(Rejection::Held);
        }
        // a rejected attempt ends here, and is no guess
        attempt.is_wrong = has_proof;
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
    fn keys(&self, limit: u32) -> impl Iterator<Item = (Key, u32)> + use<> {
        let third = if limit < 3 { 1 } else { limit / 3 };
        let of_all = self.subject.name.map(|_| (Key::Subject(self.subject), third));
        [(Key::Address(self.address), limit), (Key::Both(self.address, self.subject), third)]
            .into_iter()
            .chain(of_all)
    }

    /// Counts a wrong proof.
    pub fn was_wrong(mut self) {
        self.is_wrong = true;
    }

    /// Nothing was proven or refuted, for example because a field was empty.
    pub fn was_inconclusive(mut self) {
        self.is_wrong = false;
    }

    /// Ends an attempt that was right or wrong; `None`: it was inconclusive.
    pub fn settle(self, is_right: Option<bool>) {
        match is_right {
            Some(true) => self.was_right(),
            Some(false) => self.was_wrong(),
            None => self.was_inconclusive(),
        }
    }

    /// Counts a code or token of a public client app that is not known.
    pub fn guessed_grant(mut self) {
        self.is_wrong = false;
        if let (Some(limit), Some(key)) = (self.limiter.by_minute, self.grants) {
            self.limiter.state().counts.add(key, limit, self.began_on);
        }
    }

    /// Remembers the address from which a client app or person authenticated.
    pub fn was_right(mut self) {
        self.is_wrong = false;
        if self.limiter.by_minute.is_none() || !self.has_proof {
            return;
        }
        let mut state = self.limiter.state();
        if state.right.len() >= REMEMBERED {
            let mut retains = every_other();
            state.right.retain(|_| retains());
        }
        state.right.insert((self.address, self.subject));
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Some(limit) = self.limiter.by_minute else { return };
        let mut state = self.limiter.state();
        for (key, limit) in self.keys(limit) {
            if self.is_wrong {
                state.counts.add(key, limit, self.began_on);
            }
            if self.is_pending {
                state.counts.end(&key);
            }
        }
        drop(state);
        if self.is_pending {
            self.limiter.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use chancery_record::Timestamp;
    use tokio::task::JoinSet;

    use super::{About, Attempt, ProofLimiter, Rejection};
    use crate::limits::rate_counters::REMEMBERED;

    fn begin<'a>(
        limiter: &'a ProofLimiter,
        address: [u8; 4],
        client: &str,
        now: i64,
    ) -> Result<Attempt<'a>, Rejection> {
        limiter.begin(
            IpAddr::from(address),
            About::Client { id: client, has_proof: true, may_be_public: false },
            Timestamp(now),
        )
    }

    fn wrong(limiter: &ProofLimiter, address: [u8; 4], client: &str, now: i64) -> Result<(), Rejection> {
        begin(limiter, address, client, now)?.was_wrong();
        Ok(())
    }

    #[test]
    fn a_minute_s_guesses_and_a_third_of_them_for_a_client() {
        let limiter = ProofLimiter::new(Some(6));
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        assert!(wrong(&limiter, one, "root", 0).is_ok() && wrong(&limiter, one, "ROOT", 0).is_ok());
        assert_eq!(wrong(&limiter, one, "root", 0), Err(Rejection::Wrong(31)), "a client has a third");
        assert!(wrong(&limiter, other, "root", 0).is_ok(), "another address has its first try");
        assert_eq!(
            wrong(&limiter, other, "root", 0),
            Err(Rejection::Wrong(31)),
            "and then the client's count"
        );
        for client in ["a", "b", "c", "d"] {
            assert!(wrong(&limiter, one, client, 0).is_ok(), "{client}");
        }
        assert_eq!(wrong(&limiter, one, "e", 0), Err(Rejection::Wrong(11)), "an address has its own count");
        assert!(wrong(&limiter, other, "e", 0).is_ok());
        assert!(
            wrong(&limiter, one, "root", 29_000).is_err() && wrong(&limiter, one, "root", 31_000).is_ok()
        );
    }

    #[test]
    fn who_is_right_is_not_limited_by_strangers() {
        let limiter = ProofLimiter::new(Some(6));
        let (known, other) = ([192, 0, 2, 1], [192, 0, 2, 9]);
        begin(&limiter, known, "app", 0).unwrap().was_right();
        while wrong(&limiter, other, "app", 0).is_ok() {}
        while wrong(&limiter, known, "x", 0).is_ok() {}
        let at_once: Vec<_> = (0..100).map(|_| begin(&limiter, known, "app", 0).unwrap()).collect();
        at_once.into_iter().for_each(Attempt::was_right);
        while wrong(&limiter, known, "app", 0).is_ok() {}
        assert!(begin(&limiter, known, "app", 0).is_err(), "their own guesses count");
    }

    /// A process that just started, or a new address, knows no client that authenticated: a right proof is
    /// admitted all the same during attempts of others.
    #[test]
    fn wrong_proofs_of_others_block_no_client_of_a_new_process() {
        let limiter = ProofLimiter::new(Some(6));
        for other in 1..100 {
            while wrong(&limiter, [192, 0, 2, other], "root", 0).is_ok() {}
        }
        let known = [198, 51, 100, 1];
        begin(&limiter, known, "root", 0).unwrap().was_right();
        begin(&limiter, known, "root", 0).unwrap().was_right();
    }

    /// A clock that was ahead blocks no caller when it is set back.
    #[test]
    fn a_clock_that_is_set_back_blocks_no_caller() {
        const DAYS: i64 = 8 * 24 * 3_600_000;
        let limiter = ProofLimiter::new(Some(6));
        let one = [192, 0, 2, 1];
        while wrong(&limiter, one, "root", DAYS).is_ok() {}
        assert!(wrong(&limiter, one, "root", 0).is_ok() && wrong(&limiter, one, "root", 0).is_ok());
        assert_eq!(wrong(&limiter, one, "root", 0), Err(Rejection::Wrong(31)), "the limit stands");
    }

    /// Concurrent attempts are limited like attempts one after another.
    #[test]
    fn concurrent_attempts_are_limited_alike() {
        let limiter = ProofLimiter::new(Some(6));
        let one = [192, 0, 2, 1];
        let first = begin(&limiter, one, "root", 0).unwrap();
        let second = begin(&limiter, one, "root", 0).unwrap();
        assert!(matches!(begin(&limiter, one, "root", 0), Err(Rejection::Held)));
        first.was_inconclusive();
        let third = begin(&limiter, one, "root", 0).unwrap();
        second.was_wrong();
        assert!(
            matches!(begin(&limiter, one, "root", 0), Err(Rejection::Held)),
            "one was wrong, one is under way"
        );
        third.was_inconclusive();
        assert!(begin(&limiter, one, "root", 0).is_ok(), "what came to nothing is not counted");
    }

    /// An attempt is dropped when its caller closes the connection.
    #[test]
    fn an_attempt_without_an_outcome_counts_as_wrong() {
        let limiter = ProofLimiter::new(Some(6));
        let one = [192, 0, 2, 1];
        drop(begin(&limiter, one, "root", 0).unwrap());
        drop(begin(&limiter, one, "root", 0).unwrap());
        assert!(matches!(begin(&limiter, one, "root", 0), Err(Rejection::Wrong(_))));
        // also at an address that authenticated before
        begin(&limiter, one, "app", 0).unwrap().was_right();
        drop(begin(&limiter, one, "app", 0).unwrap());
        drop(begin(&limiter, one, "app", 0).unwrap());
        assert!(matches!(begin(&limiter, one, "app", 0), Err(Rejection::Wrong(_))));
        // a public client app that proves nothing guesses nothing
        let bare = About::Client { id: "public", has_proof: false, may_be_public: true };
        let known = IpAddr::from([198, 51, 100, 1]);
        (0..100).for_each(|_| drop(limiter.begin(known, bare, Timestamp(0)).unwrap()));
    }

    #[test]
    fn wrong_codes_and_links_count_by_address_and_kind_alone() {
        let limiter = ProofLimiter::new(Some(6));
        let at = |last: u8, about| limiter.begin(IpAddr::from([192, 0, 2, last]), about, Timestamp(0));
        let device = About::Bearer("device");
        at(1, device).unwrap().was_wrong();
        for other in 2..100 {
            while let Ok(attempt) = at(other, device) {
                attempt.was_wrong();
            }
        }
        assert!(
            at(1, device).is_ok_and(|attempt| {
                attempt.was_inconclusive();
                true
            }),
            "strangers shut nobody out"
        );
        assert!(at(2, device).is_err(), "an address has a third of its limit");
        for other in [About::Bearer("reset"), About::Person("device")] {
            assert!(
                at(2, other).is_ok_and(|attempt| {
                    attempt.was_inconclusive();
                    true
                }),
                "another kind"
            );
        }
    }

    #[test]
    fn guessed_codes_of_public_clients_count_by_address() {
        let limiter = ProofLimiter::new(Some(6));
        let at = |last: u8, id, has_proof| {
            let about = About::Client { id, has_proof, may_be_public: !has_proof };
            limiter.begin(IpAddr::from([192, 0, 2, last]), about, Timestamp(0))
        };
        for id in ["a", "b", "c", "d", "e", "f"] {
            at(1, id, false).unwrap().guessed_grant();
        }
        assert!(at(1, "a", false).is_err() && at(1, "another", false).is_err());
        assert!(at(1, "a", true).is_ok(), "who shows a proof is not a public client");
        assert!(at(2, "a", false).is_ok(), "another address");
    }

    /// A fleet whose members request tokens all at once is admitted, one after another.
    #[tokio::test]
    async fn a_fleet_is_admitted_one_after_another() {
        let limiter = Arc::new(ProofLimiter::new(Some(6)));
        let mut fleet = JoinSet::new();
        for _ in 0..100 {
            let limiter = Arc::clone(&limiter);
            let root = About::Client { id: "root", has_proof: true, may_be_public: false };
            fleet.spawn(async move {
                let attempt = limiter.admit(IpAddr::from([192, 0, 2, 1]), root, Timestamp(0)).await?;
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
        let known = IpAddr::from([192, 0, 2, 1]);
        let public = About::Client { id: "public", has_proof: false, may_be_public: true };
        let bare = || limiter.begin(known, public, Timestamp(0)).unwrap();
        let at_once: Vec<_> = (0..100).map(|_| bare()).collect();
        at_once.into_iter().for_each(Attempt::was_right);
        assert!(limiter.state().right.is_empty());
        bare().was_wrong();
        bare().was_wrong();
        assert!(limiter.begin(known, public, Timestamp(0)).is_err(), "a wrong id is counted");
    }

    #[test]
    fn no_limit_admits_all_in_bounded_memory() {
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
