//! Rows of streams and shards.

use anabranch_model::{HashKey, HashRange};

use crate::encoding::{Malformed, Put, Take};

/// Which shard of which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardKey {
    /// The position of the frame that made the stream.
    pub stream: u64,
    /// The number within the stream.
    pub number: u32,
}

impl ShardKey {
    pub(super) fn encode(self) -> [u8; 12] {
        let mut key = [0; 12];
        key[..8].copy_from_slice(&self.stream.to_be_bytes());
        key[8..].copy_from_slice(&self.number.to_be_bytes());
        key
    }

    pub(super) fn decode(key: &[u8]) -> Result<ShardKey, Malformed> {
        let (stream, number) = key.split_first_chunk::<8>().ok_or(Malformed)?;
        Ok(ShardKey {
            stream: u64::from_be_bytes(*stream),
            number: u32::from_be_bytes(number.try_into().map_err(|_| Malformed)?),
        })
    }

    pub(super) fn index_key(self, origin: u64) -> [u8; 20] {
        let mut key = [0; 20];
        key[..12].copy_from_slice(&self.encode());
        key[12..].copy_from_slice(&origin.to_be_bytes());
        key
    }
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// Its name.
    pub name: String,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// How long records are kept, in milliseconds.
    pub retention_ms: u64,
    /// The number of the next shard.
    pub next_shard: u32,
}

impl StreamRow {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.name.len());
        bytes.put_text(&self.name);
        bytes.put_u64(self.created_at);
        bytes.put_u64(self.retention_ms);
        bytes.put_u32(self.next_shard);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<StreamRow, Malformed> {
        let mut take = Take(bytes);
        let row = StreamRow {
            name: take.text()?.to_owned(),
            created_at: take.u64()?,
            retention_ms: take.u64()?,
            next_shard: take.u32()?,
        };
        take.end().map(|()| row)
    }
}

/// How a shard was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedRow {
    /// The position of the frame that closed it.
    pub position: u64,
    /// When, in milliseconds.
    pub time: u64,
    /// The shards that went on.
    pub children: Vec<u32>,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// The keys it takes.
    pub range: HashRange,
    /// The shards it came from.
    pub parents: Vec<u32>,
    /// The position of the frame that opened it.
    pub opened: u64,
    /// Set when it was split or merged.
    pub closed: Option<ClosedRow>,
    /// Frames whose origin is smaller are trimmed.
    pub horizon: u64,
    /// The sequence number behind the last record.
    pub tail: u128,
    /// Arrival of the last record, in milliseconds.
    pub last_arrival: u64,
    /// Its stream is deleted, or retention has removed it; only its index is still to be removed.
    pub doomed: bool,
}

impl ShardRow {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.put_u128(self.range.first().get());
        bytes.put_u128(self.range.last().get());
        put_numbers(&mut bytes, &self.parents);
        bytes.put_u64(self.opened);
        bytes.put_u8(u8::from(self.closed.is_some()));
        if let Some(closed) = &self.closed {
            bytes.put_u64(closed.position);
            bytes.put_u64(closed.time);
            put_numbers(&mut bytes, &closed.children);
        }
        bytes.put_u64(self.horizon);
        bytes.put_u128(self.tail);
        bytes.put_u64(self.last_arrival);
        bytes.put_u8(u8::from(self.doomed));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<ShardRow, Malformed> {
        let mut take = Take(bytes);
        let (first, last) = (HashKey::new(take.u128()?), HashKey::new(take.u128()?));
        let range = HashRange::new(first, last).map_err(|_| Malformed)?;
        let parents = take_numbers(&mut take)?;
        let opened = take.u64()?;
        let closed = match take.u8()? {
            0 => None,
            _ => Some(ClosedRow {
                position: take.u64()?,
                time: take.u64()?,
                children: take_numbers(&mut take)?,
            }),
        };
        let row = ShardRow {
            range,
            parents,
            opened,
            closed,
            horizon: take.u64()?,
            tail: take.u128()?,
            last_arrival: take.u64()?,
            doomed: take.u8()? != 0,
        };
        take.end().map(|()| row)
    }
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.put_u8(numbers.len() as u8);
    numbers.iter().for_each(|number| bytes.put_u32(*number));
}

fn take_numbers(take: &mut Take<'_>) -> Result<Vec<u32>, Malformed> {
    (0..take.u8()?).map(|_| take.u32()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shard_rows_round_trip(
            a: u128, b: u128, parents in proptest::collection::vec(any::<u32>(), 0..3),
            opened: u64, horizon: u64, tail: u128, last_arrival: u64, doomed: bool,
            closed in proptest::option::of((any::<u64>(), any::<u64>(), proptest::collection::vec(any::<u32>(), 0..3))),
        ) {
            let range = HashRange::new(HashKey::new(a.min(b)), HashKey::new(a.max(b))).unwrap();
            let closed = closed.map(|(position, time, children)| ClosedRow { position, time, children });
            let row = ShardRow { range, parents, opened, closed, horizon, tail, last_arrival, doomed };
            prop_assert_eq!(ShardRow::decode(&row.encode()), Ok(row));
        }

        #[test]
        fn stream_rows_round_trip(name in "[a-z]{1,128}", created_at: u64, retention_ms: u64, next_shard: u32) {
            let row = StreamRow { name, created_at, retention_ms, next_shard };
            prop_assert_eq!(StreamRow::decode(&row.encode()), Ok(row));
        }

        #[test]
        fn keys_sort_as_their_shards(a: (u64, u32), b: (u64, u32)) {
            let [a, b] = [a, b].map(|(stream, number)| ShardKey { stream, number });
            prop_assert_eq!(a.cmp(&b), a.encode().cmp(&b.encode()));
            prop_assert_eq!(ShardKey::decode(&a.encode()), Ok(a));
        }
    }
}
