//! Records, and whole shards, that retention removes before they are read: reading goes on behind them, and what was lost is
//! said and counted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Checkpoint;
use anabranch_model::{
    HashKey, Position, ReadLimit, SequenceNumber, ShardId, ShardSource, StreamStore, limits,
};
use logs::Logs;
use world::counts::{Counts, counted};
use world::source::{End, Pushing};
use world::{World, pause, run, seconds};

mod logs;
mod world;

const TRIMMED: &str = "anabranch_consumer_trimmed_total";
const LOST: &str = "removed by retention before they were read";
const HOUR: Duration = Duration::from_secs(3_600);

/// Time passes for records and workers alike.
async fn pass(world: &World, time: Duration) {
    world.streams.advance(time);
    pause(time).await;
}

/// The numbers of all records of a shard.
async fn sequences(world: &World, shard: &ShardId) -> Vec<SequenceNumber> {
    let read = world.streams.read(&world.stream, shard, Position::TrimHorizon, ReadLimit::default()).await;
    read.unwrap().records.iter().map(|record| record.sequence).collect()
}

#[track_caller]
fn said(logs: &Logs, counts: &Counts, times: u64, words: &[String]) {
    assert_eq!(counts.of(TRIMMED), times);
    let lines = logs.with(LOST);
    assert_eq!(lines.len() as u64, times, "{lines:?}");
    let last = lines.last().cloned().unwrap_or_default();
    for word in words {
        assert!(last.starts_with("WARN") && last.contains(word), "`{word}` is missing: {last}");
    }
}

#[test]
fn what_was_removed_behind_a_checkpoint_is_said_with_its_place() {
    counted(async |counts| {
        let logs = Logs::default();
        let _guard = logs.collect();
        let world = World::new(1).await;
        world.put(0..10).await;
        let one = run(world.builder("one"));
        world.until("all of it", seconds(5), async || world.seen.count() == 10).await;
        one.stop().await;
        world.put(10..20).await;
        let gone = sequences(&world, &ShardId::numbered(0)).await;
        pass(&world, limits::RETENTION_MIN + HOUR).await;
        world.put(20..25).await;
        let two = run(world.builder("two"));
        world.until("the rest", seconds(20), async || world.seen.count() == 15).await;
        two.stop().await;
        let words = [
            "shard=shardId-000000000000".to_owned(),
            format!("read_to={}", gone[9]),
            format!("lost_to={}", gone[19]),
        ];
        said(&logs, counts, 1, &words);
        // Whoever goes on behind it has lost nothing more, and neither has one whose last record went when it was done with.
        let three = run(world.builder("three"));
        pause(seconds(20)).await;
        three.stop().await;
        pass(&world, limits::RETENTION_MIN + HOUR).await;
        let four = run(world.builder("four"));
        pause(seconds(20)).await;
        world.put(25..30).await;
        world.until("more", seconds(20), async || world.seen.count() == 20).await;
        four.stop().await;
        said(&logs, counts, 1, &[]);
        // Nothing is left of what came behind the checkpoint.
        world.put(30..35).await;
        pass(&world, limits::RETENTION_MIN + HOUR).await;
        let five = run(world.builder("five"));
        pause(seconds(20)).await;
        five.stop().await;
        said(&logs, counts, 2, &[]);
    });
}

/// A source that does not tell what it has removed: an old record that is not the one of the checkpoint is told enough.
#[test]
fn a_source_that_keeps_silent_is_seen_through() {
    counted(async |counts| {
        let logs = Logs::default();
        let _guard = logs.collect();
        let world = World::new(1).await;
        let source = Pushing::new(&world.streams, End::Number);
        let worker = |name: &str| {
            let tables = Arc::new(world.tables.clone());
            run(world.builder_on(name, Arc::new(source.clone()), tables, Duration::ZERO))
        };
        world.put(0..10).await;
        let one = worker("one");
        world.until("all of it", seconds(5), async || world.seen.count() == 10).await;
        one.stop().await;
        world.put(10..20).await;
        let gone = sequences(&world, &ShardId::numbered(0)).await;
        // Most of it is old, and nothing is lost.
        pass(&world, 13 * HOUR).await;
        let two = worker("two");
        world.until("all of it", seconds(20), async || world.seen.count() == 20).await;
        two.stop().await;
        said(&logs, counts, 0, &[]);
        world.put(20..30).await;
        pass(&world, limits::RETENTION_MIN - HOUR).await;
        world.put(30..40).await;
        pass(&world, 13 * HOUR).await;
        let three = worker("three");
        world.until("the rest", seconds(20), async || world.seen.count() == 30).await;
        three.stop().await;
        said(&logs, counts, 1, &[format!("read_to={}", gone[19])]);
    });
}

/// A shard goes as a whole while its lease says that it is being read: the lease goes, its children are read, and that is
/// said as well.
#[test]
fn a_shard_that_is_removed_before_its_end_gives_way_to_its_children() {
    counted(async |counts| {
        let logs = Logs::default();
        let _guard = logs.collect();
        let world = World::new(1).await;
        let parent = ShardId::numbered(0);
        world.put(0..10).await;
        let one = run(world.builder("one"));
        world.until("all of it", seconds(5), async || world.seen.count() == 10).await;
        one.stop().await;
        world.put(10..15).await;
        let read_to = sequences(&world, &parent).await[9];
        world.streams.split(&world.stream, &parent, HashKey::new(u128::MAX / 2)).await.unwrap();
        pass(&world, limits::RETENTION_MIN + HOUR).await;
        let left = world.streams.shards(&world.stream, None, 100).await.unwrap().entries;
        assert!(left.iter().all(|shard| shard.id != parent), "it is gone: {left:?}");
        assert_eq!(world.leases().await[parent.as_str()].checkpoint.to_string(), read_to.to_string());
        world.put(15..40).await;
        let workers = ["two", "three"].map(|name| run(world.builder(name)));
        world.until("the children", seconds(60), async || world.seen.count() == 35).await;
        world.expect_order();
        for worker in workers {
            worker.stop().await;
        }
        let leases = world.leases().await;
        assert!(!leases.contains_key(parent.as_str()), "{leases:?}");
        assert_eq!(leases.len(), 2, "{leases:?}");
        assert!(leases.values().all(|lease| matches!(lease.checkpoint, Checkpoint::At { .. })), "{leases:?}");
        assert_eq!(counts.of(TRIMMED), 1);
        let lines = logs.with("a shard was removed before it was read to its end");
        assert_eq!(lines.len(), 1, "{lines:?}");
        let words = [format!("shard={parent}"), format!("checkpoint={read_to}")];
        assert!(words.iter().all(|word| lines[0].contains(word)), "{lines:?}");
    });
}
