//! How single values are written in JSON: names and large numbers as text, bytes as base64.
//!
//! Values are parsed while the JSON is: behind this file nobody holds an unchecked name or number.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use anabranch_model::PartitionKey;
use anabranch_model::blob::PartNumber;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeSliceError, Engine as _};
use bytes::Bytes;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is written as the text it displays as, and checked when it is read. Numbers of more than 53 bits
/// are texts in JSON because many readers would round them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<T>(pub T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsText<T>(PhantomData<T>);
        impl<T: FromStr<Err: Display>> Visitor<'_> for AsText<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(AsText(PhantomData)).map(Text)
    }
}

/// A text that is written as it is and checked when it is read: for values that are shown with escapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verbatim<T>(pub T);

impl<T: AsRef<str>> Serialize for Verbatim<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_ref())
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Verbatim<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|text| Verbatim(text.0))
    }
}

/// The number of a part, checked when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Number(pub PartNumber);

impl TryFrom<u64> for Number {
    type Error = anabranch_model::Error;

    fn try_from(number: u64) -> anabranch_model::Result<Self> {
        PartNumber::new(number).map(Number)
    }
}

impl From<Number> for u64 {
    fn from(number: Number) -> u64 {
        u64::from(number.0.get())
    }
}

/// Bytes as base64 with the standard alphabet and padding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base64(pub Bytes);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsBase64;
        impl Visitor<'_> for AsBase64 {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a base64 string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                // One allocation of the exact size: payloads are most of what travels.
                let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
                let mut bytes = vec![0; (text.len() / 4 * 3).saturating_sub(padding)];
                match STANDARD.decode_slice(text, &mut bytes) {
                    Ok(length) => {
                        bytes.truncate(length);
                        Ok(Bytes::from(bytes))
                    }
                    Err(DecodeSliceError::DecodeError(error)) => {
                        Err(E::custom(format_args!("not base64: {error}")))
                    }
                    Err(DecodeSliceError::OutputSliceTooSmall) => Err(E::custom("not base64: wrong length")),
                }
            }
        }
        deserializer.deserialize_str(AsBase64).map(Base64)
    }
}

/// A partition key: a string, or `{"base64": …}` if its bytes are not UTF-8, so that the store and not the
/// transport refuses such a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub PartitionKey);

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &Base64(self.0.clone().into()))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsKey;
        impl<'de> Visitor<'de> for AsKey {
            type Value = PartitionKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or an object with `base64`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PartitionKey, E> {
                Ok(text.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PartitionKey, A::Error> {
                match map.next_entry::<Cow<'de, str>, Base64>()? {
                    Some((name, bytes)) if name == "base64" => Ok(bytes.0.into()),
                    Some((name, _)) => Err(de::Error::unknown_field(&name, &["base64"])),
                    None => Err(de::Error::missing_field("base64")),
                }
            }
        }
        deserializer.deserialize_any(AsKey).map(Key)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, StreamName};

    use super::*;

    #[test]
    fn text_is_checked_while_it_is_read() {
        let name: Text<StreamName> = serde_json::from_str(r#""clicks""#).unwrap();
        assert_eq!(name.0.as_str(), "clicks");
        let error = serde_json::from_str::<Text<StreamName>>(r#""a/b""#).unwrap_err().to_string();
        assert!(error.contains("only a-z"), "{error}");
        assert!(serde_json::from_str::<Text<SequenceNumber>>("12").is_err());
        assert_eq!(serde_json::to_string(&Text(SequenceNumber::from_u128(7))).unwrap(), r#""7""#);
    }

    #[test]
    fn bytes_survive_the_journey() {
        for length in 0..70usize {
            let bytes = Bytes::from_iter((0..length).map(|n| (n * 37) as u8));
            let json = serde_json::to_string(&Base64(bytes.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Base64>(&json).unwrap().0, bytes);
        }
        for wrong in [r#""a""#, r#""====""#, r#""ab=c""#, r#""YQ""#, r#""=""#, "7"] {
            assert!(serde_json::from_str::<Base64>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_survive_the_journey() {
        for (bytes, json) in
            [(&b"user \"7\""[..], r#""user \"7\"""#), (&b"\xff\x00"[..], r#"{"base64":"/wA="}"#)]
        {
            let key = Key(bytes.into());
            assert_eq!(serde_json::to_string(&key).unwrap(), json);
            assert_eq!(serde_json::from_str::<Key>(json).unwrap(), key);
        }
        for wrong in [r#"{}"#, r#"{"hex":"00"}"#, r#"{"base64":"/wA=","more":""}"#, "null"] {
            assert!(serde_json::from_str::<Key>(wrong).is_err(), "{wrong}");
        }
    }
}
