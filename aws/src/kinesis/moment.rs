//! The moments inside a sequence number.
//!
//! Kinesis does not say when a shard was closed, but its numbers do. They have 188 bits, here in digits of four bits:
//!
//! ```text
//!   2 ccccccccc s iiiiiiiiiiiiiiii bb ttttttttt ssssssss 2
//!     │           │                   └ second of the record      └ layout
//!     │           └ place among the records
//!     └ second in which the shard was made
//! ```
//!
//! A number of another layout tells nothing.

use anabranch_model::{SequenceNumber, Timestamp};

/// Digits of a number.
const DIGITS: usize = 47;
/// The digit at both ends.
const LAYOUT: u8 = 2;
/// Digits of a second.
const SECOND_DIGITS: usize = 9;
/// Where the second of the shard begins.
const SHARD_AT: usize = 1;
/// Where the second of the record begins.
const RECORD_AT: usize = 29;

/// When the shard was made that this number is of.
pub(super) fn of_shard(number: SequenceNumber) -> Option<Timestamp> {
    second(number, SHARD_AT)
}

/// When the record was taken that has this number.
pub(super) fn of_record(number: SequenceNumber) -> Option<Timestamp> {
    second(number, RECORD_AT)
}

fn second(number: SequenceNumber, at: usize) -> Option<Timestamp> {
    let digits: Vec<u8> = number.to_be_bytes().iter().flat_map(|byte| [byte >> 4, byte & 0xf]).collect();
    let (rest, digits) = digits.split_at(digits.len() - DIGITS);
    let fits = rest.iter().all(|digit| *digit == 0) && digits[0] == LAYOUT && digits[DIGITS - 1] == LAYOUT;
    if !fits {
        return None;
    }
    let seconds = digits[at..at + SECOND_DIGITS].iter().fold(0, |sum, digit| sum << 4 | u64::from(*digit));
    Some(Timestamp::from_millis(seconds * 1000)).filter(|moment| *moment > Timestamp::EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_kinesis_gives_them_tell_the_time() {
        let number = "49590338271490256608559692538361571095921575989136588898".parse().unwrap();
        assert_eq!(of_shard(number), Some(Timestamp::from_millis(1_542_776_258_000)));
        assert_eq!(of_record(number), Some(Timestamp::from_millis(1_545_084_650_000)));
    }

    #[test]
    fn other_numbers_tell_nothing() {
        for number in ["0", "1", "49590338271490256608559692538361571095921575989136588899"] {
            let number = number.parse().unwrap();
            assert_eq!((of_shard(number), of_record(number)), (None, None), "{number}");
        }
        assert_eq!(of_shard(SequenceNumber::MAX), None);
    }
}
