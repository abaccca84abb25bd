//! One frame in the making: the rows of a queue as they were accepted last, with the changes of this frame above them.
//!
//! A call looks and changes as if it were alone with a plain map. Nothing of it counts until [`write`] has given the
//! frame its place in the journal; a frame that gets none is dropped, and the call begins anew.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::limits::MOVES_REMEMBERED_MAX;
use anabranch_model::{Error, Result};
use bytes::Bytes;
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::counts::Shown;
use super::held::{self, Accepted, Queue};
use super::options::MoveRow;
use crate::core::{Attempt, Core};
use crate::journal::Urgency;
use crate::journal::sequencer::Done;
use crate::rows::{Accepting, Change, Key, Order, Rows};

/// Bytes of bodies after which a frame takes no more of them from another queue.
pub const MOVED_BYTES_MAX: usize = 1 << 20;

/// A frame for one queue, which stays locked as long as it exists.
pub struct Frame<'a> {
    rows: &'a Rows,
    /// The queue.
    pub queue: &'a Arc<Queue>,
    /// Its accepted side.
    pub held: MutexGuard<'a, Accepted>,
    /// The time of the call.
    pub now: u64,
    /// Receivers to wake when the frame is durable.
    pub wakes: usize,
    /// How far a move is with this frame.
    pub moving: Option<MoveRow>,
    /// A receive that can be repeated.
    pub attempt: Option<(String, held::Attempt)>,
    /// Changed rows by their keys, in order: there are few.
    changes: Vec<(Bytes, Changed)>,
    placed: Vec<Change>,
    /// Messages that the frame brought so far.
    pub(super) added: u16,
    /// Bytes of their bodies.
    pub(super) bytes: usize,
    bytes_max: usize,
    /// Groups that got their first message in this frame.
    pub(super) begun: HashSet<String>,
    /// Groups whose messages changed, each with the row of its first message before.
    pub(super) touched: HashMap<String, Option<Bytes>>,
    counted: Vec<(Option<Shown>, Option<Shown>)>,
}

struct Changed {
    value: Option<Bytes>,
    fresh: bool,
}

impl<'a> Frame<'a> {
    /// Locks a queue. It is an error if the queue is gone.
    pub fn new(core: &'a Core, queue: &'a Arc<Queue>) -> Result<Frame<'a>> {
        let mut held = queue.lock();
        if held.deleted {
            return Err(Error::QueueNotFound(queue.name.clone()));
        }
        let now = held.at(core.now_ms());
        held.counts.at(now);
        Ok(Frame {
            rows: &core.rows,
            queue,
            held,
            now,
            wakes: 0,
            moving: None,
            attempt: None,
            changes: Vec::new(),
            placed: Vec::new(),
            added: 0,
            bytes: 0,
            bytes_max: MOVED_BYTES_MAX.min(core.sequencer.frame_bytes_max() as usize / 8),
            begun: HashSet::new(),
            touched: HashMap::new(),
            counted: Vec::new(),
        })
    }

    /// Locks two queues in the order of their numbers.
    pub fn pair(
        core: &'a Core,
        one: &'a Arc<Queue>,
        other: &'a Arc<Queue>,
    ) -> Result<(Frame<'a>, Frame<'a>)> {
        if one.born < other.born {
            let one = Frame::new(core, one)?;
            return Ok((one, Frame::new(core, other)?));
        }
        let other = Frame::new(core, other)?;
        Ok((Frame::new(core, one)?, other))
    }

    /// Whether the queue keeps an order.
    pub fn fifo(&self) -> bool {
        self.held.options.fifo
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.placed.is_empty()
    }

    /// Whether no more bodies should be brought from another queue.
    pub fn is_large(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// Whether it would be too large with so many more bytes of bodies.
    pub fn would_be_large(&self, bytes: usize) -> bool {
        self.bytes + bytes > self.bytes_max
    }

    fn find_changed(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        self.changes.binary_search_by(|(other, _)| other[..].cmp(key))
    }

    fn changed(&self, key: &[u8]) -> Option<&Changed> {
        self.find_changed(key).ok().map(|at| &self.changes[at].1)
    }

    fn set(&mut self, key: Bytes, changed: Changed) {
        match self.find_changed(&key) {
            Ok(at) => self.changes[at].1 = changed,
            Err(at) => self.changes.insert(at, (key, changed)),
        }
    }

    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(changed) = self.changed(key) {
            return Ok(changed.value.clone());
        }
        match self.held.pending(key) {
            Some(value) => Ok(value.clone()),
            None => self.rows.get(key),
        }
    }

    /// The first rows from one key to another, at most `limit`.
    pub fn scan(&self, from: &Bytes, end: &Bytes, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        self.scan_cut(from, end, limit, usize::MAX)
    }

    /// The same with at most so many bytes of each value.
    pub fn scan_cut(
        &self,
        from: &Bytes,
        end: &Bytes,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        if from >= end {
            return Ok(Vec::new());
        }
        let mut found = BTreeMap::new();
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&end[..]));
        self.rows.snapshot()?.range(bounds, Order::Forward, |key, value| {
            if self.changed(key).is_some() || self.held.pending(key).is_some() {
                return Ok(ControlFlow::Continue(()));
            }
            found.insert(
                Bytes::copy_from_slice(key),
                Bytes::copy_from_slice(&value[..value.len().min(bytes)]),
            );
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        let pending = self.held.pending_range(from, end).filter(|(key, _)| self.changed(key).is_none());
        let changed = self.changes.iter().filter(|(key, _)| from <= key && key < end);
        let changed = changed.map(|(key, changed)| (key, &changed.value));
        for rows in [&mut pending.take_live(limit), &mut changed.take_live(limit)] {
            found.append(rows);
        }
        Ok(found.into_iter().take(limit).collect())
    }

    /// A row gets a value.
    pub fn put(&mut self, key: Bytes, value: impl Into<Bytes>) {
        let fresh = self.changed(&key).is_some_and(|changed| changed.fresh);
        self.set(key, Changed { value: Some(value.into()), fresh });
    }

    /// A row gets a value, under a key that was never used.
    pub fn put_fresh(&mut self, key: Bytes, value: Vec<u8>) {
        self.set(key, Changed { value: Some(value.into()), fresh: true });
    }

    /// A row gets a value, under a key that the frame completes.
    pub fn put_placed(&mut self, prefix: Vec<u8>, index: u16, value: Vec<u8>) {
        self.placed.push(Change::put_placed(prefix, index, value));
    }

    /// A row goes.
    pub fn remove(&mut self, key: Bytes) {
        match self.find_changed(&key) {
            Ok(at) if self.changes[at].1.fresh => drop(self.changes.remove(at)),
            _ => self.set(key, Changed { value: None, fresh: false }),
        }
    }

    /// A message counts otherwise than before.
    pub fn count(&mut self, before: Option<Shown>, after: Option<Shown>) {
        self.counted.push((before, after));
    }

    /// The changes in the order in which the frame makes them.
    fn take_changes(&mut self) -> impl Iterator<Item = Change> {
        let exact = std::mem::take(&mut self.changes).into_iter();
        let exact =
            exact.map(|(key, Changed { value, fresh })| Change { key: Key::Exact(key), value, fresh });
        exact.chain(std::mem::take(&mut self.placed))
    }

    /// Makes the frame, with the changes that were taken from it, part of the accepted side.
    fn accept(mut self, position: u64, changes: &[Change]) {
        let held = &mut *self.held;
        for (before, after) in self.counted.drain(..) {
            before.into_iter().for_each(|shown| held.counts.remove(shown));
            after.into_iter().for_each(|shown| held.counts.add(shown));
        }
        if let Some(row) = self.moving.take() {
            held.moves.retain(|other| other.id != row.id);
            held.moves.push(row);
            held.moves.sort_by_key(|row| row.id);
            let over = held.moves.len().saturating_sub(MOVES_REMEMBERED_MAX);
            held.moves.drain(..over);
        }
        if let Some((name, attempt)) = self.attempt.take() {
            held.attempts.insert(name, attempt);
        }
        changes.iter().for_each(|change| held.notice(change));
        let rows = changes.iter().map(|change| (change.key.exact().clone(), change.value.clone()));
        held.remember(position, rows);
    }
}

/// Rows that are there.
trait Live {
    fn take_live(self, limit: usize) -> BTreeMap<Bytes, Bytes>;
}

impl<'r, I: Iterator<Item = (&'r Bytes, &'r Option<Bytes>)>> Live for I {
    fn take_live(self, limit: usize) -> BTreeMap<Bytes, Bytes> {
        self.filter_map(|(key, value)| Some((key.clone(), value.clone()?))).take(limit).collect()
    }
}

/// Gives the frames of one call their place in the journal, as one.
pub fn write(
    core: &Core,
    accepting: Accepting<'_>,
    mut frames: Vec<Frame<'_>>,
    others: Vec<Change>,
    urgency: Urgency,
    permit: &mut Option<OwnedSemaphorePermit>,
) -> Attempt<u64> {
    let mut changes = others;
    let mut parts = Vec::with_capacity(frames.len());
    for frame in &mut frames {
        frame.lead_groups()?;
        let start = changes.len();
        changes.extend(frame.take_changes());
        parts.push(start..changes.len());
    }
    let wakes: SmallVec<[(Arc<Queue>, usize); 1]> =
        frames.iter().map(|frame| (frame.queue.clone(), frame.wakes)).collect();
    let then = move |position| {
        for (queue, wakes) in wakes {
            queue.settle(position);
            (0..wakes).for_each(|_| queue.changed.notify_one());
        }
    };
    let note = |position, changes: &[Change]| {
        for (frame, part) in frames.into_iter().zip(parts) {
            frame.accept(position, &changes[part]);
        }
    };
    core.write_rows_noted(accepting, changes, urgency, permit, Some(Box::new(then)), note)
}

/// What a call waits for that changes nothing: whatever it has seen must be durable before it answers.
pub fn settled(
    core: &Core,
    frame: Frame<'_>,
    permit: &mut Option<OwnedSemaphorePermit>,
) -> std::result::Result<Done, crate::core::Halt> {
    if !frame.held.is_pending() {
        return Ok(done());
    }
    write(core, core.rows.accept(Vec::new()), vec![frame], Vec::new(), Urgency::Upkeep, permit)
        .map(|(_, done)| done)
}

/// Nothing to wait for.
pub fn done() -> Done {
    let (done, receiver) = oneshot::channel();
    let _ = done.send(Ok(()));
    receiver
}
