//! Any sequence of splits and merges keeps the open shards a partition of the hash-key space, and lineage sound.

use std::collections::HashSet;

use anabranch_model::{
    Error, HashKey, HashRange, SequenceNumber, Shard, ShardGraph, ShardId, StreamName, Timestamp,
};
use proptest::prelude::*;

/// What is tried on a graph; shards are chosen by index into the open or into all shards, so that refusals occur.
#[derive(Clone, Debug)]
enum Step {
    SplitOpen { shard: prop::sample::Index, at: u128 },
    SplitHalf { shard: prop::sample::Index },
    MergeUpwards { shard: prop::sample::Index },
    MergeAny { one: prop::sample::Index, other: prop::sample::Index },
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), any::<u128>()).prop_map(|(shard, at)| Step::SplitOpen { shard, at }),
        index().prop_map(|shard| Step::SplitHalf { shard }),
        index().prop_map(|shard| Step::MergeUpwards { shard }),
        (index(), index()).prop_map(|(one, other)| Step::MergeAny { one, other }),
    ]
}

/// A stream under test, with the counters that a store would keep.
struct Stream {
    name: StreamName,
    graph: ShardGraph,
    ids: u64,
    sequence: u128,
}

impl Stream {
    fn new(shards: usize) -> Stream {
        let graph =
            ShardGraph::new(HashRange::even(shards).into_iter().zip(0..).map(|(range, number)| Shard {
                id: ShardId::numbered(number),
                parents: Vec::new(),
                range: Some(range),
                starts_at: SequenceNumber::MIN,
                ends_before: None,
                closed_at: None,
            }));
        Stream { name: StreamName::new("s").expect("allowed"), graph, ids: shards as u64, sequence: 0 }
    }

    fn fresh_id(&mut self) -> ShardId {
        self.ids += 1;
        ShardId::numbered(self.ids - 1)
    }

    fn open(&self) -> Vec<Shard> {
        let mut open: Vec<_> = self.graph.open().cloned().collect();
        open.sort_by_key(|shard| shard.range.map(HashRange::first));
        open
    }

    fn split(&mut self, id: &ShardId, at: HashKey) -> anabranch_model::Result<()> {
        let children = [self.fresh_id(), self.fresh_id()];
        let sequence = self.fresh_sequence();
        self.graph.split(&self.name, id, at, children, sequence, Timestamp::EPOCH)
    }

    fn merge(&mut self, one: &ShardId, other: &ShardId) -> anabranch_model::Result<()> {
        let child = self.fresh_id();
        let sequence = self.fresh_sequence();
        self.graph.merge(&self.name, one, other, child, sequence, Timestamp::EPOCH)
    }

    fn fresh_sequence(&mut self) -> SequenceNumber {
        self.sequence += 1;
        SequenceNumber::from_u128(self.sequence)
    }

    fn apply(&mut self, step: &Step) -> anabranch_model::Result<()> {
        let open = self.open();
        match step {
            Step::SplitOpen { shard, at } => self.split(&shard.get(&open).id, HashKey::new(*at)),
            Step::SplitHalf { shard } => {
                let shard = shard.get(&open);
                let range = shard.range.expect("all shards have ranges");
                self.split(&shard.id, range.midpoint().unwrap_or(range.first()))
            }
            Step::MergeUpwards { shard } => {
                let place = shard.index(open.len());
                self.merge(&open[place].id, &open[(place + 1) % open.len()].id)
            }
            Step::MergeAny { one, other } => {
                let all: Vec<_> = self.graph.iter().map(|shard| shard.id.clone()).collect();
                self.merge(one.get(&all), other.get(&all))
            }
        }
    }
}

/// The union of ranges that touch each other.
fn union(mut ranges: Vec<HashRange>) -> Option<HashRange> {
    ranges.sort_by_key(|range| range.first());
    ranges.into_iter().map(Some).reduce(|one, other| one?.merge(other?)).flatten()
}

fn assert_lineage(graph: &ShardGraph) {
    for shard in graph.iter() {
        let parents: Vec<_> = shard.parents.iter().map(|id| graph.get(id).expect("listed")).collect();
        let children: Vec<_> =
            graph.children_of(&shard.id).into_iter().map(|id| graph.get(id).expect("listed")).collect();
        assert_eq!(shard.is_open(), children.is_empty(), "{shard:?}");
        for child in &children {
            assert!(child.parents.contains(&shard.id));
            assert!(shard.ends_before <= Some(child.starts_at), "{shard:?} overlaps {child:?}");
        }
        // A split divides its parent; a merge unites its parents, the lower one first.
        if children.len() > 1 {
            assert_eq!(union(children.iter().filter_map(|child| child.range).collect()), shard.range);
        }
        if parents.len() > 1 {
            let ranges: Vec<_> = parents.iter().filter_map(|parent| parent.range).collect();
            assert!(ranges[0].first() < ranges[1].first());
            assert_eq!(union(ranges), shard.range);
        }
    }
}

/// Follows what `readable` offers; returns the order. Panics if a child comes before a listed parent.
fn read_everything(graph: &ShardGraph, choose: impl Fn(usize) -> usize) -> Vec<ShardId> {
    let mut done = HashSet::new();
    let mut order = Vec::new();
    loop {
        let readable = graph.readable(|id| done.contains(id));
        if readable.is_empty() {
            return order;
        }
        let shard = readable[choose(order.len()) % readable.len()];
        for parent in shard.parents.iter().filter(|parent| graph.get(parent).is_some()) {
            assert!(done.contains(parent), "{} is offered before its parent {parent}", shard.id);
        }
        assert!(done.insert(shard.id.clone()), "{} is offered twice", shard.id);
        order.push(shard.id.clone());
    }
}

proptest! {
    #[test]
    fn open_shards_stay_a_partition(
        shards in 1usize..6,
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut stream = Stream::new(shards);
        for step in &steps {
            let before = format!("{:?}", stream.graph.iter().collect::<Vec<_>>());
            match stream.apply(step) {
                Ok(()) => {}
                Err(Error::Invalid(_) | Error::ShardClosed(_) | Error::NotNeighbours(..)) => {
                    prop_assert_eq!(&before, &format!("{:?}", stream.graph.iter().collect::<Vec<_>>()));
                }
                Err(other) => prop_assert!(false, "{step:?} failed with {other:?}"),
            }
            prop_assert_eq!(stream.graph.holes(), []);
            prop_assert_eq!(stream.graph.overlaps(), []);
            let all: Vec<_> = stream.open().iter().filter_map(|shard| shard.range).collect();
            prop_assert_eq!(union(all), Some(HashRange::ALL));
        }
        assert_lineage(&stream.graph);
    }

    #[test]
    fn reading_reaches_every_shard_behind_its_parents(
        shards in 1usize..5,
        steps in prop::collection::vec(step(), 0..30),
        choices in prop::collection::vec(any::<usize>(), 1..50),
        trimmed in any::<prop::sample::Index>(),
    ) {
        let mut stream = Stream::new(shards);
        for step in &steps {
            let _ = stream.apply(step);
        }
        let all: Vec<_> = stream.graph.iter().cloned().collect();
        // Retention removes the oldest closed shards; what is left must be reachable all the same.
        let closed = all.iter().take_while(|shard| !shard.is_open()).count();
        let gone = trimmed.index(closed + 1);
        for listed in [&all[..], &all[gone..]] {
            let graph = ShardGraph::new(listed.iter().cloned());
            let order = read_everything(&graph, |step| choices[step % choices.len()]);
            prop_assert_eq!(order.len(), listed.len());
            let roots: HashSet<_> = graph.roots().map(|shard| &shard.id).collect();
            let first: HashSet<_> = graph.readable(|_| false).into_iter().map(|shard| &shard.id).collect();
            prop_assert_eq!(roots, first);
        }
    }

    #[test]
    fn holes_and_overlaps_are_found(missing in 0usize..5, doubled in 0usize..5) {
        let stream = Stream::new(5);
        let mut shards: Vec<_> = stream.graph.iter().cloned().collect();
        let mut copy = shards[doubled].clone();
        copy.id = ShardId::numbered(99);
        shards.push(copy);
        let ranges = HashRange::even(5);
        let graph = ShardGraph::new(shards.iter().cloned());
        prop_assert_eq!(graph.overlaps(), [ranges[doubled]]);
        prop_assert_eq!(graph.holes(), []);
        shards.pop();
        shards.remove(missing);
        let graph = ShardGraph::new(shards);
        prop_assert_eq!(graph.overlaps(), []);
        prop_assert_eq!(graph.holes(), [ranges[missing]]);
    }
}

#[test]
fn the_refusals_of_a_store() {
    let mut stream = Stream::new(3);
    let id = ShardId::numbered;
    let name = stream.name.clone();
    let ranges = HashRange::even(3);
    assert_eq!(stream.split(&id(77), HashKey::MAX), Err(Error::ShardNotFound(name.clone(), id(77))));
    assert_eq!(stream.merge(&id(0), &id(77)), Err(Error::ShardNotFound(name, id(77))));
    assert_eq!(stream.merge(&id(0), &id(2)), Err(Error::NotNeighbours(id(0), id(2))));
    assert_eq!(stream.merge(&id(0), &id(0)), Err(Error::NotNeighbours(id(0), id(0))));
    assert!(matches!(stream.split(&id(0), ranges[0].first()), Err(Error::Invalid(_))));
    assert!(matches!(stream.split(&id(0), ranges[1].first()), Err(Error::Invalid(_))));
    stream.merge(&id(1), &id(0)).expect("neighbours, in whatever order");
    assert_eq!(stream.merge(&id(0), &id(2)), Err(Error::ShardClosed(id(0))));
    assert_eq!(stream.split(&id(1), ranges[1].last()), Err(Error::ShardClosed(id(1))));
}
