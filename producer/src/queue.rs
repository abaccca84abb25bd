//! Everything that waits to be sent: lanes by their key, and those that are ready by the shard that takes them.
//!
//! What must hold: a lane stands in the ready list of a shard exactly once while it is ready, and in none otherwise.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use crate::lane::{Entry, Lane, LaneKey, LaneState};
use crate::map::ShardMap;

/// Lanes and whose turn it is.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: HashMap<LaneKey, Lane>,
    /// By the slot of the shard map.
    ready: Vec<VecDeque<LaneKey>>,
    ready_count: usize,
    /// Bytes of the first records of the ready lanes.
    ready_bytes: usize,
    /// When the first of the ready lanes became so, as long as there are any.
    ready_since: Option<Duration>,
    pausing: BinaryHeap<Reverse<(Duration, LaneKey)>>,
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

    /// Adds a record behind the others of its key.
    pub(crate) fn push(&mut self, entry: Entry, map: &ShardMap, now: Duration) {
        let key = entry.lane();
        let fresh = !self.lanes.contains_key(&key);
        self.lanes.entry(key.clone()).or_insert_with(Lane::new).waiting.push_back(entry);
        if fresh {
            self.line_up(key, map, now);
        }
    }

    /// Puts records back in front of their lane; it pauses until `due`.
    pub(crate) fn push_back(&mut self, key: LaneKey, entries: Vec<Entry>, due: Duration) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            entries.into_iter().rev().for_each(|entry| lane.waiting.push_front(entry));
            lane.state = LaneState::Pausing;
            lane.held = false;
            self.pausing.push(Reverse((due, key)));
        }
    }

    /// What was under way of a lane has landed: it goes on, or it is gone if nothing waits.
    pub(crate) fn landed(&mut self, key: LaneKey, map: &ShardMap, now: Duration) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        match lane.waiting.front_mut() {
            None => drop(self.lanes.remove(&key)),
            Some(first) => {
                first.first_since(now);
                self.go_on(key, map, now);
            }
        }
    }

    fn go_on(&mut self, key: LaneKey, map: &ShardMap, now: Duration) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.held = false;
            self.line_up(key, map, now);
        }
    }

    /// Lets lanes go on whose pause is over.
    pub(crate) fn wake(&mut self, map: &ShardMap, now: Duration) {
        while let Some(Reverse((due, _))) = self.pausing.peek()
            && *due <= now
            && let Some(Reverse((_, key))) = self.pausing.pop()
        {
            if self.lanes.get(&key).is_some_and(|lane| lane.state == LaneState::Pausing) {
                self.go_on(key, map, now);
            }
        }
    }

    /// The lanes are lined up anew, because the shards are others.
    pub(crate) fn remap(&mut self, map: &ShardMap) {
        let all: Vec<_> = self.ready.drain(..).flatten().collect();
        self.ready = vec![VecDeque::new(); map.shards().len()];
        for key in all {
            self.ready[map.slot(key.hash_key)].push_back(key);
        }
    }

    /// How many lists there are.
    pub(crate) fn slots(&self) -> usize {
        self.ready.len()
    }

    /// The lane whose turn it is at a shard.
    pub(crate) fn front(&mut self, slot: usize) -> Option<&mut Lane> {
        self.lanes.get_mut(self.ready[slot].front()?)
    }

    /// Takes the lane whose turn it is; it flies from now on.
    pub(crate) fn take(&mut self, slot: usize) -> Option<(LaneKey, &mut Lane)> {
        let key = self.ready[slot].pop_front()?;
        self.ready_count -= 1;
        if self.ready_count == 0 {
            self.ready_since = None;
        }
        let lane = self.lanes.get_mut(&key)?;
        self.ready_bytes = self.ready_bytes.saturating_sub(std::mem::take(&mut lane.lined_bytes));
        lane.state = LaneState::Flying;
        Some((key, lane))
    }

    /// How many lanes wait for a shard and were not counted as held back before.
    pub(crate) fn hold(&mut self, slot: usize, most: usize) -> u64 {
        let mut held = 0;
        for key in self.ready[slot].iter().take(most) {
            if let Some(lane) = self.lanes.get_mut(key)
                && !lane.held
            {
                lane.held = true;
                held += 1;
            }
        }
        held
    }

    /// Takes out the first records of lanes that are not under way, as long as `over` says so.
    pub(crate) fn sweep<T>(&mut self, mut over: impl FnMut(&Entry) -> Option<T>) -> Vec<(Entry, T)> {
        let mut swept = Vec::new();
        let mut emptied = false;
        for lane in self.lanes.values_mut().filter(|lane| lane.state != LaneState::Flying) {
            while let Some(why) = lane.waiting.front().and_then(&mut over) {
                swept.extend(lane.waiting.pop_front().map(|entry| (entry, why)));
            }
            emptied |= lane.waiting.is_empty();
        }
        if emptied {
            self.forget_empty();
        }
        swept
    }

    fn forget_empty(&mut self) {
        let Queue { lanes, ready, .. } = self;
        lanes.retain(|_, lane| lane.state == LaneState::Flying || !lane.waiting.is_empty());
        for list in ready.iter_mut() {
            list.retain(|key| lanes.contains_key(key));
        }
        self.ready_count = ready.iter().map(VecDeque::len).sum();
        self.ready_bytes = lanes.values().map(|lane| lane.lined_bytes).sum();
        if self.ready_count == 0 {
            self.ready_since = None;
        }
    }

    fn line_up(&mut self, key: LaneKey, map: &ShardMap, now: Duration) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.state = LaneState::Ready;
            lane.lined_bytes = lane.waiting.front().map_or(0, Entry::size);
            self.ready_bytes += lane.lined_bytes;
        }
        self.ready[map.slot(key.hash_key)].push_back(key);
        self.ready_count += 1;
        self.ready_since.get_or_insert(now);
    }
}
