//! Which partition key a record gets.

use anabranch_model::Timestamp;
use bytes::Bytes;
use serde_json::{Map, Value};

/// Where keys come from.
#[derive(Debug)]
pub(super) enum Keys {
    /// One key for all.
    Fixed(Bytes),
    /// A field of each record.
    Field(String),
    /// A new key for each record, so that records spread over all shards. The moment keeps the keys of two runs
    /// apart.
    Counted { moment: Timestamp, count: u64 },
}

impl Keys {
    pub(super) fn choose(key: Option<&str>, field: Option<&str>, now: Timestamp) -> Self {
        match (key, field) {
            (Some(key), _) => Keys::Fixed(Bytes::copy_from_slice(key.as_bytes())),
            (None, Some(field)) => Keys::Field(field.to_owned()),
            (None, None) => Keys::Counted { moment: now, count: 0 },
        }
    }

    /// The key of the next record; an error says what is wrong with the record.
    pub(super) fn next(&mut self, data: &[u8]) -> Result<Bytes, String> {
        match self {
            Keys::Fixed(key) => Ok(key.clone()),
            Keys::Field(field) => field_of(data, field),
            Keys::Counted { moment, count } => {
                *count += 1;
                Ok(Bytes::from(format!("{:x}-{count}", moment.as_millis())))
            }
        }
    }
}

fn field_of(data: &[u8], field: &str) -> Result<Bytes, String> {
    let object: Map<String, Value> =
        serde_json::from_slice(data).map_err(|error| format!("the record is not a JSON object: {error}"))?;
    match object.get(field) {
        Some(Value::String(text)) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Bytes::from(value.to_string())),
        Some(_) => Err(format!("field `{field}` of the record is neither a text nor a number")),
        None => Err(format!("the record has no field `{field}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_where_they_should() {
        let mut fixed = Keys::choose(Some("k"), None, Timestamp::EPOCH);
        assert_eq!(fixed.next(b"anything"), Ok(Bytes::from("k")));
        let mut counted = Keys::choose(None, None, Timestamp::from_millis(255));
        assert_eq!(counted.next(b""), Ok(Bytes::from("ff-1")));
        assert_eq!(counted.next(b""), Ok(Bytes::from("ff-2")));
        let mut field = Keys::choose(None, Some("user"), Timestamp::EPOCH);
        assert_eq!(field.next(br#"{"user":"ann"}"#), Ok(Bytes::from("ann")));
        assert_eq!(field.next(br#"{"user":7}"#), Ok(Bytes::from("7")));
        for bad in [&br#"{"user":null}"#[..], br#"{"user":[1]}"#, b"{}", b"[]", b"plain", b"\xff"] {
            assert!(field.next(bad).is_err(), "{bad:?}");
        }
    }
}
