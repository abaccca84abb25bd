//! The records of one key, in order. A lane has at most one record or aggregate under way: a store may refuse a record
//! and take the one behind it, so the one behind it waits.
//!
//! ```text
//!   ready ──sent──▶ flying ──stored──▶ ready, or gone if nothing waits
//!     ▲                └────refused──▶ pausing ──time──┐
//!     └────────────────────────────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_model::{Error, HashKey, NewRecord, Pointer};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::outcome::{Lost, Outcome, Stored, Why};

/// What keeps records in order: they have one key and one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    pub(crate) hash_key: HashKey,
    pub(crate) partition_key: Bytes,
}

/// Records that are stored in order from the first on, or not any further.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    broken: Arc<AtomicBool>,
    /// How long its next record is tried for: a long run may take longer than one record may.
    lifetime: Duration,
}

impl Run {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Run { broken: Arc::default(), lifetime }
    }

    fn broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    pub(crate) fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }
}

/// A record on its way.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: NewRecord,
    pub(crate) hash_key: HashKey,
    pub(crate) deadline: Duration,
    pub(crate) attempts: u32,
    /// An attempt was made whose answer is not known.
    pub(crate) doubtful: bool,
    /// What the last attempt met.
    pub(crate) last_error: Option<Error>,
    pub(crate) run: Option<Run>,
    /// Its payload, if that lies in a blob.
    pub(crate) pointer: Option<Pointer>,
    pub(crate) answer: oneshot::Sender<Outcome>,
    /// Its room in the buffer, given back when it is dropped.
    pub(crate) _room: OwnedSemaphorePermit,
}

impl Entry {
    pub(crate) fn lane(&self) -> LaneKey {
        LaneKey { hash_key: self.hash_key, partition_key: self.record.partition_key.clone() }
    }

    pub(crate) fn size(&self) -> usize {
        self.record.size()
    }

    /// It is first in its lane now: a run has made progress, and its next record has its time from here on.
    pub(crate) fn first_since(&mut self, now: Duration) {
        if let Some(run) = &self.run {
            self.deadline = self.deadline.max(now + run.lifetime);
        }
    }

    /// Why it must not be sent any more, if so.
    pub(crate) fn over(&self, now: Duration) -> Option<Why> {
        if self.run.as_ref().is_some_and(Run::broken) {
            return Some(Why::Behind);
        }
        (now >= self.deadline).then(|| Why::Expired(self.last_error.clone()))
    }

    /// Tells the sender that it is stored.
    pub(crate) fn store(self, shard: anabranch_model::ShardId, sequence: anabranch_model::SequenceNumber) {
        let stored = Stored { shard, sequence, attempts: self.attempts, repeated: self.doubtful };
        let _ = self.answer.send(Ok(stored));
    }

    /// Tells the sender that it is lost. Returns where its payload lies, if nobody will ever ask for it.
    pub(crate) fn lose(self, why: Why) -> Option<Pointer> {
        if let Some(run) = &self.run {
            run.break_off();
        }
        let lost = Lost::new(self.doubtful, why);
        let unused = matches!(lost, Lost::NotStored(_));
        let _ = self.answer.send(Err(lost));
        self.pointer.filter(|_| unused)
    }
}

/// What a lane is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Its first record may go.
    Ready,
    /// Its first records are under way.
    Flying,
    /// It waits before it tries again.
    Pausing,
}

/// The records of one key.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) waiting: VecDeque<Entry>,
    pub(crate) state: LaneState,
    /// The shard could take no more when its first record's turn came; counted once.
    pub(crate) held: bool,
    /// What its first record counts among those that are ready.
    pub(crate) lined_bytes: usize,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Lane { waiting: VecDeque::new(), state: LaneState::Ready, held: false, lined_bytes: 0 }
    }
}
