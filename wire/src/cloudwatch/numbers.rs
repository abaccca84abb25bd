//! Numbers and moments as each language of CloudWatch spells them: CBOR has numbers of every width and moments in
//! seconds with a tag, JSON has numbers, and forms have texts.

use std::fmt;

use minicbor_serde::tag::Optional;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// The tag that CBOR has for moments.
const MOMENT: u64 = 1;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub(super) f64);

/// Seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment(pub(super) f64);

struct Any;

impl Visitor<'_> for Any {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_f32<E: Error>(self, number: f32) -> Result<f64, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let number = text.trim().parse().ok();
        let moment = || text.parse::<jiff::Timestamp>().ok().map(|at| at.as_millisecond() as f64 / 1_000.0);
        number.or_else(moment).ok_or_else(|| E::custom(format!("{text:?} is neither a number nor a moment")))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Number)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = if deserializer.is_human_readable() {
            Number::deserialize(deserializer)?
        } else {
            Optional::<MOMENT, Number>::deserialize(deserializer)?.into_value()
        };
        Ok(Moment(seconds.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_every_spelling() {
        for (text, number) in
            [("7", 7.0), ("-1.5", -1.5), ("\"2.5\"", 2.5), ("18446744073709551615", u64::MAX as f64)]
        {
            assert_eq!(serde_json::from_str::<Number>(text).unwrap(), Number(number), "{text}");
        }
        for bytes in [
            &[0x07][..],
            &[0xf9, 0x47, 0x00],
            &[0xfa, 0x40, 0xe0, 0, 0],
            &[0xfb, 0x40, 0x1c, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(minicbor_serde::from_slice::<Number>(bytes).unwrap(), Number(7.0), "{bytes:x?}");
        }
        for text in ["null", "\"many\"", "{}", "true"] {
            assert!(serde_json::from_str::<Number>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_seconds_with_or_without_a_tag_or_text() {
        assert_eq!(serde_json::from_str::<Moment>("1763000000.5").unwrap(), Moment(1_763_000_000.5));
        let text = "\"2025-11-13T02:13:20Z\"";
        assert_eq!(serde_json::from_str::<Moment>(text).unwrap(), Moment(1_763_000_000.0));
        for bytes in [&[0xc1, 0x07][..], &[0x07], &[0xc1, 0xfb, 0x40, 0x1c, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(minicbor_serde::from_slice::<Moment>(bytes).unwrap(), Moment(7.0), "{bytes:x?}");
        }
    }
}
