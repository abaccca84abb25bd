//! Where `stream tail` starts.

use anabranch_model::{Position, SequenceNumber, Timestamp};

use crate::failure::Failure;
use crate::quantity::parse_moment;

/// The position at which the shards that exist now are read. Shards that come later are read from their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start(pub(super) Position);

impl Start {
    /// Understands what a person writes.
    pub(super) fn parse(text: &str, now: Timestamp) -> Result<Self, Failure> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.to_ascii_lowercase().as_str() {
            "trim-horizon" => Ok(Start(Position::TrimHorizon)),
            "latest" => Ok(Start(Position::Latest)),
            _ if is_number => Ok(Start(Position::At(text.parse::<SequenceNumber>()?))),
            _ => match parse_moment(text, now) {
                Some(moment) => Ok(Start(Position::AtTimestamp(moment))),
                None => Err(Failure::usage(
                    format!("`{text}` is no place to start from"),
                    "use trim-horizon, latest, a time such as 2026-01-31T12:00:00Z or `10m ago`, or a sequence number",
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_start_are_understood() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let parse = |text| Start::parse(text, now).map(|start| start.0).ok();
        assert_eq!(parse("trim-horizon"), Some(Position::TrimHorizon));
        assert_eq!(parse("LATEST"), Some(Position::Latest));
        assert_eq!(parse("42"), Some(Position::At(SequenceNumber::from_u128(42))));
        assert_eq!(parse("10m ago"), Some(Position::AtTimestamp(Timestamp::from_millis(1_699_999_400_000))));
        assert_eq!(parse("2023-11-14T22:13:20Z"), Some(Position::AtTimestamp(now)));
        for text in ["", "begin", "-1", "042", "10 minutes"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
