//! Moments in a request or an answer: seconds with a fraction in JSON, milliseconds in CBOR.

use std::fmt;

use anabranch_model::Timestamp;
use minicbor_serde::tag::Optional;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The tag that CBOR has for moments. Clients may leave it out.
const MOMENT: u64 = 1;

/// A moment, spelled as the protocol of the call wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Timestamp);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (number, unit) = if deserializer.is_human_readable() {
            (Number::deserialize(deserializer)?, 1_000.0)
        } else {
            (Optional::<MOMENT, Number>::deserialize(deserializer)?.into_value(), 1.0)
        };
        let millis = (number.0 * unit).round();
        if !(0.0..=u64::MAX as f64 / 2.0).contains(&millis) {
            return Err(D::Error::invalid_value(Unexpected::Float(number.0), &"a moment since 1970"));
        }
        Ok(Time(Timestamp::from_millis(millis as u64)))
    }
}

/// A number, whole or not.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.as_millis();
        if serializer.is_human_readable() {
            serializer.serialize_f64(millis as f64 / 1_000.0)
        } else {
            serializer.serialize_u64(millis)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(millis: u64) -> Time {
        Time(Timestamp::from_millis(millis))
    }

    #[test]
    fn moments_keep_their_milliseconds() {
        for millis in [0, 1, 1_763_000_000_123, 1_763_000_000_000, 4_102_444_800_999] {
            let json = serde_json::to_string(&moment(millis)).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), moment(millis), "{json}");
            let cbor = minicbor_serde::to_vec(moment(millis)).unwrap();
            assert_eq!(minicbor_serde::from_slice::<Time>(&cbor).unwrap(), moment(millis));
        }
        assert_eq!(serde_json::from_str::<Time>("1763000000").unwrap(), moment(1_763_000_000_000));
    }

    #[test]
    fn a_tag_may_stand_before_a_moment() {
        let tagged = [0xc1, 0x1b, 0, 0, 1, 0x9a, 0, 0, 0, 0];
        assert_eq!(minicbor_serde::from_slice::<Time>(&tagged).unwrap(), moment(0x019a_0000_0000));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["-1", "\"2026-01-01\"", "1e300", "null", "true"] {
            assert!(serde_json::from_str::<Time>(text).is_err(), "{text}");
        }
    }
}
