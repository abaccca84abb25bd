//! What was asked of a store and what it answered, step by step in the order of the journal.
//!
//! A step is what a crash keeps whole or not at all: one change of the catalogue, or the records of one append for one
//! shard. What must hold after a crash: the store is as it was after one of its steps, and that step is neither
//! before the last one that was answered nor behind the last one that was asked for.

use std::time::Duration;

use anabranch_model::{Record, SequenceNumber, Shard, ShardId, StreamName, Timestamp};

use super::world::{ShardState, StreamState, World};

/// One step with its moments, counted in operations of the disk.
#[derive(Clone, Debug)]
pub struct Step {
    pub asked: usize,
    pub answered: usize,
    pub what: String,
}

/// The steps, and the world after each.
#[derive(Clone, Debug)]
pub struct Ledger {
    steps: Vec<Step>,
    /// One more than there are steps: the first is the world before them.
    worlds: Vec<World>,
}

impl Ledger {
    /// A ledger that begins with a world.
    pub fn new(start: World) -> Ledger {
        Ledger { steps: Vec::new(), worlds: vec![start] }
    }

    /// The world now.
    pub fn now(&self) -> &World {
        self.worlds.last().expect("there is always one")
    }

    /// Adds a step.
    pub fn add(&mut self, asked: usize, answered: usize, what: String, change: impl FnOnce(&mut World)) {
        let mut world = self.now().clone();
        change(&mut world);
        self.steps.push(Step { asked, answered, what });
        self.worlds.push(world);
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The steps that a crash after `operation` operations may leave: from the first to the last.
    pub fn possible(&self, operation: usize) -> (usize, usize) {
        let answered = self.steps.iter().rposition(|step| step.answered <= operation);
        let asked = self.steps.iter().rposition(|step| step.asked <= operation);
        (answered.map_or(0, |at| at + 1), asked.map_or(0, |at| at + 1))
    }

    /// How many steps were answered together with the last one: no later write proves that they were durable.
    pub fn last_group(&self) -> usize {
        let last = self.steps.last().map(|step| step.answered);
        self.steps.iter().rev().take_while(|step| Some(step.answered) == last).count()
    }

    /// The world after so many steps.
    pub fn world(&self, steps: usize) -> &World {
        &self.worlds[steps]
    }

    /// Finds the step that a world after a crash stands for, or says how it differs from the nearest.
    pub fn recognise(&self, found: &World, operation: usize) -> Result<usize, String> {
        let (first, last) = self.possible(operation);
        if let Some(step) = (first..=last).find(|&step| self.worlds[step] == *found) {
            return Ok(step);
        }
        let describe = |step: usize| {
            let name = step.checked_sub(1).map_or("the start", |at| self.steps[at].what.as_str());
            let difference = found.difference(&self.worlds[step]).unwrap_or_default();
            format!("  after step {step} ({name}): {difference}")
        };
        let mut text = String::from("it is not the world");
        for step in (first..=last).take(4) {
            text.push_str(&format!("\n{}", describe(step)));
        }
        Err(text)
    }

    /// The largest number that was answered before a crash after `operation` operations.
    pub fn last_number(&self, operation: usize) -> SequenceNumber {
        let (answered, _) = self.possible(operation);
        let numbers = self.worlds[..=answered].iter().map(World::last_number);
        numbers.fold(SequenceNumber::MIN, SequenceNumber::max)
    }
}

/// Changes of a world.
impl World {
    pub fn stream_mut(&mut self, name: &StreamName) -> &mut StreamState {
        self.streams.get_mut(name).expect("the stream is in the ledger")
    }

    /// A stream appears with the shards that the store lists.
    pub fn create(&mut self, name: &StreamName, at: Timestamp, retention: Duration, shards: Vec<Shard>) {
        let shards = shards.into_iter().map(opened).map(|shard| (shard.listed.id.clone(), shard)).collect();
        self.streams.insert(name.clone(), StreamState { created_at: at, retention, shards });
    }

    /// Shards are closed and others opened in their place.
    pub fn reshard(&mut self, name: &StreamName, closed: Vec<Shard>, children: Vec<Shard>) {
        let stream = self.stream_mut(name);
        for parent in closed {
            let shard = stream.shards.get_mut(&parent.id).expect("the parent is in the ledger");
            shard.listed = parent;
            shard.children = children.iter().map(|child| child.id.clone()).collect();
        }
        for child in children.into_iter().map(opened) {
            stream.shards.insert(child.listed.id.clone(), child);
        }
    }

    /// Records are added to a shard.
    pub fn append(&mut self, name: &StreamName, shard: &ShardId, records: Vec<Record>) {
        let stream = self.stream_mut(name);
        stream.shards.get_mut(shard).expect("the shard is in the ledger").records.extend(records);
    }

    /// Retention is applied at a moment. Returns whether it removed anything.
    pub fn trim(&mut self, now: Timestamp) -> bool {
        let mut changed = false;
        for stream in self.streams.values_mut() {
            let oldest = now.minus(stream.retention);
            stream.shards.retain(|_, shard| {
                let last = shard.records.last().map(|record| record.arrival);
                let expired =
                    shard.listed.closed_at.is_some_and(|closed| last.max(Some(closed)) < Some(oldest));
                let before = shard.records.len();
                shard.records.retain(|record| record.arrival >= oldest);
                changed |= expired || shard.records.len() < before;
                !expired
            });
        }
        changed
    }
}

/// A shard as it is when it is opened, even if the listing was made after it was closed.
fn opened(listed: Shard) -> ShardState {
    let listed = Shard { ends_before: None, closed_at: None, ..listed };
    ShardState { listed, children: Vec::new(), records: Vec::new() }
}
