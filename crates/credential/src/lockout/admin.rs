//! The other changes of the state: by administrators and by reset tokens.

use chancery_record::Timestamp;

use super::State;

/// `lockout/reset`: unlocks the user, and clears counters and throttle. A pending attempt no longer blocks
/// others, and does not lock when it fails.
pub const fn reset(state: State) -> State {
    State { is_locked: false, ..state.cleared() }
}

/// Sets `isUserLocked`. Unlocking is a [`reset`]: without it the next failure would lock again, or the
/// throttle keep the user out.
pub const fn set_locked(state: State, locked: bool) -> State {
    if locked { State { is_locked: true, ..state } } else { reset(state) }
}

/// Sets `lockedUntil`. Removing it restarts the count of failures towards the temporary lock, as its expiry
/// does.
pub const fn set_locked_until(state: State, until: Option<Timestamp>) -> State {
    match (state.locked_until, until) {
        (Some(_), None) => State { locked_until: None, failed_temporary_lock_attempts: 0, ..state },
        _ => State { locked_until: until, ..state },
    }
}

/// A valid reset token was used: it ends a temporary lock and clears like a right password. Pending attempts
/// are cleared, too, as they are at a password that has been replaced. Callers refuse the token during a
/// permanent lock ([`State::is_locked_permanently`]); if they do not, nothing changes.
pub const fn token_used(state: State) -> State {
    if state.is_locked_permanently() { state } else { state.cleared() }
}
