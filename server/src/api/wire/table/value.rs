//! Values of items, each under the letters of its kind. Numbers are texts, so that no reader rounds them.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::table::{Item, Number, Value};
use bytes::Bytes;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::super::super::text::{Base64, Text};
use super::mirror::Mirror;

/// One value of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the variants are those of the model's value")]
pub enum ValueBody {
    #[serde(rename = "S")]
    Text(String),
    #[serde(rename = "N")]
    Number(Text<Number>),
    #[serde(rename = "B")]
    Binary(Base64),
    #[serde(rename = "BOOL")]
    Bool(bool),
    #[serde(rename = "NULL")]
    Null(True),
    #[serde(rename = "L")]
    List(Vec<ValueBody>),
    #[serde(rename = "M")]
    Map(ItemBody),
    #[serde(rename = "SS")]
    TextSet(Distinct<String>),
    #[serde(rename = "NS")]
    NumberSet(Distinct<Text<Number>>),
    #[serde(rename = "BS")]
    BinarySet(Distinct<Base64>),
}

/// The word that stands beside `NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl From<True> for bool {
    fn from(True: True) -> bool {
        true
    }
}

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(True) } else { Err("`NULL` is true or not there") }
    }
}

/// Named values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemBody(pub BTreeMap<String, ValueBody>);

/// The elements of a set. One that comes twice is refused; that there is none at all, by the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Distinct<T>(Vec<T>);

impl<'de, T: Deserialize<'de> + Ord> Deserialize<'de> for Distinct<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let elements = Vec::<T>::deserialize(deserializer)?;
        let different: BTreeSet<&T> = elements.iter().collect();
        if different.len() < elements.len() {
            return Err(de::Error::custom("a set holds an element twice"));
        }
        Ok(Distinct(elements))
    }
}

impl<M: Ord, B: Mirror<M>> Mirror<BTreeSet<M>> for Distinct<B> {
    fn of(model: BTreeSet<M>) -> Self {
        Distinct(model.into_iter().map(B::of).collect())
    }

    fn back(self) -> BTreeSet<M> {
        self.0.into_iter().map(B::back).collect()
    }
}

impl Mirror<Bytes> for Base64 {
    fn of(model: Bytes) -> Self {
        Base64(model)
    }

    fn back(self) -> Bytes {
        self.0
    }
}

impl Mirror<Item> for ItemBody {
    fn of(model: Item) -> Self {
        ItemBody(model.into_iter().map(|(name, value)| (name, ValueBody::of(value))).collect())
    }

    fn back(self) -> Item {
        self.0.into_iter().map(|(name, value)| (name, value.back())).collect()
    }
}

impl Mirror<Value> for ValueBody {
    fn of(model: Value) -> Self {
        match model {
            Value::Text(text) => ValueBody::Text(text),
            Value::Number(number) => ValueBody::Number(Text(number)),
            Value::Binary(bytes) => ValueBody::Binary(Base64(bytes)),
            Value::Bool(value) => ValueBody::Bool(value),
            Value::Null => ValueBody::Null(True),
            Value::List(list) => ValueBody::List(Mirror::of(list)),
            Value::Map(map) => ValueBody::Map(Mirror::of(map)),
            Value::TextSet(set) => ValueBody::TextSet(Mirror::of(set)),
            Value::NumberSet(set) => ValueBody::NumberSet(Mirror::of(set)),
            Value::BinarySet(set) => ValueBody::BinarySet(Mirror::of(set)),
        }
    }

    fn back(self) -> Value {
        match self {
            ValueBody::Text(text) => Value::Text(text),
            ValueBody::Number(number) => Value::Number(number.0),
            ValueBody::Binary(bytes) => Value::Binary(bytes.0),
            ValueBody::Bool(value) => Value::Bool(value),
            ValueBody::Null(True) => Value::Null,
            ValueBody::List(list) => Value::List(list.back()),
            ValueBody::Map(map) => Value::Map(map.back()),
            ValueBody::TextSet(set) => Value::TextSet(set.back()),
            ValueBody::NumberSet(set) => Value::NumberSet(set.back()),
            ValueBody::BinarySet(set) => Value::BinarySet(set.back()),
        }
    }
}
