//! Values and items as JSON spells them: `{"S": "text"}`, and so on for ten types.
//!
//! A value of the wrong shape is no request at all, and the parser refuses it. One of the right shape that cannot be
//! is a value with a complaint ([`Attribute`]), because where it stands decides how the complaint is worded.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_model::table::{Item, Kind, NotANumber, Number, Value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::binary::Binary;
use crate::fault::Fault;

/// The types, in the order in which messages list them.
pub(super) const TYPE_NAMES: [&str; 10] = ["S", "BOOL", "N", "NS", "BS", "SS", "B", "L", "M", "NULL"];

const EMPTY: &str = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
pub(super) const SEVERAL: &str = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes";
/// What complaints about parameters begin with.
pub(super) const INVALID: &str = "One or more parameter values were invalid:";

/// A value that arrived, or what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attribute(pub(super) Result<Value, Complaint>);

/// An item or a key that arrived, or what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attributes(pub(super) Result<Item, Complaint>);

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Complaint {
    /// In the words of the service.
    pub(super) words: String,
    /// Whether it is about a number or about something that a set has twice. Where others are told with what the value
    /// is for, these are told without.
    is_bare: bool,
}

impl Complaint {
    fn bare(words: impl Into<String>) -> Self {
        Complaint { words: words.into(), is_bare: true }
    }
}

impl From<String> for Complaint {
    fn from(words: String) -> Self {
        Complaint { words, is_bare: false }
    }
}

/// An item that is answered.
#[derive(Debug)]
pub(crate) struct ItemBody(pub(crate) Item);

impl Attribute {
    /// The value.
    pub(super) fn value(self) -> Result<Value, Fault> {
        self.0.map_err(|complaint| Fault::validation(complaint.words))
    }
}

impl Attributes {
    /// The item.
    pub(super) fn item(self) -> Result<Item, Fault> {
        self.0.map_err(|complaint| Fault::validation(complaint.words))
    }

    /// The item, which is for something that is told beside most of what is wrong with it.
    pub(super) fn item_for(self, what: &str) -> Result<Item, Fault> {
        self.0.map_err(|Complaint { words, is_bare }| {
            Fault::validation(if is_bare { words } else { format!("{what}: {words}") })
        })
    }
}

/// The type of a kind of value.
pub(super) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "S",
        Kind::Number => "N",
        Kind::Binary => "B",
        Kind::Bool => "BOOL",
        Kind::Null => "NULL",
        Kind::List => "L",
        Kind::Map => "M",
        Kind::TextSet => "SS",
        Kind::NumberSet => "NS",
        Kind::BinarySet => "BS",
    }
}

/// The type of a kind of value, as some messages write it out.
pub(super) fn type_in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "STRING",
        Kind::Number => "NUMBER",
        Kind::Binary => "BINARY",
        Kind::Bool => "BOOLEAN",
        Kind::Null => "NULL",
        Kind::List => "LIST",
        Kind::Map => "MAP",
        Kind::TextSet => "STRING_SET",
        Kind::NumberSet => "NUMBER_SET",
        Kind::BinarySet => "BINARY_SET",
    }
}

/// The kind of value with this type.
pub(super) fn kind_named(name: &str) -> Option<Kind> {
    let kinds = [
        Kind::Text,
        Kind::Number,
        Kind::Binary,
        Kind::Bool,
        Kind::Null,
        Kind::List,
        Kind::Map,
        Kind::TextSet,
        Kind::NumberSet,
        Kind::BinarySet,
    ];
    kinds.into_iter().find(|kind| type_name(*kind) == name)
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Its one member lies in the value, and takes no memory beside it.
        deserializer.deserialize_struct("AttributeValue", &[], AttributeVisitor)
    }
}

struct AttributeVisitor;

impl<'de> Visitor<'de> for AttributeVisitor {
    type Value = Attribute;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute value")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Attribute, M::Error> {
        let mut found: Option<Result<Value, Complaint>> = None;
        let mut several = false;
        while let Some(name) = map.next_key::<TypeName>()? {
            // Clients that know all types may send those that are not meant as null.
            let value = match name {
                TypeName::S => map.next_value::<Option<String>>()?.map(|text| Ok(Value::Text(text))),
                TypeName::N => {
                    map.next_value::<Option<String>>()?.map(|text| number(&text).map(Value::Number))
                }
                TypeName::B => map.next_value::<Option<Binary>>()?.map(|bytes| Ok(Value::Binary(bytes.0))),
                TypeName::Bool => map.next_value::<Option<Truth>>()?.map(|truth| Ok(Value::Bool(truth.0))),
                TypeName::Null => map.next_value::<Option<Truth>>()?.map(|truth| null(truth.0)),
                TypeName::Ss => map.next_value::<Option<Vec<String>>>()?.map(text_set),
                TypeName::Ns => map.next_value::<Option<Vec<String>>>()?.map(|texts| number_set(&texts)),
                TypeName::Bs => map.next_value::<Option<Vec<Binary>>>()?.map(binary_set),
                TypeName::L => map.next_value::<Option<List>>()?.map(|list| list.0.map(Value::List)),
                TypeName::M => map.next_value::<Option<Attributes>>()?.map(|map| map.0.map(Value::Map)),
                TypeName::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            several |= found.is_some() && value.is_some();
            // What cannot be is told before that there are several.
            found = match (found, value) {
                (Some(Ok(_)), Some(Err(why))) => Some(Err(why)),
                (found, value) => found.or(value),
            };
        }
        Ok(Attribute(match found {
            Some(Ok(_)) if several => Err(SEVERAL.to_string().into()),
            Some(value) => value,
            None => Err(EMPTY.to_string().into()),
        }))
    }
}

/// A boolean, which may be spelled as a text.
struct Truth(bool);

impl<'de> Deserialize<'de> for Truth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bool(TruthVisitor)
    }
}

struct TruthVisitor;

impl Visitor<'_> for TruthVisitor {
    type Value = Truth;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Truth, E> {
        Ok(Truth(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Truth, E> {
        let is = |texts: [&str; 3]| texts.iter().any(|other| text.eq_ignore_ascii_case(other));
        match () {
            () if is(["true", "yes", "1"]) => Ok(Truth(true)),
            () if is(["false", "no", "0"]) => Ok(Truth(false)),
            () => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

#[derive(Deserialize)]
enum TypeName {
    S,
    N,
    B,
    #[serde(rename = "BOOL")]
    Bool,
    #[serde(rename = "NULL")]
    Null,
    #[serde(rename = "SS")]
    Ss,
    #[serde(rename = "NS")]
    Ns,
    #[serde(rename = "BS")]
    Bs,
    L,
    M,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Attributes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of attribute values")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Attributes, M::Error> {
        // Gathered first: an item of many attributes that come in any order is made at once.
        let mut attributes = Vec::new();
        // Of several that are wrong the first by name is told.
        let mut wrong: Option<(String, Complaint)> = None;
        while let Some((name, attribute)) = map.next_entry::<String, Attribute>()? {
            match attribute.0 {
                Ok(_) if wrong.is_some() => {}
                Ok(value) => attributes.push((name, value)),
                Err(why) => {
                    attributes = Vec::new();
                    if wrong.as_ref().is_none_or(|(other, _)| name < *other) {
                        wrong = Some((name, why));
                    }
                }
            }
        }
        Ok(Attributes(wrong.map_or_else(|| Ok(attributes.into_iter().collect()), |(_, why)| Err(why))))
    }
}

/// The values of a list, or what is wrong with the first of them that cannot be; behind it nothing is kept.
struct List(Result<Vec<Value>, Complaint>);

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = List;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of attribute values")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut sequence: S) -> Result<List, S::Error> {
        let mut values = Ok(Vec::new());
        while let Some(attribute) = sequence.next_element::<Attribute>()? {
            match (&mut values, attribute.0) {
                (Ok(values), Ok(value)) => values.push(value),
                (Ok(_), Err(why)) => values = Err(why),
                // What has no shape at all is refused before what is wrong.
                (Err(_), _) => {}
            }
        }
        Ok(List(values))
    }
}

/// A number from its text.
fn number(text: &str) -> Result<Number, Complaint> {
    Number::parse(text).map_err(|why| {
        let out_of_range = |what: &str, how: &str| {
            format!("Number {what}. Attempting to store a number with magnitude {how} than supported range")
        };
        Complaint::bare(match why {
            NotANumber::Digits(_) => {
                "Attempting to store more than 38 significant digits in a Number".to_string()
            }
            NotANumber::TooLarge => out_of_range("overflow", "larger"),
            NotANumber::TooSmall => out_of_range("underflow", "smaller"),
            NotANumber::Malformed | NotANumber::Exponent if text.is_empty() => {
                "The parameter cannot be converted to a numeric value".to_string()
            }
            NotANumber::Malformed | NotANumber::Exponent => {
                format!("The parameter cannot be converted to a numeric value: {text}")
            }
        })
    })
}

fn null(value: bool) -> Result<Value, Complaint> {
    match value {
        true => Ok(Value::Null),
        false => Err(format!("{INVALID} Null attribute value types must have the value of true").into()),
    }
}

fn text_set(texts: Vec<String>) -> Result<Value, Complaint> {
    if texts.is_empty() {
        return Err(format!("{INVALID} An string set  may not be empty").into());
    }
    if texts.iter().collect::<BTreeSet<_>>().len() < texts.len() {
        let words = format!("{INVALID} Input collection [{}] contains duplicates.", texts.join(", "));
        return Err(Complaint::bare(words));
    }
    Value::text_set(texts).map_err(|error| error.to_string().into())
}

fn number_set(texts: &[String]) -> Result<Value, Complaint> {
    if texts.is_empty() {
        return Err(Complaint::bare(format!("{INVALID} An number set  may not be empty")));
    }
    let numbers = texts.iter().map(|text| number(text)).collect::<Result<Vec<_>, _>>()?;
    Value::number_set(numbers).map_err(|_| Complaint::bare("Input collection contains duplicates"))
}

fn binary_set(all: Vec<Binary>) -> Result<Value, Complaint> {
    if all.is_empty() {
        return Err(format!("{INVALID} Binary sets should not be empty").into());
    }
    let bytes: Vec<Bytes> = all.into_iter().map(|binary| binary.0).collect();
    if bytes.iter().collect::<BTreeSet<_>>().len() < bytes.len() {
        let texts: Vec<_> = bytes.iter().map(|bytes| BASE64_STANDARD.encode(bytes)).collect();
        return Err(Complaint::bare(format!(
            "{INVALID} Input collection [{}]of type BS contains duplicates.",
            texts.join(", ")
        )));
    }
    Value::binary_set(bytes).map_err(|error| error.to_string().into())
}

impl Serialize for ItemBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_item(&self.0, serializer)
    }
}

fn serialize_item<S: Serializer>(item: &Item, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(item.len()))?;
    for (name, value) in item.iter() {
        map.serialize_entry(name, &ValueBody(value))?;
    }
    map.end()
}

/// A value that is answered.
struct ValueBody<'a>(&'a Value);

/// A map within a value.
struct MapBody<'a>(&'a Item);

impl Serialize for MapBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_item(self.0, serializer)
    }
}

impl Serialize for ValueBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        let name = type_name(self.0.kind());
        match self.0 {
            Value::Text(text) => map.serialize_entry(name, text)?,
            Value::Number(number) => map.serialize_entry(name, &number.to_string())?,
            Value::Binary(bytes) => map.serialize_entry(name, &Binary(bytes.clone()))?,
            Value::Bool(value) => map.serialize_entry(name, value)?,
            Value::Null => map.serialize_entry(name, &true)?,
            Value::List(list) => {
                map.serialize_entry(name, &list.iter().map(ValueBody).collect::<Vec<_>>())?
            }
            Value::Map(inner) => map.serialize_entry(name, &MapBody(inner))?,
            Value::TextSet(set) => map.serialize_entry(name, set)?,
            Value::NumberSet(set) => {
                map.serialize_entry(name, &set.iter().map(Number::to_string).collect::<Vec<_>>())?;
            }
            Value::BinarySet(set) => {
                map.serialize_entry(
                    name,
                    &set.iter().map(|bytes| Binary(bytes.clone())).collect::<Vec<_>>(),
                )?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;

    fn read(json: &str) -> Result<Item, String> {
        let read = Protocol::Json10.parse::<Attributes>(json.as_bytes());
        read.map_err(|fault| format!("shape: {}", fault.message))?.0.map_err(|complaint| complaint.words)
    }

    fn wrong(value: &str) -> String {
        read(&format!(r#"{{"a":{value}}}"#)).unwrap_err()
    }

    #[test]
    fn all_types_come_back() {
        let json = concat!(
            r#"{"b":{"B":"AP+A"},"bs":{"BS":["AQ==","Ag=="]},"l":{"L":[{"S":""},{"L":[]},{"M":{}}]},"#,
            r#""m":{"M":{"x y":{"N":"-0.5"}}},"n":{"N":"12345678901234567890123456789012345678"},"#,
            r#""no":{"BOOL":false},"ns":{"NS":["-1","3"]},"nu":{"NULL":true},"s":{"S":"ü\u0000"},"#,
            r#""ss":{"SS":["","a"]},"yes":{"BOOL":true}}"#
        );
        let item = read(json).unwrap();
        assert_eq!(serde_json::to_string(&ItemBody(item.clone())).unwrap(), json);
        assert_eq!(item.get("n").map(Value::kind), Some(Kind::Number));
    }

    #[test]
    fn numbers_are_brought_to_one_spelling() {
        for (text, spelled) in
            [("007.50", "7.5"), ("1e3", "1000"), ("-0", "0"), (".5", "0.5"), ("1E-3", "0.001")]
        {
            let item = read(&format!(r#"{{"a":{{"N":"{text}"}}}}"#)).unwrap();
            assert_eq!(
                serde_json::to_string(&ItemBody(item)).unwrap(),
                format!(r#"{{"a":{{"N":"{spelled}"}}}}"#)
            );
        }
    }

    #[test]
    fn booleans_may_be_texts() {
        let item = read(r#"{"a":{"BOOL":"Yes"},"b":{"BOOL":"0"},"c":{"NULL":"true"}}"#).unwrap();
        assert_eq!(item, Item::new().with("a", true).with("b", false).with("c", Value::Null));
        assert_eq!(wrong(r#"{"BOOL":"23"}"#), "shape: Unexpected token received from parser");
        assert_eq!(wrong(r#"{"BOOL":1}"#), "shape: NUMBER_VALUE cannot be converted to Boolean");
    }

    #[test]
    fn null_members_are_not_there() {
        let item = read(r#"{"a":{"S":null,"N":"1","M":null}}"#).unwrap();
        assert_eq!(item, Item::new().with("a", 1));
    }

    #[test]
    fn values_that_cannot_be_are_told_in_the_words_of_the_service() {
        assert_eq!(wrong("{}"), EMPTY);
        assert_eq!(wrong(r#"{"X":1}"#), EMPTY);
        assert_eq!(wrong(r#"{"S":null}"#), EMPTY);
        assert_eq!(wrong(r#"{"S":"a","N":"1"}"#), SEVERAL);
        assert_eq!(wrong(r#"{"S":"a","N":""}"#), "The parameter cannot be converted to a numeric value");
        assert_eq!(wrong(r#"{"N":"b","S":"a"}"#), "The parameter cannot be converted to a numeric value: b");
        assert_eq!(wrong(r#"{"L":[{"M":{"x":{}}}]}"#), EMPTY);
        assert_eq!(wrong(r#"{"N":"abc"}"#), "The parameter cannot be converted to a numeric value: abc");
        assert_eq!(wrong(r#"{"N":""}"#), "The parameter cannot be converted to a numeric value");
        assert_eq!(
            wrong(r#"{"N":"123456789012345678901234567890123456789"}"#),
            "Attempting to store more than 38 significant digits in a Number"
        );
        assert!(wrong(r#"{"N":"1e126"}"#).starts_with("Number overflow."));
        assert!(wrong(r#"{"N":"-1e126"}"#).starts_with("Number overflow."));
        assert!(wrong(r#"{"N":"1e-131"}"#).starts_with("Number underflow."));
        assert!(wrong(r#"{"NULL":false}"#).ends_with("must have the value of true"));
        assert!(wrong(r#"{"NULL":"no"}"#).ends_with("must have the value of true"));
        assert!(wrong(r#"{"SS":[]}"#).ends_with("An string set  may not be empty"));
        assert!(wrong(r#"{"NS":[]}"#).ends_with("An number set  may not be empty"));
        assert!(wrong(r#"{"BS":[]}"#).ends_with("Binary sets should not be empty"));
        assert!(
            wrong(r#"{"SS":["a","b","a"]}"#).ends_with("Input collection [a, b, a] contains duplicates.")
        );
        assert_eq!(wrong(r#"{"NS":["1","1.0"]}"#), "Input collection contains duplicates");
        assert!(
            wrong(r#"{"BS":["YQ==","YQ=="]}"#)
                .ends_with("Input collection [YQ==, YQ==]of type BS contains duplicates.")
        );
    }

    #[test]
    fn values_of_the_wrong_shape_are_no_requests() {
        for value in [
            "1",
            "\"x\"",
            "[]",
            "null",
            r#"{"S":1}"#,
            r#"{"N":1}"#,
            r#"{"B":"***"}"#,
            r#"{"B":"YQ"}"#,
            r#"{"BOOL":"maybe"}"#,
            r#"{"NULL":1}"#,
            r#"{"SS":"a"}"#,
            r#"{"SS":[1]}"#,
            r#"{"L":{}}"#,
            r#"{"M":[]}"#,
            r#"{"BS":[[1]]}"#,
            r#"{"S":["a"]}"#,
        ] {
            assert!(wrong(value).starts_with("shape: "), "{value}");
        }
    }

    #[test]
    fn every_type_has_a_name() {
        for name in TYPE_NAMES {
            assert_eq!(kind_named(name).map(type_name), Some(name));
        }
        assert_eq!(kind_named("s"), None);
    }
}
