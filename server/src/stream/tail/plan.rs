//! Which shards are read, when, and from where. Pure: it is told what happened and says what may start.

use std::collections::HashSet;

use anabranch_model::{Error, Position, Result, Shard, ShardGraph, ShardId, StreamName};

use super::start::Start;

/// The plan of one run.
#[derive(Debug)]
pub(super) struct Plan {
    graph: ShardGraph,
    start: Position,
    /// The shards of the first listing. Only they are read from the start that was asked for.
    original: HashSet<ShardId>,
    started: HashSet<ShardId>,
    /// Shards whose children may be read.
    ended: HashSet<ShardId>,
    only: Option<ShardId>,
}

impl Plan {
    /// A plan for the shards of a stream, or for one of them.
    pub(super) fn new(
        shards: Vec<Shard>,
        stream: &StreamName,
        Start(start): Start,
        only: Option<ShardId>,
    ) -> Result<Self> {
        let graph = ShardGraph::new(shards);
        if let Some(shard) = only.as_ref().filter(|shard| graph.get(shard).is_none()) {
            return Err(Error::ShardNotFound(stream.clone(), shard.clone()));
        }
        let original = graph.iter().map(|shard| shard.id.clone()).collect();
        // Nothing new comes to a shard that was closed before.
        let is_over = |shard: &&Shard| start == Position::Latest && !shard.is_open();
        let ended = graph.iter().filter(is_over).map(|shard| shard.id.clone()).collect();
        Ok(Plan { graph, start, original, started: HashSet::new(), ended, only })
    }

    /// Whether the plan is about one shard and nothing behind it.
    pub(super) fn is_bounded(&self) -> bool {
        self.only.is_some()
    }

    /// Whether all of `shards` were listed.
    pub(super) fn knows(&self, shards: &[ShardId]) -> bool {
        shards.iter().all(|shard| self.graph.get(shard).is_some())
    }

    /// A newer listing.
    pub(super) fn update(&mut self, shards: Vec<Shard>) {
        self.graph = ShardGraph::new(shards);
    }

    /// A shard was read to its end, or is gone.
    pub(super) fn end(&mut self, shard: &ShardId) {
        self.ended.insert(shard.clone());
    }

    /// The shards that may be read from now on, and where they start. Each is returned once.
    pub(super) fn start_readable(&mut self) -> Vec<(ShardId, Position)> {
        let readable: Vec<ShardId> = match &self.only {
            Some(only) => vec![only.clone()],
            None => {
                let ended = |shard: &ShardId| self.ended.contains(shard);
                self.graph.readable(ended).into_iter().map(|shard| shard.id.clone()).collect()
            }
        };
        let fresh: Vec<ShardId> =
            readable.into_iter().filter(|shard| !self.started.contains(shard)).collect();
        self.started.extend(fresh.iter().cloned());
        fresh
            .into_iter()
            .map(|shard| {
                let position =
                    if self.original.contains(&shard) { self.start } else { Position::TrimHorizon };
                (shard, position)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{HashRange, SequenceNumber, Timestamp};

    use super::*;

    fn stream() -> StreamName {
        StreamName::new("clicks").unwrap()
    }

    fn two_open() -> ShardGraph {
        ShardGraph::new(HashRange::even(2).into_iter().enumerate().map(|(index, range)| Shard {
            id: ShardId::numbered(index as u64),
            parents: Vec::new(),
            range: Some(range),
            starts_at: SequenceNumber::MIN,
            ends_before: None,
            closed_at: None,
        }))
    }

    fn merged(mut graph: ShardGraph) -> ShardGraph {
        let [lower, upper, child] = [0, 1, 2].map(ShardId::numbered);
        graph.merge(&stream(), &lower, &upper, child, SequenceNumber::MAX, Timestamp::EPOCH).unwrap();
        graph
    }

    fn listed(graph: &ShardGraph) -> Vec<Shard> {
        graph.iter().cloned().collect()
    }

    fn plan(graph: &ShardGraph, start: Position, only: Option<u64>) -> Plan {
        Plan::new(listed(graph), &stream(), Start(start), only.map(ShardId::numbered)).unwrap()
    }

    fn started(plan: &mut Plan) -> Vec<(u64, Position)> {
        plan.start_readable()
            .into_iter()
            .map(|(shard, position)| (shard.number().unwrap(), position))
            .collect()
    }

    #[test]
    fn a_merged_shard_waits_for_both_parents() {
        let mut plan = plan(&merged(two_open()), Position::TrimHorizon, None);
        assert_eq!(started(&mut plan), [(0, Position::TrimHorizon), (1, Position::TrimHorizon)]);
        plan.end(&ShardId::numbered(1));
        assert_eq!(started(&mut plan), []);
        plan.end(&ShardId::numbered(0));
        assert_eq!(started(&mut plan), [(2, Position::TrimHorizon)]);
        assert_eq!(started(&mut plan), []);
    }

    #[test]
    fn shards_that_come_later_are_read_from_their_beginning() {
        let mut plan = plan(&two_open(), Position::Latest, None);
        assert_eq!(started(&mut plan), [(0, Position::Latest), (1, Position::Latest)]);
        let child = ShardId::numbered(2);
        assert!(!plan.knows(std::slice::from_ref(&child)));
        plan.update(listed(&merged(two_open())));
        assert!(plan.knows(&[child]));
        plan.end(&ShardId::numbered(0));
        plan.end(&ShardId::numbered(1));
        assert_eq!(started(&mut plan), [(2, Position::TrimHorizon)]);
    }

    #[test]
    fn latest_leaves_closed_shards_alone() {
        let mut plan = plan(&merged(two_open()), Position::Latest, None);
        assert_eq!(started(&mut plan), [(2, Position::Latest)]);
    }

    #[test]
    fn one_shard_can_be_asked_for() {
        let graph = merged(two_open());
        let mut plan = plan(&graph, Position::TrimHorizon, Some(2));
        assert_eq!(started(&mut plan), [(2, Position::TrimHorizon)]);
        plan.end(&ShardId::numbered(2));
        assert_eq!(started(&mut plan), []);
        let unknown = Some(ShardId::numbered(9));
        assert!(Plan::new(listed(&graph), &stream(), Start(Position::Latest), unknown).is_err());
    }
}
