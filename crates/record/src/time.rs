//! Moments on the wire: RFC 3339, UTC, three fraction digits.

use jiff::{
    civil::DateTime,
    tz::{self, TimeZone},
};

use crate::{FieldType, Kind, Mismatch, Value};

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment and `milliseconds` more.
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

/// Years 0001 to 9999: what RFC 3339 can write.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

/// Reads a date-time of RFC 3339: any offset is read, none means UTC, a date alone means its
/// first moment. `None` when it is none or out of the years 0001 to 9999.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if !text.is_ascii() || text.contains('[') {
        return None;
    }
    let milliseconds = text.parse::<jiff::Timestamp>().map_or_else(
        |_| {
            let civil: DateTime = text.parse().ok()?;
            Some(TimeZone::UTC.to_timestamp(civil).ok()?.as_millisecond())
        },
        |moment| Some(moment.as_millisecond()),
    )?;
    RANGE.contains(&milliseconds).then_some(Timestamp(milliseconds))
}

/// Writes a moment, e.g. `2026-11-21T09:30:00.000Z`.
pub fn format_timestamp(moment: Timestamp, out: &mut Vec<u8>) {
    let civil = jiff::Timestamp::from_millisecond(moment.0)
        .map_or(DateTime::ZERO, |moment| tz::Offset::UTC.to_datetime(moment));
    let digits = |number: i32, width: u32, out: &mut Vec<u8>| {
        for place in (0..width).rev() {
            let digit = number / 10_i32.pow(place) % 10;
            out.push(b'0' + u8::try_from(digit).unwrap_or(0));
        }
    };
    let parts = [
        (i32::from(civil.year()), 4, b'-'),
        (i32::from(civil.month()), 2, b'-'),
        (i32::from(civil.day()), 2, b'T'),
        (i32::from(civil.hour()), 2, b':'),
        (i32::from(civil.minute()), 2, b':'),
        (i32::from(civil.second()), 2, b'.'),
        (civil.subsec_nanosecond() / 1_000_000, 3, b'Z'),
    ];
    for (number, width, after) in parts {
        digits(number, width, out);
        out.push(after);
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, format_timestamp, parse_timestamp};

    fn written(text: &str) -> Option<String> {
        let mut out = Vec::new();
        format_timestamp(parse_timestamp(text)?, &mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn offsets_become_utc_with_three_digits() {
        for (read, expected) in [
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:00.000Z"),
            ("2026-11-21T09:30:00.123456+01:00", "2026-11-21T08:30:00.123Z"),
            ("2026-11-21T09:30:00", "2026-11-21T09:30:00.000Z"),
            ("2026-11-21", "2026-11-21T00:00:00.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(written(read).as_deref(), Some(expected), "{read}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-21T25:00:00Z", "12026-01-01"] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_survives_the_round_trip() {
        let mut out = Vec::new();
        format_timestamp(Timestamp(1_795_253_400_123), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(parse_timestamp(&text), Some(Timestamp(1_795_253_400_123)));
    }
}
