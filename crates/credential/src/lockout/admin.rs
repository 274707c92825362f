//! What else changes the state: administrators and reset tokens.

use chancery_record::Timestamp;

use super::State;

/// `lockout/reset`: unlocks and forgets everything counted and delayed; an attempt under way no
/// longer keeps others out, and locks nobody when it fails.
pub const fn reset(state: State) -> State {
    State { is_locked: false, ..state.cleared() }
}

/// Sets `isUserLocked`. Unlocking is a [`reset`]: without it the next mistake would lock again,
/// or the throttle keep the user out.
pub const fn set_locked(state: State, locked: bool) -> State {
    if locked { State { is_locked: true, ..state } } else { reset(state) }
}

/// Sets `lockedUntil`. BatchRows it away starts the failures towards the temporary lock anew, as
/// its passing does.
pub const fn set_locked_until(state: State, until: Option<Timestamp>) -> State {
    match (state.locked_until, until) {
        (Some(_), None) => State { locked_until: None, failed_temporary_lock_attempts: 0, ..state },
        _ => State { locked_until: until, ..state },
    }
}

/// A valid reset token was used: it ends a temporary lock and clears like a right password,
/// attempts under way included, since they guess at a password that is gone. Callers refuse the
/// token during a lock for good ([`State::is_shut`]); if they do not, nothing changes.
pub const fn token_used(state: State) -> State {
    if state.is_shut() { state } else { state.cleared() }
}
