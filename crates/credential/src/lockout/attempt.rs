//! A login attempt: start, failure and success.

use chancery_record::Timestamp;
use uuid::Uuid;

use super::{
    AttemptStart, CLOSING_MS, CLOSING_TIME, FailedAttempt, Limits, PendingAttempt, Reason, State,
    SucceededAttempt,
};

/// The reasons for which an attempt would be refused now, each with its end, if known.
///
/// The reasons are in this order: locked permanently, locked temporarily, closed by another attempt, throttled. The first
/// three do not apply to an exempt user, whose attempts count towards no lock.
pub fn reasons(
    state: &State,
    limits: &Limits,
    now: Timestamp,
) -> impl Iterator<Item = (Reason, Option<Timestamp>)> {
    let closing = state.closing.filter(|_| state.is_lock_enabled);
    let throttled = state.throttled_until.filter(|until| limits.throttling_enabled && *until > now);
    [
        state.is_locked_permanently().then_some((Reason::Locked, None)),
        state.is_locked_temporarily(now).then_some((Reason::LockedTemporarily, state.locked_until)),
        closing.map(|closing| (Reason::Undecided, Some(closing.since.plus(CLOSING_TIME)))),
        throttled.map(|until| (Reason::Throttled, Some(until))),
    ]
    .into_iter()
    .flatten()
}

/// Counts an attempt before its password is verified, or refuses it for the first of the [`reasons`]. `attempt` is a new id.
pub fn begin(state: &State, limits: &Limits, now: Timestamp, attempt: Uuid) -> AttemptStart {
    let Some((reason, _)) = reasons(state, limits, now).next() else {
        return AttemptStart::Counted(count(*state, limits, now, attempt));
    };
    // on either side of now, so that a clock that was set back locks no user for long
    let lost = state.closing.filter(|closing| now.0.abs_diff(closing.since.0) > CLOSING_MS);
    let failed = lost.filter(|_| reason == Reason::Undecided);
    AttemptStart::Refused(reason, failed.map(|closing| fail(*state, limits, now, closing.attempt)))
}

fn count(mut state: State, limits: &Limits, now: Timestamp, attempt: Uuid) -> State {
    if state.locked_until.is_some_and(|until| until <= now) {
        state.locked_until = None;
        state.failed_temporary_lock_attempts = 0;
    }
    if limits.throttling_enabled {
        state.throttle_step = state.throttle_step.saturating_add(1);
        state.throttled_until = Some(now.plus(delay(limits, state.throttle_step)));
    }
    if state.is_lock_enabled {
        state.failed_user_login_attempts = state.failed_user_login_attempts.saturating_add(1);
        state.failed_temporary_lock_attempts = state.failed_temporary_lock_attempts.saturating_add(1);
        if is_last(&state, limits) || is_last_for_now(&state, limits) {
            state.closing = Some(PendingAttempt { attempt, since: now });
        }
    }
    state
}

/// The throttle's delay in ms: the initial one, doubled for every step after the first, up to the longest.
fn delay(limits: &Limits, step: i64) -> i64 {
    let doublings = u32::try_from(step.saturating_sub(1).clamp(0, 62)).unwrap_or(0);
    let delay = limits.throttling_initial_delay_ms.max(0).saturating_mul(1_i64 << doublings);
    delay.min(limits.throttling_max_delay_ms.max(0))
}

/// Whether the failures have reached the permanent lock, so that they locked the user, and not an administrator.
pub const fn is_last(state: &State, limits: &Limits) -> bool {
    limits.attempts_before_user_locked > 0
        && state.failed_user_login_attempts >= limits.attempts_before_user_locked
}

/// Whether the failures have reached the temporary lock.
pub const fn is_last_for_now(state: &State, limits: &Limits) -> bool {
    limits.temporary_lock_enabled
        && limits.attempts_before_temporary_lock > 0
        && state.failed_temporary_lock_attempts >= limits.attempts_before_temporary_lock
}

/// The password was wrong. [`begin`] has counted the attempt, so only the one that closed the user changes
/// the state: it locks, unless an administrator exempted or reset the user, or another attempt succeeded, in
/// the meantime.
pub fn fail(state: State, limits: &Limits, now: Timestamp, attempt: Uuid) -> FailedAttempt {
    let mut failed = FailedAttempt { state, locked_permanently: false, locked_temporarily: false };
    if state.closing.is_none_or(|closing| closing.attempt != attempt) {
        return failed;
    }
    failed.state.closing = None;
    if state.is_lock_enabled && is_last(&state, limits) {
        failed.state.is_locked = true;
        failed.locked_permanently = !state.is_locked;
    }
    if state.is_lock_enabled && is_last_for_now(&state, limits) {
        // a longer lock by an administrator stays
        let until = Some(now.plus(limits.temporary_lock_duration_ms.max(0))).max(state.locked_until);
        failed.state.locked_until = until;
        failed.locked_temporarily = until != state.locked_until;
    }
    failed
}

/// The password was right: counters, throttle and temporary lock are cleared. Another attempt that closed the
/// user still blocks others.
///
/// A user who was locked in the meantime, permanently or temporarily, is refused: during a lock every attempt
/// fails, and a success would undo the lock that an administrator just set.
pub fn succeed(state: State, now: Timestamp, attempt: Uuid) -> SucceededAttempt {
    let closing = state.closing.filter(|closing| closing.attempt != attempt);
    let refused = state.is_locked_permanently() || state.is_locked_temporarily(now);
    let state = if refused { state } else { state.cleared() };
    SucceededAttempt { state: State { closing, ..state }, refused }
}

/// The password was right, but another factor is required: this attempt is not counted, and nothing is cleared. Else
/// an attacker who knows the password would have unlimited attempts at a second factor. `throttled_until` is the end of the delay
/// that the throttle set for this attempt: it is removed, but not a later delay by another attempt.
pub fn withdraw(mut state: State, attempt: Uuid, throttled_until: Option<Timestamp>) -> State {
    let decremented = |count: i64| count.saturating_sub(1).max(0);
    if state.is_lock_enabled {
        state.failed_user_login_attempts = decremented(state.failed_user_login_attempts);
        state.failed_temporary_lock_attempts = decremented(state.failed_temporary_lock_attempts);
    }
    state.throttle_step = decremented(state.throttle_step);
    state.throttled_until = state.throttled_until.filter(|until| Some(*until) != throttled_until);
    state.closing = state.closing.filter(|closing| closing.attempt != attempt);
    state
}
