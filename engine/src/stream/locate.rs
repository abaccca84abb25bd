//! Finding the frames of a shard: the newest entries are in memory, the rest in the state.

use anabranch_model::{Error, Result};

use super::records::{origin_of, sequence};
use super::shard::Shard;
use crate::core::Core;
use crate::state::{Block, Entry};

/// The number behind the last record of an entry. A hole counts as one record that cannot be read.
pub fn end_of(entry: &Entry) -> u128 {
    sequence(entry.origin, entry.count.max(1))
}

impl Core {
    /// The entries that hold records from number `from` on, in order, until `enough` says so.
    pub fn locate(
        &self,
        shard: &Shard,
        from: u128,
        mut enough: impl FnMut(&Entry) -> bool,
    ) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        // Everything with a smaller origin has been looked at.
        let mut next = origin_of(from);
        loop {
            let log = shard.log();
            let stored_last = log.stored_last;
            if stored_last < next {
                for entry in log.in_memory(next).filter(|entry| end_of(entry) > from) {
                    found.push(*entry);
                    if enough(entry) {
                        break;
                    }
                }
                return Ok(found);
            }
            drop(log);
            let (start, mut lost, mut full) = (next, false, false);
            self.state.blocks_from(shard.key, start, |block| {
                lost = next > start && block.previous >= next;
                for entry in block.entries.iter().filter(|entry| entry.origin >= next && end_of(entry) > from)
                {
                    if full {
                        break;
                    }
                    found.push(*entry);
                    full = enough(entry);
                }
                next = block.entries[block.entries.len() - 1].origin + 1;
                !full && !lost
            })?;
            if lost {
                return Err(Error::Corrupt(format!("the index of {} lacks entries before {next}", shard.id)));
            }
            if full {
                return Ok(found);
            }
            // A checkpoint may have stored more meanwhile; then the loop comes here again.
            next = next.max(stored_last + 1);
        }
    }

    /// The block that holds the entry with this origin, or the first one behind it.
    fn block_with(&self, shard: &Shard, origin: u64) -> Result<Option<Block>> {
        match self.state.block_at(shard.key, origin)? {
            Some(block) if block.entries[block.entries.len() - 1].origin >= origin => Ok(Some(block)),
            _ => self.state.block_after(shard.key, origin),
        }
    }

    /// The number of the first record that arrived at `time` or later; the tail if there is none.
    pub fn locate_time(&self, shard: &Shard, time: u64) -> Result<u128> {
        let (horizon, stored_last, in_memory) = {
            let log = shard.log();
            let first = log.in_memory(log.horizon).find(|entry| entry.arrival >= time);
            (log.horizon, log.stored_last, first.map_or(log.tail, |entry| sequence(entry.origin, 0)))
        };
        // Arrival grows with the origin, so the place is found by halving the origins.
        let (mut low, mut high, mut found) = (horizon, stored_last, None);
        while low <= high {
            let middle = low + (high - low) / 2;
            let Some(block) = self.block_with(shard, middle)? else { break };
            let (first, last) = (block.entries[0], block.entries[block.entries.len() - 1]);
            if last.arrival < time {
                low = last.origin + 1;
                continue;
            }
            let place = block.entries.iter().find(|entry| entry.arrival >= time && entry.origin >= horizon);
            found = place.map(|entry| sequence(entry.origin, 0)).or(found);
            if first.arrival < time || first.origin <= low {
                break;
            }
            high = middle.min(first.origin) - 1;
        }
        Ok(found.unwrap_or(in_memory))
    }
}
