//! Forms as typed values: `Attribute.1.Name=DelaySeconds&Attribute.1.Value=5` is a map with one entry.
//!
//! Dots make a tree of the fields. What a node means is decided by the type that is read from it: numbered children are
//! the entries of a list or, with a `Name` or `Key` and a `Value` each, of a map. A node is a range of the sorted fields, so
//! a tree takes no more memory than its leaves, however deep somebody makes it.

use std::cmp::Ordering;

use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::Error};
use serde::forward_to_deserialize_any;

use super::Form;
use crate::fault::Fault;

/// How deep names nest. What stands behind belongs to the last part.
const DEPTH_MAX: usize = 8;

/// The fields whose names have their first `depth` parts in common.
#[derive(Clone, Copy, Debug)]
struct Node<'a> {
    /// Names and values, in the order of the parts of the names.
    fields: &'a [(&'a str, &'a str)],
    depth: usize,
}

/// The request that a form spells.
pub(crate) fn parse<T: DeserializeOwned>(form: &Form) -> Result<T, Fault> {
    let mut fields: Vec<_> = form.fields().collect();
    fields.sort_unstable_by(|(one, _), (other, _)| by_parts(one, other));
    T::deserialize(Node { fields: &fields, depth: 0 }).map_err(|error| Fault {
        query_code: Some("InvalidParameterValue"),
        ..Fault::client("InvalidParameterValueException", error.to_string())
    })
}

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.splitn(DEPTH_MAX, '.')
}

fn by_parts(one: &str, other: &str) -> Ordering {
    parts(one).cmp(parts(other))
}

impl<'a> Node<'a> {
    /// The value of the field that ends here. It comes before those that go on.
    fn text(self) -> Result<&'a str, Error> {
        let first = self.fields.first().filter(|(name, _)| parts(name).nth(self.depth).is_none());
        first
            .map(|(_, value)| *value)
            .ok_or_else(|| Error::custom("a value is expected where the form has a list"))
    }

    /// The nodes below, by the next part of the names.
    fn children(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let depth = self.depth;
        let same = move |(one, _): &(&str, &str), (other, _): &(&str, &str)| {
            parts(one).nth(depth) == parts(other).nth(depth)
        };
        self.fields.chunk_by(same).filter_map(move |fields| {
            let part = fields.first().and_then(|(name, _)| parts(name).nth(depth))?;
            Some((part, Node { fields, depth: depth + 1 }))
        })
    }

    /// The entries of a list or map in the order of their numbers.
    fn entries(self) -> Result<Vec<Node<'a>>, Error> {
        // Lists may have one more part in the names of their entries.
        let mut children = self.children();
        if let (Some(("member" | "entry", inner)), None) = (children.next(), children.next()) {
            return inner.entries();
        }
        let number = |(name, node): (&str, _)| {
            let number = name.parse::<u32>().map_err(|_| Error::custom(format!("{name:?} is no number")))?;
            Ok((number, node))
        };
        let mut entries = self.children().map(number).collect::<Result<Vec<_>, Error>>()?;
        entries.sort_by_key(|(number, _)| *number);
        Ok(entries.into_iter().map(|(_, node)| node).collect())
    }

    /// Key and value of an entry of a map.
    fn pair(self) -> Result<(StrDeserializer<'a, Error>, Node<'a>), Error> {
        let find = |names: &[&str]| self.children().find(|(name, _)| names.contains(name));
        let (_, key) = find(&["Name", "Key", "key"]).ok_or_else(|| Error::custom("an entry has no name"))?;
        let (_, value) = find(&["Value", "value"]).ok_or_else(|| Error::custom("an entry has no value"))?;
        Ok((key.text()?.into_deserializer(), value))
    }
}

impl<'de> IntoDeserializer<'de, Error> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads a text as a number, or as a truth value.
macro_rules! numbers {
    ($($method:ident => $visit:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let text = self.text()?;
            let number = text.trim().parse().map_err(|_| Error::custom(format!("{text:?} cannot stand here")))?;
            visitor.$visit(number)
        })*
    };
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    numbers! {
        deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_f64 => visit_f64,
        deserialize_bool => visit_bool,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.entries()?.into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let pairs = self.entries()?.into_iter().map(Node::pair).collect::<Result<Vec<_>, _>>()?;
        visitor.visit_map(MapDeserializer::new(pairs.into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new(self.children()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u128 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Sample {
        queue_url: Option<String>,
        delay_seconds: Option<i64>,
        #[serde(alias = "Attribute")]
        attributes: Option<BTreeMap<String, String>>,
        #[serde(alias = "Entry")]
        entries: Option<Vec<Entry>>,
        names: Option<Vec<String>>,
        on: Option<bool>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Entry {
        id: Option<String>,
        #[serde(alias = "Attribute", default)]
        attributes: BTreeMap<String, Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Value {
        string_value: Option<String>,
    }

    fn read(text: &str) -> Result<Sample, String> {
        parse(&Form::parse(text)).map_err(|fault| fault.code.into_owned())
    }

    #[test]
    fn names_with_dots_are_lists_and_maps() {
        let sample = read(
            "Action=X&Version=1&QueueUrl=u&DelaySeconds=5&On=true&Attribute.1.Name=a&Attribute.1.Value=1\
             &Attribute.2.Value=2&Attribute.2.Name=b&Names.2=y&Names.10=z&Names.1=x",
        )
        .unwrap();
        assert_eq!(sample.delay_seconds, Some(5));
        assert_eq!(sample.on, Some(true));
        let attributes = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        assert_eq!(sample.attributes, Some(BTreeMap::from(attributes)));
        assert_eq!(sample.names.unwrap(), ["x", "y", "z"], "in the order of the numbers");
        assert_eq!(sample.entries, None);
    }

    #[test]
    fn entries_nest() {
        let sample = read(
            "Entry.1.Id=one&Entry.1.Attribute.1.Name=n&Entry.1.Attribute.1.Value.StringValue=v&Entry.2.Id=two",
        )
        .unwrap();
        let entries = sample.entries.unwrap();
        assert_eq!(entries[0].attributes["n"].string_value.as_deref(), Some("v"));
        assert_eq!(entries[1].id.as_deref(), Some("two"));
        assert!(entries[1].attributes.is_empty());
    }

    #[test]
    fn names_that_begin_alike_are_told_apart() {
        // In the order of bytes `Names-` and `Names ` stand between `Names` and `Names.1`.
        let sample = read("Names.1=a&Names-x=b&Names =c&Names.10=d&Names.1-=e&QueueUrl=u");
        assert_eq!(sample, Err("InvalidParameterValueException".to_owned()), "1- is no number");
        let sample = read("Names-x.1=b&Names.1=a&Names =c&Names.10=d&Names.2=e&Names=f").unwrap();
        assert_eq!(sample.names.unwrap(), ["a", "e", "d"]);
    }

    #[test]
    fn lists_may_be_empty_or_have_members() {
        assert_eq!(read("Names=").unwrap().names, Some(vec![]));
        assert_eq!(read("Names.member.1=a&Names.member.2=b").unwrap().names.unwrap(), ["a", "b"]);
        assert_eq!(read("").unwrap(), Sample::default());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            "DelaySeconds=five",
            "DelaySeconds=",
            "DelaySeconds.1=5",
            "Names.x=1",
            "On=perhaps",
            "Attribute.1.Name=a",
            "Attribute.1.Value=a",
            "Attribute.1=a",
            "QueueUrl.1=a",
            "Attribute.1.Name=a&Attribute.1.Value=1&Attributes.1.Name=a&Attributes.1.Value=1",
        ] {
            assert_eq!(read(text), Err("InvalidParameterValueException".to_owned()), "{text}");
        }
        // Names as deep as a form can be long are cut.
        read(&format!("{}=1", "a.".repeat(100_000))).unwrap();
    }

    proptest::proptest! {
        #[test]
        fn any_form_is_read_or_refused(
            fields in proptest::collection::vec(("(Attribute|Entry|Names|On|QueueUrl|DelaySeconds)?(\\.(Name|Value|member|[0-9]{1,11}|.?)){0,9}", ".{0,9}"), 0..9),
        ) {
            let mut body = form_urlencoded::Serializer::new(String::new());
            body.extend_pairs(&fields);
            let _ = read(&body.finish());
        }

        #[test]
        fn a_map_comes_back(entries in proptest::collection::btree_map("\\PC{0,9}", "\\PC{0,9}", 0..9)) {
            let mut body = form_urlencoded::Serializer::new(String::new());
            for (number, (name, value)) in entries.iter().enumerate() {
                body.append_pair(&format!("Attribute.{}.Name", number + 1), name);
                body.append_pair(&format!("Attribute.{}.Value", number + 1), value);
            }
            proptest::prop_assert_eq!(read(&body.finish()).unwrap().attributes.unwrap_or_default(), entries);
        }
    }
}
