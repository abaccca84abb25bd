//! Where reading starts, as requests say it.

use anabranch_model::Position;

use super::errors::invalid;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::{Pattern, Validation};

/// The words for where reading starts.
const TYPES: &[&str] =
    &["AFTER_SEQUENCE_NUMBER", "LATEST", "AT_TIMESTAMP", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"];

/// What a sequence number looks like.
pub(super) const SEQUENCE: Pattern = Pattern {
    text: "0|([1-9]\\d{0,128})",
    matches: |text| {
        let digits = (1..=129).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && (text == "0" || !text.starts_with('0'))
    },
};

/// Adds the checks of a type and a number.
pub(super) fn check(
    validation: &mut Validation,
    fields: [&str; 2],
    kind: &Option<String>,
    sequence: Option<&str>,
) {
    validation.required(fields[0], kind).one_of(fields[0], kind.as_deref(), TYPES);
    validation.pattern(fields[1], sequence, SEQUENCE);
}

/// The position that a checked request means.
pub(super) fn parse(kind: &str, sequence: Option<&str>, time: Option<Time>) -> Result<Position, Fault> {
    let number = || match sequence {
        Some(sequence) => {
            sequence.parse().map_err(|_| invalid(format!("StartingSequenceNumber {sequence} is not valid.")))
        }
        None => {
            Err(invalid(format!("Must specify startingSequenceNumber parameter for iterator type {kind}.")))
        }
    };
    Ok(match kind {
        "TRIM_HORIZON" => Position::TrimHorizon,
        "LATEST" => Position::Latest,
        "AT_SEQUENCE_NUMBER" => Position::At(number()?),
        "AFTER_SEQUENCE_NUMBER" => Position::After(number()?),
        _ => match time {
            Some(time) => Position::AtTimestamp(time.0),
            None => {
                return Err(invalid(
                    "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. Current request has no \
                     timestamp parameter.",
                ));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};

    use super::*;

    #[test]
    fn each_type_needs_its_value() {
        let seven = SequenceNumber::from_u128(7);
        let time = Time(Timestamp::from_millis(5));
        assert_eq!(parse("TRIM_HORIZON", None, None), Ok(Position::TrimHorizon));
        assert_eq!(parse("LATEST", Some("7"), None), Ok(Position::Latest));
        assert_eq!(parse("AT_SEQUENCE_NUMBER", Some("7"), None), Ok(Position::At(seven)));
        assert_eq!(parse("AFTER_SEQUENCE_NUMBER", Some("7"), None), Ok(Position::After(seven)));
        assert_eq!(parse("AT_TIMESTAMP", None, Some(time)), Ok(Position::AtTimestamp(time.0)));
        for (kind, sequence) in [("AT_SEQUENCE_NUMBER", None), ("AT_TIMESTAMP", Some("7"))] {
            assert_eq!(parse(kind, sequence, None).unwrap_err().code, "InvalidArgumentException");
        }
        let huge = "9".repeat(129);
        assert_eq!(
            parse("AT_SEQUENCE_NUMBER", Some(&huge), None).unwrap_err().code,
            "InvalidArgumentException"
        );
    }

    #[test]
    fn sequence_numbers_have_one_spelling() {
        for good in ["0", "1", "10", &"9".repeat(129)] {
            assert!((SEQUENCE.matches)(good), "{good}");
        }
        for bad in ["", "01", "-1", "1a", " 1", &"9".repeat(130)] {
            assert!(!(SEQUENCE.matches)(bad), "{bad}");
        }
    }
}
