//! Consecutive attempts: by example, and against the model.

use chancery_record::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::{
    AttemptStart, Limits, PendingAttempt, Reason, State, begin, fail,
    model::{Action, Expected, Model},
    reset, set_locked, set_locked_until, succeed, token_used, withdraw,
};

pub const NOON: Timestamp = Timestamp(1_795_262_400_000);

pub fn id(number: usize) -> Uuid {
    Uuid::from_u128(number as u128)
}

/// Begins an attempt, and decides it at once.
fn attempt(state: &mut State, limits: &Limits, now: Timestamp, right: bool) -> Result<bool, Reason> {
    match begin(state, limits, now, id(1)) {
        AttemptStart::Refused(reason, failed) => {
            assert_eq!(failed, None, "every attempt here is decided");
            Err(reason)
        }
        AttemptStart::Counted(counted) if right => {
            let succeeded = succeed(counted, now, id(1));
            *state = succeeded.state;
            Ok(!succeeded.refused)
        }
        AttemptStart::Counted(counted) => {
            *state = fail(counted, limits, now, id(1)).state;
            Ok(false)
        }
    }
}

#[test]
fn the_failure_that_reaches_the_limit_locks() {
    let limits = Limits { attempts_before_user_locked: 7, throttling_enabled: false, ..Limits::default() };
    let mut state = State::default();
    for failure in 1..=5 {
        assert_eq!(state.locked_until, None);
        assert_eq!(attempt(&mut state, &limits, NOON, false), Ok(false));
        assert_eq!(state.failed_user_login_attempts, failure);
    }
    let over = NOON.plus(300_000);
    assert_eq!(state.locked_until, Some(over));
    let locked = state;
    assert_eq!(attempt(&mut state, &limits, over.plus(-1), true), Err(Reason::LockedTemporarily));
    assert_eq!(state, locked);
    assert_eq!(attempt(&mut state, &limits, over, false), Ok(false));
    assert_eq!((state.locked_until, state.failed_temporary_lock_attempts), (None, 1));
    assert!(!state.is_locked);
    assert_eq!(attempt(&mut state, &limits, over, false), Ok(false));
    assert!(state.is_locked);
    assert_eq!(attempt(&mut state, &limits, over.plus(1 << 40), true), Err(Reason::Locked));
    assert_eq!(reset(state), State::default());
}

/// The throttle does not delay a user with the right password; a delay by another attempt remains.
#[test]
fn a_withdrawn_attempt_removes_only_its_own_delay() {
    let limits = Limits { throttling_enabled: true, ..Limits::default() };
    let begun = |state: &State, now| match begin(state, &limits, now, id(2)) {
        AttemptStart::Counted(counted) => counted,
        AttemptStart::Refused(..) => panic!("{state:?}"),
    };
    let first = begun(&State::default(), NOON);
    assert!(first.throttled_until.is_some_and(|until| until > NOON));
    let withdrawn = withdraw(first, id(2), first.throttled_until);
    assert_eq!((withdrawn.throttled_until, withdrawn.throttle_step), (None, 0));
    let second = begun(&first, NOON.plus(1 << 40));
    assert_eq!(withdraw(second, id(2), first.throttled_until).throttled_until, second.throttled_until);
}

/// A right password without the second factor: else an attacker who knows it would have unlimited attempts at that.
#[test]
fn a_withdrawn_attempt_neither_counts_nor_clears() {
    let limits = Limits { attempts_before_user_locked: 4, throttling_enabled: false, ..Limits::default() };
    let mut state = State::default();
    for _ in 0..3 {
        attempt(&mut state, &limits, NOON, false).unwrap();
    }
    for _ in 0..10 {
        let AttemptStart::Counted(counted) = begin(&state, &limits, NOON, id(2)) else { panic!("{state:?}") };
        assert!(counted.closing.is_some(), "it would be the last");
        assert_eq!(withdraw(counted, id(2), counted.throttled_until), state);
    }
    assert_eq!(withdraw(State::default(), id(2), None), State::default());
    attempt(&mut state, &limits, NOON, false).unwrap();
    assert!(state.is_locked);
}

#[test]
fn each_failure_doubles_the_delay() {
    let limits = Limits { temporary_lock_enabled: false, ..Limits::default() };
    let mut state = State { is_lock_enabled: false, ..State::default() };
    let mut now = NOON;
    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(attempt(&mut state, &limits, now, false), Ok(false));
        assert_eq!(state.throttled_until, Some(now.plus(seconds * 1000)));
        let before = state;
        assert_eq!(attempt(&mut state, &limits, now.plus(seconds * 1000 - 1), true), Err(Reason::Throttled));
        assert_eq!(state, before);
        now = now.plus(seconds * 1000);
    }
    assert_eq!(state.failed_user_login_attempts, 0, "exempt from locks, not from the throttle");
    assert_eq!(attempt(&mut state, &limits, now, true), Ok(true));
    assert_eq!(state, State { is_lock_enabled: false, ..State::default() });
}

#[test]
fn a_lock_set_meanwhile_refuses_the_right_password() {
    let limits = Limits::default();
    let AttemptStart::Counted(counted) = begin(&State::default(), &limits, NOON, id(1)) else {
        panic!("a fresh user may try");
    };
    let week = Some(NOON.plus(604_800_000));
    for locked in [set_locked(counted, true), set_locked_until(counted, week)] {
        let ended = succeed(locked, NOON, id(1));
        assert_eq!((ended.refused, ended.state), (true, locked));
        let exempt = succeed(State { is_lock_enabled: false, ..locked }, NOON, id(1));
        assert!(!exempt.refused);
        assert_eq!(exempt.state.is_locked, locked.is_locked);
    }
    let closing = Some(PendingAttempt { attempt: id(1), since: NOON });
    let last = State { closing, failed_temporary_lock_attempts: 5, ..counted };
    let failed = fail(set_locked_until(last, week), &limits, NOON, id(1));
    assert_eq!((failed.state.locked_until, failed.locked_temporarily), (week, false));
    assert_eq!(succeed(set_locked(last, true), NOON, id(1)).state.closing, None);
    let pardoned = fail(reset(last), &limits, NOON, id(1));
    assert_eq!(pardoned.state, State::default());
}

#[test]
fn neither_lock_applies_to_an_exempt_user() {
    let limits =
        Limits { attempts_before_user_locked: 1, attempts_before_temporary_lock: 1, ..Limits::default() };
    let AttemptStart::Counted(closed) = begin(&State::default(), &limits, NOON, id(1)) else {
        panic!("a fresh user may try");
    };
    let failed = fail(closed, &limits, NOON, id(1));
    assert!(failed.locked_permanently && failed.locked_temporarily);
    let again = fail(set_locked(closed, true), &limits, NOON, id(1));
    assert!(!again.locked_permanently, "an administrator was quicker");

    let later = NOON.plus(1_000);
    let exempt = State { is_lock_enabled: false, ..closed };
    let unlocked = fail(exempt, &limits, NOON, id(1));
    assert_eq!(unlocked.state, State { closing: None, ..exempt });
    assert!(!unlocked.locked_permanently && !unlocked.locked_temporarily);
    for state in [exempt, State { is_lock_enabled: false, ..failed.state }] {
        let AttemptStart::Counted(counted) = begin(&state, &limits, later, id(2)) else {
            panic!("an exempt user may try");
        };
        assert_eq!(counted.failed_user_login_attempts, 1);
        assert_eq!(counted.closing, state.closing);
    }
}

#[test]
fn a_token_ends_a_temporary_lock_only() {
    let locked = State { locked_until: Some(NOON), failed_temporary_lock_attempts: 5, ..State::default() };
    assert_eq!(token_used(locked), State::default());
    let permanently_locked = set_locked(locked, true);
    assert_eq!(token_used(permanently_locked), permanently_locked);
    assert_eq!(set_locked_until(locked, None), State::default());
}

/// Performs an action on the state, as the services do.
fn act(state: &mut State, limits: &mut Limits, now: &mut Timestamp, action: Action) -> bool {
    match action {
        Action::Login { right } => return attempt(state, limits, *now, right) == Ok(true),
        Action::Wait(milliseconds) => *now = now.plus(milliseconds),
        Action::SetLocked(locked) => *state = set_locked(*state, locked),
        Action::SetLockedUntil(from_now) => {
            *state = set_locked_until(*state, from_now.map(|milliseconds| now.plus(milliseconds)));
        }
        Action::Reset => *state = reset(*state),
        Action::UseToken => {
            let refused = state.is_locked_permanently();
            *state = token_used(*state);
            return !refused;
        }
        Action::SetLimits(new) => *limits = new,
        Action::SetLockEnabled(enabled) => state.is_lock_enabled = enabled,
    }
    true
}

prop_compose! {
    pub fn any_limits()(
        attempts_before_user_locked in -1_i64..8,
        temporary_lock_enabled in any::<bool>(),
        attempts_before_temporary_lock in 0_i64..5,
        temporary_lock_duration_ms in 0_i64..9_000,
        throttling_enabled in any::<bool>(),
        throttling_initial_delay_ms in 0_i64..900,
        throttling_max_delay_ms in 0_i64..5_000,
    ) -> Limits {
        Limits {
            attempts_before_user_locked, temporary_lock_enabled, attempts_before_temporary_lock,
            temporary_lock_duration_ms, throttling_enabled, throttling_initial_delay_ms,
            throttling_max_delay_ms,
        }
    }
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        24 => prop::bool::weighted(0.1).prop_map(|right| Action::Login { right }),
        8 => prop_oneof![0_i64..2_000, 0_i64..12_000].prop_map(Action::Wait),
        1 => any::<bool>().prop_map(Action::SetLocked),
        2 => prop::option::of(-3_000_i64..6_000).prop_map(Action::SetLockedUntil),
        1 => Just(Action::Reset),
        1 => Just(Action::UseToken),
        1 => any_limits().prop_map(Action::SetLimits),
        1 => any::<bool>().prop_map(Action::SetLockEnabled),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_do_what_the_model_expects(
        mut limits in any_limits(),
        actions in prop::collection::vec(any_action(), 1..120),
    ) {
        let (mut state, mut now, mut model) = (State::default(), NOON, Model::new(limits, NOON));
        for action in actions {
            let accepted = act(&mut state, &mut limits, &mut now, action);
            let seen = Expected {
                accepted,
                is_locked: state.is_locked,
                locked_until: state.locked_until,
                failed_user_login_attempts: state.failed_user_login_attempts,
                failed_temporary_lock_attempts: state.failed_temporary_lock_attempts,
            };
            prop_assert_eq!(seen, model.step(action), "after {:?} in {:?}", action, state);
            prop_assert_eq!(now, model.now());
            prop_assert_eq!(state.closing, None);
        }
    }

    /// Whatever the database holds, the rules neither overflow nor count backwards.
    #[test]
    fn everything_saturates(
        numbers in prop::array::uniform12(prop_oneof![any::<i64>(), Just(i64::MAX), Just(i64::MIN), -2_i64..3]),
        (exempt, locked, closing) in any::<(bool, bool, bool)>(),
    ) {
        let [now, until, since, throttled, user, temporary, step, first, second, lock, initial, most] = numbers;
        let state = State {
            is_lock_enabled: !exempt,
            is_locked: locked,
            locked_until: Some(Timestamp(until)),
            failed_user_login_attempts: user,
            failed_temporary_lock_attempts: temporary,
            throttle_step: step,
            throttled_until: Some(Timestamp(throttled)),
            closing: closing.then_some(PendingAttempt { attempt: id(1), since: Timestamp(since) }),
        };
        let limits = Limits {
            attempts_before_user_locked: first,
            temporary_lock_enabled: true,
            attempts_before_temporary_lock: second,
            temporary_lock_duration_ms: lock,
            throttling_enabled: true,
            throttling_initial_delay_ms: initial,
            throttling_max_delay_ms: most,
        };
        let now = Timestamp(now);
        if let AttemptStart::Counted(counted) = begin(&state, &limits, now, id(2)) {
            prop_assert!(counted.failed_user_login_attempts >= user);
            prop_assert!(counted.throttled_until >= Some(now));
            let failed = fail(counted, &limits, now, id(2)).state;
            prop_assert!(failed.is_locked >= locked);
        }
        prop_assert_eq!(fail(state, &limits, now, id(1)).state.closing, None);
    }
}
