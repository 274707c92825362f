//! Timestamps on the wire: RFC 3339, UTC, three fraction digits.

use crate::{FieldType, Kind, Mismatch, Value};

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment plus `milliseconds`.
    #[must_use]
    pub const fn plus(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

impl FieldType for Timestamp {
    const KIND: Kind = Kind::Time;
    fn into_value(self) -> Value {
        Value::Int(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Int(value) = value { Ok(Self(value)) } else { Err(Mismatch("")) }
    }
}

/// From 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z: the range of RFC 3339.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
/// Days from 0000-03-01, the first day of a year that ends with its leap day, to 1970-01-01.
const ERA: i64 = 719_468;

/// Reads a date-time of RFC 3339, section 5.6: with any offset, none means UTC; digits beyond milliseconds are
/// cut. `None` for any other text, and outside of the years 0001 to 9999 in UTC.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (date, time) = (text.get(..10)?, text.get(10..)?.strip_prefix(['T', 't', ' '])?);
    let (clock, rest) = (time.get(..8)?, time.get(8..)?);
    let [hour, minute, second] = parts(clock, b':', [2, 2, 2])?;
    // a leap second counts as the one before it
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (thousandths, offset) = fraction(rest)?;
    let minutes = hour * 60 + minute - offset_minutes(offset)?;
    let moment = (days(date)? * 1440 + minutes) * 60_000 + second.min(59) * 1000 + thousandths;
    RANGE.contains(&moment).then_some(Timestamp(moment))
}

/// Reads a day, such as `2026-11-21`, as its first moment in UTC.
pub fn parse_day(text: &str) -> Option<Timestamp> {
    let moment = Timestamp(days(text)? * 86_400_000);
    RANGE.contains(&moment.0).then_some(moment)
}

/// The days from 1970-01-01 to a day of the Gregorian calendar.
fn days(text: &str) -> Option<i64> {
    let [year, month, day] = parts(text, b'-', [4, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // years begin in March here, so that the leap day is their last one
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    Some(
        year * 365 + year.div_euclid(4) - year.div_euclid(100)
            + year.div_euclid(400)
            + (153 * month + 2) / 5
            + day
            - 1
            - ERA,
    )
}

/// Reads numbers of these lengths in digits, separated by `between`; `None` for any other text.
fn parts<const COUNT: usize>(text: &str, between: u8, lengths: [usize; COUNT]) -> Option<[i64; COUNT]> {
    let mut rest = text.as_bytes();
    let mut numbers = [0; COUNT];
    for (index, (number, length)) in numbers.iter_mut().zip(lengths).enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(&[between])?;
        }
        let (digits, after) = rest.split_at_checked(length)?;
        *number = number_of(digits)?;
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

fn number_of(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}

/// Reads the fraction of a second at the beginning of a text, a dot and one to nine digits: its milliseconds,
/// and the rest of the text.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at_checked(length)?;
    let significant = digits.get(..length.min(3))?;
    let thousandths = number_of(significant.as_bytes())? * [0, 100, 10, 1].get(significant.len())?;
    (1..=9).contains(&length).then_some((thousandths, after))
}

/// The offset from UTC in minutes: `Z`, `+hh:mm`, `-hh:mm` or nothing, which is UTC.
fn offset_minutes(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, clock) = match text.split_at_checked(1)? {
        ("+", clock) => (1, clock),
        ("-", clock) => (-1, clock),
        _ => return None,
    };
    let [hours, minutes] = parts(clock, b':', [2, 2])?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

/// Writes a moment, e.g. `2026-11-21T09:30:00.000Z`. One outside of the range of RFC 3339 becomes the nearest
/// within it.
pub fn format_timestamp(moment: Timestamp, out: &mut Vec<u8>) {
    let moment = moment.0.clamp(*RANGE.start(), *RANGE.end());
    let (day, time) = (moment.div_euclid(86_400_000) + ERA, moment.rem_euclid(86_400_000));
    let era = day.div_euclid(146_097);
    let day = day.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let parts = [
        (era * 400 + year + i64::from(month > 9), 4, b'-'),
        (if month > 9 { month - 9 } else { month + 3 }, 2, b'-'),
        (day - (153 * month + 2) / 5 + 1, 2, b'T'),
        (time / 3_600_000, 2, b':'),
        (time / 60_000 % 60, 2, b':'),
        (time / 1000 % 60, 2, b'.'),
        (time % 1000, 3, b'Z'),
    ];
    for (number, width, after) in parts {
        for index in (0..width).rev() {
            let digit = number / 10_i64.pow(index) % 10;
            out.push(b'0' + u8::try_from(digit).unwrap_or(0));
        }
        out.push(after);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{RANGE, Timestamp, format_timestamp, parse_day, parse_timestamp};

    fn written(moment: Timestamp) -> String {
        let mut out = Vec::new();
        format_timestamp(moment, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Section 15: date-times from 0001 to 9999, whatever the offset; fractions are cut.
    #[test]
    fn offsets_become_utc_with_three_digits() {
        for (read, expected) in [
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:00.000Z"),
            ("2026-11-21T09:30:00.123999999+01:00", "2026-11-21T08:30:00.123Z"),
            ("2026-11-21t09:30:00z", "2026-11-21T09:30:00.000Z"),
            ("2026-11-21 09:30:00.5", "2026-11-21T09:30:00.500Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("0000-12-31T23:00:00-01:00", "0001-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("9999-12-31T23:59:59+23:59", "9999-12-31T00:00:59.000Z"),
        ] {
            assert_eq!(parse_timestamp(read).map(written).as_deref(), Some(expected), "{read}");
        }
    }

    /// Section 15: only RFC 3339's own form is read.
    #[test]
    fn invalid_timestamps_are_refused() {
        for text in [
            "",
            "yesterday",
            "2026-11-21",
            "20261121T093000Z",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-21T25:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T09:30Z",
            "2026-11-21T09:30:00,5Z",
            "2026-11-21T09:30:00.Z",
            "2026-11-21T09:30:00.1234567890Z",
            "2026-11-21T09:30:00+24:00",
            "2026-11-21T09:30:00+0100",
            "2026-11-21T09:30:00+01",
            "2026-11-21T09:30:00Z[UTC]",
            "2026-11-21T09:30:00 Z",
            "+002026-11-21T09:30:00Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "12026-01-01T00:00:00Z",
            "2026-11-2\u{fc}T09:30:00Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(parse_day("2026-11-21"), parse_timestamp("2026-11-21T00:00:00Z"));
        for wrong in ["2026-11-21T00:00:00Z", "1900-02-29", "2026-11-31", "2026-00-01", "2026-1-1"] {
            assert_eq!(parse_day(wrong), None, "{wrong}");
        }
    }

    proptest! {
        /// A written timestamp parses to the same moment, and both agree with the calendar library.
        #[test]
        fn moments_agree_with_a_calendar(moment in RANGE) {
            let text = written(Timestamp(moment));
            prop_assert_eq!(parse_timestamp(&text), Some(Timestamp(moment)));
            if let Ok(known) = jiff::Timestamp::from_millisecond(moment) {
                prop_assert_eq!(format!("{known:.3}"), text);
            }
        }

        /// Any text parsed here is the same moment for the calendar library.
        #[test]
        fn offsets_agree_with_a_calendar(
            moment in -30_000_000_000_000_i64..200_000_000_000_000, hours in 0..24_i64, minutes in 0..60_i64, ahead: bool,
        ) {
            let civil = written(Timestamp(moment));
            let sign = if ahead { '+' } else { '-' };
            let text = format!("{}{sign}{hours:02}:{minutes:02}", civil.trim_end_matches('Z'));
            let known: jiff::Timestamp = text.parse().unwrap();
            prop_assert_eq!(parse_timestamp(&text), Some(Timestamp(known.as_millisecond())));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:.+ -]{0,30}|\\PC{0,30}") {
            let _ = (parse_timestamp(&text), parse_day(&text));
        }
    }
}
