//! Attributes of messages: SQS looks into kinds and values, and the port does not.
//!
//! An attribute that SQS would take and give back unchanged goes as it is. Anything else goes as bytes under the kind
//! [`WRAPPED`]: the attribute's own kind, a zero, `t` for text or `b` for bytes, and the value.

use std::collections::{BTreeMap, HashMap};

use anabranch_model::queue::{Attribute, AttributeValue};
use anabranch_model::{Error, Result};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use bytes::Bytes;

use super::{body, strange};

/// The kind of an attribute that has another one inside.
const WRAPPED: &str = "Binary.anabranch";
/// Most digits of a number that SQS keeps.
const NUMBER_DIGITS_MAX: usize = 38;

/// The attributes as SQS takes them.
pub(super) fn to_sqs(
    attributes: &BTreeMap<String, Attribute>,
) -> Result<Option<HashMap<String, MessageAttributeValue>>> {
    if attributes.is_empty() {
        return Ok(None);
    }
    let one = |(name, attribute): (&String, &Attribute)| Ok((name.clone(), value_of(attribute)?));
    attributes.iter().map(one).collect::<Result<_>>().map(Some)
}

fn value_of(attribute: &Attribute) -> Result<MessageAttributeValue> {
    let value = MessageAttributeValue::builder();
    let value = match &attribute.value {
        AttributeValue::Text(text) if is_plain_text(&attribute.kind, text) => {
            value.data_type(&attribute.kind).string_value(text)
        }
        AttributeValue::Binary(bytes) if base(&attribute.kind) == Some("Binary") => {
            value.data_type(&attribute.kind).binary_value(Blob::new(bytes.to_vec()))
        }
        _ => value.data_type(WRAPPED).binary_value(Blob::new(wrap(attribute))),
    };
    value.build().map_err(|error| Error::Invalid(error.to_string()))
}

/// What stands before the label of a kind, if the kind is one that SQS takes and not the one of ours.
fn base(kind: &str) -> Option<&str> {
    let (base, label) = kind.split_once('.').map_or((kind, None), |(base, label)| (base, Some(label)));
    let allowed = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    (kind != WRAPPED && label.is_none_or(allowed)).then_some(base)
}

fn is_plain_text(kind: &str, text: &str) -> bool {
    match base(kind) {
        Some("String") => body::plain(text.as_bytes()).is_some(),
        Some("Number") => is_plain_number(text),
        _ => false,
    }
}

/// Whether this is a number in the only spelling that SQS does not change: it removes zeros that say nothing.
fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numeric(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(|fraction| numeric(fraction) && !fraction.ends_with('0'))
        && digits.len() <= NUMBER_DIGITS_MAX
        && text != "-0"
}

fn wrap(attribute: &Attribute) -> Vec<u8> {
    let (mark, value) = match &attribute.value {
        AttributeValue::Text(text) => (b't', text.as_bytes()),
        AttributeValue::Binary(bytes) => (b'b', bytes.as_ref()),
    };
    [attribute.kind.as_bytes(), &[0, mark], value].concat()
}

fn unwrap(bytes: &[u8]) -> Option<Attribute> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let kind = std::str::from_utf8(&bytes[..end]).ok()?.to_string();
    let (mark, value) = bytes[end + 1..].split_first()?;
    let value = match mark {
        b't' => AttributeValue::Text(std::str::from_utf8(value).ok()?.to_string()),
        b'b' => AttributeValue::Binary(Bytes::copy_from_slice(value)),
        _ => return None,
    };
    Some(Attribute { kind, value })
}

/// The attributes as they were sent.
pub(super) fn from_sqs(
    attributes: Option<HashMap<String, MessageAttributeValue>>,
) -> Result<BTreeMap<String, Attribute>> {
    let one = |(name, value): (String, MessageAttributeValue)| Ok((name, attribute_of(value)?));
    attributes.unwrap_or_default().into_iter().map(one).collect()
}

fn attribute_of(value: MessageAttributeValue) -> Result<Attribute> {
    let kind = value.data_type;
    match (value.string_value, value.binary_value) {
        (Some(text), _) => Ok(Attribute { kind, value: AttributeValue::Text(text) }),
        (None, Some(blob)) => {
            let bytes = blob.into_inner();
            let inner = if kind == WRAPPED { unwrap(&bytes) } else { None };
            Ok(inner.unwrap_or_else(|| Attribute { kind, value: AttributeValue::Binary(bytes.into()) }))
        }
        (None, None) => Err(strange("an attribute without a value")),
    }
}

/// What the attributes count against limits of size.
pub(super) fn size(attributes: &HashMap<String, MessageAttributeValue>) -> usize {
    let value = |value: &MessageAttributeValue| {
        value.string_value.as_ref().map_or(0, String::len)
            + value.binary_value.as_ref().map_or(0, |blob| blob.as_ref().len())
    };
    attributes.iter().map(|(name, given)| name.len() + given.data_type.len() + value(given)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: &str, text: &str) -> Attribute {
        Attribute { kind: kind.into(), value: AttributeValue::Text(text.into()) }
    }

    fn binary(kind: &str, bytes: &[u8]) -> Attribute {
        Attribute { kind: kind.into(), value: AttributeValue::Binary(Bytes::copy_from_slice(bytes)) }
    }

    #[test]
    fn what_sqs_takes_goes_as_it_is() {
        for attribute in [
            text("String", "✓"),
            text("String.uuid", "x"),
            text("Number", "42"),
            text("Number.int", "-0.5"),
            text("Number", "0"),
            binary("Binary", &[0, 255]),
            binary("Binary.png", b"x"),
        ] {
            let sent = value_of(&attribute).unwrap();
            assert_eq!(sent.data_type, attribute.kind);
            assert_eq!(attribute_of(sent).unwrap(), attribute);
        }
    }

    #[test]
    fn what_sqs_would_refuse_or_change_comes_back_all_the_same() {
        let forty = "1".repeat(40);
        for attribute in [
            text("Number.int", "42 ✓"),
            text("Number", "007"),
            text("Number", "1.50"),
            text("Number", "-0"),
            text("Number", "1e3"),
            text("Number", &forty),
            text("String", "\u{0}"),
            text("String.", "x"),
            text("String.a/b", "x"),
            text("Binary", "x"),
            text("date", "x"),
            binary("String", b"x"),
            binary("jpeg!", &[0, 1, 0]),
            binary(WRAPPED, b"kind\0tvalue"),
        ] {
            let sent = value_of(&attribute).unwrap();
            assert_eq!(sent.data_type, WRAPPED, "{attribute:?}");
            assert_eq!(attribute_of(sent).unwrap(), attribute);
        }
    }

    #[test]
    fn bytes_of_a_stranger_are_not_looked_into() {
        let value =
            MessageAttributeValue::builder().data_type(WRAPPED).binary_value(Blob::new(b"no".to_vec()));
        assert_eq!(attribute_of(value.build().unwrap()).unwrap(), binary(WRAPPED, b"no"));
    }
}
