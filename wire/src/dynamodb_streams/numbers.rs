//! Identifiers of shards and numbers of records, as long as clients demand.
//!
//! Clients refuse to send a shard identifier of less than 28 characters and a number of less than 21 digits, so ours
//! are stretched: `shardId-000000000007` is told as `shardId-00000000000000000007-00000007`.

use std::ops::RangeInclusive;

use anabranch_model::{SequenceNumber, ShardId};

use crate::fault::Fault;

/// Fewest digits of a number.
const DIGITS_MIN: usize = 21;

/// Characters of the identifier of a shard.
pub(crate) const SHARD_ID_CHARS: RangeInclusive<usize> = 28..=65;

/// A shard as clients see it.
pub(crate) fn shard_text(shard: &ShardId) -> String {
    match shard.number() {
        Some(number) => format!("shardId-{number:020}-{number:08x}"),
        None => shard.to_string(),
    }
}

/// The shard that a client means.
pub(crate) fn shard(text: &str) -> Result<ShardId, Fault> {
    let number = text.strip_prefix("shardId-").and_then(|rest| rest.split('-').next()?.parse().ok());
    let numbered = number.map(ShardId::numbered).filter(|shard| shard_text(shard) == text);
    match numbered {
        Some(shard) => Ok(shard),
        None => ShardId::new(text).map_err(|_| Fault::validation(format!("Invalid ShardId: {text:.65}"))),
    }
}

/// A number as clients see it.
pub(crate) fn sequence_text(sequence: SequenceNumber) -> String {
    format!("{:0>DIGITS_MIN$}", sequence.to_string())
}

/// The number that a client means.
pub(crate) fn sequence(text: &str) -> Result<SequenceNumber, Fault> {
    let digits = text.trim_start_matches('0');
    let digits = if digits.is_empty() && !text.is_empty() { "0" } else { digits };
    digits.parse().map_err(|_| Fault::validation(format!("Invalid SequenceNumber: {text:.100}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_long_enough_and_come_back() {
        for number in [0, 3, 999_999_999_999, u64::MAX] {
            let id = ShardId::numbered(number);
            let text = shard_text(&id);
            assert!(SHARD_ID_CHARS.contains(&text.len()), "{text}");
            assert_eq!(shard(&text).unwrap(), id);
        }
        let other = ShardId::new("shardId-00000000000000000007-00000008").unwrap();
        assert_eq!(shard(other.as_str()).unwrap(), other, "what is not ours stays what it is");
        assert!(shard("a b").is_err());
    }

    #[test]
    fn numbers_are_long_enough_and_keep_their_order() {
        let mut last = String::new();
        for value in [0, 1, 9, 10, 123_456_789, u128::from(u64::MAX)] {
            let number = SequenceNumber::from_u128(value);
            let text = sequence_text(number);
            assert!(text.len() >= 21 && text > last, "{text}");
            assert_eq!(sequence(&text).unwrap(), number);
            last = text;
        }
        for text in ["", "x", "-1", "1.5"] {
            assert!(sequence(text).is_err(), "{text}");
        }
    }
}
