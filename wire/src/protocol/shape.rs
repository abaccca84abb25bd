//! What a value should be, what stands there instead, and the words in which AWS's services refuse that.
//!
//! Their servers are written in Java, and clients know the words by that: a structure is a class, and a map of
//! structures has a type with its parameters.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

/// What a value should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wanted {
    /// The visitor sees for itself.
    Anything,
    Boolean,
    Integer,
    Long,
    Text,
    Bytes,
    List,
    Map,
    /// The name of its class.
    Structure(&'static str),
}

/// What stands in the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Bool(bool),
    Number,
    Decimal,
    /// With its length.
    Text(usize),
    List,
    Map,
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In a structure, or alone.
    Member,
    /// In a list or a map.
    Entry,
}

const MAP_UNEXPECTED: &str = "Start of structure or map found where not expected";
const FIELD_UNEXPECTED: &str = "Unexpected field type";
/// A list or map has no class of its own, and this is what comes of looking for it.
const NO_CLASS: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class \
                        java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and \
                        java.lang.Class are in module java.base of loader 'bootstrap')";

impl Wanted {
    /// The class of a plain value.
    fn class(self) -> Option<&'static str> {
        match self {
            Wanted::Boolean => Some("java.lang.Boolean"),
            Wanted::Integer => Some("java.lang.Integer"),
            Wanted::Long => Some("java.lang.Long"),
            Wanted::Text => Some("java.lang.String"),
            Wanted::Bytes => Some("java.nio.ByteBuffer"),
            Wanted::Anything | Wanted::List | Wanted::Map | Wanted::Structure(_) => None,
        }
    }

    /// Why this is not what was wanted. None if it is, or if there are no words for it. A map that is a list is refused
    /// by [`instead_of_map`].
    pub(super) fn refusal(self, found: Found, place: Place, package: &str) -> Option<String> {
        Some(match (self, found) {
            (Wanted::Anything, _) | (Wanted::List, Found::List) => return None,
            (Wanted::Map | Wanted::Structure(_), Found::Map) | (Wanted::Map, Found::List) => return None,
            (Wanted::Structure(name), Found::List) => {
                format!("Unrecognized collection type class {package}{name}")
            }
            (_, Found::Map) => MAP_UNEXPECTED.to_owned(),
            (Wanted::List | Wanted::Map, _) if place == Place::Entry => NO_CLASS.to_owned(),
            (Wanted::Structure(_), _) if place == Place::Entry => {
                "Unexpected value type in payload".to_owned()
            }
            (Wanted::List | Wanted::Map | Wanted::Structure(_), _) => FIELD_UNEXPECTED.to_owned(),
            (_, Found::List) => format!("Unrecognized collection type class {}", self.class()?),
            (Wanted::Bytes, Found::Text(length)) if length % 4 != 0 => {
                format!("Base64 encoded length is expected a multiple of 4 bytes but found: {length}")
            }
            (Wanted::Bytes, Found::Text(_)) => "Invalid last non-pad Base64 character dectected".to_owned(),
            (Wanted::Bytes, _) => "only base-64-encoded strings are convertible to bytes".to_owned(),
            (Wanted::Boolean, Found::Text(_)) => "Unexpected token received from parser".to_owned(),
            (Wanted::Boolean, Found::Bool(_)) | (Wanted::Text, Found::Text(_)) => return None,
            (Wanted::Integer | Wanted::Long, Found::Number | Found::Decimal) => return None,
            (Wanted::Boolean | Wanted::Integer | Wanted::Long | Wanted::Text, found) => {
                let class = self.class()?.rsplit('.').next()?;
                format!("{} cannot be converted to {class}", found.token()?)
            }
        })
    }
}

impl Found {
    /// What the parser calls it.
    fn token(self) -> Option<&'static str> {
        match self {
            Found::Bool(true) => Some("TRUE_VALUE"),
            Found::Bool(false) => Some("FALSE_VALUE"),
            Found::Number => Some("NUMBER_VALUE"),
            Found::Decimal => Some("DECIMAL_VALUE"),
            Found::Text(_) => Some("STRING_VALUE"),
            Found::List | Found::Map => None,
        }
    }
}

/// Why a list is not the map that a visitor wants: it is asked for the type of its values.
pub(super) fn instead_of_map<'de, V: Visitor<'de>>(visitor: V, package: &str) -> String {
    let asked = Asked { package, answer: &RefCell::default() };
    // Nothing comes of it but the answer.
    let _ = visitor.visit_map(asked);
    format!("Unrecognized collection type java.util.Map<java.lang.String, {}>", asked.answer.borrow())
}

/// Shows a visitor one entry, to learn what it wants to read there.
#[derive(Clone, Copy)]
struct Asked<'a> {
    package: &'a str,
    answer: &'a RefCell<String>,
}

impl Asked<'_> {
    fn answered<T>(self, answer: impl fmt::Display) -> Result<T, Error> {
        *self.answer.borrow_mut() = answer.to_string();
        Err(Error::custom("this was only a question"))
    }
}

impl<'de> MapAccess<'de> for Asked<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        seed.deserialize(StrDeserializer::new("")).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(*self)
    }
}

impl<'de> SeqAccess<'de> for Asked<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        seed.deserialize(*self).map(Some)
    }
}

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.answered("java.lang.Object")
    }

    fn deserialize_string<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.answered("java.lang.String")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let _ = visitor.visit_seq(self);
        let entry = self.answer.take();
        self.answered(format_args!("java.util.List<{entry}>"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.answered(format_args!("{}{name}", self.package))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_is_told_in_words_that_clients_know() {
        let structure = Wanted::Structure("Tag");
        for (wanted, found, place, words) in [
            (Wanted::Text, Found::Number, Place::Member, "NUMBER_VALUE cannot be converted to String"),
            (Wanted::Text, Found::Bool(true), Place::Entry, "TRUE_VALUE cannot be converted to String"),
            (Wanted::Boolean, Found::Decimal, Place::Member, "DECIMAL_VALUE cannot be converted to Boolean"),
            (Wanted::Boolean, Found::Text(1), Place::Member, "Unexpected token received from parser"),
            (Wanted::Integer, Found::Text(1), Place::Member, "STRING_VALUE cannot be converted to Integer"),
            (Wanted::Long, Found::Bool(false), Place::Member, "FALSE_VALUE cannot be converted to Long"),
            (Wanted::Long, Found::List, Place::Member, "Unrecognized collection type class java.lang.Long"),
            (
                Wanted::Bytes,
                Found::List,
                Place::Entry,
                "Unrecognized collection type class java.nio.ByteBuffer",
            ),
            (
                Wanted::Bytes,
                Found::Number,
                Place::Entry,
                "only base-64-encoded strings are convertible to bytes",
            ),
            (Wanted::Bytes, Found::Text(4), Place::Entry, "Invalid last non-pad Base64 character dectected"),
            (Wanted::Text, Found::Map, Place::Member, MAP_UNEXPECTED),
            (Wanted::List, Found::Map, Place::Member, MAP_UNEXPECTED),
            (Wanted::List, Found::Number, Place::Member, FIELD_UNEXPECTED),
            (Wanted::List, Found::Number, Place::Entry, NO_CLASS),
            (Wanted::Map, Found::Text(1), Place::Entry, NO_CLASS),
            (structure, Found::Number, Place::Member, FIELD_UNEXPECTED),
            (structure, Found::Number, Place::Entry, "Unexpected value type in payload"),
            (structure, Found::List, Place::Entry, "Unrecognized collection type class a.b.Tag"),
        ] {
            let refusal = wanted.refusal(found, place, "a.b.");
            assert_eq!(refusal.as_deref(), Some(words), "{wanted:?} {found:?} {place:?}");
        }
        for (wanted, found) in [
            (Wanted::Text, Found::Text(1)),
            (Wanted::Boolean, Found::Bool(true)),
            (Wanted::Long, Found::Number),
            (Wanted::List, Found::List),
            (Wanted::Map, Found::Map),
            (structure, Found::Map),
            (Wanted::Anything, Found::List),
        ] {
            assert_eq!(wanted.refusal(found, Place::Entry, ""), None, "{wanted:?} {found:?}");
        }
    }
}
