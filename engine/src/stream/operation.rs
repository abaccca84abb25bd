//! Operations on the catalogue, as the journal stores them.
//!
//! An operation says what happened, never what to compute: replaying it needs no clock and no choice.

use anabranch_model::{HashKey, HashRange};

use crate::encoding::{Malformed, Put, Take};
use crate::journal::{Draft, Kind, Label};
use crate::state::ShardKey;

/// A change of streams and shards. A stream is known by the position of the frame that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A stream was made; its shards are numbered from 0.
    Create {
        /// Its name.
        name: String,
        /// When, in milliseconds.
        created_at: u64,
        /// How long records are kept, in milliseconds.
        retention_ms: u64,
        /// The ranges of its shards.
        ranges: Vec<HashRange>,
    },
    /// A stream was deleted.
    Delete {
        /// Which one.
        stream: u64,
    },
    /// A shard became two.
    Split {
        /// The shard.
        shard: ShardKey,
        /// Where the upper child begins.
        at: HashKey,
        /// The numbers of the children, the lower one first.
        children: [u32; 2],
        /// When, in milliseconds.
        time: u64,
    },
    /// Two shards became one.
    Merge {
        /// The stream.
        stream: u64,
        /// The parents, the lower range first.
        parents: [u32; 2],
        /// The number of the child.
        child: u32,
        /// When, in milliseconds.
        time: u64,
    },
    /// The retention of a stream was changed.
    Retain {
        /// The stream.
        stream: u64,
        /// How long records are kept, in milliseconds.
        retention_ms: u64,
    },
    /// Records passed their retention.
    Trim(Vec<Trim>),
}

/// What was trimmed of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The shard.
    pub shard: ShardKey,
    /// Frames with a smaller origin are gone.
    pub horizon: u64,
    /// The shard was closed and has no records left: it is gone as a whole.
    pub gone: bool,
}

impl Operation {
    /// A frame with this operation.
    pub fn draft(&self) -> Draft {
        Draft::new(Label::bare(Kind::Catalogue), 64, |bytes| self.encode(bytes))
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Operation::Create { name, created_at, retention_ms, ranges } => {
                bytes.put_u8(1);
                bytes.put_text(name);
                bytes.put_u64(*created_at);
                bytes.put_u64(*retention_ms);
                bytes.put_u32(ranges.len() as u32);
                for range in ranges {
                    bytes.put_u128(range.first().get());
                    bytes.put_u128(range.last().get());
                }
            }
            Operation::Delete { stream } => {
                bytes.put_u8(2);
                bytes.put_u64(*stream);
            }
            Operation::Split { shard, at, children, time } => {
                bytes.put_u8(3);
                put_shard(bytes, *shard);
                bytes.put_u128(at.get());
                bytes.put_u32(children[0]);
                bytes.put_u32(children[1]);
                bytes.put_u64(*time);
            }
            Operation::Merge { stream, parents, child, time } => {
                bytes.put_u8(4);
                bytes.put_u64(*stream);
                bytes.put_u32(parents[0]);
                bytes.put_u32(parents[1]);
                bytes.put_u32(*child);
                bytes.put_u64(*time);
            }
            Operation::Retain { stream, retention_ms } => {
                bytes.put_u8(5);
                bytes.put_u64(*stream);
                bytes.put_u64(*retention_ms);
            }
            Operation::Trim(trims) => {
                bytes.put_u8(6);
                bytes.put_u32(trims.len() as u32);
                for trim in trims {
                    put_shard(bytes, trim.shard);
                    bytes.put_u64(trim.horizon);
                    bytes.put_u8(u8::from(trim.gone));
                }
            }
        }
    }

    /// Reads the payload of a frame.
    pub fn decode(payload: &[u8]) -> Result<Operation, Malformed> {
        let mut take = Take(payload);
        let operation = match take.u8()? {
            1 => Operation::Create {
                name: take.text()?.to_owned(),
                created_at: take.u64()?,
                retention_ms: take.u64()?,
                ranges: (0..take.u32()?).map(|_| take_range(&mut take)).collect::<Result<_, _>>()?,
            },
            2 => Operation::Delete { stream: take.u64()? },
            3 => Operation::Split {
                shard: take_shard(&mut take)?,
                at: HashKey::new(take.u128()?),
                children: [take.u32()?, take.u32()?],
                time: take.u64()?,
            },
            4 => Operation::Merge {
                stream: take.u64()?,
                parents: [take.u32()?, take.u32()?],
                child: take.u32()?,
                time: take.u64()?,
            },
            5 => Operation::Retain { stream: take.u64()?, retention_ms: take.u64()? },
            6 => Operation::Trim((0..take.u32()?).map(|_| take_trim(&mut take)).collect::<Result<_, _>>()?),
            _ => return Err(Malformed),
        };
        take.end().map(|()| operation)
    }
}

fn put_shard(bytes: &mut Vec<u8>, shard: ShardKey) {
    bytes.put_u64(shard.stream);
    bytes.put_u32(shard.number);
}

fn take_shard(take: &mut Take<'_>) -> Result<ShardKey, Malformed> {
    Ok(ShardKey { stream: take.u64()?, number: take.u32()? })
}

fn take_range(take: &mut Take<'_>) -> Result<HashRange, Malformed> {
    HashRange::new(HashKey::new(take.u128()?), HashKey::new(take.u128()?)).map_err(|_| Malformed)
}

fn take_trim(take: &mut Take<'_>) -> Result<Trim, Malformed> {
    Ok(Trim { shard: take_shard(take)?, horizon: take.u64()?, gone: take.u8()? != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip_and_nothing_may_follow() {
        let shard = ShardKey { stream: 7, number: 3 };
        for operation in [
            Operation::Create {
                name: "a".into(),
                created_at: 1,
                retention_ms: 2,
                ranges: HashRange::even(3),
            },
            Operation::Delete { stream: 9 },
            Operation::Split { shard, at: HashKey::new(1 << 99), children: [4, 5], time: 6 },
            Operation::Merge { stream: 1, parents: [2, 3], child: 4, time: 5 },
            Operation::Retain { stream: 1, retention_ms: 2 },
            Operation::Trim(vec![
                Trim { shard, horizon: 77, gone: true },
                Trim { shard, horizon: 78, gone: false },
            ]),
        ] {
            let mut bytes = Vec::new();
            operation.encode(&mut bytes);
            assert_eq!(Operation::decode(&bytes), Ok(operation.clone()));
            bytes.push(0);
            assert_eq!(Operation::decode(&bytes), Err(Malformed), "{operation:?}");
        }
    }
}
