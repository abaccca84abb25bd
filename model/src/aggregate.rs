//! Many small records in one: the format of the Kinesis Producer Library, which producers write and consumers read.
//!
//! ```text
//!   F3 89 9A C2 │ message │ MD5 of the message
//!
//!   message  1: partition key, once each    2: explicit hash key, once each    3: record
//!   record   1: number of its partition key    2: number of its hash key, if any    3: data
//! ```
//!
//! The message is Protocol Buffers; of that language only what these fields need is spoken here. What must hold:
//! whatever bytes come in, the answer is records or an error, within [`AGGREGATE_RECORDS_MAX`] records.

use std::collections::HashMap;

use bytes::Bytes;
use md5::{Digest, Md5};

use crate::error::{Error, Result};
use crate::hash_key::HashKey;
use crate::limits::AGGREGATE_RECORDS_MAX;
use crate::partition_key::PartitionKey;
use crate::record::NewRecord;

/// What an aggregate begins with.
pub const MAGIC: [u8; 4] = [0xf3, 0x89, 0x9a, 0xc2];
/// Bytes of the digest at its end.
const DIGEST_BYTES: usize = 16;
/// Most bytes of a number of 64 bits, seven bits in each.
const VARINT_BYTES_MAX: usize = 10;

const PARTITION_KEYS: u64 = 1;
const HASH_KEYS: u64 = 2;
const RECORDS: u64 = 3;

const KEY_INDEX: u64 = 1;
const HASH_INDEX: u64 = 2;
const DATA: u64 = 3;

/// How a field is written.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Whether a payload says that it is an aggregate. It may still be none: anybody may begin with these four bytes.
pub fn is_aggregate(data: &[u8]) -> bool {
    data.len() > MAGIC.len() + DIGEST_BYTES && data.starts_with(&MAGIC)
}

/// The records in an aggregate, as they were handed to whoever made it. Keys and payloads are slices of `data`.
pub fn deaggregate(data: &Bytes) -> Result<Vec<NewRecord>> {
    Aggregate::open(data).map(Iterator::collect)
}

/// The records of an aggregate that is known to be whole, one by one: a small one may hold so many that nobody wants to have
/// them all at once.
pub struct Aggregate {
    keys: Vec<PartitionKey>,
    hash_keys: Vec<HashKey>,
    fields: Fields,
    left: usize,
}

impl Aggregate {
    /// Looks at every byte of an aggregate.
    pub fn open(data: &Bytes) -> Result<Self> {
        if !is_aggregate(data) {
            return Err(corrupt("it does not begin like one"));
        }
        let message = data.slice(MAGIC.len()..data.len() - DIGEST_BYTES);
        if Md5::digest(&message)[..] != data[data.len() - DIGEST_BYTES..] {
            return Err(corrupt("its digest is another one"));
        }
        let (mut keys, mut hash_keys, mut left) = (Vec::new(), Vec::new(), 0);
        let mut fields = Fields { rest: message.clone() };
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (PARTITION_KEYS, Field::Bytes(key)) if keys.len() < AGGREGATE_RECORDS_MAX => {
                    keys.push(utf8(key)?);
                }
                (HASH_KEYS, Field::Bytes(key)) if hash_keys.len() < AGGREGATE_RECORDS_MAX => {
                    hash_keys.push(hash_key(&key)?);
                }
                (RECORDS, Field::Bytes(_)) if left < AGGREGATE_RECORDS_MAX => left += 1,
                (PARTITION_KEYS | HASH_KEYS, Field::Bytes(_)) => return Err(corrupt("it has too many keys")),
                (RECORDS, Field::Bytes(_)) => return Err(corrupt("it has too many records")),
                (PARTITION_KEYS | HASH_KEYS | RECORDS, _) => {
                    return Err(corrupt("a field is of another kind"));
                }
                // What a later version adds is passed over.
                _ => {}
            }
        }
        // The tables may come behind the records that point into them, so these are looked at now.
        let mut aggregate = Aggregate { keys, hash_keys, fields: Fields { rest: message.clone() }, left };
        while aggregate.following()?.is_some() {}
        Ok(Aggregate { fields: Fields { rest: message }, left, ..aggregate })
    }

    fn following(&mut self) -> Result<Option<NewRecord>> {
        while let Some((number, value)) = self.fields.next()? {
            if let (RECORDS, Field::Bytes(record)) = (number, value) {
                self.left -= 1;
                return open(record, &self.keys, &self.hash_keys).map(Some);
            }
        }
        Ok(None)
    }
}

impl Iterator for Aggregate {
    type Item = NewRecord;

    fn next(&mut self) -> Option<NewRecord> {
        // Every record was looked at before.
        self.following().ok().flatten()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Aggregate {}

/// The aggregate of these records.
pub fn aggregate(records: &[NewRecord]) -> Result<Bytes> {
    if records.is_empty() || records.len() > AGGREGATE_RECORDS_MAX {
        return Err(Error::Invalid(format!(
            "an aggregate of {} records is not allowed: it must have 1 to {AGGREGATE_RECORDS_MAX}",
            records.len()
        )));
    }
    let (mut keys, mut hash_keys) = (Table::default(), Table::default());
    let (mut message, mut bodies, mut body) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        body.clear();
        put_number(&mut body, KEY_INDEX, keys.index(&record.partition_key));
        if let Some(hash_key) = record.explicit_hash_key {
            put_number(&mut body, HASH_INDEX, hash_keys.index(hash_key.to_string().as_bytes()));
        }
        put_bytes(&mut body, DATA, &record.data);
        put_bytes(&mut bodies, RECORDS, &body);
    }
    keys.put(&mut message, PARTITION_KEYS);
    hash_keys.put(&mut message, HASH_KEYS);
    message.append(&mut bodies);
    let digest = Md5::digest(&message);
    Ok([&MAGIC[..], &message, &digest[..]].concat().into())
}

/// Texts that are written once each.
#[derive(Default)]
struct Table {
    places: HashMap<Vec<u8>, u64>,
    texts: Vec<Vec<u8>>,
}

impl Table {
    fn index(&mut self, text: &[u8]) -> u64 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.texts.len() as u64;
        self.places.insert(text.to_vec(), place);
        self.texts.push(text.to_vec());
        place
    }

    fn put(&self, into: &mut Vec<u8>, field: u64) {
        for text in &self.texts {
            put_bytes(into, field, text);
        }
    }
}

fn open(record: Bytes, keys: &[PartitionKey], hash_keys: &[HashKey]) -> Result<NewRecord> {
    let (mut key, mut hash_key, mut data) = (None, None, None);
    let mut fields = Fields { rest: record };
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (KEY_INDEX, Field::Number(index)) => key = Some(at(keys, index)?.clone()),
            (HASH_INDEX, Field::Number(index)) => hash_key = Some(*at(hash_keys, index)?),
            (DATA, Field::Bytes(bytes)) => data = Some(bytes),
            (KEY_INDEX | HASH_INDEX | DATA, _) => return Err(corrupt("a field is of another kind")),
            _ => {}
        }
    }
    match (key, data) {
        (Some(partition_key), Some(data)) => {
            Ok(NewRecord { partition_key, explicit_hash_key: hash_key, data })
        }
        _ => Err(corrupt("a record has no key or no data")),
    }
}

fn at<T>(table: &[T], index: u64) -> Result<&T> {
    let place = usize::try_from(index).ok().and_then(|index| table.get(index));
    place.ok_or_else(|| corrupt("a record points to a key that is not there"))
}

fn utf8(key: Bytes) -> Result<PartitionKey> {
    match std::str::from_utf8(&key) {
        Ok(_) => Ok(key.into()),
        Err(_) => Err(corrupt("a partition key is not UTF-8")),
    }
}

fn hash_key(text: &[u8]) -> Result<HashKey> {
    let text = std::str::from_utf8(text).map_err(|_| corrupt("a hash key is not UTF-8"))?;
    text.parse().map_err(|_| corrupt("a hash key is not one"))
}

/// One field of a message.
enum Field {
    Number(u64),
    Bytes(Bytes),
    Passed,
}

/// The fields of a message, from the first on.
struct Fields {
    rest: Bytes,
}

impl Fields {
    fn next(&mut self) -> Result<Option<(u64, Field)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let field = match tag & 7 {
            VARINT => Field::Number(self.number()?),
            DELIMITED => {
                let length = self.number()?;
                Field::Bytes(self.take(length)?)
            }
            EIGHT_BYTES => self.take(8).map(|_| Field::Passed)?,
            FOUR_BYTES => self.take(4).map(|_| Field::Passed)?,
            _ => return Err(corrupt("a field is of no kind that is known")),
        };
        Ok(Some((tag >> 3, field)))
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (place, &byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if place == VARINT_BYTES_MAX - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = self.rest.slice(place + 1..);
                return Ok(value);
            }
        }
        Err(corrupt("a number does not end"))
    }

    fn take(&mut self, length: u64) -> Result<Bytes> {
        match usize::try_from(length) {
            Ok(length) if length <= self.rest.len() => Ok(self.rest.split_to(length)),
            _ => Err(corrupt("a field is longer than what is left")),
        }
    }
}

fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn put_number(into: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(into, field << 3 | VARINT);
    put_varint(into, value);
}

fn put_bytes(into: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(into, field << 3 | DELIMITED);
    put_varint(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

fn corrupt(why: &str) -> Error {
    Error::Invalid(format!("the aggregate of records is corrupt: {why}"))
}
