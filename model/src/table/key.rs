//! Keys: which attributes find an item, and the bytes by which a sorted store keeps items in the order of a table.
//!
//! The bytes of a key are eight bytes of a hash over the hash value, the hash value, and the range value. Items of
//! one hash value lie together, by their range values; the groups lie in the order of their hashes, so that an equal
//! cut through the hashes is an equal cut through the items. Each part says where it ends: the bytes of a key of an
//! index may be followed by those of the table's key, and several attributes that together are the hash or the range of
//! an index stand one behind the other.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::number::Number;
use super::value::{Item, Kind, Value};
use crate::error::{Error, Result};
use crate::hash_key::HashKey;
use crate::limits::{HASH_VALUE_BYTES_MAX, KEY_ATTRIBUTES_MAX, KEY_NAME_BYTES_MAX, RANGE_VALUE_BYTES_MAX};
use crate::name::excerpt;

/// Bytes of the hash in front of the hash value.
pub const HASH_BYTES: usize = 8;
/// What a zero byte of a text or binary is followed by in a key.
const ESCAPED_ZERO: u8 = 0xff;
/// What follows the zero byte that ends a text or binary in a key; smaller than [`ESCAPED_ZERO`], so that a prefix
/// sorts before what it begins.
const END: u8 = 0;

/// What a value of a key can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// Text, in the order of its UTF-8 bytes.
    Text,
    /// A number, in the order of numbers.
    Number,
    /// Bytes, in their order, unsigned.
    Binary,
}

impl KeyKind {
    /// The kind of value that this is.
    pub fn kind(self) -> Kind {
        match self {
            KeyKind::Text => Kind::Text,
            KeyKind::Number => Kind::Number,
            KeyKind::Binary => Kind::Binary,
        }
    }
}

/// An attribute of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyAttribute {
    /// Its name.
    pub name: String,
    /// What its value is in every item.
    pub kind: KeyKind,
}

/// Which attributes find an item of a table or an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySchema {
    /// Items with one value of it lie together.
    pub hash: KeyAttribute,
    /// Orders the items with one hash value.
    pub range: Option<KeyAttribute>,
    /// What belongs to the hash beside its first attribute; a global index may have some.
    pub hash_rest: Vec<KeyAttribute>,
    /// What orders those items further that have one value of the first range attribute.
    pub range_rest: Vec<KeyAttribute>,
}

/// One value of a key. The derived order is that of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyValue {
    /// Text, not empty.
    Text(String),
    /// A number.
    Number(Number),
    /// Bytes, not empty.
    Binary(Bytes),
}

/// The key of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The value of the hash attribute.
    pub hash: KeyValue,
    /// The value of the range attribute, where the schema has one.
    pub range: Option<KeyValue>,
    /// The values of the other attributes of the hash.
    pub hash_rest: Vec<KeyValue>,
    /// The values of the other attributes of the range.
    pub range_rest: Vec<KeyValue>,
}

impl KeySchema {
    /// A key of one attribute.
    pub fn hash(name: impl Into<String>, kind: KeyKind) -> Self {
        KeySchema::new(KeyAttribute { name: name.into(), kind }, None)
    }

    /// A key of one attribute or of two.
    pub fn new(hash: KeyAttribute, range: Option<KeyAttribute>) -> Self {
        KeySchema { hash, range, hash_rest: Vec::new(), range_rest: Vec::new() }
    }

    /// The key of an index whose hash and range may have several attributes each. None without any in the hash.
    pub fn several(hash: Vec<KeyAttribute>, range: Vec<KeyAttribute>) -> Option<Self> {
        let (mut hash, mut range) = (hash.into_iter(), range.into_iter());
        let (first, first_range) = (hash.next()?, range.next());
        Some(KeySchema {
            hash: first,
            range: first_range,
            hash_rest: hash.collect(),
            range_rest: range.collect(),
        })
    }

    /// This key with a range attribute.
    pub fn and_range(mut self, name: impl Into<String>, kind: KeyKind) -> Self {
        self.range = Some(KeyAttribute { name: name.into(), kind });
        self
    }

    /// The attributes, those of the hash first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.hash_attributes().chain(self.range_attributes())
    }

    /// The attributes of the hash.
    pub fn hash_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        std::iter::once(&self.hash).chain(&self.hash_rest)
    }

    /// The attributes of the range, if there is one.
    pub fn range_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.range.iter().chain(&self.range_rest)
    }

    /// Whether an attribute belongs to the hash.
    pub fn hashes(&self, attribute: &str) -> bool {
        self.hash_attributes().any(|part| part.name == attribute)
    }

    /// Whether the hash or the range has several attributes.
    pub fn has_several(&self) -> bool {
        !self.hash_rest.is_empty() || !self.range_rest.is_empty()
    }

    /// Whether an attribute is part of the key.
    pub fn names(&self, attribute: &str) -> bool {
        self.attributes().any(|part| part.name == attribute)
    }

    /// Whether a table or an index may have this key.
    pub fn check(&self) -> Result<()> {
        for part in self.attributes() {
            if !(1..=KEY_NAME_BYTES_MAX).contains(&part.name.len()) {
                return Err(Error::Invalid(format!(
                    "the key attribute name {} has {} bytes: 1 to {KEY_NAME_BYTES_MAX} are allowed",
                    excerpt(&part.name),
                    part.name.len()
                )));
            }
        }
        for (what, count) in [("hash", 1 + self.hash_rest.len()), ("range", self.range_attributes().count())]
        {
            if count > KEY_ATTRIBUTES_MAX {
                return Err(Error::Invalid(format!(
                    "the {what} of a key has {count} attributes: at most {KEY_ATTRIBUTES_MAX} are allowed"
                )));
            }
        }
        let mut names = BTreeSet::new();
        match self.attributes().find(|part| !names.insert(&part.name)) {
            Some(twice) => {
                let name = excerpt(&twice.name);
                Err(Error::Invalid(format!("attribute {name} cannot be two parts of a key")))
            }
            None => Ok(()),
        }
    }

    /// The key of an item. An attribute that is missing, of another kind, empty or too large is an error.
    pub fn key_of(&self, item: &Item) -> Result<Key> {
        let value = |part: &KeyAttribute, bytes_max| {
            let missing = || Error::Invalid(format!("the key attribute {} is missing", excerpt(&part.name)));
            KeyValue::of(item.get(&part.name).ok_or_else(missing)?, part, bytes_max)
        };
        let all = |parts: &[KeyAttribute], bytes_max| -> Result<Vec<KeyValue>> {
            parts.iter().map(|part| value(part, bytes_max)).collect()
        };
        Ok(Key {
            hash: value(&self.hash, HASH_VALUE_BYTES_MAX)?,
            range: self.range.as_ref().map(|range| value(range, RANGE_VALUE_BYTES_MAX)).transpose()?,
            hash_rest: all(&self.hash_rest, HASH_VALUE_BYTES_MAX)?,
            range_rest: all(&self.range_rest, RANGE_VALUE_BYTES_MAX)?,
        })
    }

    /// The key that `attributes` spell; an attribute that is not part of the key is an error too.
    pub fn exact_key(&self, attributes: &Item) -> Result<Key> {
        let key = self.key_of(attributes)?;
        match attributes.iter().find(|(name, _)| !self.names(name)) {
            Some((name, _)) => {
                let name = excerpt(name);
                Err(Error::Invalid(format!("attribute {name} is not part of the key")))
            }
            None => Ok(key),
        }
    }

    /// The key of an item in an index; none if the item lacks an attribute, for then the index does not hold it. An
    /// attribute of another kind, an empty or a too large one is an error.
    pub fn index_key_of(&self, item: &Item) -> Result<Option<Key>> {
        for part in self.attributes() {
            if let Some(value) = item.get(&part.name) {
                let hash = self.hashes(&part.name);
                KeyValue::of(value, part, if hash { HASH_VALUE_BYTES_MAX } else { RANGE_VALUE_BYTES_MAX })?;
            }
        }
        let complete = self.attributes().all(|part| item.get(&part.name).is_some());
        complete.then(|| self.key_of(item)).transpose()
    }

    /// A key as attributes.
    pub fn item(&self, key: &Key) -> Item {
        let values = key.hash_values().chain(key.range_values());
        self.attributes().zip(values).map(|(part, value)| (&part.name, value.value())).collect()
    }

    /// Reads a key from the start of `from`, and moves `from` behind it.
    pub fn decode(&self, from: &mut &[u8]) -> Result<Key> {
        let (_, rest) = from.split_at_checked(HASH_BYTES).ok_or_else(damaged)?;
        *from = rest;
        let mut value = |part: &KeyAttribute| KeyValue::decode(part.kind, from);
        let hash = value(&self.hash)?;
        let hash_rest = self.hash_rest.iter().map(&mut value).collect::<Result<_>>()?;
        let range = self.range.as_ref().map(&mut value).transpose()?;
        let range_rest = self.range_rest.iter().map(&mut value).collect::<Result<_>>()?;
        Ok(Key { hash, range, hash_rest, range_rest })
    }
}

impl KeyValue {
    fn of(value: &Value, part: &KeyAttribute, bytes_max: usize) -> Result<KeyValue> {
        let refuse = |why: String| {
            let name = excerpt(&part.name);
            Err(Error::Invalid(format!("the key attribute {name} {why}")))
        };
        let (key_value, bytes) = match (value, part.kind) {
            (Value::Text(text), KeyKind::Text) => (KeyValue::Text(text.clone()), text.len()),
            (Value::Number(number), KeyKind::Number) => return Ok(KeyValue::Number(*number)),
            (Value::Binary(bytes), KeyKind::Binary) => (KeyValue::Binary(bytes.clone()), bytes.len()),
            _ => {
                let (wanted, given) = (part.kind.kind(), value.kind());
                return refuse(format!("must be {wanted}, not {given}"));
            }
        };
        if bytes == 0 {
            return refuse("is empty".to_string());
        }
        if bytes > bytes_max {
            return refuse(format!("has {bytes} bytes: at most {bytes_max} are allowed"));
        }
        Ok(key_value)
    }

    /// The value as an item holds it.
    pub fn value(&self) -> Value {
        match self {
            KeyValue::Text(text) => Value::Text(text.clone()),
            KeyValue::Number(number) => Value::Number(*number),
            KeyValue::Binary(bytes) => Value::Binary(bytes.clone()),
        }
    }

    /// The value as a text, for instance as the partition key of a record; a binary in hexadecimal.
    pub fn text(&self) -> String {
        match self {
            KeyValue::Text(text) => text.clone(),
            KeyValue::Number(number) => number.to_string(),
            KeyValue::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Appends bytes that sort as the values do and that say where they end.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            KeyValue::Number(number) => number.encode(into),
            KeyValue::Text(_) | KeyValue::Binary(_) => {
                self.encode_start(into);
                into.extend([0, END]);
            }
        }
    }

    /// Appends the bytes that every text or binary that begins with this one begins with. A number has none.
    pub fn encode_start(&self, into: &mut Vec<u8>) {
        let bytes = match self {
            KeyValue::Number(_) => return,
            KeyValue::Text(text) => text.as_bytes(),
            KeyValue::Binary(bytes) => bytes,
        };
        for byte in bytes {
            into.push(*byte);
            if *byte == 0 {
                into.push(ESCAPED_ZERO);
            }
        }
    }

    /// Reads a value from the start of `from`, and moves `from` behind it.
    pub fn decode(kind: KeyKind, from: &mut &[u8]) -> Result<KeyValue> {
        if kind == KeyKind::Number {
            return Number::decode(from).map(KeyValue::Number);
        }
        let mut bytes = Vec::new();
        loop {
            let zero = from.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
            let mark = *from.get(zero + 1).ok_or_else(damaged)?;
            bytes.extend_from_slice(&from[..zero]);
            *from = &from[zero + 2..];
            match mark {
                END => break,
                ESCAPED_ZERO => bytes.push(0),
                _ => return Err(damaged()),
            }
        }
        match kind {
            KeyKind::Text => String::from_utf8(bytes).map(KeyValue::Text).map_err(|_| damaged()),
            _ => Ok(KeyValue::Binary(bytes.into())),
        }
    }
}

impl Key {
    /// A key of one value or of two.
    pub fn new(hash: KeyValue, range: Option<KeyValue>) -> Self {
        Key { hash, range, hash_rest: Vec::new(), range_rest: Vec::new() }
    }

    fn hash_values(&self) -> impl Iterator<Item = &KeyValue> {
        std::iter::once(&self.hash).chain(&self.hash_rest)
    }

    fn range_values(&self) -> impl Iterator<Item = &KeyValue> {
        self.range.iter().chain(&self.range_rest)
    }

    /// Appends bytes that sort as the items of a table do and that say where they end.
    pub fn encode(&self, into: &mut Vec<u8>) {
        self.encode_group(into);
        self.range_values().for_each(|value| value.encode(into));
    }

    /// Appends the bytes that the keys with this hash value begin with, and no others.
    pub fn encode_group(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend([0; HASH_BYTES]);
        self.hash_values().for_each(|value| value.encode(into));
        let place = placed(&into[start + HASH_BYTES..]);
        into[start..start + HASH_BYTES].copy_from_slice(&place.to_be_bytes());
    }

    /// The bytes of this key alone.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Where the hash value lies among all hash values. Parallel scans cut the items by it.
    pub fn place(&self) -> u64 {
        let mut bytes = Vec::new();
        self.hash_values().for_each(|value| value.encode(&mut bytes));
        placed(&bytes)
    }
}

fn placed(hash_value: &[u8]) -> u64 {
    (HashKey::of(hash_value).get() >> 64) as u64
}

fn damaged() -> Error {
    Error::Corrupt("an encoded key is damaged".to_string())
}
