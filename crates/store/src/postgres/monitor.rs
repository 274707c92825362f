//! Checks the database once a second, on a connection of its own, for whether it takes writes. Operations
//! that wait for a server that hangs would notice much later, and readiness never.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{servers::Servers, session::Session};
use crate::{Error, Health};

/// The interval of checks.
const PERIOD: Duration = Duration::from_secs(1);
/// The interval while the database is away, so that its return is noticed soon.
const PERIOD_AWAY: Duration = Duration::from_millis(200);
/// The least rest between an answer and the next check.
const SHORTEST_REST: Duration = Duration::from_millis(50);
/// The timeout of a check: short enough that a server that falls silent right after an answer counts as
/// away within four seconds.
const PATIENCE: Duration = Duration::from_millis(800);
/// Failed checks in a row after which the database counts as away.
const FAILURES: u32 = 3;
/// The clock difference that is logged, and the one at which the store stops serving, in milliseconds.
const CLOCK_WARNING: u64 = 2_000;
const CLOCK_BOUND: u64 = 30_000;
/// The least rest between two such warnings.
const WARNING_REST: Duration = Duration::from_mins(1);

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
            let period = if self.failures >= FAILURES { PERIOD_AWAY } else { PERIOD };
            if stop.wait(period.saturating_sub(began.elapsed()).max(SHORTEST_REST)) {
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
                // a refused additional connection says nothing against those that work
                Err(refusal) if refusal.is_ours => return Ok(self.servers.health()),
                Err(refusal) => return Err(refusal.into()),
            },
        };
        let asked = session.state(PATIENCE)?;
        self.session = Some(session);
        let offset = self.servers.note_clock(asked.clock);
        self.warn_of_clock(offset);
        Ok(judge(asked.takes_writes, offset))
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
        let is_due = self.warned.is_none_or(|warned| warned.elapsed() > WARNING_REST);
        if offset.unsigned_abs() > CLOCK_WARNING && is_due {
            self.warned = Some(Instant::now());
            tracing::warn!(offset_ms = offset, "the database's clock is another than this server's");
        }
    }
}

/// The health of a database, from whether it takes writes and how far its clock is ahead, in milliseconds.
const fn judge(takes_writes: bool, offset: i64) -> Health {
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

    use super::{FAILURES, PATIENCE, PERIOD, SHORTEST_REST, judge};
    use crate::Health;

    /// Section 3: a server that falls silent counts as away within four seconds, even on a busy machine.
    #[test]
    fn silence_is_found_out_within_four_seconds() {
        let longest = PERIOD + (PATIENCE + SHORTEST_REST) * FAILURES;
        assert!(longest <= Duration::from_millis(3_600), "{longest:?}");
    }

    /// Section 5: a database whose clock is 30 seconds off in either direction is not used, nor one that
    /// takes no writes.
    #[test]
    fn a_clock_may_be_off_by_half_a_minute() {
        for (takes_writes, offset, health) in [
            (true, 0, Health::Ready),
            (true, 30_000, Health::Ready),
            (true, 30_001, Health::Clock),
            (true, -8 * 24 * 3_600_000, Health::Clock),
            (false, 0, Health::ReadOnly),
        ] {
            assert_eq!(judge(takes_writes, offset), health);
        }
    }
}
