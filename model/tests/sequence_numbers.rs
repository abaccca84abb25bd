//! Sequence numbers are 256-bit values with one text each, in numeric order.

use anabranch_model::{Error, SequenceNumber};
use proptest::prelude::*;

const MAX: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
const MAX_AND_ONE: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
/// 2^128, the first number that needs the upper half.
const TWO_TO_128: &str = "340282366920938463463374607431768211456";

fn parse(text: &str) -> SequenceNumber {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Decimals of every length that always fits, without leading zeros.
fn decimal() -> impl Strategy<Value = String> {
    "0|[1-9][0-9]{0,76}"
}

#[test]
fn the_ends_and_the_seam() {
    assert_eq!(parse("0"), SequenceNumber::MIN);
    assert_eq!(parse(MAX), SequenceNumber::MAX);
    assert_eq!(SequenceNumber::MAX.to_string(), MAX);
    assert_eq!(format!("{:?}", SequenceNumber::MAX), MAX);
    assert_eq!(SequenceNumber::MAX.next(), SequenceNumber::MAX);
    assert_eq!(SequenceNumber::from_u128(u128::MAX).next(), parse(TWO_TO_128));
    assert_eq!(parse(TWO_TO_128).as_u128(), None);
    assert_eq!(parse("17").as_u128(), Some(17));
}

#[test]
fn a_number_of_kinesis_survives() {
    let text = "49590338271490256608559692538361571095921575989136588898";
    assert_eq!(parse(text).to_string(), text);
}

#[test]
fn zeros_inside_a_number_survive() {
    // Chunks of nineteen digits that begin with zeros are where a printer forgets to pad.
    let text = format!("1{}1{}", "0".repeat(30), "0".repeat(30));
    assert_eq!(parse(&text).to_string(), text);
}

#[test]
fn everything_but_a_canonical_decimal_is_refused() {
    for bad in ["", "+1", "-1", "01", "00", "1a", " 1", "1_000", "１", "\u{1b}[2J", MAX_AND_ONE] {
        let Err(Error::Invalid(text)) = bad.parse::<SequenceNumber>() else { panic!("{bad:?} was taken") };
        assert!(text.starts_with("sequence number `"), "{text}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    let Err(Error::Invalid(text)) = "9".repeat(100_000).parse::<SequenceNumber>() else {
        panic!("it was taken")
    };
    assert!(text.len() < 200, "a long text is cut: {text}");
}

proptest! {
    #[test]
    fn decimals_survive(text in decimal()) {
        prop_assert_eq!(parse(&text).to_string(), text);
    }

    #[test]
    fn the_order_is_that_of_the_values(one in decimal(), other in decimal()) {
        let by_text = one.len().cmp(&other.len()).then_with(|| one.cmp(&other));
        prop_assert_eq!(parse(&one).cmp(&parse(&other)), by_text);
    }

    #[test]
    fn small_numbers_are_those_of_the_standard_library(value in any::<u128>()) {
        prop_assert_eq!(SequenceNumber::from_u128(value).to_string(), value.to_string());
        prop_assert_eq!(parse(&value.to_string()).as_u128(), Some(value));
    }

    #[test]
    fn next_is_the_smallest_larger_number(text in decimal()) {
        let number = parse(&text);
        prop_assert!(number.next() > number);
        // Adding one by hand on the decimal: trailing nines turn over.
        let nines = text.bytes().rev().take_while(|&byte| byte == b'9').count();
        let (head, _) = text.split_at(text.len() - nines);
        let head = match head.as_bytes() {
            [] => "1".to_string(),
            [start @ .., last] => format!("{}{}", String::from_utf8_lossy(start), char::from(last + 1)),
        };
        prop_assert_eq!(number.next().to_string(), format!("{head}{}", "0".repeat(nines)));
    }
}
