//! The index: where the frames of a shard lie, in blocks of entries.

use crate::encoding::{Malformed, Put, Take};

/// Entries of one block at most: a value of about 4 KiB.
pub const BLOCK_ENTRIES_MAX: usize = 128;

/// Where one frame of records lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the sequence numbers of its records derive from.
    pub origin: u64,
    /// Where it stands now; the cleaner changes this, and nothing else.
    pub position: u64,
    /// Bytes of the whole frame.
    pub bytes: u32,
    /// How many records it holds. A hole that damage left has none.
    pub count: u32,
    /// When they arrived, in milliseconds.
    pub arrival: u64,
}

/// Consecutive entries of one shard, ordered by origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The origin of the last entry before this block, or 0: a lost block is noticed by the next one.
    pub previous: u64,
    /// The entries.
    pub entries: Vec<Entry>,
}

impl Block {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.entries.len() * 32);
        bytes.put_u64(self.previous);
        for entry in &self.entries {
            bytes.put_u64(entry.origin);
            bytes.put_u64(entry.position);
            bytes.put_u32(entry.bytes);
            bytes.put_u32(entry.count);
            bytes.put_u64(entry.arrival);
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Block, Malformed> {
        let mut take = Take(bytes);
        let previous = take.u64()?;
        let mut entries = Vec::with_capacity(take.0.len() / 32);
        while !take.0.is_empty() {
            entries.push(Entry {
                origin: take.u64()?,
                position: take.u64()?,
                bytes: take.u32()?,
                count: take.u32()?,
                arrival: take.u64()?,
            });
        }
        if entries.is_empty() { Err(Malformed) } else { Ok(Block { previous, entries }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_round_trip(
            previous: u64,
            entries in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u64>()), 1..9),
        ) {
            let entries = entries
                .into_iter()
                .map(|(origin, position, bytes, count, arrival)| Entry { origin, position, bytes, count, arrival })
                .collect();
            let block = Block { previous, entries };
            prop_assert_eq!(Block::decode(&block.encode()), Ok(block));
        }
    }
}
