//! Splitting and merging. A call that Kinesis may or may not have carried out is followed by a look at the shards.

use anabranch_model::{Error, HashKey, HashRange, Result, Shard, ShardGraph, ShardId, StreamName};

use super::{CHANGE_PATIENCE, Streams, action};
use crate::call::Deadline;
use crate::failure::{Failure, Kind, Outcome};

/// What has been tried, and until when it is tried again.
struct Tries {
    rounds: u32,
    patience: Deadline,
}

impl Streams {
    pub(super) async fn split_shard(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        at: HashKey,
    ) -> Result<[ShardId; 2]> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let graph = self.graph(stream, deadline).await?;
        open_range(&graph, stream, shard)?.split_at(at)?;
        let request = || {
            self.client
                .split_shard()
                .stream_name(stream.as_str())
                .shard_to_split(shard.as_str())
                .new_starting_hash_key(at.get().to_string())
                .send()
        };
        let mut tries = Tries { rounds: 0, patience: deadline };
        loop {
            let answer = self.caller.call(&action::SPLIT_SHARD, deadline, request).await;
            let failure = answer.err().map(Failure::without_detail);
            if let Some(failure) = failure {
                self.settle_reshard(stream, failure, &[shard], &mut tries, deadline).await?;
            }
            let graph = self.settled(stream, deadline).await?;
            if let [one, other] = children(&graph, shard)[..] {
                let upper_first = one.range.is_some_and(|range| range.first() == at);
                let (lower, upper) = if upper_first { (other, one) } else { (one, other) };
                // A split somewhere else was someone else's.
                if upper.range.is_none_or(|range| range.first() != at) {
                    return Err(Error::ShardClosed(shard.clone()));
                }
                return Ok([lower.id.clone(), upper.id.clone()]);
            }
            open_range(&graph, stream, shard)?;
        }
    }

    pub(super) async fn merge_shards(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        neighbour: &ShardId,
    ) -> Result<ShardId> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let graph = self.graph(stream, deadline).await?;
        let [one, other] = [open_range(&graph, stream, shard)?, open_range(&graph, stream, neighbour)?];
        if one.merge(other).is_none() {
            return Err(Error::NotNeighbours(shard.clone(), neighbour.clone()));
        }
        // Kinesis names the first of the two as the parent, and the second as its neighbour.
        let (lower, upper) =
            if one.first() < other.first() { (shard, neighbour) } else { (neighbour, shard) };
        let request = || {
            self.client
                .merge_shards()
                .stream_name(stream.as_str())
                .shard_to_merge(lower.as_str())
                .adjacent_shard_to_merge(upper.as_str())
                .send()
        };
        let mut tries = Tries { rounds: 0, patience: deadline };
        loop {
            let answer = self.caller.call(&action::MERGE_SHARDS, deadline, request).await;
            let failure = answer.err().map(Failure::without_detail);
            if let Some(failure) = failure {
                self.settle_reshard(stream, failure, &[shard, neighbour], &mut tries, deadline).await?;
            }
            let graph = self.settled(stream, deadline).await?;
            if let [child] = children(&graph, lower)[..]
                && child.parents.contains(upper)
            {
                return Ok(child.id.clone());
            }
            open_range(&graph, stream, shard)?;
            open_range(&graph, stream, neighbour)?;
        }
    }

    /// After a failure: goes on if the call may have been carried out or may be made again, and waits for that.
    async fn settle_reshard(
        &self,
        stream: &StreamName,
        failure: Failure,
        shards: &[&ShardId],
        tries: &mut Tries,
        deadline: Deadline,
    ) -> Result<()> {
        match failure.kind {
            Kind::InUse => {}
            Kind::Away if failure.outcome == Outcome::Unknown => {
                tries.patience = tries.patience.min(self.caller.absence());
            }
            // The shards were looked at before: someone else was faster, or this call was, before its answer was lost.
            Kind::Invalid if failure.is("InvalidArgumentException") => {
                let graph = self.settled(stream, deadline).await?;
                let closed = |shard: &&ShardId| graph.get(shard).is_some_and(|shard| !shard.is_open());
                if tries.rounds > 0 && shards.iter().any(closed) {
                    return Ok(());
                }
                for shard in shards {
                    open_range(&graph, stream, shard)?;
                }
                return Err(failure.into());
            }
            Kind::NotFound => return Err(self.missing(stream, shards[0], None, deadline).await),
            _ => return Err(failure.into()),
        }
        tries.rounds += 1;
        match self.caller.back_off(tries.rounds, tries.patience).await {
            true => Ok(()),
            false => Err(self.busy(stream, failure)),
        }
    }

    async fn graph(&self, stream: &StreamName, deadline: Deadline) -> Result<ShardGraph> {
        Ok(ShardGraph::new(self.all_shards(stream, deadline).await?))
    }

    /// The shards when nothing is under way any more.
    async fn settled(&self, stream: &StreamName, deadline: Deadline) -> Result<ShardGraph> {
        self.until_active(stream, deadline).await?;
        self.graph(stream, deadline).await
    }
}

fn open_range(graph: &ShardGraph, stream: &StreamName, shard: &ShardId) -> Result<HashRange> {
    let found = graph.get(shard).ok_or_else(|| Error::ShardNotFound(stream.clone(), shard.clone()))?;
    if !found.is_open() {
        return Err(Error::ShardClosed(shard.clone()));
    }
    found.range.ok_or_else(|| super::strange("a shard without a range"))
}

fn children<'a>(graph: &'a ShardGraph, shard: &ShardId) -> Vec<&'a Shard> {
    graph.children_of(shard).into_iter().filter_map(|child| graph.get(child)).collect()
}
