//! One shard as readers see it: where its frames lie, where it begins and ends, and who follows it.
//!
//! ```text
//!   open ──split or merge is durable──▶ closed ──last record trimmed──▶ doomed ──index dropped──▶ gone
//!     └──────────────────────stream deleted───────────────────────────────▲
//! ```
//!
//! What must hold: only durable frames are in here, in the order of the journal. The newest entries are in memory, the
//! rest in the state; an entry leaves memory only after the checkpoint that stored it.

use std::sync::Arc;

use anabranch_model::{HashRange, SequenceNumber, Shard as ShardView, ShardId, Timestamp};
use parking_lot::{Mutex, MutexGuard};

use super::follow::Follower;
use super::records::{number, sequence};
use super::throttle::Throttle;
use crate::state::{ClosedRow, Entry, ShardChange, ShardKey, ShardRow};

/// One shard.
pub struct Shard {
    /// Which shard of which stream.
    pub key: ShardKey,
    /// Its name.
    pub id: ShardId,
    /// The keys it takes.
    pub range: HashRange,
    /// The shards it came from.
    pub parents: Vec<u32>,
    /// The position of the frame that opened it.
    pub opened: u64,
    /// Arrival of the last record that has its place in the journal. Guarded by the turn of its stream.
    pub arrival_accepted: Mutex<u64>,
    /// The limits per second, where they are switched on.
    pub throttle: Mutex<Throttle>,
    log: Mutex<Log>,
}

/// The part of a shard that changes.
pub struct Log {
    /// Frames whose origin is smaller are trimmed.
    pub horizon: u64,
    /// The number behind the last record.
    pub tail: u128,
    /// Arrival of the last record.
    pub last_arrival: u64,
    /// Set when it was split or merged.
    pub closed: Option<ClosedRow>,
    /// Only its index is left, and that is to be dropped.
    pub doomed: bool,
    /// Origin of the last entry in the state.
    pub stored_last: u64,
    /// Entries that a checkpoint is storing.
    flushing: Arc<Vec<Entry>>,
    /// Entries that no checkpoint has stored.
    recent: Vec<Entry>,
    moved_flushing: Arc<Vec<Entry>>,
    moved: Vec<Entry>,
    /// Whether the next checkpoint knows that this shard changed.
    pub dirty: bool,
    /// Who is told of new frames.
    pub followers: Vec<Arc<Follower>>,
}

impl Shard {
    /// A new shard, opened by the frame at `opened`.
    pub fn new(key: ShardKey, range: HashRange, parents: Vec<u32>, opened: u64, arrival: u64) -> Shard {
        let row = ShardRow {
            range,
            parents,
            opened,
            closed: None,
            horizon: opened,
            tail: sequence(opened, 0),
            last_arrival: arrival,
            doomed: false,
        };
        Shard::load(key, row, 0)
    }

    /// A shard as the state has it.
    pub fn load(key: ShardKey, row: ShardRow, stored_last: u64) -> Shard {
        Shard {
            key,
            id: ShardId::numbered(u64::from(key.number)),
            range: row.range,
            parents: row.parents,
            opened: row.opened,
            arrival_accepted: Mutex::new(row.last_arrival),
            throttle: Mutex::new(Throttle::default()),
            log: Mutex::new(Log {
                horizon: row.horizon,
                tail: row.tail,
                last_arrival: row.last_arrival,
                closed: row.closed,
                doomed: row.doomed,
                stored_last,
                flushing: Arc::default(),
                recent: Vec::new(),
                moved_flushing: Arc::default(),
                moved: Vec::new(),
                dirty: false,
                followers: Vec::new(),
            }),
        }
    }

    /// The part that changes.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    /// What a listing shows.
    pub fn view(&self) -> ShardView {
        let log = self.log();
        ShardView {
            id: self.id.clone(),
            parents: self.parents.iter().map(|parent| ShardId::numbered(u64::from(*parent))).collect(),
            range: Some(self.range),
            starts_at: number(sequence(self.opened, 0)),
            ends_before: log.closed.as_ref().map(|closed| number(sequence(closed.position, 0))),
            closed_at: log.closed.as_ref().map(|closed| Timestamp::from_millis(closed.time)),
        }
    }

    /// Its row as it is now.
    pub fn current_row(&self) -> ShardRow {
        self.row(&self.log())
    }

    fn row(&self, log: &Log) -> ShardRow {
        ShardRow {
            range: self.range,
            parents: self.parents.clone(),
            opened: self.opened,
            closed: log.closed.clone(),
            horizon: log.horizon,
            tail: log.tail,
            last_arrival: log.last_arrival,
            doomed: log.doomed,
        }
    }

    /// Takes what changed for a checkpoint. Entries stay readable until [`Shard::stored`].
    pub fn collect(&self) -> ShardChange {
        let mut log = self.log();
        debug_assert!(log.flushing.is_empty() && log.moved_flushing.is_empty(), "one checkpoint at a time");
        log.dirty = false;
        log.flushing = Arc::new(std::mem::take(&mut log.recent));
        log.moved_flushing = Arc::new(std::mem::take(&mut log.moved));
        let row = self.row(&log);
        ShardChange { key: self.key, row, added: log.flushing.clone(), moved: log.moved_flushing.clone() }
    }

    /// Forgets what a checkpoint has stored.
    pub fn stored(&self) {
        let mut log = self.log();
        if let Some(last) = log.flushing.last() {
            log.stored_last = last.origin;
        }
        log.flushing = Arc::default();
        log.moved_flushing = Arc::default();
    }
}

impl Log {
    /// A frame of this shard became durable.
    pub fn add(&mut self, entry: Entry) {
        debug_assert!(sequence(entry.origin, 0) >= self.tail, "frames are published in order");
        self.recent.push(entry);
        self.tail = sequence(entry.origin, entry.count.max(1));
        self.last_arrival = self.last_arrival.max(entry.arrival);
    }

    /// The cleaner wrote a frame again.
    pub fn repoint(&mut self, entry: Entry) {
        self.moved.push(entry);
    }

    /// Entries in memory with an origin of at least `origin`, in order.
    pub fn in_memory(&self, origin: u64) -> impl Iterator<Item = &Entry> {
        let from = |entries: &[Entry]| entries.partition_point(|entry| entry.origin < origin);
        let (flushing, recent) = (&self.flushing[..], &self.recent[..]);
        flushing[from(flushing)..].iter().chain(recent[from(recent)..].iter())
    }

    /// The number behind the last record, as the model has it.
    pub fn tail_number(&self) -> SequenceNumber {
        number(self.tail)
    }
}
