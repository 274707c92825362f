//! A lane: a thread, its connection, and the operations that run on it one after another.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Counters, servers::Servers};
use crate::{
    Error, Health, Mode, Tx,
    connection::postgres::{Gate, Session, opening::Backend},
    job::Job,
    queue::{Next, Queue, WorkerKind},
    tx::{CommitOutcome, CommitProof, Engine},
};

/// Concurrent attempts of an operation. After that many conflicts it runs exclusively.
const CONCURRENT_ATTEMPTS: u32 = 3;
/// Attempts in total before [`Error::Retry`] is returned: exclusively, the only conflict left is that of keys
/// derived from the time.
const ATTEMPTS: u32 = 12;
/// How long an unused connection stays open.
const IDLE: Duration = Duration::from_mins(10);
/// The lifetime of a connection, in minutes: the minimum, and the random addition. Addresses and rights may
/// have changed, and the server's own caches grow.
const AGE: (u64, u64) = (50, 20);
/// How long the outcome of a commit is searched for.
const SEARCH: Duration = Duration::from_secs(10);
/// The interval of that search.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

pub struct Lane {
    kind: WorkerKind,
    servers: Arc<Servers>,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    session: Option<Session>,
    /// The connection's maximum age.
    age: Duration,
    /// How long an unused connection stays open.
    idle: Duration,
}

impl Lane {
    pub fn new(kind: WorkerKind, servers: Arc<Servers>, queue: Arc<Queue>, counters: Arc<Counters>) -> Self {
        let age = Duration::from_mins(AGE.0 + random_below(AGE.1));
        Self { kind, servers, queue, counters, session: None, age, idle: IDLE }
    }

    pub fn run(mut self) {
        loop {
            let mut waiting = match self.queue.take(self.kind, self.idle) {
                Next::Run(waiting) => waiting,
                Next::Idle => {
                    self.session = None;
                    continue;
                }
                Next::Closed => return,
            };
            let span = waiting.job.span();
            let outcome = span.in_scope(|| self.repeat(&mut waiting.job, waiting.mode));
            let (class, mode) = (waiting.class, waiting.mode);
            self.note_counts();
            waiting.job.finish(outcome);
            // the result does not wait for the end of a reading transaction
            let ended = self.session.as_mut().is_none_or(|session| session.end().is_ok());
            let is_old = self.session.as_ref().is_some_and(|session| session.opened.elapsed() > self.age);
            if !ended || is_old {
                self.session = None;
            }
            self.queue.done(class, mode);
        }
    }

    /// Adds the statements and round trips of a request to the counters.
    fn note_counts(&self) {
        let Some(session) = self.session.as_ref().filter(|_| self.kind != WorkerKind::Background) else {
            return;
        };
        let counts = session.take_counts();
        self.counters.statements.fetch_add(counts.statements, Ordering::Relaxed);
        self.counters.round_trips.fetch_add(counts.round_trips, Ordering::Relaxed);
    }

    fn repeat(&mut self, job: &mut Job, mode: Mode) -> Result<(), Error> {
        let mut attempt = 0;
        // as declared, or as an attempt shows
        let mut advances_epoch = mode == Mode::WriteRights;
        loop {
            attempt += 1;
            let gate = match advances_epoch {
                _ if attempt > CONCURRENT_ATTEMPTS => Gate::Exclusive,
                true => Gate::Rights,
                false => Gate::Shared,
            };
            let outcome = self.attempt(job, mode, gate, &mut advances_epoch);
            // an idle connection closed by the server is detected only on use
            let lost = matches!(outcome, Err(Error::Unavailable(_))) && attempt == 1;
            if !(lost || matches!(outcome, Err(Error::Retry))) || attempt >= ATTEMPTS {
                return outcome;
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn attempt(
        &mut self,
        job: &mut Job,
        mode: Mode,
        gate: Gate,
        advances_epoch: &mut bool,
    ) -> Result<(), Error> {
        if self.servers.health() == Health::Unavailable {
            self.session = None;
            return Err(Error::Unavailable("the database does not answer".into()));
        }
        if self.session.as_ref().is_none_or(|session| session.is_closed(mode)) {
            self.session = Some(self.servers.open_and_clean_up()?);
        }
        let Some(session) = &mut self.session else { return Err(Error::Retry) };
        if mode.is_write() && session.backend.timeline.is_none() {
            // the host name may resolve to another address by now
            self.session = None;
            return Err(Error::Unavailable("the server is a standby: it takes no writes".into()));
        }
        session.begin(mode, gate);
        let mut tx = Tx::new(Engine::Postgres(session));
        let ran = job.run(&mut tx);
        *advances_epoch |= tx.has_advanced_epoch();
        let (proof, finished) = (tx.take_commit_proof(), tx.take_commit_outcome());
        let is_routine = tx.is_routine();
        let commits = match ran {
            Ok(commits) => commits,
            Err(error) => {
                let rolled_back = session.roll_back();
                if rolled_back.is_err() || matches!(error, Error::Unavailable(_)) {
                    self.session = None;
                }
                return Err(error);
            }
        };
        if !mode.is_write() {
            // a result from cached rights must be confirmed against the current epoch
            return session.check_epoch();
        }
        let outcome = match finished {
            Some(CommitOutcome::Committed) => Ok(()),
            Some(CommitOutcome::Unknown(why)) => Err(Error::Unknown(why)),
            None if !commits => return session.roll_back(),
            None => session.commit(),
        };
        match outcome {
            Ok(()) => {
                self.counters.commits.add(is_routine);
                Ok(())
            }
            Err(Error::Unknown(why)) => {
                let lost = session.backend.clone();
                self.session = None;
                self.resolve_commit(&lost, proof, why)
            }
            Err(Error::Unavailable(_)) => {
                self.session = None;
                outcome
            }
            Err(_) => {
                session.roll_back()?;
                outcome
            }
        }
    }

    /// Determines the outcome of a commit whose connection was lost.
    fn resolve_commit(
        &mut self,
        lost: &Backend,
        proof: Option<CommitProof>,
        why: String,
    ) -> Result<(), Error> {
        let Some(proof) = proof else {
            self.servers.note_lost(lost.clone());
            return Err(Error::Unknown(why));
        };
        let began = Instant::now();
        while began.elapsed() < SEARCH {
            let is_committed = self.servers.open_and_clean_up().and_then(|mut session| {
                let is_committed =
                    session.was_committed(lost, &proof, SEARCH.saturating_sub(began.elapsed()));
                // a commit that waits for a standby makes this search wait, too
                match is_committed {
                    Ok(_) => self.session = Some(session),
                    Err(_) => self.servers.note_lost(session.backend.clone()),
                }
                is_committed
            });
            match is_committed {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    return Err(Error::Unavailable("the connection was lost before the commit".into()));
                }
                Err(error) => tracing::warn!(%error, "what became of a commit is not known yet"),
            }
            std::thread::sleep(SEARCH_INTERVAL);
        }
        self.servers.note_lost(lost.clone());
        Err(Error::Unknown(why))
    }
}

/// A random number below a bound.
fn random_below(bound: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() % bound
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    use chancery_record::Value;

    use super::{Lane, Servers};
    use crate::{
        Class, Error, Mode,
        job::Job,
        postgres::servers::CONNECT_TIMEOUT,
        queue::{Bounds, Queue, WorkerKind},
    };

    /// Section 2: a connection opens on demand, and closes when unused for 10 minutes.
    #[test]
    fn an_unused_connection_is_closed() {
        let url =
            format!("{}/postgres", std::env::var("CHANCERY_TEST_POSTGRES").expect("set by scripts/test"));
        let servers = Arc::new(Servers::new(&url, false).unwrap());
        let queue = Arc::new(Queue::new(Bounds { waiting: 1, heavy: 1, writes: 1 }, false));
        let mut lane = Lane::new(WorkerKind::Any, Arc::clone(&servers), Arc::clone(&queue), Arc::default());
        assert_eq!((lane.idle, lane.session.is_none()), (Duration::from_mins(10), true));
        lane.idle = Duration::from_millis(20);
        let running = std::thread::spawn(move || lane.run());
        let operation = |tx: &mut crate::Tx<'_>| {
            let process = tx.one("SELECT pg_backend_pid()::bigint", &[], |row| row.int(0))?;
            process.ok_or(Error::Retry)
        };
        let (job, done, slot) = Job::new("Use", None, Box::new(operation));
        queue.push(job, Mode::Quick, Class::Ordinary).unwrap();
        done.blocking_recv().unwrap();
        let process = slot.take().unwrap().unwrap();
        let mut other = servers.open(CONNECT_TIMEOUT).unwrap();
        let mut is_open = || {
            let mut exists = false;
            let text = "SELECT 1 FROM pg_stat_activity WHERE pid = ?1";
            let look = other.query_all(&[(text, &[Value::Int(process)])], &mut |_, _| {
                exists = true;
                Ok(())
            });
            look.unwrap();
            exists
        };
        let began = Instant::now();
        while is_open() {
            assert!(began.elapsed() < Duration::from_secs(30), "it is closed");
            std::thread::sleep(Duration::from_millis(10));
        }
        queue.close();
        running.join().unwrap();
    }
}
