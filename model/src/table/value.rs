//! Values, and items, which are maps of named values.
//!
//! What must hold: an item that a store takes has passed [`Item::check`]. Sizes follow one rule everywhere, for the
//! limit of an item, for pages and for the figures of a table.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use smol_str::SmolStr;

use super::number::Number;
use crate::error::{Error, Result};
use crate::limits::{ATTRIBUTE_NAME_BYTES_MAX, ITEM_BYTES_MAX, NESTING_MAX};
use crate::name::excerpt;

/// Bytes that a list or map takes beyond its elements.
const CONTAINER_BYTES: usize = 3;
/// Bytes that an element of a list or map takes beyond its name and value.
const ELEMENT_BYTES: usize = 1;

/// One value of an item.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// Text in UTF-8.
    Text(String),
    /// A decimal.
    Number(Number),
    /// Bytes.
    Binary(Bytes),
    /// True or false.
    Bool(bool),
    /// Known to be nothing.
    Null,
    /// Values of any kinds, in order.
    List(Vec<Value>),
    /// Values of any kinds, by name.
    Map(Item),
    /// Texts without order, each once.
    TextSet(BTreeSet<String>),
    /// Numbers without order, each once.
    NumberSet(BTreeSet<Number>),
    /// Byte strings without order, each once.
    BinarySet(BTreeSet<Bytes>),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// [`Value::Text`].
    Text,
    /// [`Value::Number`].
    Number,
    /// [`Value::Binary`].
    Binary,
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Null`].
    Null,
    /// [`Value::List`].
    List,
    /// [`Value::Map`].
    Map,
    /// [`Value::TextSet`].
    TextSet,
    /// [`Value::NumberSet`].
    NumberSet,
    /// [`Value::BinarySet`].
    BinarySet,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Binary => "binary",
            Kind::Bool => "bool",
            Kind::Null => "null",
            Kind::List => "list",
            Kind::Map => "map",
            Kind::TextSet => "set of texts",
            Kind::NumberSet => "set of numbers",
            Kind::BinarySet => "set of binaries",
        })
    }
}

impl Value {
    /// A set of texts; an element that comes twice is an error, and so is none at all.
    pub fn text_set<T: Into<String>>(elements: impl IntoIterator<Item = T>) -> Result<Value> {
        set(elements.into_iter().map(Into::into)).map(Value::TextSet)
    }

    /// A set of numbers; a number that comes twice, however it was written, is an error, and so is none at all.
    pub fn number_set<T: Into<Number>>(elements: impl IntoIterator<Item = T>) -> Result<Value> {
        set(elements.into_iter().map(Into::into)).map(Value::NumberSet)
    }

    /// A set of byte strings; an element that comes twice is an error, and so is none at all.
    pub fn binary_set<T: Into<Bytes>>(elements: impl IntoIterator<Item = T>) -> Result<Value> {
        set(elements.into_iter().map(Into::into)).map(Value::BinarySet)
    }

    /// A number from its text.
    pub fn number(text: &str) -> Result<Value> {
        text.parse().map(Value::Number)
    }

    /// What this is.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Text(_) => Kind::Text,
            Value::Number(_) => Kind::Number,
            Value::Binary(_) => Kind::Binary,
            Value::Bool(_) => Kind::Bool,
            Value::Null => Kind::Null,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
            Value::TextSet(_) => Kind::TextSet,
            Value::NumberSet(_) => Kind::NumberSet,
            Value::BinarySet(_) => Kind::BinarySet,
        }
    }

    /// Bytes that count against limits.
    pub fn size(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Number(number) => number_size(number),
            Value::Binary(bytes) => bytes.len(),
            Value::Bool(_) | Value::Null => 1,
            Value::List(list) => {
                CONTAINER_BYTES + list.iter().map(|value| ELEMENT_BYTES + value.size()).sum::<usize>()
            }
            Value::Map(map) => CONTAINER_BYTES + ELEMENT_BYTES * map.len() + map.size(),
            Value::TextSet(set) => set.iter().map(String::len).sum(),
            Value::NumberSet(set) => set.iter().map(number_size).sum(),
            Value::BinarySet(set) => set.iter().map(Bytes::len).sum(),
        }
    }

    /// Whether an item may hold this value under `name`, except for its size.
    pub fn check(&self, name: &str) -> Result<()> {
        self.check_at(name, 0)
    }

    /// `depth` counts the lists and maps around this value.
    fn check_at(&self, name: &str, depth: usize) -> Result<()> {
        let empty = match self {
            Value::TextSet(set) => set.is_empty(),
            Value::NumberSet(set) => set.is_empty(),
            Value::BinarySet(set) => set.is_empty(),
            _ => false,
        };
        if empty {
            let name = excerpt(name);
            return Err(Error::Invalid(format!("attribute {name} holds an empty set: a set has an element")));
        }
        if matches!(self, Value::List(_) | Value::Map(_)) && depth == NESTING_MAX {
            return Err(Error::Invalid(format!(
                "attribute {} nests lists and maps more than {NESTING_MAX} levels deep",
                excerpt(name)
            )));
        }
        match self {
            Value::List(list) => list.iter().try_for_each(|value| value.check_at(name, depth + 1)),
            Value::Map(map) => map.iter().try_for_each(|(inner, value)| {
                check_attribute_name(inner)?;
                value.check_at(name, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}

fn set<T: Ord>(elements: impl Iterator<Item = T>) -> Result<BTreeSet<T>> {
    let mut set = BTreeSet::new();
    for element in elements {
        if !set.insert(element) {
            return Err(Error::Invalid("a set holds an element twice".to_string()));
        }
    }
    if set.is_empty() {
        return Err(Error::Invalid("a set is empty: it must have an element".to_string()));
    }
    Ok(set)
}

/// One byte, one for two digits, and one for a minus.
fn number_size(number: &Number) -> usize {
    1 + number.digits().div_ceil(2) + usize::from(number.is_negative())
}

fn check_attribute_name(name: &str) -> Result<()> {
    if (1..=ATTRIBUTE_NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the attribute name {} has {} bytes: 1 to {ATTRIBUTE_NAME_BYTES_MAX} are allowed",
        excerpt(name),
        name.len()
    )))
}

/// Named values, in the order of their names. An item of a table is one, and so is a key, and a map within an item.
///
/// They lie in one piece of memory, and short names, which most are, with them: a page has thousands, and most items have few.
/// To make an item of many attributes that come in any order, collect them: each that is inserted moves those behind it.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Item(Vec<(SmolStr, Value)>);

impl Item {
    /// Without any attribute.
    pub fn new() -> Self {
        Item::default()
    }

    /// This item with one attribute more, or with another value for it.
    pub fn with(mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Without any attribute, and with room for so many.
    pub(super) fn with_room(attributes: usize) -> Self {
        Item(Vec::with_capacity(attributes))
    }

    /// Where an attribute stands, or where it would.
    fn place(&self, name: &str) -> std::result::Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).ok().map(|place| &self.0[place].1)
    }

    /// The value of an attribute, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.place(name).ok().map(|place| &mut self.0[place].1)
    }

    /// Gives an attribute a value; returns the one that it had.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.as_ref(), value.into());
        match self.place(name) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (SmolStr::new(name), value));
                None
            }
        }
    }

    /// Gives an attribute behind all others a value; returns whether it is behind them.
    pub(super) fn push(&mut self, name: SmolStr, value: Value) -> bool {
        let behind = self.0.last().is_none_or(|(last, _)| last.as_str() < name.as_str());
        if behind {
            self.0.push((name, value));
        }
        behind
    }

    /// Takes an attribute away.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.place(name).ok().map(|place| self.0.remove(place).1)
    }

    /// Attributes by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that count against limits: names and values.
    pub fn size(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.size()).sum()
    }

    /// Whether a store may hold this item, as far as it can be told without its key.
    pub fn check(&self) -> Result<()> {
        for (name, value) in self.iter() {
            check_attribute_name(name)?;
            value.check(name)?;
        }
        let size = self.size();
        if size > ITEM_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the item has {size} bytes: at most {ITEM_BYTES_MAX} are allowed, names of attributes included"
            )));
        }
        Ok(())
    }
}

impl<N: AsRef<str>, V: Into<Value>> FromIterator<(N, V)> for Item {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(attributes: I) -> Self {
        let attributes = attributes.into_iter().map(|(name, value)| (SmolStr::new(name), value.into()));
        let mut attributes: Vec<(SmolStr, Value)> = attributes.collect();
        // Attributes of one name stay in their order, and the last of them counts.
        attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
        attributes.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Item(attributes)
    }
}

impl IntoIterator for Item {
    type Item = (String, Value);
    type IntoIter = Attributes;

    fn into_iter(self) -> Attributes {
        Attributes(self.0.into_iter())
    }
}

/// The attributes of an item, by name.
#[derive(Debug)]
pub struct Attributes(std::vec::IntoIter<(SmolStr, Value)>);

impl Iterator for Attributes {
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name.into(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Attributes {}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => fmt::Debug::fmt(text, f),
            Value::Number(number) => fmt::Debug::fmt(number, f),
            Value::Binary(bytes) => fmt::Debug::fmt(bytes, f),
            Value::Bool(value) => fmt::Debug::fmt(value, f),
            Value::Null => f.write_str("null"),
            Value::List(list) => fmt::Debug::fmt(list, f),
            Value::Map(map) => fmt::Debug::fmt(map, f),
            Value::TextSet(set) => fmt::Debug::fmt(set, f),
            Value::NumberSet(set) => fmt::Debug::fmt(set, f),
            Value::BinarySet(set) => fmt::Debug::fmt(set, f),
        }
    }
}

/// Values from what they are made of.
macro_rules! into_value {
    ($($from:ty: $value:ident => $made:expr;)+) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $made
            }
        })+
    };
}

into_value! {
    &str: text => Value::Text(text.to_string());
    String: text => Value::Text(text);
    Number: number => Value::Number(number);
    i32: number => Value::Number(number.into());
    u32: number => Value::Number(number.into());
    i64: number => Value::Number(number.into());
    u64: number => Value::Number(number.into());
    Bytes: bytes => Value::Binary(bytes);
    &[u8]: bytes => Value::Binary(Bytes::copy_from_slice(bytes));
    bool: value => Value::Bool(value);
    Vec<Value>: list => Value::List(list);
    Item: map => Value::Map(map);
}
