//! Everything that waits to be sent: lanes by their key, and those that are ready by the shard that takes them.
//!
//! What must hold: a lane stands in the ready list of a shard exactly once while it is ready, and in none otherwise; it has
//! a record, or it is gone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use crate::lane::{Entry, Lane, LaneState};
use crate::map::ShardMap;

/// Lanes for which room is kept when nothing waits.
const KEPT: usize = 8_192;

/// Which lane; given to another when it is gone.
pub(crate) type LaneId = usize;

/// Lanes and whose turn it is.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: Slab<Lane>,
    by_key: HashTable<LaneId>,
    hasher: DefaultHashBuilder,
    /// By the slot of the shard map.
    ready: Vec<VecDeque<LaneId>>,
    ready_count: usize,
    /// Bytes of the first records of the ready lanes.
    ready_bytes: usize,
    /// When the first of the ready lanes became so, as long as there are any.
    ready_since: Option<Duration>,
    pausing: BinaryHeap<Reverse<(Duration, LaneId)>>,
}

impl Queue {
    /// Whether nothing waits and nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(crate) fn ready_count(&self) -> usize {
        self.ready_count
    }

    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    pub(crate) fn ready_since(&self) -> Option<Duration> {
        self.ready_since
    }

    /// When the next lane stops pausing.
    pub(crate) fn wakes_at(&self) -> Option<Duration> {
        self.pausing.peek().map(|Reverse((due, _))| *due)
    }

    /// A lane that waits or is under way.
    pub(crate) fn lane(&mut self, id: LaneId) -> &mut Lane {
        &mut self.lanes[id]
    }

    /// Adds a record behind the others of its key.
    pub(crate) fn push(&mut self, entry: Entry, map: &ShardMap, now: Duration) {
        let Queue { lanes, by_key, hasher, .. } = self;
        let hash = hasher.hash_one((entry.hash_key.get(), &*entry.record.partition_key));
        if let Some(id) = by_key.find(hash, |id| lanes[*id].takes(&entry)) {
            lanes[*id].push(entry);
            return;
        }
        let id = lanes.insert(Lane::new(hash, entry));
        by_key.insert_unique(hash, id, |id| lanes[*id].hash);
        self.line_up(id, map, now);
    }

    /// What was under way of a lane is to be sent again, not before `due`.
    pub(crate) fn pause(&mut self, id: LaneId, due: Duration) {
        let lane = &mut self.lanes[id];
        lane.state = LaneState::Pausing(due);
        lane.held = false;
        self.pausing.push(Reverse((due, id)));
    }

    /// What was under way of a lane is concluded: it goes on, or it is gone if nothing waits.
    pub(crate) fn landed(&mut self, id: LaneId, map: &ShardMap, now: Duration) {
        let lane = &mut self.lanes[id];
        if lane.is_empty() {
            self.forget(id);
            return;
        }
        lane.goes_on(now);
        self.line_up(id, map, now);
    }

    /// Lets lanes go on whose pause is over.
    pub(crate) fn wake(&mut self, map: &ShardMap, now: Duration) {
        while let Some(Reverse((due, _))) = self.pausing.peek()
            && *due <= now
            && let Some(Reverse((due, id))) = self.pausing.pop()
        {
            // A lane whose records were given up meanwhile pauses no longer, and may be another one.
            if self.lanes.get(id).is_some_and(|lane| lane.state == LaneState::Pausing(due)) {
                self.line_up(id, map, now);
            }
        }
    }

    /// The lanes are lined up anew, because the shards are others.
    pub(crate) fn remap(&mut self, map: &ShardMap) {
        let all: Vec<_> = self.ready.drain(..).flatten().collect();
        self.ready = vec![VecDeque::new(); map.shards().len()];
        for id in all {
            if let Some(first) = self.lanes[id].first() {
                self.ready[map.slot(first.hash_key)].push_back(id);
            }
        }
    }

    /// How many lists there are.
    pub(crate) fn slots(&self) -> usize {
        self.ready.len()
    }

    /// The record whose turn it is at a shard.
    pub(crate) fn front(&self, slot: usize) -> Option<&Entry> {
        self.lanes[*self.ready[slot].front()?].first()
    }

    /// Takes the lane whose turn it is; it flies from now on.
    pub(crate) fn take(&mut self, slot: usize) -> Option<LaneId> {
        let id = self.ready[slot].pop_front()?;
        self.ready_count -= 1;
        if self.ready_count == 0 {
            self.ready_since = None;
        }
        let lane = &mut self.lanes[id];
        self.ready_bytes = self.ready_bytes.saturating_sub(std::mem::take(&mut lane.lined_bytes));
        lane.state = LaneState::Flying;
        Some(id)
    }

    /// Some lanes were taken: those that are left may have become ready later.
    pub(crate) fn taken(&mut self) {
        let first = |list: &VecDeque<LaneId>| list.front().map(|id| self.lanes[*id].ready_at);
        self.ready_since = self.ready.iter().filter_map(first).min();
    }

    /// How many lanes wait for a shard and were not counted as held back before.
    pub(crate) fn hold(&mut self, slot: usize, most: usize) -> u64 {
        let mut held = 0;
        for id in self.ready[slot].iter().take(most) {
            let lane = &mut self.lanes[*id];
            if !lane.held {
                lane.held = true;
                held += 1;
            }
        }
        held
    }

    /// Takes out the first records of lanes that are not under way, as long as `over` says so.
    pub(crate) fn sweep<T>(&mut self, mut over: impl FnMut(&Entry) -> Option<T>) -> Vec<(Entry, T)> {
        let (mut swept, mut emptied) = (Vec::new(), Vec::new());
        for (id, lane) in self.lanes.iter_mut().filter(|(_, lane)| lane.state != LaneState::Flying) {
            while let Some(why) = lane.first().and_then(&mut over) {
                swept.extend(lane.pop().map(|entry| (entry, why)));
            }
            if lane.is_empty() {
                emptied.push(id);
            }
        }
        if !emptied.is_empty() {
            self.forget_empty(emptied);
        }
        swept
    }

    fn forget_empty(&mut self, emptied: Vec<LaneId>) {
        let Queue { lanes, ready, .. } = self;
        for list in ready.iter_mut() {
            list.retain(|id| !lanes[*id].is_empty());
        }
        self.ready_count = ready.iter().map(VecDeque::len).sum();
        emptied.into_iter().for_each(|id| self.forget(id));
        self.ready_bytes = self.lanes.iter().map(|(_, lane)| lane.lined_bytes).sum();
        if self.ready_count == 0 {
            self.ready_since = None;
        }
    }

    fn forget(&mut self, id: LaneId) {
        let lane = self.lanes.remove(id);
        if let Ok(found) = self.by_key.find_entry(lane.hash, |other| *other == id) {
            found.remove();
        }
        if self.lanes.is_empty() && self.lanes.capacity() > KEPT {
            self.lanes.shrink_to_fit();
            self.by_key.shrink_to(0, |_| 0);
        }
    }

    fn line_up(&mut self, id: LaneId, map: &ShardMap, now: Duration) {
        let lane = &mut self.lanes[id];
        let Some(first) = lane.first() else { return };
        let (slot, bytes) = (map.slot(first.hash_key), first.size());
        lane.state = LaneState::Ready;
        lane.held = false;
        lane.lined_bytes = bytes;
        lane.ready_at = now;
        self.ready_bytes += bytes;
        self.ready[slot].push_back(id);
        self.ready_count += 1;
        self.ready_since.get_or_insert(now);
    }
}
