//! The shards of a stream and who came from whom. Pure: built from a listing, changed only by hand.
//!
//! ```text
//!   0 ──split──▶ 1        a shard is readable when its listed parents are done;
//!     └────────▶ 2 ┐      a merged one waits for both
//!   3 ──merge─────▶4
//! ```
//!
//! Consumers plan with it, the scaler looks for neighbours in it, and tests use it as the model of resharding.
//! What must hold: with ranges, [`ShardGraph::split`] and [`ShardGraph::merge`] keep the open shards a partition of
//! the hash-key space.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::hash_key::{HashKey, HashRange};
use crate::limits::OPEN_SHARDS_MAX;
use crate::name::{ShardId, StreamName};
use crate::sequence::SequenceNumber;
use crate::shard::Shard;

/// Shards with their parents and children.
#[derive(Clone, Debug, Default)]
pub struct ShardGraph {
    /// In the order of their creation.
    shards: Vec<Shard>,
    /// Where a shard stands in `shards`.
    places: HashMap<ShardId, usize>,
    /// Children by parent, also of parents that are not listed any more.
    children: HashMap<ShardId, Vec<ShardId>>,
}

impl ShardGraph {
    /// The graph of shards that were listed in the order of their creation. Of two descriptions of one shard the
    /// later counts: a listing of many pages may meet a shard again.
    pub fn new(shards: impl IntoIterator<Item = Shard>) -> Self {
        let mut graph = ShardGraph::default();
        for shard in shards {
            graph.insert(shard);
        }
        graph
    }

    /// The shard with this identifier, if it is listed.
    pub fn get(&self, id: &ShardId) -> Option<&Shard> {
        self.places.get(id).map(|&place| &self.shards[place])
    }

    /// All shards in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter()
    }

    /// The shards that continue `id`, in the order of their creation. `id` itself need not be listed any more.
    pub fn children_of(&self, id: &ShardId) -> Vec<&ShardId> {
        self.children.get(id).into_iter().flatten().collect()
    }

    /// The shards that take records.
    pub fn open(&self) -> impl Iterator<Item = &Shard> {
        self.iter().filter(|shard| shard.is_open())
    }

    /// The shards none of whose parents are listed: where reading everything begins.
    pub fn roots(&self) -> impl Iterator<Item = &Shard> {
        self.iter().filter(|shard| self.listed_parents(shard).next().is_none())
    }

    /// The shards that may be read next: not done, with all their listed parents done. What retention removed is
    /// not waited for.
    pub fn readable(&self, done: impl Fn(&ShardId) -> bool) -> Vec<&Shard> {
        self.iter()
            .filter(|shard| !done(&shard.id) && self.listed_parents(shard).all(|parent| done(&parent.id)))
            .collect()
    }

    /// The parts of the hash-key space that no open shard covers; all of it if shards have no ranges.
    pub fn holes(&self) -> Vec<HashRange> {
        let mut holes = Vec::new();
        // The first key that nothing has covered so far; none behind the last key.
        let mut uncovered = Some(HashKey::MIN);
        for range in self.open_ranges() {
            let Some(from) = uncovered else { break };
            if from < range.first() {
                holes.extend(HashRange::new(from, HashKey::new(range.first().get() - 1)).ok());
            }
            uncovered = range.last().get().checked_add(1).map(|behind| from.max(HashKey::new(behind)));
        }
        holes.extend(uncovered.and_then(|from| HashRange::new(from, HashKey::MAX).ok()));
        holes
    }

    /// The parts of the hash-key space that more than one open shard covers. Parts may touch each other.
    pub fn overlaps(&self) -> Vec<HashRange> {
        let mut overlaps = Vec::new();
        let mut covered_to: Option<HashKey> = None;
        for range in self.open_ranges() {
            if let Some(last) = covered_to.filter(|&last| range.first() <= last) {
                overlaps.extend(HashRange::new(range.first(), last.min(range.last())).ok());
            }
            covered_to = covered_to.max(Some(range.last()));
        }
        overlaps
    }

    /// Closes `id` at `sequence` and opens `children` in its place, the upper one from `at` on. Refuses what a store
    /// refuses, and then nothing has changed.
    pub fn split(
        &mut self,
        stream: &StreamName,
        id: &ShardId,
        at: HashKey,
        children: [ShardId; 2],
        sequence: SequenceNumber,
        time: Timestamp,
    ) -> Result<()> {
        let parts = self.open_range(stream, id)?.split_at(at)?;
        if self.open().count() >= OPEN_SHARDS_MAX {
            return Err(Error::LimitExceeded(format!(
                "stream `{stream}` has {OPEN_SHARDS_MAX} open shards, which is the limit: merge some first"
            )));
        }
        self.check_new(&children)?;
        self.close(id, sequence, time);
        for (child, range) in children.into_iter().zip(parts) {
            self.insert(opened(child, vec![id.clone()], range, sequence));
        }
        Ok(())
    }

    /// Closes two neighbours at `sequence` and opens `child` in their place. Refuses what a store refuses, and then
    /// nothing has changed.
    pub fn merge(
        &mut self,
        stream: &StreamName,
        id: &ShardId,
        neighbour: &ShardId,
        child: ShardId,
        sequence: SequenceNumber,
        time: Timestamp,
    ) -> Result<()> {
        let (range, other) = (self.open_range(stream, id)?, self.open_range(stream, neighbour)?);
        let merged = range.merge(other).ok_or_else(|| Error::NotNeighbours(id.clone(), neighbour.clone()))?;
        self.check_new(std::slice::from_ref(&child))?;
        let parents = if range.first() < other.first() { [id, neighbour] } else { [neighbour, id] };
        for parent in parents {
            self.close(parent, sequence, time);
        }
        self.insert(opened(child, parents.map(ShardId::clone).into(), merged, sequence));
        Ok(())
    }

    fn insert(&mut self, shard: Shard) {
        if let Some(&place) = self.places.get(&shard.id) {
            self.shards[place] = shard;
            return;
        }
        for parent in &shard.parents {
            self.children.entry(parent.clone()).or_default().push(shard.id.clone());
        }
        self.places.insert(shard.id.clone(), self.shards.len());
        self.shards.push(shard);
    }

    fn close(&mut self, id: &ShardId, sequence: SequenceNumber, time: Timestamp) {
        if let Some(&place) = self.places.get(id) {
            let shard = &mut self.shards[place];
            shard.ends_before = Some(sequence);
            shard.closed_at = Some(time);
        }
    }

    fn listed_parents<'a>(&'a self, shard: &'a Shard) -> impl Iterator<Item = &'a Shard> {
        shard.parents.iter().filter_map(|parent| self.get(parent))
    }

    /// The range of a shard that can be resharded.
    fn open_range(&self, stream: &StreamName, id: &ShardId) -> Result<HashRange> {
        let shard = self.get(id).ok_or_else(|| Error::ShardNotFound(stream.clone(), id.clone()))?;
        if !shard.is_open() {
            return Err(Error::ShardClosed(id.clone()));
        }
        shard.range.ok_or_else(|| {
            Error::Invalid(format!("shard `{id}` has no hash range: it can be neither split nor merged"))
        })
    }

    fn check_new(&self, ids: &[ShardId]) -> Result<()> {
        let mut seen = ids.iter().enumerate();
        match seen.find(|(index, id)| self.places.contains_key(*id) || ids[..*index].contains(id)) {
            Some((_, id)) => Err(Error::Invalid(format!("shard id `{id}` was given before"))),
            None => Ok(()),
        }
    }

    /// Ranges of the open shards, by their first key.
    fn open_ranges(&self) -> Vec<HashRange> {
        let mut ranges: Vec<_> = self.open().filter_map(|shard| shard.range).collect();
        ranges.sort_by_key(|range| range.first());
        ranges
    }
}

fn opened(id: ShardId, parents: Vec<ShardId>, range: HashRange, starts_at: SequenceNumber) -> Shard {
    Shard { id, parents, range: Some(range), starts_at, ends_before: None, closed_at: None }
}
