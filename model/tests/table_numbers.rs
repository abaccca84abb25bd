//! Numbers of tables: texts, order, arithmetic and encodings, against integers and against each other.

use anabranch_model::table::Number;
use proptest::prelude::*;

fn number(text: &str) -> Number {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn encoded(number: &Number) -> Vec<u8> {
    let mut bytes = Vec::new();
    number.encode(&mut bytes);
    bytes
}

/// Any number, as a text in scientific notation and as a value.
fn any_number() -> impl Strategy<Value = Number> {
    let digits = prop_oneof![0..1000u128, 0..10u128.pow(19), 0..10u128.pow(38)];
    let scale = prop_oneof![-3..3i32, -40..40i32, -167..126i32];
    (any::<bool>(), digits, scale).prop_filter_map("out of range", |(negative, digits, scale)| {
        let sign = if negative { "-" } else { "" };
        format!("{sign}{digits}E{scale}").parse().ok()
    })
}

#[test]
fn texts_are_canonical() {
    for (text, canonical) in [
        ("0", "0"),
        ("-0", "0"),
        ("0.000", "0"),
        ("0E999999999999", "0"),
        ("1.50", "1.5"),
        ("1E2", "100"),
        ("1e+2", "100"),
        ("+7", "7"),
        ("007", "7"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-12.3400E-2", "-0.1234"),
        ("100", "100"),
        ("0.00001", "0.00001"),
        ("123456789012345678901234567890123456780", "123456789012345678901234567890123456780"),
        ("0.000099999999999999999999999999999999999999", "0.000099999999999999999999999999999999999999"),
    ] {
        assert_eq!(number(text).to_string(), canonical, "{text}");
    }
    assert_eq!(number("1E125").to_string(), format!("1{}", "0".repeat(125)));
    assert_eq!(number("1E-130").to_string(), format!("0.{}1", "0".repeat(129)));
}

#[test]
fn what_is_no_number_is_refused() {
    for (text, why) in [
        ("", "digits"),
        ("-", "digits"),
        (".", "digits"),
        ("1.2.3", "digits"),
        ("--1", "digits"),
        ("1 ", "digits"),
        ("NaN", "digits"),
        ("١", "digits"),
        ("1E", "exponent"),
        ("1E+-2", "exponent"),
        ("1E1.5", "exponent"),
        ("123456789012345678901234567890123456789", "39 significant digits"),
        ("1.23456789012345678901234567890123456789E-5", "39 significant digits"),
        ("1E126", "1E+126 or more"),
        ("-1E126", "1E+126 or more"),
        ("1E99999999999999999999", "1E+126 or more"),
        ("1E-131", "below 1E-130"),
        ("1E-99999999999999999999", "below 1E-130"),
    ] {
        let error = text.parse::<Number>().expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let widest = format!("{}E+88", "9".repeat(38));
    assert_eq!(number(&widest).digits(), 38);
    assert!(number(&widest) > number("9.9E+125"));
    assert!(format!("{}E+89", "9".repeat(38)).parse::<Number>().is_err());
}

#[test]
fn sums_that_do_not_fit_are_refused() {
    let nines = number(&"9".repeat(38));
    assert_eq!(nines.plus(1.into()).expect("a power of ten"), number("1E38"));
    assert!(nines.plus(2.into()).is_err());
    assert!(number("1E100").plus(1.into()).is_err());
    assert!(number("9E125").plus(number("1E125")).is_err());
    assert!(number("-9E125").minus(number("1E125")).is_err());
    assert!(number("1E-130").minus(number("1.1E-130")).is_err());
    // A borrow takes the first digit away: 39 places, 38 digits.
    assert_eq!(number("1E38").minus(1.into()).expect("38 nines"), nines);
    assert_eq!(number("1E40").plus(Number::ZERO).expect("nothing added"), number("1E40"));
    assert_eq!(nines.minus(nines).expect("zero"), Number::ZERO);
}

#[test]
fn damaged_encodings_are_refused() {
    for bytes in [
        &[][..],
        &[0],
        &[4],
        &[3],
        &[3, 130],
        &[3, 130, 2],
        &[3, 130, 0],
        &[3, 130, 102, 0],
        &[3, 130, 1, 0],
        &[3, 130, 5, 0],
        &[3, 130, 50, 1, 0],
    ] {
        assert!(Number::decode(&mut &bytes[..]).is_err(), "{bytes:?}");
    }
    assert!(Number::decode(&mut &[&[3, 130][..], &[2; 20], &[0]].concat()[..]).is_err());
}

proptest! {
    #[test]
    fn texts_come_back(number in any_number()) {
        prop_assert_eq!(number.to_string().parse::<Number>().expect("own text"), number);
    }

    #[test]
    fn bytes_sort_as_numbers(one in any_number(), other in any_number()) {
        prop_assert_eq!(one.cmp(&other), encoded(&one).cmp(&encoded(&other)));
    }

    #[test]
    fn bytes_come_back_and_end(number in any_number(), rest in proptest::collection::vec(any::<u8>(), 0..4)) {
        let bytes = [encoded(&number), rest.clone()].concat();
        let mut from = &bytes[..];
        prop_assert_eq!(Number::decode(&mut from).expect("own bytes"), number);
        prop_assert_eq!(from, &rest[..]);
    }

    #[test]
    fn any_bytes_decode_to_themselves_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
        let mut from = &bytes[..];
        if let Ok(number) = Number::decode(&mut from) {
            let read = bytes.len() - from.len();
            prop_assert_eq!(&encoded(&number)[..], &bytes[..read]);
        }
    }

    #[test]
    fn whole_numbers_agree_with_integers(one in any::<i64>(), other in any::<i64>()) {
        let (a, b) = (Number::from(one), Number::from(other));
        prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        prop_assert_eq!(a.to_string(), one.to_string());
        prop_assert_eq!(a.as_i128(), Some(i128::from(one)));
        prop_assert_eq!(a.truncated(), Some(i128::from(one)));
        let fraction: Number = format!("{one}.75").parse().expect("a number");
        prop_assert_eq!(fraction.truncated(), Some(i128::from(one)));
        prop_assert_eq!(a.plus(b).expect("fits").as_i128(), Some(i128::from(one) + i128::from(other)));
        prop_assert_eq!(a.minus(b).expect("fits").as_i128(), Some(i128::from(one) - i128::from(other)));
    }

    #[test]
    fn fractions_agree_with_integers(one in -10i128.pow(37)..10i128.pow(37), other in -10i128.pow(37)..10i128.pow(37), places in 0..60u32) {
        let scaled = |value: i128| number(&format!("{value}E-{places}"));
        prop_assert_eq!(scaled(one).plus(scaled(other)).expect("fits"), scaled(one + other));
        prop_assert_eq!(scaled(one).minus(scaled(other)).expect("fits"), scaled(one - other));
        prop_assert_eq!(scaled(one).cmp(&scaled(other)), one.cmp(&other));
    }

    #[test]
    fn sums_are_undone(one in any_number(), other in any_number()) {
        if let Ok(sum) = one.plus(other) {
            prop_assert_eq!(sum.minus(other).expect("fits, for it was there"), one);
            prop_assert_eq!(sum, other.plus(one).expect("in either order"));
        }
    }
}
