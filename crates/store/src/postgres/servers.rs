//! The servers of the connection string and their state: which one answered last, whether it takes
//! writes, how far its clock differs from ours.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{
    address::{self, HostConfig},
    opening::{Backend, Refusal},
    session::Session,
};
use crate::{
    Error, Health,
    clock::{self, Anchor},
};

/// The timeout of opening a connection, with handshake and settings, over all hosts.
pub const OPENING: Duration = Duration::from_secs(5);

/// The most lost connections whose server processes are still to be ended.
const MOST_LOST: usize = 1000;

pub struct Servers {
    hosts: Vec<HostConfig>,
    /// The index of the host that answered last: the next connection tries it first.
    answered: AtomicUsize,
    /// The highest timeline seen. Each promotion of a standby begins a new one.
    timeline: AtomicU32,
    /// Advanced to end every open connection.
    generation: watch::Sender<u64>,
    health: AtomicU8,
    clock: Anchor,
    /// Server processes that dropped connections may have left behind.
    lost: Mutex<Vec<Backend>>,
}

impl Servers {
    pub fn new(url: &str, insecure: bool) -> Result<Self, Error> {
        let hosts = address::read(url, insecure)?;
        let unchecked = |host: &HostConfig| host.tls.as_ref().is_some_and(|tls| !tls.is_checked());
        if hosts.iter().any(unchecked) {
            tracing::warn!(
                "sslmode=require takes any certificate: whoever stands between the server and its \
                 database can read along; use verify-full"
            );
        }
        Ok(Self {
            hosts,
            answered: AtomicUsize::new(0),
            timeline: AtomicU32::new(0),
            generation: watch::Sender::new(0),
            health: AtomicU8::new(Health::Ready as u8),
            clock: Anchor::default(),
            lost: Mutex::default(),
        })
    }

    /// How many hosts there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)
    }

    /// Opens a connection to the first host that accepts it, beginning with the one that answered last.
    pub fn open(&self, patience: Duration) -> Result<Session, Refusal> {
        let count = self.hosts.len();
        let first = self.answered.load(Ordering::Relaxed);
        let each = patience / u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let (mut reasons, mut passes, mut is_ours) = (Vec::new(), false, false);
        for number in (0..count).map(|step| (first + step) % count) {
            let Some(host) = self.hosts.get(number) else { continue };
            match Session::open(host, each, self.generation.subscribe()).and_then(|it| self.admit(it)) {
                Ok(session) => {
                    self.answered.store(number, Ordering::Relaxed);
                    return Ok(session);
                }
                Err(refusal) => {
                    passes |= refusal.passes;
                    is_ours |= refusal.is_ours;
                    reasons.push(refusal.why);
                }
            }
        }
        Err(Refusal { why: reasons.join("; "), passes, is_ours })
    }

    /// Records a dropped connection whose server process may still wait, for a standby for instance: the
    /// process does not notice that nobody waits for it, and occupies a connection.
    pub fn note_lost(&self, backend: Backend) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.len() < MOST_LOST {
            lost.push(backend);
        }
    }

    fn take_lost(&self) -> Option<Backend> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Opens a connection, and ends the server processes that dropped connections left behind.
    pub fn open_and_tidy(&self) -> Result<Session, Error> {
        let mut session = self.open(OPENING)?;
        while let Some(backend) = self.take_lost() {
            if let Err(error) = session.terminate(&backend) {
                self.note_lost(backend);
                return Err(error);
            }
        }
        Ok(session)
    }

    /// Refuses a primary that has been superseded: writes that it still takes are lost.
    fn admit(&self, mut session: Session) -> Result<Session, Refusal> {
        let Some(timeline) = session.backend.timeline else { return Ok(session) };
        let seen = self.timeline.fetch_max(timeline, Ordering::Relaxed);
        if seen != 0 && timeline > seen {
            // connections to the previous primary may hang, or write what will be lost
            self.end_all();
            session.outlive();
        }
        if timeline >= seen {
            return Ok(session);
        }
        let why = format!(
            "the server's timeline is {timeline}, and {seen} was seen before: another one took its place"
        );
        Err(Refusal::passing(why))
    }

    /// Checks that a connection's server takes writes, and records its clock before the first operation.
    pub fn for_writes(&self, mut session: Session) -> Result<Session, Refusal> {
        let asked = session.state(OPENING).map_err(|error| Refusal::passing(error.to_string()))?;
        self.note_clock(asked.clock);
        if asked.takes_writes {
            return Ok(session);
        }
        let why = "it takes no writes, for it is a standby or set to be read only: name the primary, or all \
                   servers (postgres://db1,db2/...), of which the one that takes writes is used";
        Err(Refusal::passing(why.into()))
    }

    /// Ends every connection, whatever it waits for.
    pub fn end_all(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    pub fn health(&self) -> Health {
        Health::of(self.health.load(Ordering::Relaxed))
    }

    /// Sets the health; whether it changed.
    pub fn note_health(&self, health: Health) -> bool {
        self.health.swap(health as u8, Ordering::Relaxed) != health as u8
    }

    /// How far the database's clock is ahead of `now`, a time of this process, in milliseconds.
    pub fn clock_offset(&self, now: i64) -> i64 {
        self.clock.ahead_of(now)
    }

    /// Records what the database's clock shows now; how far it is ahead of ours, in milliseconds.
    pub fn note_clock(&self, shown: i64) -> i64 {
        self.clock.set(shown);
        self.clock_offset(clock::now())
    }
}
