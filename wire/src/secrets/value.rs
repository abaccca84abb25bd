//! The value of a secret: text or bytes.

use serde::{Deserialize, Serialize};

use super::errors::invalid;
use crate::binary::Binary;
use crate::fault::Fault;

/// Largest value.
const VALUE_BYTES_MAX: usize = 65_536;

/// A value, spelled alike on the wire and in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Value {
    #[serde(rename = "SecretString")]
    Text(String),
    #[serde(rename = "SecretBinary")]
    Bytes(Binary),
}

impl Value {
    /// The value that a caller gives; none if he gives none.
    pub(super) fn given(text: Option<String>, bytes: Option<Binary>) -> Result<Option<Value>, Fault> {
        let (value, size) = match (text, bytes) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(invalid(
                    "You can't specify both a binary secret value and a string secret value.",
                ));
            }
            (Some(text), None) => (Value::Text(text.clone()), text.len()),
            (None, Some(bytes)) => (Value::Bytes(bytes.clone()), bytes.0.len()),
        };
        if !(1..=VALUE_BYTES_MAX).contains(&size) {
            return Err(invalid(format!("The secret value must have 1 to {VALUE_BYTES_MAX} bytes.")));
        }
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_or_bytes_within_bounds() {
        let text = |length: usize| Some("x".repeat(length));
        let bytes = |length: usize| Some(Binary(vec![0; length].into()));
        assert_eq!(Value::given(None, None).unwrap(), None);
        assert!(Value::given(text(VALUE_BYTES_MAX), None).unwrap().is_some());
        assert!(Value::given(None, bytes(1)).unwrap().is_some());
        for (text, bytes) in
            [(text(1), bytes(1)), (text(0), None), (text(VALUE_BYTES_MAX + 1), None), (None, bytes(0))]
        {
            assert!(Value::given(text, bytes).is_err());
        }
    }
}
