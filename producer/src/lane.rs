//! The records of one key, in order. A lane has at most one record or aggregate under way: a store may refuse a record
//! and take the one behind it, so the one behind it waits. Records stay in their lane until they are concluded.
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

use anabranch_model::{Error, HashKey, NewRecord, Pointer, SequenceNumber, ShardId};
use tokio::sync::oneshot;

use crate::outcome::{Lost, Outcome, Stored, Why};

/// Records that are stored in order from the first on, or not any further.
#[derive(Clone, Debug)]
pub(crate) struct Run(Arc<RunState>);

#[derive(Debug)]
struct RunState {
    broken: AtomicBool,
    /// How long its next record is tried for: a long run may take longer than one record may.
    lifetime: Duration,
}

impl Run {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Run(Arc::new(RunState { broken: AtomicBool::new(false), lifetime }))
    }

    fn broken(&self) -> bool {
        self.0.broken.load(Ordering::Acquire)
    }

    pub(crate) fn break_off(&self) {
        self.0.broken.store(true, Ordering::Release);
    }
}

/// A record on its way. What few records have lies elsewhere, because every record is moved into its lane.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: NewRecord,
    pub(crate) hash_key: HashKey,
    pub(crate) deadline: Duration,
    pub(crate) attempts: u32,
    /// What it takes of the buffer; the worker gives that back.
    pub(crate) room: u32,
    /// An attempt was made whose answer is not known.
    pub(crate) doubtful: bool,
    /// What the last attempt met.
    pub(crate) last_error: Option<Box<Error>>,
    pub(crate) run: Option<Run>,
    /// Its payload, if that lies in a blob.
    pub(crate) pointer: Option<Box<Pointer>>,
    pub(crate) answer: oneshot::Sender<Outcome>,
}

impl Entry {
    pub(crate) fn size(&self) -> usize {
        self.record.size()
    }

    /// It is first in its lane now: a run has made progress, and its next record has its time from here on.
    fn first_since(&mut self, now: Duration) {
        if let Some(run) = &self.run {
            self.deadline = self.deadline.max(now + run.0.lifetime);
        }
    }

    /// Why it must not be sent any more, if so.
    pub(crate) fn over(&self, now: Duration) -> Option<Why> {
        if self.run.as_ref().is_some_and(Run::broken) {
            return Some(Why::Behind);
        }
        (now >= self.deadline).then(|| Why::Expired(self.last_error.as_deref().cloned()))
    }

    /// Tells the sender that it is stored.
    pub(crate) fn store(self, shard: ShardId, sequence: SequenceNumber) {
        let stored = Stored { shard, sequence, attempts: self.attempts, repeated: self.doubtful };
        let _ = self.answer.send(Ok(stored));
    }

    /// Tells the sender that it is lost. Returns where its payload lies, if nobody will ever ask for it.
    pub(crate) fn lose(self, why: Why) -> Option<Box<Pointer>> {
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
    /// It waits until then before it tries again.
    Pausing(Duration),
}

/// The records of one key. Most lanes have one record, for which nothing is allocated.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Of its key and its place.
    pub(crate) hash: u64,
    first: Option<Entry>,
    behind: VecDeque<Entry>,
    pub(crate) state: LaneState,
    /// The shard could take no more when its first record's turn came; counted once.
    pub(crate) held: bool,
    /// What its first record counts among those that are ready.
    pub(crate) lined_bytes: usize,
    /// When it became ready the last time.
    pub(crate) ready_at: Duration,
}

impl Lane {
    pub(crate) fn new(hash: u64, first: Entry) -> Self {
        Lane {
            hash,
            first: Some(first),
            behind: VecDeque::new(),
            state: LaneState::Ready,
            held: false,
            lined_bytes: 0,
            ready_at: Duration::ZERO,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn first(&self) -> Option<&Entry> {
        self.first.as_ref()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.behind)
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.first.iter_mut().chain(&mut self.behind)
    }

    /// Whether a record belongs here: it has this key and this place.
    pub(crate) fn takes(&self, entry: &Entry) -> bool {
        self.first.as_ref().is_some_and(|first| {
            first.hash_key == entry.hash_key && first.record.partition_key == entry.record.partition_key
        })
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.behind.push_back(entry),
        }
    }

    /// Takes out the first record, which is concluded.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        std::mem::replace(&mut self.first, self.behind.pop_front())
    }

    /// The lane goes on: the time of its first record begins if that is part of a run.
    pub(crate) fn goes_on(&mut self, now: Duration) {
        if let Some(first) = &mut self.first {
            first.first_since(now);
        }
    }
}
