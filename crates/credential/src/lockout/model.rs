//! A second, naive implementation of the lockout, as a model to test the first one against.
//!
//! It is written from the contract's text, retains the complete history and counts it again each time. Its
//! attempts are sequential, each decided at once.

use chancery_record::Timestamp;

use super::Limits;

/// What happens to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An attempt to log in.
    Login {
        /// Whether the password is right.
        right: bool,
    },
    /// This many milliseconds pass.
    Wait(i64),
    /// An administrator sets isUserLocked.
    SetLocked(bool),
    /// An administrator sets lockedUntil, in milliseconds from now.
    SetLockedUntil(Option<i64>),
    /// An administrator calls `lockout/reset`.
    Reset,
    /// The user sets a new password with a valid reset token.
    UseToken,
    /// The options of the store change.
    SetLimits(Limits),
    /// An administrator sets isUserLockEnabled.
    SetLockEnabled(bool),
}

/// What must be observable after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Whether the login, or the reset token, was accepted; true for every other action.
    pub accepted: bool,
    /// isUserLocked.
    pub is_locked: bool,
    /// lockedUntil.
    pub locked_until: Option<Timestamp>,
    /// failedUserLoginAttempts.
    pub failed_user_login_attempts: i64,
    /// failedTemporaryLockAttempts.
    pub failed_temporary_lock_attempts: i64,
}

/// A line of the history.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    /// A wrong password that was counted towards the locks, the throttle, or both.
    Failure { locks: bool, throttles: bool },
    /// A temporary lock is over: failures before it no longer count towards the next.
    TemporaryLockOver,
    /// A success or a reset: nothing before it counts.
    Clear,
}

/// The model of one user.
pub struct Model {
    limits: Limits,
    now: Timestamp,
    is_lock_enabled: bool,
    is_locked: bool,
    locked_until: Option<Timestamp>,
    throttled_until: Timestamp,
    history: Vec<Line>,
}

impl Model {
    /// A new user.
    pub const fn new(limits: Limits, now: Timestamp) -> Self {
        Self {
            limits,
            now,
            is_lock_enabled: true,
            is_locked: false,
            locked_until: None,
            throttled_until: Timestamp(i64::MIN),
            history: Vec::new(),
        }
    }

    /// The model's clock, which only [`Action::Wait`] advances.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Performs an action; returns what must be observable after it.
    pub fn step(&mut self, action: Action) -> Expected {
        let mut accepted = true;
        match action {
            Action::Login { right } => accepted = self.login(right),
            Action::Wait(milliseconds) => self.now = self.now.plus(milliseconds),
            Action::SetLocked(true) => self.is_locked = true,
            Action::SetLocked(false) | Action::Reset => {
                self.is_locked = false;
                self.clear();
            }
            Action::SetLockedUntil(from_now) => {
                if from_now.is_none() && self.locked_until.is_some() {
                    self.history.push(Line::TemporaryLockOver);
                }
                self.locked_until = from_now.map(|milliseconds| self.now.plus(milliseconds));
            }
            Action::UseToken => {
                accepted = !(self.is_locked && self.is_lock_enabled);
                if accepted {
                    self.clear();
                }
            }
            Action::SetLimits(limits) => self.limits = limits,
            Action::SetLockEnabled(enabled) => self.is_lock_enabled = enabled,
        }
        Expected {
            accepted,
            is_locked: self.is_locked,
            locked_until: self.locked_until,
            failed_user_login_attempts: self.failures(),
            failed_temporary_lock_attempts: self.failures_towards_temporary_lock(),
        }
    }

    fn login(&mut self, right: bool) -> bool {
        let locked_temporarily = self.locked_until.is_some_and(|until| until > self.now);
        if self.is_lock_enabled && (self.is_locked || locked_temporarily) {
            return false;
        }
        if self.limits.throttling_enabled && self.throttled_until > self.now {
            return false;
        }
        if right {
            self.clear();
            return true;
        }
        if self.locked_until.is_some() && !locked_temporarily {
            self.locked_until = None;
            self.history.push(Line::TemporaryLockOver);
        }
        let throttles = self.limits.throttling_enabled;
        self.history.push(Line::Failure { locks: self.is_lock_enabled, throttles });
        if throttles {
            self.throttled_until = self.now.plus(self.delay());
        }
        if self.is_lock_enabled {
            let limit = self.limits.attempts_before_user_locked;
            self.is_locked = limit > 0 && self.failures() >= limit;
            let limit = self.limits.attempts_before_temporary_lock;
            if self.limits.temporary_lock_enabled
                && limit > 0
                && self.failures_towards_temporary_lock() >= limit
            {
                self.locked_until = Some(self.now.plus(self.limits.temporary_lock_duration_ms));
            }
        }
        false
    }

    fn clear(&mut self) {
        self.history.push(Line::Clear);
        self.locked_until = None;
        self.throttled_until = Timestamp(i64::MIN);
    }

    fn since_clear(&self) -> impl Iterator<Item = &Line> {
        self.history.iter().rev().take_while(|line| **line != Line::Clear)
    }

    fn failures(&self) -> i64 {
        self.since_clear().map(|line| i64::from(matches!(line, Line::Failure { locks: true, .. }))).sum()
    }

    fn failures_towards_temporary_lock(&self) -> i64 {
        self.since_clear()
            .take_while(|line| **line != Line::TemporaryLockOver)
            .map(|line| i64::from(matches!(line, Line::Failure { locks: true, .. })))
            .sum()
    }

    fn delay(&self) -> i64 {
        let failures =
            self.since_clear().filter(|line| matches!(line, Line::Failure { throttles: true, .. }));
        let mut delay = self.limits.throttling_initial_delay_ms;
        for _ in failures.skip(1) {
            delay = delay.saturating_mul(2);
        }
        delay.min(self.limits.throttling_max_delay_ms)
    }
}
