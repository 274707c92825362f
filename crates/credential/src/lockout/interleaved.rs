//! Concurrent attempts, and processes that die: no user gets more attempts than allowed, and no user
//! is locked out forever.

use proptest::prelude::*;

use super::{
    AttemptStart, CLOSING_MS, Limits, State, begin, fail, succeed, tests::NOON, tests::any_limits, tests::id,
};

/// Just longer than an attempt may stay undecided, in ms.
const LOST: i64 = CLOSING_MS.cast_signed() + 1;

#[derive(Clone, Copy, Debug)]
enum Event {
    Begin,
    /// One of the pending attempts ends; most passwords are wrong.
    End {
        which: usize,
        right: bool,
    },
    /// The process of one of the pending attempts dies.
    Die {
        which: usize,
    },
    Wait(i64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => Just(Event::Begin),
        6 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(which, right)| Event::End { which, right }),
        1 => any::<usize>().prop_map(|which| Event::Die { which }),
        2 => prop_oneof![0_i64..2_000, 0..2 * LOST].prop_map(Event::Wait),
    ]
}

/// The counts of an independent observer.
#[derive(Default)]
struct Observer {
    pending: Vec<usize>,
    begun: usize,
    /// Passwords verified since the last success.
    verified: i64,
    /// Passwords verified since the last success or temporary lock.
    verified_since_temporary_lock: i64,
}

/// Runs the events and checks after each that the limits hold.
fn run_events(limits: &Limits, events: &[Event]) -> Result<(State, i64), TestCaseError> {
    let (mut state, mut now, mut seen) = (State::default(), NOON, Observer::default());
    for event in events {
        let before = state;
        match *event {
            Event::Wait(milliseconds) => now = now.plus(milliseconds),
            Event::Begin => {
                seen.begun += 1;
                match begin(&state, limits, now, id(seen.begun)) {
                    AttemptStart::Refused(_, failed) => {
                        state = failed.map_or(state, |failed| failed.state);
                        let counters = |state: State| {
                            (
                                state.failed_user_login_attempts,
                                state.failed_temporary_lock_attempts,
                                state.throttle_step,
                                state.throttled_until,
                            )
                        };
                        prop_assert_eq!(counters(state), counters(before));
                    }
                    AttemptStart::Counted(counted) => {
                        prop_assert!(
                            !before.is_locked && before.locked_until.is_none_or(|until| until <= now)
                        );
                        if before.locked_until.is_some() {
                            seen.verified_since_temporary_lock = 0;
                        }
                        state = counted;
                        seen.pending.push(seen.begun);
                        seen.verified += 1;
                        seen.verified_since_temporary_lock += 1;
                    }
                }
            }
            Event::Die { which } => {
                if !seen.pending.is_empty() {
                    seen.pending.swap_remove(which % seen.pending.len());
                }
            }
            Event::End { which, right } => {
                if seen.pending.is_empty() {
                    continue;
                }
                let number = seen.pending.swap_remove(which % seen.pending.len());
                let of_others = before.closing.filter(|closing| closing.attempt != id(number));
                if right {
                    let ended = succeed(state, now, id(number));
                    state = ended.state;
                    let shut = before.is_locked || before.locked_until.is_some_and(|until| until > now);
                    prop_assert_eq!(ended.refused, shut);
                    if !ended.refused {
                        (seen.verified, seen.verified_since_temporary_lock) = (0, 0);
                    }
                } else {
                    let failed = fail(state, limits, now, id(number));
                    state = failed.state;
                    prop_assert_eq!(failed.locked_permanently, state.is_locked && !before.is_locked);
                    prop_assert_eq!(failed.locked_temporarily, state.locked_until != before.locked_until);
                    prop_assert!(state == before || (before.closing.is_some() && of_others.is_none()));
                }
                prop_assert_eq!(state.closing, of_others, "only its own attempt opens again");
            }
        }
        prop_assert_eq!(state.failed_user_login_attempts, seen.verified);
        prop_assert_eq!(state.failed_temporary_lock_attempts, seen.verified_since_temporary_lock);
        let limit = limits.attempts_before_user_locked;
        prop_assert!(limit <= 0 || seen.verified <= limit, "{} of {limit}", seen.verified);
        let limit = limits.attempts_before_temporary_lock;
        prop_assert!(
            limit <= 0 || !limits.temporary_lock_enabled || seen.verified_since_temporary_lock <= limit,
            "{} of {limit} for now",
            seen.verified_since_temporary_lock
        );
    }
    Ok((state, now.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_user_gets_more_attempts_than_allowed(
        limits in any_limits(),
        events in prop::collection::vec(any_event(), 1..150),
    ) {
        run_events(&limits, &events)?;
    }

    /// After all processes died, a user who is not locked permanently may try again, once the last attempt
    /// has counted as failed, and its lock and the throttle are over.
    #[test]
    fn no_user_is_locked_out_forever(
        limits in any_limits(),
        events in prop::collection::vec(any_event(), 1..60),
    ) {
        let (mut state, now) = run_events(&limits, &events)?;
        let mut now = chancery_record::Timestamp(now);
        for _ in 0..2 {
            now = now.plus(LOST + limits.temporary_lock_duration_ms + limits.throttling_max_delay_ms);
            if let AttemptStart::Refused(_, Some(failed)) = begin(&state, &limits, now, id(1_000)) {
                state = failed.state;
                now = now.plus(limits.temporary_lock_duration_ms);
            }
        }
        let begun = begin(&state, &limits, now, id(1_000));
        prop_assert_eq!(matches!(begun, AttemptStart::Counted(_)), !state.is_locked, "{:?}", begun);
        if limits.attempts_before_user_locked <= 0 {
            prop_assert!(!state.is_locked);
        }
    }
}

/// A crash during the last attempt locks as its failure would.
#[test]
fn a_crash_gives_no_further_attempt() {
    let limits = Limits { attempts_before_user_locked: 3, throttling_enabled: false, ..Limits::default() };
    let mut state = State::default();
    for number in 1..=3 {
        let AttemptStart::Counted(counted) = begin(&state, &limits, NOON, id(number)) else {
            panic!("below the limit");
        };
        state = counted;
    }
    for elapsed in [0, 1, LOST - 1, 1 - LOST] {
        let refused = begin(&state, &limits, NOON.plus(elapsed), id(4));
        assert!(matches!(refused, AttemptStart::Refused(super::Reason::Undecided, None)), "{refused:?}");
    }
    let AttemptStart::Refused(super::Reason::Undecided, Some(failed)) =
        begin(&state, &limits, NOON.plus(LOST), id(4))
    else {
        panic!("the third attempt is lost");
    };
    assert!(failed.locked_permanently && failed.state.is_locked);
    assert!(succeed(failed.state, NOON.plus(LOST), id(3)).refused, "it comes too late");
}
