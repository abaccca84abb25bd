//! Items as JSON: plain, as people write it, or with the kind of each value. Numbers keep all their digits either way.

use std::collections::BTreeMap;

use anabranch_model::limits::NESTING_MAX;
use anabranch_model::table::{Item, Value};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

use crate::api::text::Base64;
use crate::api::wire::{ItemBody, Mirror, ValueBody};
use crate::failure::Failure;

/// How items are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As people write JSON. Sets show as arrays and binaries as base64.
    Plain,
    /// Each value beside its kind.
    Tagged,
}

impl Form {
    /// A value from its JSON.
    pub(super) fn value(self, text: &str) -> Result<Value, Failure> {
        match self {
            Form::Tagged => parsed::<ValueBody>(text, text).map(Mirror::back),
            Form::Plain => plain(text, 0),
        }
    }

    /// An item or a key from its JSON.
    pub(super) fn item(self, text: &str) -> Result<Item, Failure> {
        match self {
            Form::Tagged => parsed::<ItemBody>(text, text).map(Mirror::back),
            Form::Plain => match plain(text, 0)? {
                Value::Map(item) => Ok(item),
                _ => Err(Failure::usage(
                    format!("{text} is not an object"),
                    "an item or a key is written like {\"id\": \"a\"}",
                )),
            },
        }
    }

    /// An item as it is printed.
    pub(super) fn shown(self, item: &Item) -> Shown {
        match self {
            Form::Plain => Shown::Plain(Value::Map(item.clone())),
            Form::Tagged => Shown::Tagged(Mirror::of(item.clone())),
        }
    }
}

fn parsed<T: DeserializeOwned>(text: &str, whole: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(
            format!("{whole} is not understood: {error}"),
            "write JSON like {\"id\": \"a\", \"n\": 1}, or with --tagged like {\"id\": {\"S\": \"a\"}}",
        )
    })
}

/// Numbers are taken from the text itself: a number of JSON may be rounded by its reader.
fn plain(text: &str, depth: usize) -> Result<Value, Failure> {
    if depth > NESTING_MAX + 1 {
        return Err(Failure::usage(
            format!("lists and maps nest more than {NESTING_MAX} levels deep"),
            "make it flatter",
        ));
    }
    let raw: Box<RawValue> = parsed(text, text)?;
    let inner = |value: &RawValue| plain(value.get(), depth + 1);
    Ok(match raw.get().as_bytes().first() {
        Some(b'{') => {
            let map: BTreeMap<String, Box<RawValue>> = parsed(raw.get(), text)?;
            let entries = map.into_iter().map(|(name, value)| Ok((name, inner(&value)?)));
            Value::Map(entries.collect::<Result<Vec<_>, Failure>>()?.into_iter().collect())
        }
        Some(b'[') => {
            let list: Vec<Box<RawValue>> = parsed(raw.get(), text)?;
            Value::List(list.iter().map(|value| inner(value)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(parsed(raw.get(), text)?),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => Value::Null,
        _ => Value::number(raw.get())?,
    })
}

/// An item that can be printed as JSON.
#[derive(Debug)]
pub(super) enum Shown {
    Plain(Value),
    Tagged(ItemBody),
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shown::Plain(value) => Plain(value).serialize(serializer),
            Shown::Tagged(item) => item.serialize(serializer),
        }
    }
}

/// A value as plain JSON.
pub(super) struct Plain<'a>(pub(super) &'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number =
            |number: &dyn ToString| RawValue::from_string(number.to_string()).map_err(ser::Error::custom);
        match self.0 {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Number(value) => number(value)?.serialize(serializer),
            Value::Binary(bytes) => Base64(bytes.clone()).serialize(serializer),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Null => serializer.serialize_unit(),
            Value::List(list) => serializer.collect_seq(list.iter().map(Plain)),
            Value::Map(map) => serializer.collect_map(map.iter().map(|(name, value)| (name, Plain(value)))),
            Value::TextSet(set) => serializer.collect_seq(set),
            Value::NumberSet(set) => {
                serializer.collect_seq(set.iter().map(|value| number(value)).collect::<Result<Vec<_>, _>>()?)
            }
            Value::BinarySet(set) => serializer.collect_seq(set.iter().map(|bytes| Base64(bytes.clone()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_survives() {
        let text = r#"{"id":"a","list":[null,true,{"x":-0.00012345678901234567890123456789012345678}],"n":12345678901234567890123456789012345678}"#;
        let item = Form::Plain.item(text).unwrap();
        assert_eq!(serde_json::to_string(&Form::Plain.shown(&item)).unwrap(), text);
        let tagged = serde_json::to_string(&Form::Tagged.shown(&item)).unwrap();
        assert!(tagged.contains(r#""n":{"N":"12345678901234567890123456789012345678"}"#), "{tagged}");
        assert_eq!(Form::Tagged.item(&tagged).unwrap(), item);
    }

    #[test]
    fn what_is_no_item_is_refused() {
        for wrong in ["", "1", "[1]", "{", r#"{"a":1} x"#, r#"{"a":1e999}"#, &"[".repeat(100_000)] {
            assert!(Form::Plain.item(wrong).is_err());
            assert!(Form::Tagged.item(wrong).is_err());
        }
    }
}
