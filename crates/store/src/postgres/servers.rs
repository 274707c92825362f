//! The servers of the connection string and their state: the last one that answered, whether it accepts writes,
//! how far its clock differs from ours.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    Error, Health,
    clock::{self, Anchor},
    connection::postgres::{
        Session,
        address::{self, HostConfig},
        opening::{Backend, ConnectionRefusal},
    },
};

/// The timeout of opening a connection, with handshake and settings, over all hosts.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most lost connections whose server processes are still to be ended.
const MAX_LOST: usize = 1000;

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

    /// The number of hosts.
    pub fn count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)
    }

    /// Opens a connection to the first host that accepts it, beginning with the one that answered last.
    pub fn open(&self, patience: Duration) -> Result<Session, ConnectionRefusal> {
        let count = self.hosts.len();
        let first = self.answered.load(Ordering::Relaxed);
        let each = patience / u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let (mut reasons, mut is_transient, mut is_local) = (Vec::new(), false, false);
        for number in (0..count).map(|step| (first + step) % count) {
            let Some(host) = self.hosts.get(number) else { continue };
            match Session::open(host, each, self.generation.subscribe()).and_then(|it| self.admit(it)) {
                Ok(session) => {
                    self.answered.store(number, Ordering::Relaxed);
                    return Ok(session);
                }
                Err(refusal) => {
                    is_transient |= refusal.is_transient;
                    is_local |= refusal.is_local;
                    reasons.push(refusal.why);
                }
            }
        }
        Err(ConnectionRefusal { why: reasons.join("; "), is_transient, is_local })
    }

    /// Records a dropped connection whose server process may still wait, for a standby for instance: the
    /// process does not detect that its client is gone, and occupies a connection.
    pub fn note_lost(&self, backend: Backend) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.len() < MAX_LOST {
            lost.push(backend);
        }
    }

    fn take_lost(&self) -> Option<Backend> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Opens a connection, and ends the server processes that dropped connections left behind.
    pub fn open_and_clean_up(&self) -> Result<Session, Error> {
        let mut session = self.open(CONNECT_TIMEOUT)?;
        while let Some(backend) = self.take_lost() {
            if let Err(error) = session.terminate(&backend) {
                self.note_lost(backend);
                return Err(error);
            }
        }
        Ok(session)
    }

    /// Refuses a superseded primary: writes that it still accepts are lost.
    fn admit(&self, mut session: Session) -> Result<Session, ConnectionRefusal> {
        let Some(timeline) = session.backend.timeline else { return Ok(session) };
        let seen = self.timeline.fetch_max(timeline, Ordering::Relaxed);
        if seen != 0 && timeline > seen {
            // connections to the previous primary may hang, or write data that will be lost
            self.end_all();
            session.outlive();
        }
        if timeline >= seen {
            return Ok(session);
        }
        let why = format!(
            "the server's timeline is {timeline}, and {seen} was seen before: another one took its place"
        );
        Err(ConnectionRefusal::transient(why))
    }

    /// Checks that a connection's server accepts writes, and records its clock before the first operation.
    pub fn for_writes(&self, mut session: Session) -> Result<Session, ConnectionRefusal> {
        let state = session
            .state(CONNECT_TIMEOUT)
            .map_err(|error| ConnectionRefusal::transient(error.to_string()))?;
        self.note_clock(state.clock);
        if state.takes_writes {
            return Ok(session);
        }
        let why = "it takes no writes, for it is a standby or set to be read only: name the primary, or all \
                   servers (postgres://db1,db2/...), of which the one that takes writes is used";
        Err(ConnectionRefusal::transient(why.into()))
    }

    /// Ends every connection, whatever it waits for.
    pub fn end_all(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    pub fn health(&self) -> Health {
        Health::of(self.health.load(Ordering::Relaxed))
    }

    /// Sets the health; returns whether it changed.
    pub fn note_health(&self, health: Health) -> bool {
        self.health.swap(health as u8, Ordering::Relaxed) != health as u8
    }

    /// How far the database's clock is ahead of `now`, a time of this process, in milliseconds.
    pub fn clock_offset(&self, now: i64) -> i64 {
        self.clock.ahead_of(now)
    }

    /// Records the reading of the database's clock; returns how far it is ahead of ours, in milliseconds.
    pub fn note_clock(&self, reading: i64) -> i64 {
        self.clock.set(reading);
        self.clock_offset(clock::now())
    }
}
