//! A source like the changes of tables on AWS: its shards have no ranges and roll over by themselves, a child for each, and some
//! are merged; it polls, and knows no time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Checkpoint, ConsumerBuilder};
use anabranch_model::{
    Batch, Capabilities, Error, Follow, Next, Page, Position, ReadLimit, Record, Result, SequenceNumber,
    Shard, ShardId, ShardSource, StreamName, Timestamp,
};
use async_trait::async_trait;
use parking_lot::Mutex;
use world::{World, pause, run, seconds};

mod world;

/// Clones are the same source.
#[derive(Clone, Default)]
struct Rolling(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// In the order of their creation.
    shards: Vec<(Shard, Vec<Record>)>,
    numbers: u128,
}

impl State {
    fn number(&mut self) -> SequenceNumber {
        self.numbers += 1;
        SequenceNumber::from_u128(self.numbers)
    }

    fn find(&mut self, id: &ShardId) -> Result<&mut (Shard, Vec<Record>)> {
        let found = self.shards.iter_mut().find(|(shard, _)| shard.id == *id);
        found.ok_or_else(|| Error::ShardNotFound(StreamName::new("orders").unwrap(), id.clone()))
    }

    fn children(&self, id: &ShardId) -> Vec<ShardId> {
        let listed = self.shards.iter().map(|(shard, _)| shard);
        listed.filter(|shard| shard.parents.contains(id)).map(|shard| shard.id.clone()).collect()
    }
}

impl Rolling {
    /// A shard that continues others, which are closed with it.
    fn roll(&self, parents: &[&ShardId]) -> ShardId {
        let mut state = self.0.lock();
        let number = state.number();
        for parent in parents {
            let (shard, _) = state.find(parent).unwrap();
            (shard.ends_before, shard.closed_at) = (Some(number), Some(Timestamp::EPOCH));
        }
        // As DynamoDB calls them.
        let id =
            ShardId::new(&format!("shardId-{:020}-{:08x}", 1_700_000_000_000_u64, state.numbers)).unwrap();
        let parents = parents.iter().map(|parent| (*parent).clone()).collect();
        let starts_at = state.number();
        let shard =
            Shard { id: id.clone(), parents, range: None, starts_at, ends_before: None, closed_at: None };
        state.shards.push((shard, Vec::new()));
        id
    }

    /// Records of a key, all of which lie in one shard at a time.
    fn put(&self, shard: &ShardId, key: &str, numbers: Range<usize>) {
        let mut state = self.0.lock();
        for number in numbers {
            let sequence = state.number();
            let (partition_key, data) = (key.to_owned().into(), format!("{number:04}").into());
            let record = Record { sequence, arrival: Timestamp::EPOCH, partition_key, data };
            state.find(shard).unwrap().1.push(record);
        }
    }

    /// Retention removes a closed shard.
    fn remove(&self, id: &ShardId) {
        self.0.lock().shards.retain(|(shard, _)| shard.id != *id);
    }
}

#[async_trait]
impl ShardSource for Rolling {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: false, at_timestamp: false, push: false, lends: false }
    }

    async fn shards(&self, _: &StreamName, after: Option<&ShardId>, _: usize) -> Result<Page<Shard>> {
        // Small pages, so that a listing takes several.
        let state = self.0.lock();
        let listed: Vec<_> = state.shards.iter().map(|(shard, _)| shard.clone()).collect();
        let start = after.map_or(0, |after| listed.iter().take_while(|shard| shard.id != *after).count() + 1);
        let entries: Vec<_> = listed.iter().skip(start).take(2).cloned().collect();
        Ok(Page { more: start + entries.len() < listed.len(), entries })
    }

    async fn read(&self, _: &StreamName, id: &ShardId, from: Position, limit: ReadLimit) -> Result<Batch> {
        let mut state = self.0.lock();
        let children = state.children(id);
        let (shard, all) = state.find(id)?;
        let start = match from {
            Position::TrimHorizon => 0,
            Position::Latest => all.len(),
            Position::At(number) => all.partition_point(|record| record.sequence < number),
            Position::After(number) => all.partition_point(|record| record.sequence <= number),
            Position::AtTimestamp(_) => return Err(Error::Invalid("it knows no time".to_owned())),
        };
        let records: Vec<_> = all[start..].iter().take(limit.clamped().records.min(3)).cloned().collect();
        let next = match records.last() {
            _ if start + records.len() == all.len() && !shard.is_open() => Next::Ended(children),
            Some(last) => Next::At(Position::After(last.sequence)),
            None => Next::At(match from {
                Position::Latest => all.last().map_or(Position::TrimHorizon, |r| Position::After(r.sequence)),
                from => from,
            }),
        };
        Ok(Batch { records, next, behind: Duration::ZERO })
    }

    async fn follow(&self, _: &StreamName, _: &ShardId, _: Position) -> Result<Follow> {
        Err(Error::Invalid("it does not push".to_owned()))
    }
}

fn worker(world: &World, source: &Rolling, name: &str, takes: Duration) -> ConsumerBuilder {
    let tables = Arc::new(world.tables.clone());
    world.builder_on(name, Arc::new(source.clone()), tables, takes).sync_every(seconds(5))
}

/// The shards in which a key was seen, in the order of its records.
fn way(world: &World, key: &str) -> Vec<String> {
    let sights = world.seen.all().into_iter().filter(|sight| sight.key == key);
    let mut shards: Vec<_> = sights.map(|sight| sight.shard).collect();
    shards.dedup();
    shards
}

#[tokio::test(start_paused = true)]
async fn shards_without_ranges_roll_over_under_two_workers() {
    let world = World::new(1).await;
    let source = Rolling::default();
    let mut open: BTreeMap<_, _> =
        ["a", "b", "c"].into_iter().map(|key| (key, vec![source.roll(&[])])).collect();
    let workers = ["one", "two"].map(|name| run(worker(&world, &source, name, Duration::ZERO)));
    for round in 0..5 {
        for (at, (key, shards)) in open.iter_mut().enumerate() {
            let first = round * 30 + at * 10;
            source.put(shards.last().unwrap(), key, first..first + 5);
            // Not all at once, and one of them without a record.
            if round == 2 {
                shards.push(source.roll(&[shards.last().unwrap()]));
            }
            shards.push(source.roll(&[shards.last().unwrap()]));
            source.put(shards.last().unwrap(), key, first + 5..first + 10);
        }
        pause(seconds(7)).await;
    }
    world.until("all of it", seconds(120), async || world.seen.count() == 150).await;
    world.expect_all(150);
    for (key, shards) in &open {
        // The one without a record was read, and nothing came of it.
        let mut expected: Vec<_> = shards.iter().map(|shard| shard.as_str().to_owned()).collect();
        expected.remove(3);
        assert_eq!(way(&world, key), expected, "{key}");
    }
    for (_, lease) in world.leases().await {
        assert_eq!((lease.range, &lease.stream), (None, &None), "{lease:?}");
    }
    // Closed shards go, the oldest first, and their leases with them.
    for shards in open.values() {
        shards[..shards.len() - 1].iter().for_each(|shard| source.remove(shard));
    }
    world.until("the leases of today", seconds(60), async || world.leases().await.len() == 3).await;
    for (at, (key, shards)) in open.iter().enumerate() {
        source.put(shards.last().unwrap(), key, 150 + at..151 + at);
    }
    world.until("more", seconds(20), async || world.seen.count() == 153).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(world.seen.count(), 153, "nothing twice");
}

/// A shard with two parents begins when both are read to their end, although one of them takes much longer.
#[tokio::test(start_paused = true)]
async fn a_shard_without_a_range_waits_for_both_its_parents() {
    let world = World::new(1).await;
    let source = Rolling::default();
    let [slow, quick] = [source.roll(&[]), source.roll(&[])];
    source.put(&slow, "slow", 0..30);
    source.put(&quick, "quick", 30..40);
    let later = source.roll(&[&quick]);
    source.put(&later, "quick", 40..50);
    let merged = source.roll(&[&slow, &later]);
    for (key, numbers) in [("slow", 50..60), ("quick", 60..70)] {
        source.put(&merged, key, numbers);
    }
    let workers = ["one", "two"].map(|name| {
        let builder = worker(&world, &source, name, seconds(2)).batch_records(1);
        run(builder)
    });
    let of = |shard: &ShardId| world.seen.all().iter().filter(|sight| sight.shard == shard.as_str()).count();
    world.until("the end of one parent", seconds(120), async || of(&later) == 10).await;
    pause(seconds(5)).await;
    assert!(of(&slow) < 30 && of(&merged) == 0, "{} and {}", of(&slow), of(&merged));
    world.until("all of it", seconds(300), async || world.seen.count() == 70).await;
    world.expect_all(70);
    assert_eq!(world.seen.count(), 70, "nothing twice");
    let sights = world.seen.all();
    let first = sights.iter().position(|sight| sight.shard == merged.as_str()).unwrap();
    assert!(sights[first..].iter().all(|sight| sight.shard == merged.as_str()), "it is read last");
    for worker in workers {
        worker.stop().await;
    }
    let leases = world.leases().await;
    let lease = &leases[merged.as_str()];
    assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "{lease:?}");
    let mut parents = lease.parents.clone();
    parents.sort();
    assert_eq!(parents, [slow, later], "both are in the lease");
}
