//! The schedule of retries.

/// The rests between tries, in ms: after the last of them a delivery is given up.
const RESTS: [i64; 9] = [
    5_000,
    5 * 60_000,
    30 * 60_000,
    2 * 3_600_000,
    5 * 3_600_000,
    10 * 3_600_000,
    14 * 3_600_000,
    20 * 3_600_000,
    24 * 3_600_000,
];

/// The number of tries of a delivery.
pub const TRIES: i64 = 10;
/// Failures in a row after which a receiver gets a single request a minute.
pub const CIRCUIT: i64 = 10;
/// How long nothing is sent to a receiver that failed this often, in ms.
pub const PROBE_REST: i64 = 60_000;
/// The longest pause that a receiver can request, in ms.
pub const LONGEST_PAUSE: i64 = 3_600_000;
/// The longest rest between two tries, in ms.
pub const LONGEST_REST: i64 = 24 * 3_600_000 * 6 / 5;
/// After this time without a success a subscription is disabled, in ms.
pub const DISABLED_AFTER: i64 = 5 * 24 * 3_600_000;

/// The rest after so many tries, in ms, with up to a fifth of jitter; none where there is no further try. `chance` is any
/// number.
pub fn rest_after(tries: i64, chance: u16) -> Option<i64> {
    let rest = RESTS.get(usize::try_from(tries.checked_sub(1)?).ok()?)?;
    Some(rest + rest / 5 * i64::from(chance) / i64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_PAUSE, LONGEST_REST, RESTS, TRIES, rest_after};

    #[test]
    fn a_delivery_is_tried_ten_times_within_four_days() {
        for (tries, rest) in (1..).zip(RESTS) {
            assert_eq!(rest_after(tries, 0), Some(rest));
            assert_eq!(rest_after(tries, u16::MAX), Some(rest + rest / 5));
        }
        let longest = (1..TRIES).filter_map(|tries| rest_after(tries, u16::MAX)).max();
        assert_eq!((longest, LONGEST_REST.max(LONGEST_PAUSE)), (Some(LONGEST_REST), LONGEST_REST));
        assert_eq!((rest_after(0, 0), rest_after(TRIES, 0)), (None, None));
        assert!(RESTS.iter().sum::<i64>() * 6 / 5 < 4 * 24 * 3_600_000);
    }
}
