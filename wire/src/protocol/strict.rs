//! Reads a structure from a map only. Left to itself serde takes a list as well, its entries for the members in the order in
//! which the program declares them: a client that sends one would be understood by accident.
//!
//! It also sees every entry of every list and map, and so it is here that their memory is counted: an entry can be hundreds
//! of times as large as the few bytes that spell it. And it sees what is asked for and what is there, and tells of the
//! difference in the words of the services (`shape`).

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::shape::{Found, Place, Wanted, instead_of_map};

/// What one request is read with.
pub(super) struct Room<'p> {
    /// Memory that the entries of all its lists and maps may still take.
    left: Cell<usize>,
    /// Where the service keeps its classes.
    package: &'p str,
    /// Why a value is not what it should be: the first of them.
    refusal: RefCell<Option<String>>,
}

impl<'p> Room<'p> {
    pub(super) fn new(bytes: usize, package: &'p str) -> Self {
        Room { left: Cell::new(bytes), package, refusal: RefCell::default() }
    }

    /// Why the request was refused, if it was for a value that is not what it should be.
    pub(super) fn into_refusal(self) -> Option<String> {
        self.refusal.into_inner()
    }

    fn refuse(&self, why: Option<String>) {
        let mut refusal = self.refusal.borrow_mut();
        if refusal.is_none() {
            *refusal = why;
        }
    }

    /// Takes the memory of a value. What it points to is not more than what spelled it.
    fn take<T, E: Error>(&self) -> Result<(), E> {
        let Some(left) = self.left.get().checked_sub(size_of::<T>()) else {
            return Err(E::custom("the lists and maps of the request have too many entries"));
        };
        self.left.set(left);
        Ok(())
    }
}

/// Wraps a deserializer, whoever is called by it, and whatever they call.
pub(super) struct Strict<'r, T> {
    inner: T,
    room: &'r Room<'r>,
    /// Whether what is read is the members of a structure, which have their place in it.
    is_structure: bool,
    wanted: Wanted,
    place: Place,
}

impl<'r, T> Strict<'r, T> {
    pub(super) fn new(inner: T, room: &'r Room<'r>) -> Self {
        Strict { inner, room, is_structure: false, wanted: Wanted::Anything, place: Place::Member }
    }

    fn at(self, place: Place) -> Self {
        Strict { place, ..self }
    }

    /// Something else in the same place.
    fn with<U>(&self, inner: U, wanted: Wanted) -> Strict<'r, U> {
        Strict { wanted, ..Strict::new(inner, self.room).at(self.place) }
    }
}

/// Passes a call on, with the visitor wrapped.
macro_rules! pass_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor, Wanted::Anything);
            self.inner.$method(visitor)
        })*
    };
}

/// Passes a call on that says what is wanted. Where values say for themselves what they are, the visitor sees what is there
/// instead.
macro_rules! pass_on_as {
    ($($method:ident $wanted:expr,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor, $wanted);
            match self.inner.is_human_readable() {
                true => self.inner.deserialize_any(visitor),
                false => self.inner.$method(visitor),
            }
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    pass_on! {
        deserialize_any deserialize_i8 deserialize_i16 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_option
        deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    pass_on_as! {
        deserialize_bool Wanted::Boolean,
        deserialize_i32 Wanted::Integer,
        deserialize_i64 Wanted::Long,
        deserialize_str Wanted::Text,
        deserialize_string Wanted::Text,
        deserialize_bytes Wanted::Bytes,
        deserialize_byte_buf Wanted::Bytes,
        deserialize_seq Wanted::List,
        deserialize_map Wanted::Map,
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Strict { is_structure: true, ..self.with(visitor, Wanted::Structure(name)) };
        match self.inner.is_human_readable() {
            true => self.inner.deserialize_any(visitor),
            false => self.inner.deserialize_map(visitor),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, Strict::new(visitor, self.room))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor, Wanted::Anything);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(len, Strict::new(visitor, self.room))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, len, Strict::new(visitor, self.room))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, Strict::new(visitor, self.room))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Passes plain values on, and notes what they are where the visitor does not take them.
macro_rules! visit {
    ($($method:ident: $type:ty => $found:expr,)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            let found: fn(&$type) -> Found = $found;
            let (found, wanted, place, room) = (found(&value), self.wanted, self.place, self.room);
            self.inner.$method(value).inspect_err(|_| room.refuse(wanted.refusal(found, place, room.package)))
        })*
    };
}

/// Passes bytes on, for which there are no words.
macro_rules! visit_bytes {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Strict<'_, V> {
    /// Refuses a list or map that stands where something else is wanted. The visitor might take it by accident.
    fn check<E: Error>(&self, found: Found) -> Result<(), E> {
        match self.wanted.refusal(found, self.place, self.room.package) {
            Some(refusal) => {
                let error = E::custom(&refusal);
                self.room.refuse(Some(refusal));
                Err(error)
            }
            None => Ok(()),
        }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool => |value| Found::Bool(*value),
        visit_i8: i8 => |_| Found::Number,
        visit_i16: i16 => |_| Found::Number,
        visit_i32: i32 => |_| Found::Number,
        visit_i64: i64 => |_| Found::Number,
        visit_i128: i128 => |_| Found::Number,
        visit_u8: u8 => |_| Found::Number,
        visit_u16: u16 => |_| Found::Number,
        visit_u32: u32 => |_| Found::Number,
        visit_u64: u64 => |_| Found::Number,
        visit_u128: u128 => |_| Found::Number,
        visit_f32: f32 => |_| Found::Decimal,
        visit_f64: f64 => |_| Found::Decimal,
        visit_char: char => |value| Found::Text(value.len_utf8()),
        visit_str: &str => |value| Found::Text(value.len()),
        visit_borrowed_str: &'de str => |value| Found::Text(value.len()),
        visit_string: String => |value| Found::Text(value.len()),
    }

    visit_bytes! {
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer, Wanted::Anything);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer, Wanted::Anything);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        if self.wanted == Wanted::Map {
            self.room.refuse(Some(instead_of_map(self.inner, self.room.package)));
            return Err(A::Error::custom("a list is no map"));
        }
        self.check::<A::Error>(Found::List)?;
        self.inner.visit_seq(Strict::new(entries, self.room))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.check::<A::Error>(Found::Map)?;
        self.inner.visit_map(Strict { is_structure: self.is_structure, ..Strict::new(entries, self.room) })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Strict::new(data, self.room))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.with(deserializer, Wanted::Anything);
        self.inner.deserialize(deserializer)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let entry = self.inner.next_element_seed(Strict::new(seed, self.room).at(Place::Entry))?;
        if entry.is_some() {
            self.room.take::<S::Value, _>()?;
        }
        Ok(entry)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Strict::new(seed, self.room))?;
        if key.is_some() && !self.is_structure {
            self.room.take::<S::Value, _>()?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let place = if self.is_structure { Place::Member } else { Place::Entry };
        if place == Place::Entry {
            self.room.take::<S::Value, _>()?;
        }
        self.inner.next_value_seed(Strict::new(seed, self.room).at(place))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'r, A: EnumAccess<'de>> EnumAccess<'de> for Strict<'r, A> {
    type Error = A::Error;
    type Variant = Strict<'r, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(Strict::new(seed, self.room))?;
        Ok((value, Strict::new(variant, self.room)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Strict::new(seed, self.room))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Strict::new(visitor, self.room))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Strict { is_structure: true, ..Strict::new(visitor, self.room) })
    }
}
