//! Lockout and throttling of login attempts: the state of one user, and how each event changes it.
//!
//! An attempt is two transactions with the hashing between them. [`begin`] counts it as failed
//! before the password is verified, [`fail`] or [`succeed`] decides it. Between them others may
//! begin, and the process may die. So that no user gets more attempts than the limit, the attempt
//! that reaches it closes the user for all others until it is decided; one that is not decided
//! within [`CLOSING_MS`] has failed.

mod admin;
mod attempt;
#[cfg(test)]
mod interleaved;
#[cfg(any(test, feature = "model"))]
pub mod model;
#[cfg(test)]
mod tests;

use chancery_record::Timestamp;
use uuid::Uuid;

pub use admin::{reset, set_locked, set_locked_until, token_used};
pub use attempt::{begin, fail, is_last, is_last_for_now, reasons, succeed, withdraw};

/// How long the attempt that reaches a limit may stay undecided before it counts as failed, in ms.
pub const CLOSING_MS: u64 = 60_000;
/// The same, to be added to a time.
const CLOSING_TIME: i64 = 60_000;

/// The limits for locks and throttle: options of a user store. Durations are in milliseconds; a number of
/// attempts that is not above zero turns its lock off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// AttemptsBeforeUserLocked: the number of the failure that locks permanently.
    pub attempts_before_user_locked: i64,
    /// TemporaryLockEnabled.
    pub temporary_lock_enabled: bool,
    /// AttemptsBeforeTemporaryLock: the number of the failure that locks temporarily.
    pub attempts_before_temporary_lock: i64,
    /// TemporaryLockDuration.
    pub temporary_lock_duration_ms: i64,
    /// LoginThrottlingEnabled.
    pub throttling_enabled: bool,
    /// LoginThrottlingInitialDelay: the delay after the first failure; each further one doubles it.
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

/// The state of one user's login attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// isUserLockEnabled: false exempts the user from both locks, not from the throttle.
    pub is_lock_enabled: bool,
    /// isUserLocked: locked permanently.
    pub is_locked: bool,
    /// lockedUntil: locked temporarily while it is in the future.
    pub locked_until: Option<Timestamp>,
    /// failedUserLoginAttempts: the failures towards the permanent lock.
    pub failed_user_login_attempts: i64,
    /// failedTemporaryLockAttempts: the failures towards the temporary lock.
    pub failed_temporary_lock_attempts: i64,
    /// The failures since the last success that the throttle's delay follows from.
    pub throttle_step: i64,
    /// The time before which the throttle refuses attempts.
    pub throttled_until: Option<Timestamp>,
    /// The attempt that reached a limit and is undecided yet.
    pub closing: Option<PendingAttempt>,
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
    /// Whether the user is locked permanently and the lock applies.
    pub const fn is_locked_permanently(&self) -> bool {
        self.is_lock_enabled && self.is_locked
    }

    /// Whether the user is locked temporarily at this time and the lock applies.
    pub fn is_locked_temporarily(&self, now: Timestamp) -> bool {
        self.is_lock_enabled && self.locked_until.is_some_and(|until| until > now)
    }

    /// The state without counts, throttle, temporary lock and undecided attempt.
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

/// An attempt that closes the user for all others until it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAttempt {
    /// The attempt's id.
    pub attempt: Uuid,
    /// When the attempt began.
    pub since: Timestamp,
}

/// The reason of a refusal. The caller gives the same answer for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user is locked permanently.
    Locked,
    /// The user is locked temporarily.
    LockedTemporarily,
    /// The attempt that reached a limit is undecided, or has just counted as failed for want of a decision.
    Undecided,
    /// The attempt is too soon after a failure.
    Throttled,
}

/// The result of the beginning of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptStart {
    /// The password must not be verified, and nothing was counted. With it comes a state to store, if an
    /// undecided attempt has now failed.
    Refused(Reason, Option<FailedAttempt>),
    /// Store this state and commit, then verify the password.
    Counted(State),
}

/// The result of a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The state to store.
    pub state: State,
    /// Whether this failure locked the user permanently, who was not so before.
    pub locked_permanently: bool,
    /// Whether this failure locked the user temporarily, or for longer.
    pub locked_temporarily: bool,
}

/// The result of a right password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SucceededAttempt {
    /// The state to store.
    pub state: State,
    /// Whether the user was locked while the password was verified: answer as if it were wrong.
    pub refused: bool,
}
