//! Counting attempts, locking and slowing down: the state of one user and what each event makes
//! of it.
//!
//! An attempt is two transactions with the hashing between them. [`begin`] counts it as failed
//! before the password is looked at, [`fail`] or [`succeed`] decides it. Between them others may
//! begin, and the process may die. So that nobody gets more guesses than the limit, the attempt
//! that reaches it closes the user for all others until it is decided; one that is not decided
//! within [`CLOSING_MS`] has failed.

mod admin;
mod attempt;
#[cfg(test)]
mod interleaved;
#[cfg(test)]
mod tests;

use chancery_record::Timestamp;
use uuid::Uuid;

pub use admin::{reset, set_locked, set_locked_until, token_used};
pub use attempt::{begin, fail, succeed};

/// How long the attempt that reaches a limit may take before it counts as failed, in ms.
pub const CLOSING_MS: u64 = 60_000;

/// When to lock and to slow down: options of a user store. Durations are milliseconds; a number
/// of attempts that is not above zero turns its lock off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// AttemptsBeforeUserLocked: the failure that locks for good.
    pub attempts_before_user_locked: i64,
    /// TemporaryLockEnabled.
    pub temporary_lock_enabled: bool,
    /// AttemptsBeforeTemporaryLock: the failure that locks for a while.
    pub attempts_before_temporary_lock: i64,
    /// TemporaryLockDuration.
    pub temporary_lock_duration_ms: i64,
    /// LoginThrottlingEnabled.
    pub throttling_enabled: bool,
    /// LoginThrottlingInitialDelay: after the first failure; each further one doubles it.
    pub throttling_initial_delay_ms: i64,
    /// LoginThrottlingMaxDelay.
    pub throttling_max_delay_ms: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts_before_user_locked: 0,
            temporary_lock_enabled: true,
            attempts_before_temporary_lock: 5,
            temporary_lock_duration_ms: 300_000,
            throttling_enabled: true,
            throttling_initial_delay_ms: 1_000,
            throttling_max_delay_ms: 30_000,
        }
    }
}

/// What is known of one user's attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// isUserLockEnabled: false exempts the user from both locks, not from the throttle.
    pub is_lock_enabled: bool,
    /// isUserLocked: locked for good.
    pub is_locked: bool,
    /// lockedUntil: locked for a while when it lies ahead.
    pub locked_until: Option<Timestamp>,
    /// failedUserLoginAttempts: towards the lock for good.
    pub failed_user_login_attempts: i64,
    /// failedTemporaryLockAttempts: towards the temporary lock.
    pub failed_temporary_lock_attempts: i64,
    /// How often the delay was raised since the last success.
    pub throttle_step: i64,
    /// No attempt before this moment.
    pub throttled_until: Option<Timestamp>,
    /// The attempt that reached a limit and is not decided yet.
    pub closing: Option<Closing>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            is_lock_enabled: true,
            is_locked: false,
            locked_until: None,
            failed_user_login_attempts: 0,
            failed_temporary_lock_attempts: 0,
            throttle_step: 0,
            throttled_until: None,
            closing: None,
        }
    }
}

impl State {
    /// Locked for good, and the lock applies to this user.
    pub const fn is_shut(&self) -> bool {
        self.is_lock_enabled && self.is_locked
    }

    /// Locked for a while at this moment, and the lock applies to this user.
    pub fn is_shut_until(&self, now: Timestamp) -> bool {
        self.is_lock_enabled && self.locked_until.is_some_and(|until| until > now)
    }

    /// Nothing counted, nothing delayed, nothing locked for a while, nobody waited for.
    const fn cleared(self) -> Self {
        Self {
            locked_until: None,
            failed_user_login_attempts: 0,
            failed_temporary_lock_attempts: 0,
            throttle_step: 0,
            throttled_until: None,
            closing: None,
            ..self
        }
    }
}

/// An attempt that keeps all others out until it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Which attempt.
    pub attempt: Uuid,
    /// When it began.
    pub since: Timestamp,
}

/// Why an attempt is refused. The caller's answer tells none of them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Locked for good.
    Locked,
    /// Locked for a while.
    LockedTemporarily,
    /// The attempt that reached a limit is not decided yet, or was never decided until now.
    Undecided,
    /// Too soon after a failure.
    Throttled,
}

/// What came of the beginning of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Do not look at the password. Counts nothing; a state to be stored comes with it when an
    /// attempt that was never decided has now failed.
    Refused(Reason, Option<Failed>),
    /// Store this state, commit, then look at the password.
    Counted(State),
}

/// What came of a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The state to store.
    pub state: State,
    /// This failure locked for good: it was not so before.
    pub locked_permanently: bool,
    /// This failure locked for a while, or for longer.
    pub locked_temporarily: bool,
}

/// What came of a right password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Succeeded {
    /// The state to store.
    pub state: State,
    /// The user was locked while the password was looked at: answer as if it were wrong.
    pub refused: bool,
}
