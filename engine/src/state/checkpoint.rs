//! A checkpoint: one transaction that brings the state from one covered position to the next.
//!
//! It adds the entries of new frames, points moved ones to their new place, and drops what is trimmed. What it drops
//! or moves away is reported, so that the caller can count it off its segments once the transaction is durable, and
//! never before.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_model::Result;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::catalogue::{ShardKey, ShardRow, StreamRow};
use super::index::{BLOCK_ENTRIES_MAX, Block, Entry};
use super::{
    CHECKPOINT, COVERED, Covered, Fault, INDEX, META, ROWS, SEGMENTS, SHARDS, STREAMS, State, damaged, seal,
    stored, unseal,
};
use crate::encoding::Take;
use crate::rows::Overlay;

/// Blocks that one checkpoint drops of one shard at most; the rest goes with the following ones.
const DROPPED_BLOCKS_MAX: usize = 4_096;

type IndexTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// What changed since the last checkpoint.
pub struct Checkpoint {
    /// Larger than that of every checkpoint before it.
    pub number: u64,
    /// How far the state goes with this checkpoint.
    pub covered: Covered,
    /// Streams that were made, changed or deleted.
    pub streams: Vec<(u64, Option<StreamRow>)>,
    /// Shards that changed.
    pub shards: Vec<ShardChange>,
    /// Rows that changed.
    pub rows: Overlay,
    /// Live bytes of every segment at the covered position.
    pub live: BTreeMap<u64, u64>,
    /// Size of a segment, to tell which one a position belongs to.
    pub segment_bytes: u64,
}

impl Checkpoint {
    /// The beginning of a directory.
    pub fn first(position: u64, segment_bytes: u64) -> Checkpoint {
        Checkpoint {
            number: 0,
            covered: Covered { position, epoch: 0, last_state: 0 },
            streams: Vec::new(),
            shards: Vec::new(),
            rows: Overlay::default(),
            live: BTreeMap::new(),
            segment_bytes,
        }
    }
}

/// What changed in one shard.
pub struct ShardChange {
    /// Which shard.
    pub key: ShardKey,
    /// How it is now. A doomed shard loses its row when its index is gone.
    pub row: ShardRow,
    /// Frames that were published.
    pub added: Arc<Vec<Entry>>,
    /// Frames that the cleaner has written again, with their new position.
    pub moved: Arc<Vec<Entry>>,
}

/// What a checkpoint did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bytes that are no longer live, by segment.
    pub freed: BTreeMap<u64, u64>,
    /// Bytes of values that stay in the journal and are live from now on, by segment.
    pub kept: BTreeMap<u64, u64>,
    /// How much of what is no longer live is such values.
    pub released: BTreeMap<u64, u64>,
    /// Shards of which more is to be dropped.
    pub unfinished: Vec<ShardKey>,
    /// Doomed shards that are gone.
    pub gone: Vec<ShardKey>,
    /// Dead rows are left for the next checkpoint.
    pub unswept: bool,
}

/// Writes the tables of a new file.
pub(super) fn initialise(database: &Database, checkpoint: &Checkpoint) -> std::result::Result<(), Fault> {
    apply(database, checkpoint, &mut Outcome::default())
}

impl State {
    /// Applies a checkpoint durably. One that failed has to be repeated as it was before the next one comes: the
    /// failure may have struck when it was on the disk already, and then it is not applied twice.
    pub fn commit(&self, checkpoint: &Checkpoint) -> Result<Outcome> {
        let mut failed = self.failed.lock();
        if let Some((number, outcome)) = &*failed {
            debug_assert_eq!(*number, checkpoint.number, "a failed checkpoint is repeated");
            // Opening the file has made durable what is found in it.
            if self.with(|database| checkpoint_number(&database.begin_read()?))? == *number {
                let outcome = outcome.clone();
                *failed = None;
                return Ok(outcome);
            }
        }
        let mut outcome = Outcome::default();
        match self.with(|database| apply(database, checkpoint, &mut outcome)) {
            Ok(()) => {
                *failed = None;
                Ok(outcome)
            }
            Err(error) => {
                *failed = Some((checkpoint.number, outcome));
                Err(error)
            }
        }
    }
}

/// The number of the last checkpoint that is in the file.
pub(super) fn checkpoint_number(read: &redb::ReadTransaction) -> std::result::Result<u64, Fault> {
    let meta = read.open_table(META)?;
    let number = meta.get(CHECKPOINT)?.ok_or_else(|| damaged(META))?;
    Ok(Take(unseal(META, CHECKPOINT, number.value())?).u64()?)
}

fn apply(
    database: &Database,
    checkpoint: &Checkpoint,
    outcome: &mut Outcome,
) -> std::result::Result<(), Fault> {
    let mut write = database.begin_write()?;
    // The allocator's state is saved with the commit, so that opening after a crash needs no scan of the file.
    write.set_quick_repair(true);
    {
        let mut index = write.open_table(INDEX)?;
        let mut shards = write.open_table(SHARDS)?;
        for change in &checkpoint.shards {
            let mut pen = IndexPen { index: &mut index, change, segment_bytes: checkpoint.segment_bytes };
            pen.add()?;
            pen.repoint(outcome)?;
            let finished = pen.drop_trimmed(outcome)?;
            let key = change.key.encode();
            if change.row.doomed && finished {
                shards.remove(&key[..])?;
                outcome.gone.push(change.key);
            } else {
                shards.insert(&key[..], &seal(&key, change.row.encode())[..])?;
            }
            if !finished {
                outcome.unfinished.push(change.key);
            }
        }
        let mut streams = write.open_table(STREAMS)?;
        for (stream, row) in &checkpoint.streams {
            let key = stream.to_be_bytes();
            match row {
                Some(row) => streams.insert(&key[..], &seal(&key, row.encode())[..])?,
                None => streams.remove(&key[..])?,
            };
        }
        let mut tally = stored::Tally { segment_bytes: checkpoint.segment_bytes, outcome };
        tally.outcome.unswept = stored::apply(&mut write.open_table(ROWS)?, &checkpoint.rows, &mut tally)?;
        write_segments(&mut write.open_table(SEGMENTS)?, &checkpoint.live, outcome)?;
        let mut meta = write.open_table(META)?;
        meta.insert(COVERED, &seal(COVERED, checkpoint.covered.encode())[..])?;
        meta.insert(CHECKPOINT, &seal(CHECKPOINT, checkpoint.number.to_le_bytes().to_vec())[..])?;
    }
    Ok(write.commit()?)
}

fn write_segments(
    table: &mut IndexTable<'_>,
    live: &BTreeMap<u64, u64>,
    outcome: &Outcome,
) -> std::result::Result<(), Fault> {
    table.retain(|key, _| key.try_into().is_ok_and(|key| live.contains_key(&u64::from_be_bytes(key))))?;
    for (segment, live) in live {
        let of = |counts: &BTreeMap<u64, u64>| counts.get(segment).copied().unwrap_or(0);
        let left = (live + of(&outcome.kept)).saturating_sub(of(&outcome.freed));
        let key = segment.to_be_bytes();
        let value = seal(&key, left.to_le_bytes().to_vec());
        let same = table.get(&key[..])?.is_some_and(|old| old.value() == &value[..]);
        if !same {
            table.insert(&key[..], &value[..])?;
        }
    }
    Ok(())
}

/// Edits the index of one shard.
struct IndexPen<'a, 't> {
    index: &'a mut IndexTable<'t>,
    change: &'a ShardChange,
    segment_bytes: u64,
}

impl IndexPen<'_, '_> {
    /// Adds the new entries behind the last block, filling it first.
    fn add(&mut self) -> std::result::Result<(), Fault> {
        let Some(first) = self.change.added.first() else { return Ok(()) };
        let mut block = match self.last_block(first.origin)? {
            Some(block) if block.entries.len() < BLOCK_ENTRIES_MAX => block,
            Some(full) => {
                Block { previous: full.entries[full.entries.len() - 1].origin, entries: Vec::new() }
            }
            None => Block { previous: 0, entries: Vec::new() },
        };
        for entry in self.change.added.iter() {
            block.entries.push(*entry);
            if block.entries.len() == BLOCK_ENTRIES_MAX {
                self.put(&block)?;
                block = Block { previous: entry.origin, entries: Vec::new() };
            }
        }
        if block.entries.is_empty() { Ok(()) } else { self.put(&block) }
    }

    /// Points entries to where the cleaner has put their frames.
    fn repoint(&mut self, outcome: &mut Outcome) -> std::result::Result<(), Fault> {
        let mut block: Option<Block> = None;
        for moved in self.change.moved.iter() {
            let held =
                block.as_ref().is_some_and(|block| block.entries.iter().any(|e| e.origin == moved.origin));
            if !held {
                if let Some(done) = block.take() {
                    self.put(&done)?;
                }
                block = self.last_block(moved.origin)?;
            }
            let entry = block.as_mut().and_then(|b| b.entries.iter_mut().find(|e| e.origin == moved.origin));
            let left = match entry {
                Some(entry) => std::mem::replace(entry, *moved),
                None => *moved,
            };
            self.free(outcome, &left);
        }
        match block {
            Some(block) => self.put(&block),
            None => Ok(()),
        }
    }

    /// Drops entries below the horizon; false if more are left than one checkpoint takes.
    fn drop_trimmed(&mut self, outcome: &mut Outcome) -> std::result::Result<bool, Fault> {
        let horizon = if self.change.row.doomed { u64::MAX } else { self.change.row.horizon };
        for _ in 0..DROPPED_BLOCKS_MAX {
            let Some(block) = self.first_block()? else { return Ok(true) };
            if block.entries[0].origin >= horizon {
                return Ok(true);
            }
            let first = block.entries[0].origin;
            let (dropped, kept): (Vec<Entry>, Vec<Entry>) =
                block.entries.iter().partition(|e| e.origin < horizon);
            dropped.iter().for_each(|entry| self.free(outcome, entry));
            self.index.remove(&self.change.key.index_key(first)[..])?;
            if !kept.is_empty() {
                self.put(&Block { previous: dropped[dropped.len() - 1].origin, entries: kept })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn free(&self, outcome: &mut Outcome, entry: &Entry) {
        if entry.count > 0 {
            *outcome.freed.entry(entry.position / self.segment_bytes).or_default() += u64::from(entry.bytes);
        }
    }

    fn last_block(&mut self, origin: u64) -> std::result::Result<Option<Block>, Fault> {
        self.block(0, origin, true)
    }

    fn first_block(&mut self) -> std::result::Result<Option<Block>, Fault> {
        self.block(0, u64::MAX, false)
    }

    fn block(
        &mut self,
        first: u64,
        last: u64,
        from_the_end: bool,
    ) -> std::result::Result<Option<Block>, Fault> {
        let (first, last) = (self.change.key.index_key(first), self.change.key.index_key(last));
        let mut range = self.index.range(&first[..]..=&last[..])?;
        let row = if from_the_end { range.next_back() } else { range.next() };
        let Some(row) = row else { return Ok(None) };
        let (key, value) = row?;
        Ok(Some(Block::decode(unseal(INDEX, key.value(), value.value())?)?))
    }

    fn put(&mut self, block: &Block) -> std::result::Result<(), Fault> {
        let key = self.change.key.index_key(block.entries[0].origin);
        self.index.insert(&key[..], &seal(&key, block.encode())[..])?;
        Ok(())
    }
}
