//! Checks the database once a second, on its own connection, for whether it accepts writes. Operations that
//! wait for a hanging server would detect it much later, and readiness never.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::servers::Servers;
use crate::{Error, Health, connection::postgres::Session};

/// The interval of checks.
const PERIOD: Duration = Duration::from_secs(1);
/// The interval while the database is unavailable, so that its return is detected soon.
const PERIOD_UNAVAILABLE: Duration = Duration::from_millis(200);
/// The shortest pause between an answer and the next check.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The timeout of a check: short enough that a server that falls silent right after an answer counts as
/// unavailable within four seconds.
const PATIENCE: Duration = Duration::from_millis(800);
/// Consecutive failed checks after which the database counts as unavailable.
const FAILURES: u32 = 3;
/// The clock difference that is logged, and the one at which the store stops serving, in milliseconds.
const CLOCK_WARNING: u64 = 2_000;
const CLOCK_BOUND: u64 = 30_000;
/// The shortest pause between two such warnings.
const WARNING_PAUSE: Duration = Duration::from_mins(1);

/// Stops the monitor.
#[derive(Default)]
pub struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub fn notify(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits; `true` when the monitor is to stop.
    pub fn wait(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.changed.wait_timeout_while(stopped, time, |stopped| !*stopped);
        *outcome.unwrap_or_else(PoisonError::into_inner).0
    }
}

pub struct Monitor {
    servers: Arc<Servers>,
    session: Option<Session>,
    failures: u32,
    warned: Option<Instant>,
}

impl Monitor {
    pub fn new(servers: Arc<Servers>) -> Self {
        Self { servers, session: None, failures: 0, warned: None }
    }

    /// Runs checks until stopped.
    pub fn run(mut self, stop: &Stop) {
        loop {
            let began = Instant::now();
            match self.check() {
                Ok(health) => self.note(health),
                Err(error) => self.fail(&error),
            }
            let period = if self.failures >= FAILURES { PERIOD_UNAVAILABLE } else { PERIOD };
            if stop.wait(period.saturating_sub(began.elapsed()).max(SHORTEST_PAUSE)) {
                return;
            }
        }
    }

    /// Checks once; a connection that does not answer is dropped.
    fn check(&mut self) -> Result<Health, Error> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => match self.servers.open(PATIENCE * self.servers.count()) {
                Ok(session) => session,
                // a refused additional connection is no sign against the working ones
                Err(refusal) if refusal.is_local => return Ok(self.servers.health()),
                Err(refusal) => return Err(refusal.into()),
            },
        };
        let state = session.state(PATIENCE)?;
        self.session = Some(session);
        let offset = self.servers.note_clock(state.clock);
        self.warn_of_clock(offset);
        Ok(health_of(state.takes_writes, offset))
    }

    fn note(&mut self, health: Health) {
        self.failures = 0;
        if self.servers.note_health(health) {
            tracing::warn!(health = health.name(), "the database was asked");
        }
    }

    fn fail(&mut self, error: &Error) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == FAILURES {
            tracing::error!(%error, "the database does not answer: its connections are closed");
            self.servers.note_health(Health::Unavailable);
            self.servers.end_all();
        }
    }

    fn warn_of_clock(&mut self, offset: i64) {
        let is_due = self.warned.is_none_or(|warned| warned.elapsed() > WARNING_PAUSE);
        if offset.unsigned_abs() > CLOCK_WARNING && is_due {
            self.warned = Some(Instant::now());
            tracing::warn!(offset_ms = offset, "the database's clock is another than this server's");
        }
    }
}

/// The health of a database: whether it accepts writes, and how far its clock is ahead, in milliseconds.
const fn health_of(takes_writes: bool, offset: i64) -> Health {
    if !takes_writes {
        Health::ReadOnly
    } else if offset.unsigned_abs() > CLOCK_BOUND {
        Health::Clock
    } else {
        Health::Ready
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FAILURES, PATIENCE, PERIOD, SHORTEST_PAUSE, health_of};
    use crate::Health;

    /// Section 3: a server that falls silent counts as unavailable within four seconds, even on a busy machine.
    #[test]
    fn silence_is_detected_within_four_seconds() {
        let longest = PERIOD + (PATIENCE + SHORTEST_PAUSE) * FAILURES;
        assert!(longest <= Duration::from_millis(3_600), "{longest:?}");
    }

    /// Section 5: a database whose clock is off by 30 seconds in either direction is not used, nor one that
    /// accepts no writes.
    #[test]
    fn a_clock_may_be_off_by_30_seconds() {
        for (takes_writes, offset, health) in [
            (true, 0, Health::Ready),
            (true, 30_000, Health::Ready),
            (true, 30_001, Health::Clock),
            (true, -8 * 24 * 3_600_000, Health::Clock),
            (false, 0, Health::ReadOnly),
        ] {
            assert_eq!(health_of(takes_writes, offset), health);
        }
    }
}
