//! Bytes in a request or an answer: base64 in JSON, as they are in CBOR.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes, spelled as the protocol of the call wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binary(pub(crate) Bytes);

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_byte_buf(Base64)
        } else {
            // Byte strings of unknown length come in parts, which only `any` understands.
            deserializer.deserialize_any(Plain)
        }
    }
}

struct Base64;

impl Visitor<'_> for Base64 {
    type Value = Binary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Binary, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<Binary, E> {
        BASE64_STANDARD.decode(text).map(|bytes| Binary(bytes.into())).map_err(E::custom)
    }
}

struct Plain;

impl Visitor<'_> for Plain {
    type Value = Binary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Binary, E> {
        Ok(Binary(Bytes::copy_from_slice(bytes)))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Binary, E> {
        Ok(Binary(bytes.into()))
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64_in_json_and_plain_in_cbor() {
        for bytes in [&b""[..], b"a", b"\x00\xff\x80", &[7; 1000]] {
            let binary = Binary(Bytes::copy_from_slice(bytes));
            let json = serde_json::to_string(&binary).unwrap();
            assert_eq!(serde_json::from_str::<Binary>(&json).unwrap(), binary);
            let cbor = minicbor_serde::to_vec(&binary).unwrap();
            assert!(cbor.ends_with(bytes) && cbor.len() <= bytes.len() + 3);
            assert_eq!(minicbor_serde::from_slice::<Binary>(&cbor).unwrap(), binary);
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["\"a\"", "\"%%%%\"", "\"YQ\"", "\"YQ==x\"", "1", "[97]", "null"] {
            assert!(serde_json::from_str::<Binary>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn byte_strings_in_parts_are_joined() {
        let parts = [0x5f, 0x42, 1, 2, 0x41, 3, 0xff];
        assert_eq!(minicbor_serde::from_slice::<Binary>(&parts).unwrap().0, [1, 2, 3][..]);
        assert!(minicbor_serde::from_slice::<Binary>(&[0x61, b'a']).is_err(), "a text is no bytes");
    }
}
