//! Conditions on a key, as a query has them: one hash value, and a stretch of its range values. Where hash and range of an
//! index have several attributes, every one of the hash has a value, and so have the first ones of the range.

use super::operand::Comparison;
use crate::error::{Error, Result};
use crate::name::excerpt;
use crate::table::key::{Key, KeyAttribute, KeyKind, KeySchema, KeyValue};
use crate::table::value::{Item, Value};

/// Which items a query looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCondition {
    /// The name of the hash attribute.
    pub attribute: String,
    /// The value that it has.
    pub value: Value,
    /// What holds for the range attribute with this name. Behind attributes that have a value it is the next one.
    pub range: Option<(String, RangeCondition)>,
    /// The values of other attributes by their names: of all others of the hash, and of the first ones of the range.
    pub others: Vec<(String, Value)>,
}

/// What holds for a range value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeCondition {
    /// It compares so with the value; [`Comparison::NotEqual`] is refused.
    Compare(Comparison, Value),
    /// It lies between the two, or is one of them.
    Between(Value, Value),
    /// It is a text or binary with this beginning.
    BeginsWith(Value),
}

/// The bytes of the keys that a condition covers: from `from` on, and before `before`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBounds {
    /// The first of them, or smaller.
    pub from: Vec<u8>,
    /// Larger than the last of them; none if everything behind `from` belongs to them.
    pub before: Option<Vec<u8>>,
}

impl KeyCondition {
    /// The items with this hash value.
    pub fn of(attribute: impl Into<String>, value: impl Into<Value>) -> Self {
        KeyCondition { attribute: attribute.into(), value: value.into(), range: None, others: Vec::new() }
    }

    /// Those of them that have this value of another attribute.
    pub fn also(mut self, attribute: impl Into<String>, value: impl Into<Value>) -> Self {
        self.others.push((attribute.into(), value.into()));
        self
    }

    /// Those of them whose range value fulfils this.
    pub fn and(mut self, attribute: impl Into<String>, range: RangeCondition) -> Self {
        self.range = Some((attribute.into(), range));
        self
    }

    /// The bytes of the keys that this covers, for a table or an index with this key. A condition that names other
    /// attributes, values of other kinds or bounds in the wrong order is an error.
    pub fn bounds(&self, schema: &KeySchema) -> Result<KeyBounds> {
        if self.attribute != schema.hash.name {
            return Err(stranger(&self.attribute, "hash"));
        }
        let other = |part: &KeyAttribute| {
            let found = self.others.iter().find(|(name, _)| *name == part.name);
            found.map(|(_, value)| key_value(value, part))
        };
        let mut key = Key::new(key_value(&self.value, &schema.hash)?, None);
        for part in &schema.hash_rest {
            key.hash_rest.push(other(part).unwrap_or_else(|| Err(stranger(&self.attribute, "whole hash")))?);
        }
        let mut group = Vec::new();
        key.encode_group(&mut group);
        let mut used = key.hash_rest.len();
        let mut parts = schema.range_attributes();
        let attribute = loop {
            let Some(part) = parts.next() else { break None };
            let Some(value) = other(part) else { break Some(part) };
            value?.encode(&mut group);
            used += 1;
        };
        if used != self.others.len() {
            let why = "the key condition has values that are not those of the next attributes of the key";
            return Err(Error::Invalid(why.to_string()));
        }
        match (&self.range, attribute) {
            (None, _) => Ok(KeyBounds { before: behind(&group), from: group }),
            (Some((name, range)), Some(attribute)) if *name == attribute.name => {
                range.bounds(group, attribute)
            }
            (Some((name, _)), _) => Err(stranger(name, "range")),
        }
    }

    /// Whether an item of a table or an index is covered.
    pub fn holds(&self, item: &Item) -> bool {
        let range = |(name, range): &(String, RangeCondition)| item.get(name).is_some_and(|v| range.holds(v));
        item.get(&self.attribute) == Some(&self.value)
            && self.others.iter().all(|(name, value)| item.get(name) == Some(value))
            && self.range.as_ref().is_none_or(range)
    }
}

impl RangeCondition {
    /// The range value is this.
    pub fn equals(value: impl Into<Value>) -> Self {
        RangeCondition::Compare(Comparison::Equal, value.into())
    }

    /// The range value is smaller.
    pub fn below(value: impl Into<Value>) -> Self {
        RangeCondition::Compare(Comparison::Below, value.into())
    }

    /// The range value is smaller or the same.
    pub fn at_most(value: impl Into<Value>) -> Self {
        RangeCondition::Compare(Comparison::AtMost, value.into())
    }

    /// The range value is larger.
    pub fn above(value: impl Into<Value>) -> Self {
        RangeCondition::Compare(Comparison::Above, value.into())
    }

    /// The range value is larger or the same.
    pub fn at_least(value: impl Into<Value>) -> Self {
        RangeCondition::Compare(Comparison::AtLeast, value.into())
    }

    /// The range value lies between the two, or is one of them.
    pub fn between(lower: impl Into<Value>, upper: impl Into<Value>) -> Self {
        RangeCondition::Between(lower.into(), upper.into())
    }

    /// The range value begins so.
    pub fn begins_with(start: impl Into<Value>) -> Self {
        RangeCondition::BeginsWith(start.into())
    }

    /// Whether a range value fulfils this.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            RangeCondition::Compare(how, other) => how.holds(value, other),
            RangeCondition::Between(lower, upper) => {
                Comparison::AtLeast.holds(value, lower) && Comparison::AtMost.holds(value, upper)
            }
            RangeCondition::BeginsWith(start) => match (value, start) {
                (Value::Text(text), Value::Text(start)) => text.starts_with(start.as_str()),
                (Value::Binary(bytes), Value::Binary(start)) => bytes.starts_with(start),
                _ => false,
            },
        }
    }

    /// `group` are the bytes that the keys with the hash value begin with.
    fn bounds(&self, group: Vec<u8>, attribute: &KeyAttribute) -> Result<KeyBounds> {
        let range_value = |value: &Value| key_value(value, attribute);
        let encoded = |value: &KeyValue| {
            let mut bytes = group.clone();
            value.encode(&mut bytes);
            bytes
        };
        let (from, before) = match self {
            RangeCondition::Compare(how, value) => {
                let bytes = encoded(&range_value(value)?);
                match how {
                    Comparison::Equal => (bytes.clone(), behind(&bytes)),
                    Comparison::Below => (group, Some(bytes)),
                    Comparison::AtMost => (group, behind(&bytes)),
                    Comparison::Above => (behind(&bytes).unwrap_or(bytes), behind(&group)),
                    Comparison::AtLeast => (bytes, behind(&group)),
                    Comparison::NotEqual => {
                        let why = "a condition on a key cannot ask for another value than one";
                        return Err(Error::Invalid(why.to_string()));
                    }
                }
            }
            RangeCondition::Between(lower, upper) => {
                let [low, high] = [range_value(lower)?, range_value(upper)?];
                if low > high {
                    return Err(Error::Invalid(format!(
                        "the lower bound {lower:?} lies above the upper bound {upper:?}"
                    )));
                }
                (encoded(&low), behind(&encoded(&high)))
            }
            RangeCondition::BeginsWith(_) if attribute.kind == KeyKind::Number => {
                let name = excerpt(&attribute.name);
                return Err(Error::Invalid(format!(
                    "the key attribute {name} is a number: it begins with nothing"
                )));
            }
            RangeCondition::BeginsWith(start) => {
                let mut bytes = group;
                range_value(start)?.encode_start(&mut bytes);
                (bytes.clone(), behind(&bytes))
            }
        };
        Ok(KeyBounds { from, before })
    }
}

/// A value as the key has it.
fn key_value(value: &Value, attribute: &KeyAttribute) -> Result<KeyValue> {
    let schema = KeySchema::new(attribute.clone(), None);
    schema.key_of(&Item::new().with(&attribute.name, value.clone())).map(|key| key.hash)
}

fn stranger(name: &str, part: &str) -> Error {
    let name = excerpt(name);
    Error::Invalid(format!("attribute {name} of the key condition is not the {part} attribute of the key"))
}

/// The smallest bytes that are larger than everything that begins with `start`; none if there are none.
fn behind(start: &[u8]) -> Option<Vec<u8>> {
    let last = start.iter().rposition(|byte| *byte != 0xff)?;
    let mut bytes = start[..=last].to_vec();
    bytes[last] += 1;
    Some(bytes)
}
