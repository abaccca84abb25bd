//! Values, items and changes as bytes that a store keeps: compact, and the same in every version.
//!
//! A value is a tag and its content. Lengths and counts are little-endian groups of seven bits. What must hold: each
//! item has one encoding, and no bytes, however damaged, decode to a panic or to a deep recursion.

use std::collections::BTreeSet;

use bytes::Bytes;
use smol_str::SmolStr;

use super::number::Number;
use super::value::{Item, Value};
use crate::error::{Error, Result};
use crate::limits::NESTING_MAX;

/// Attributes that an item has room for before the first of them is read: a damaged count may be any number.
const ROOM_MAX: u64 = 16;

const TEXT: u8 = 1;
const NUMBER: u8 = 2;
const BINARY: u8 = 3;
const FALSE: u8 = 4;
const TRUE: u8 = 5;
const NULL: u8 = 6;
const LIST: u8 = 7;
const MAP: u8 = 8;
const TEXT_SET: u8 = 9;
const NUMBER_SET: u8 = 10;
const BINARY_SET: u8 = 11;

impl Value {
    /// Appends the encoded value.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Value::Text(text) => {
                into.push(TEXT);
                put_bytes(text.as_bytes(), into);
            }
            Value::Number(number) => {
                into.push(NUMBER);
                number.encode(into);
            }
            Value::Binary(bytes) => {
                into.push(BINARY);
                put_bytes(bytes, into);
            }
            Value::Bool(value) => into.push(if *value { TRUE } else { FALSE }),
            Value::Null => into.push(NULL),
            Value::List(list) => {
                into.push(LIST);
                put_count(list.len() as u64, into);
                list.iter().for_each(|value| value.encode(into));
            }
            Value::Map(map) => {
                into.push(MAP);
                map.encode(into);
            }
            Value::TextSet(set) => {
                put_set(TEXT_SET, set, into, |text, into| put_bytes(text.as_bytes(), into))
            }
            Value::NumberSet(set) => put_set(NUMBER_SET, set, into, Number::encode),
            Value::BinarySet(set) => put_set(BINARY_SET, set, into, |bytes, into| put_bytes(bytes, into)),
        }
    }

    /// Reads a value from the start of `from`, and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<Value> {
        Self::decode_at(from, 0)
    }

    fn decode_at(from: &mut &[u8], depth: usize) -> Result<Value> {
        Ok(match take_byte(from)? {
            TEXT => Value::Text(take_text(from)?.to_string()),
            NUMBER => Value::Number(Number::decode(from)?),
            BINARY => Value::Binary(Bytes::copy_from_slice(take_bytes(from)?)),
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            NULL => Value::Null,
            LIST | MAP if depth >= NESTING_MAX => return Err(damaged()),
            LIST => {
                let count = take_count(from)?;
                Value::List((0..count).map(|_| Self::decode_at(from, depth + 1)).collect::<Result<_>>()?)
            }
            MAP => Value::Map(Item::decode_at(from, depth + 1)?),
            TEXT_SET => Value::TextSet(take_set(from, |from| take_text(from).map(str::to_string))?),
            NUMBER_SET => Value::NumberSet(take_set(from, Number::decode)?),
            BINARY_SET => {
                Value::BinarySet(take_set(from, |from| take_bytes(from).map(Bytes::copy_from_slice))?)
            }
            _ => return Err(damaged()),
        })
    }
}

impl Item {
    /// Appends the encoded item.
    pub fn encode(&self, into: &mut Vec<u8>) {
        put_count(self.len() as u64, into);
        for (name, value) in self.iter() {
            put_bytes(name.as_bytes(), into);
            value.encode(into);
        }
    }

    /// Reads an item from the start of `from`, and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<Item> {
        Self::decode_at(from, 0)
    }

    fn decode_at(from: &mut &[u8], depth: usize) -> Result<Item> {
        Self::decode_beside(from, depth, None)
    }

    /// Takes names from an item that was decoded before, as far as they are the same, and leaves its own there.
    fn decode_beside(from: &mut &[u8], depth: usize, mut names: Option<&mut Names>) -> Result<Item> {
        let count = take_count(from)?;
        let mut item = Item::with_room(count.min(ROOM_MAX) as usize);
        for place in 0..usize::try_from(count).map_err(|_| damaged())? {
            let name = take_bytes(from)?;
            let name = match &mut names {
                Some(names) => names.at(place, name)?,
                None => SmolStr::new(text(name)?),
            };
            if !item.push(name, Value::decode_at(from, depth)?) {
                return Err(damaged());
            }
        }
        Ok(item)
    }
}

/// The names of the item that was decoded last. Items of one table mostly have the same, and a name that stands where it stood
/// before is not made again.
#[derive(Debug, Default)]
pub struct Names(Vec<SmolStr>);

impl Names {
    /// Reads an item from the start of `from`, and moves `from` behind it.
    pub fn decode(&mut self, from: &mut &[u8]) -> Result<Item> {
        Item::decode_beside(from, 0, Some(self))
    }

    fn at(&mut self, place: usize, name: &[u8]) -> Result<SmolStr> {
        match self.0.get(place) {
            Some(known) if known.as_bytes() == name => Ok(known.clone()),
            _ => {
                let name = SmolStr::new(text(name)?);
                self.0.truncate(place);
                self.0.push(name.clone());
                Ok(name)
            }
        }
    }
}

pub(super) fn put_count(mut count: u64, into: &mut Vec<u8>) {
    while count >= 0x80 {
        into.push(count as u8 | 0x80);
        count >>= 7;
    }
    into.push(count as u8);
}

pub(super) fn put_bytes(bytes: &[u8], into: &mut Vec<u8>) {
    put_count(bytes.len() as u64, into);
    into.extend_from_slice(bytes);
}

fn put_set<T>(tag: u8, set: &BTreeSet<T>, into: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    into.push(tag);
    put_count(set.len() as u64, into);
    set.iter().for_each(|element| put(element, into));
}

pub(super) fn take_byte(from: &mut &[u8]) -> Result<u8> {
    let (byte, rest) = from.split_first().ok_or_else(damaged)?;
    *from = rest;
    Ok(*byte)
}

pub(super) fn take_count(from: &mut &[u8]) -> Result<u64> {
    let mut count = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take_byte(from)?;
        let bits = u64::from(byte & 0x7f);
        // Bits that fall off, and a last group that says nothing, were never written.
        if bits << shift >> shift != bits || byte == 0 && shift > 0 {
            return Err(damaged());
        }
        count |= bits << shift;
        if byte < 0x80 {
            return Ok(count);
        }
    }
    Err(damaged())
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let length = usize::try_from(take_count(from)?).map_err(|_| damaged())?;
    let (bytes, rest) = from.split_at_checked(length).ok_or_else(damaged)?;
    *from = rest;
    Ok(bytes)
}

fn take_text<'a>(from: &mut &'a [u8]) -> Result<&'a str> {
    text(take_bytes(from)?)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged())
}

fn take_set<T: Ord>(from: &mut &[u8], take: impl Fn(&mut &[u8]) -> Result<T>) -> Result<BTreeSet<T>> {
    let mut set = BTreeSet::new();
    for _ in 0..take_count(from)? {
        let element = take(from)?;
        if set.last().is_some_and(|last| *last >= element) {
            return Err(damaged());
        }
        set.insert(element);
    }
    Ok(set)
}

pub(super) fn damaged() -> Error {
    Error::Corrupt("an encoded item is damaged".to_string())
}
