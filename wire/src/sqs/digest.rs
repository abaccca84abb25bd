//! The MD5 sums that clients check.

use std::collections::BTreeMap;

use anabranch_model::digests::md5_of_each;
use anabranch_model::queue::{Attribute, AttributeValue};
use md5::{Digest, Md5};

/// The sum of a body.
pub(super) fn of_body(body: &[u8]) -> String {
    hex::encode(Md5::digest(body))
}

/// The sums of many bodies in their order; for each much faster than one alone.
pub(super) fn of_bodies<'a>(bodies: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = String> {
    md5_of_each(bodies).into_iter().map(|sum| hex::encode(sum.to_be_bytes()))
}

/// The sum of attributes: of each, in the order of the names, its name, its kind, one byte that tells text from bytes,
/// and its value, all but the byte with their lengths before. None if there are no attributes.
pub(super) fn of_attributes<'a>(
    attributes: impl IntoIterator<Item = (&'a str, &'a Attribute)>,
) -> Option<String> {
    let sorted: BTreeMap<_, _> = attributes.into_iter().collect();
    if sorted.is_empty() {
        return None;
    }
    let mut sum = Md5::new();
    for (name, attribute) in sorted {
        part(&mut sum, name.as_bytes());
        part(&mut sum, attribute.kind.as_bytes());
        match &attribute.value {
            AttributeValue::Text(text) => {
                sum.update([1]);
                part(&mut sum, text.as_bytes());
            }
            AttributeValue::Binary(bytes) => {
                sum.update([2]);
                part(&mut sum, bytes);
            }
        }
    }
    Some(hex::encode(sum.finalize()))
}

fn part(sum: &mut Md5, bytes: &[u8]) {
    // A message has a mebibyte at most.
    sum.update((bytes.len() as u32).to_be_bytes());
    sum.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: &str, text: &str) -> Attribute {
        Attribute { kind: kind.into(), value: AttributeValue::Text(text.into()) }
    }

    #[test]
    fn sums_are_those_of_the_service() {
        // The first is in the documentation of every MD5; the others are what SQS answers.
        assert_eq!(of_body(b"hello world"), "5eb63bbbe01eeed093cb22bb8f5acdc3");
        let two: Vec<_> = of_bodies([&b"hello world"[..], b""].into_iter()).collect();
        assert_eq!(two, ["5eb63bbbe01eeed093cb22bb8f5acdc3", "d41d8cd98f00b204e9800998ecf8427e"]);
        let timestamp = text("Number", "1493147359900");
        let one = of_attributes([("timestamp", &timestamp)]);
        assert_eq!(one.as_deref(), Some("235c5c510d26fb653d073faed50ae77c"));
        let binary =
            Attribute { kind: "Binary".into(), value: AttributeValue::Binary(b"Testing binary"[..].into()) };
        assert!(of_attributes([("b", &binary)]) != of_attributes([("b", &text("Binary", "Testing binary"))]));
        assert_eq!(of_attributes([]), None);
    }

    #[test]
    fn the_order_is_that_of_the_names() {
        let (a, b) = (text("String", "1"), text("String", "2"));
        assert_eq!(of_attributes([("a", &a), ("b", &b)]), of_attributes([("b", &b), ("a", &a)]));
        assert!(of_attributes([("a", &a), ("b", &b)]) != of_attributes([("a", &b), ("b", &a)]));
    }
}
