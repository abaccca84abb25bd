//! Sizes, durations and moments as people write and read them: `64 MiB`, `7d`, `10m ago`, RFC 3339.
//!
//! Used by the command line and by the configuration file, so that a value is written the same way in both.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anabranch_model::Timestamp;
use serde::Deserialize;

/// Units of time with their length in seconds, the longest first.
const TIME_UNITS: [(&str, u64); 5] = [("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
/// Units of size with their power of 1024.
const SIZE_UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// A length of time: a whole number with `w`, `d`, `h`, `m` or `s`, or several of them (`1d12h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_seconds(text).map(|seconds| Span(Duration::from_secs(seconds))).ok_or_else(|| {
            "a duration is a whole number with w, d, h, m or s, for instance 7d, 36h or 1d12h".to_owned()
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_secs();
        if rest == 0 {
            return f.pad("0s");
        }
        let mut text = String::new();
        // Weeks are understood but not written: retention is thought of in days.
        for (unit, seconds) in &TIME_UNITS[1..] {
            if rest >= *seconds {
                text.push_str(&format!("{}{unit}", rest / seconds));
                rest %= seconds;
            }
        }
        f.pad(&text)
    }
}

fn parse_seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut seconds = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let behind = &rest[digits..];
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (_, length) = TIME_UNITS.iter().find(|(unit, _)| *unit == &behind[..letters])?;
        seconds = seconds.checked_add(number.checked_mul(*length)?)?;
        rest = behind[letters..].trim_start();
    }
    (!text.trim().is_empty()).then_some(seconds)
}

/// A number of bytes: a whole number, alone or with `KiB`, `MiB`, `GiB` or `TiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = text[digits..].trim_start();
        let power = if unit.is_empty() {
            Some(0)
        } else {
            SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, power)| *power)
        };
        let number: Option<u64> = text[..digits].parse().ok();
        number.zip(power).and_then(|(number, power)| number.checked_mul(1 << power)).map(Size).ok_or_else(
            || "a size is a whole number with B, KiB, MiB or GiB, for instance \"64 MiB\"".to_owned(),
        )
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, power) =
            SIZE_UNITS.iter().rev().find(|(_, power)| self.0 >= 1 << power).copied().unwrap_or(SIZE_UNITS[0]);
        let text = match power {
            0 => format!("{} {unit}", self.0),
            _ if self.0.is_multiple_of(1 << power) => format!("{} {unit}", self.0 >> power),
            _ => format!("{:.1} {unit}", self.0 as f64 / (1u64 << power) as f64),
        };
        f.pad(&text)
    }
}

/// A whole number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The word for one thing or for several, with the number: `1 record`, `2,000 records`.
pub(crate) fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

/// A moment as RFC 3339 in UTC with milliseconds; the bare number if the calendar does not reach that far.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let millis = i64::try_from(moment.as_millis()).ok();
    match millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()) {
        Some(moment) => format!("{moment:.3}"),
        None => format!("{} ms", moment.as_millis()),
    }
}

/// A moment: RFC 3339, or a length of time before `now` such as `10m ago` or `10m`.
pub(crate) fn parse_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        // Before the epoch there are no records, so any such moment means the beginning.
        return Some(Timestamp::from_millis(u64::try_from(moment.as_millisecond()).unwrap_or(0)));
    }
    let span = text.strip_suffix("ago").unwrap_or(text);
    parse_seconds(span).map(|seconds| now.minus(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds) in [("7d", 604_800), ("2w", 1_209_600), ("36h", 129_600), ("1d 12h", 129_600)] {
            assert_eq!(text.parse::<Span>().map(|span| span.0.as_secs()), Ok(seconds), "{text}");
        }
        for text in ["", "7", "d", "7 days", "-1d", "1.5h", "7D", "99999999999999999999d", "1d-2h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!(Span(Duration::from_secs(129_600)).to_string(), "1d12h");
        assert_eq!(Span(Duration::from_secs(365 * 86_400)).to_string(), "365d");
        assert_eq!(Span(Duration::ZERO).to_string(), "0s");
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("64 MiB", 64 << 20), ("1GiB", 1 << 30), ("512", 512), ("3 kib", 3 << 10)] {
            assert_eq!(text.parse::<Size>().map(|size| size.0), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "64 MB", "64 M", "-1", "1.5 GiB", "99999999999 TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(Size(64 << 20).to_string(), "64 MiB");
        assert_eq!(Size(1_536).to_string(), "1.5 KiB");
        assert_eq!(Size(0).to_string(), "0 B");
    }

    #[test]
    fn moments_are_read_and_written() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(rfc3339(now), "2023-11-14T22:13:20.000Z");
        assert_eq!(parse_moment("2023-11-14T22:13:20Z", Timestamp::EPOCH), Some(now));
        assert_eq!(parse_moment("2023-11-14T23:13:20+01:00", Timestamp::EPOCH), Some(now));
        assert_eq!(parse_moment("10m ago", now), Some(Timestamp::from_millis(1_699_999_400_000)));
        assert_eq!(parse_moment("1h", now), Some(Timestamp::from_millis(1_699_996_400_000)));
        assert_eq!(parse_moment("1950-01-01T00:00:00Z", now), Some(Timestamp::EPOCH));
        assert_eq!(parse_moment("yesterday", now), None);
        assert_eq!(rfc3339(Timestamp::from_millis(u64::MAX)), "18446744073709551615 ms");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "record"), "1 record");
        assert_eq!(counted(2_000, "record"), "2,000 records");
    }
}
