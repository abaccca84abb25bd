//! What an item takes of a page.
//!
//! A page is filled by what items take where DynamoDB keeps them, not by the sizes that count against other limits. Names
//! of attributes are short there, values say how long they are, and an item lies in stretches each of which repeats its
//! range value. The numbers follow from pages that end just before and just behind the limit.

use super::value::{Item, Value};

/// Bytes of an item after which another stretch begins.
const STRETCH_BYTES: usize = 3_072;
/// What a stretch takes beside the range value.
const STRETCH_HEAD_BYTES: usize = 18;
/// What an item takes beside its stretches.
const ITEM_HEAD_BYTES: usize = 2;
/// The name of an attribute.
const NAME_BYTES: usize = 1;
/// What a list or map takes beside its elements, and each element beside itself.
const CONTAINER_BYTES: usize = 3;
const ELEMENT_BYTES: usize = 1;

/// Bytes of a page that an item takes; `range` is the range attribute of its table.
pub(super) fn taken(item: &Item, range: Option<&str>) -> usize {
    let range_value = range.and_then(|name| item.get(name)).map_or(0, Value::size);
    let others = item.iter().filter(|(name, _)| Some(*name) != range);
    let bytes: usize = others.map(|(_, value)| NAME_BYTES + kept(value)).sum();
    let stretches = 1 + (1 + bytes) / STRETCH_BYTES;
    ITEM_HEAD_BYTES + bytes + stretches * (STRETCH_HEAD_BYTES + range_value)
}

/// Bytes that a value takes with its length.
fn kept(value: &Value) -> usize {
    let elements = |count: usize| 1 + count + value.size();
    match value {
        Value::Text(text) => with_length(text.len()),
        Value::Binary(bytes) => with_length(bytes.len()),
        Value::Number(_) => 1 + value.size(),
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::List(list) => {
            CONTAINER_BYTES + list.iter().map(|value| ELEMENT_BYTES + kept(value)).sum::<usize>()
        }
        Value::Map(map) => {
            let entry = |(_, value): (&str, &Value)| ELEMENT_BYTES + NAME_BYTES + kept(value);
            CONTAINER_BYTES + map.iter().map(entry).sum::<usize>()
        }
        Value::TextSet(set) => elements(set.len()),
        Value::NumberSet(set) => elements(set.len()),
        Value::BinarySet(set) => elements(set.len()),
    }
}

/// A length is written in as many bytes as it needs, seven bits in each.
fn with_length(bytes: usize) -> usize {
    bytes
        + match bytes {
            0..0x80 => 1,
            0x80..0x4000 => 2,
            _ => 3,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::QUERY_BYTES_MAX;

    fn item(bytes: usize) -> Item {
        Item::new().with("a", "0123456789").with("b", "00").with("e", "e".repeat(bytes))
    }

    /// Pages that DynamoDB was seen to end, and others that it was seen to go on with.
    #[test]
    fn pages_end_where_the_service_ends_them() {
        let of = |bytes: usize| taken(&item(bytes), Some("b"));
        assert_eq!(25 * of(41_645), QUERY_BYTES_MAX - 1, "goes on");
        assert_eq!(24 * of(41_645) + of(41_646), QUERY_BYTES_MAX, "ends");
        assert_eq!(23 * of(43_372) + of(43_387), QUERY_BYTES_MAX - 1, "goes on");
        assert_eq!(23 * of(43_372) + of(43_388), QUERY_BYTES_MAX, "ends");
    }

    #[test]
    fn every_value_takes_something_of_a_page() {
        let map: Item = Item::new().with("x", 1).with("y", Value::Null);
        for (value, bytes) in [
            (Value::from("x"), 2),
            (Value::from("x".repeat(200)), 202),
            (Value::Null, 0),
            (Value::from(true), 1),
            (Value::from(1), 3),
            (Value::List(vec![Value::from("x"), Value::Null]), 3 + 1 + 2 + 1),
            (Value::Map(map), 3 + 2 + 3 + 2),
            (Value::TextSet(["a".to_string(), "bc".to_string()].into()), 1 + 2 + 3),
        ] {
            assert_eq!(kept(&value), bytes, "{value:?}");
        }
    }
}
