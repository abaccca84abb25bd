//! Workers that die, hang and fall silent.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Checkpoint;
use world::{World, pause, run, seconds};

mod world;

const LEASE_TIME: Duration = seconds(10);

/// No leader is waited for: the one that dies is the leader.
#[tokio::test(start_paused = true)]
async fn a_dead_worker_is_replaced_within_the_time_of_a_lease_and_a_second() {
    for moment_ms in [0, 700, 1_900, 3_300] {
        let world = World::new(6).await;
        world.put(0..50).await;
        let one = run(world.builder("one"));
        world.until("one reads", seconds(2), async || world.seen.count() == 50).await;
        let two = run(world.builder("two"));
        world.until("an even share", seconds(40), async || world.owners().await.get("two") == Some(&3)).await;
        pause(Duration::from_millis(moment_ms)).await;
        one.task.abort();
        let all = async || world.owners().await.get("two") == Some(&6);
        let took = world.until("two has everything", LEASE_TIME + seconds(1), all).await;
        assert!(took > LEASE_TIME / 2, "no lease is taken from the living: {took:?}");
        world.put(50..80).await;
        world
            .until("two reads on", seconds(1), async || {
                let mut data = world.seen.data();
                data.sort();
                data.dedup();
                data.len() == 80
            })
            .await;
        world.expect_all(80);
        two.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_record_comes_at_once() {
    let world = World::new(2).await;
    world.put(0..10).await;
    let began = world.clock.elapsed();
    let one = run(world.builder("one"));
    world.until("all of it", seconds(2), async || world.seen.count() == 10).await;
    assert!(world.clock.elapsed() - began < seconds(1));
    one.stop().await;
    // A worker that was stopped leaves nothing that the next has to wait for.
    world.put(10..20).await;
    let two = run(world.builder("two"));
    world.until("the rest", seconds(1), async || world.seen.count() == 20).await;
    two.stop().await;
}

/// A batch takes ten times as long as a lease holds; the lease is renewed all the same.
#[tokio::test(start_paused = true)]
async fn a_processor_that_takes_ten_lease_times_keeps_its_lease() {
    let world = World::new(2).await;
    world.put(0..20).await;
    let (source, tables) = (Arc::new(world.streams.clone()), Arc::new(world.tables.clone()));
    let slow = world.builder_on("slow", source, tables, LEASE_TIME * 10).batch_records(5);
    let slow = run(slow);
    pause(seconds(5)).await;
    // Another worker waits for a chance; it may be handed a shard, but steals none.
    let other = run(world.builder("other").leases_max(1));
    pause(LEASE_TIME * 60).await;
    world.expect_all(20);
    let lost = world.told.lock().iter().filter(|(.., word)| *word == "lease_lost").count();
    assert_eq!(lost, 0, "{:?}", world.told.lock());
    slow.stop().await;
    other.stop().await;
}

/// At most one write a lease and round, and none where a checkpoint was written.
#[tokio::test(start_paused = true)]
async fn an_idle_lease_costs_one_write_a_round() {
    let world = World::new(1).await;
    let one = run(world.builder("one"));
    pause(seconds(5)).await;
    let counter = async || world.leases().await["shardId-000000000000"].counter;
    let before = counter().await;
    pause(seconds(100)).await;
    let writes = counter().await - before;
    assert!((28..=31).contains(&writes), "{writes} in 100 seconds");
    one.stop().await;
}

/// What an owner reads when its lease is rewound from outside.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_can_be_set_while_workers_run() {
    let world = World::new(1).await;
    world.put(0..10).await;
    let one = run(world.builder("one").checkpoint_every(seconds(1)));
    world.until("all of it", seconds(2), async || world.seen.count() == 10).await;
    pause(seconds(3)).await;
    let name = anabranch_model::TableName::new("app-1").unwrap();
    let application =
        anabranch_consumer::Application::open(Arc::new(world.tables.clone()), &name).await.unwrap();
    let key = "shardId-000000000000";
    application.set_checkpoint(key, Checkpoint::TrimHorizon).await.unwrap();
    world.until("again", seconds(5), async || world.seen.count() == 20).await;
    let sequence = {
        let leases = application.leases().await.unwrap();
        match leases[0].checkpoint {
            Checkpoint::At { sequence, .. } => sequence,
            _ => {
                pause(seconds(3)).await;
                let Checkpoint::At { sequence, .. } = application.leases().await.unwrap()[0].checkpoint
                else {
                    panic!("no checkpoint")
                };
                sequence
            }
        }
    };
    let before = anabranch_consumer::Application::before(sequence);
    application.set_checkpoint(key, before).await.unwrap();
    world.until("the last one again", seconds(5), async || world.seen.count() == 21).await;
    assert_eq!(world.seen.data()[20], "0009");
    assert!(application.set_checkpoint("shardId-000000000009", before).await.is_err());
    one.stop().await;
}
