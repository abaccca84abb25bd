//! "From now on" is one place, found once: nothing that came later is left out, whoever reads it and whenever.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Checkpoint, Consumer, ConsumerBuilder, Delivery, FailurePolicy, Finally, InitialPosition, Outcome,
    StreamChoice, process_fn,
};
use world::source::{End, Pushing};
use world::{World, pause, run, seconds};

mod world;

/// A worker that begins at the end of what it reads from such a store.
fn worker(world: &World, name: &str, source: &Pushing) -> ConsumerBuilder {
    let (source, tables) = (Arc::new(source.clone()), Arc::new(world.tables.clone()));
    world.builder_on(name, source, tables, Duration::ZERO).initial_position(InitialPosition::Latest)
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("{number:04}")).collect()
}

/// What was seen, each once.
fn seen(world: &World) -> Vec<String> {
    let mut data = world.seen.data();
    data.sort();
    data.dedup();
    data
}

/// The first record behind the end is poison and nothing of its batch is processed: whoever is next begins with it, and not
/// behind the batch.
#[tokio::test(start_paused = true)]
async fn the_first_batch_is_not_done_before_it_is_processed() {
    for end in [End::Number, End::Moment, End::Unknown] {
        let world = World::new(1).await;
        world.put(0..5).await;
        world.streams.advance(seconds(1));
        let source = Pushing::new(&world.streams, end);
        let choice = [StreamChoice::only(world.stream.clone())];
        let poisoned = process_fn(|delivery: Delivery| async move {
            vec![Outcome::Failed("poison".to_owned()); delivery.records.len()]
        });
        let policy = FailurePolicy { attempts: 2, finally: Finally::Halt, ..FailurePolicy::default() };
        let tables = Arc::new(world.tables.clone());
        let clock = world.clock.clone();
        let one = Consumer::builder("app-1", choice, Arc::new(source.clone()), tables, clock, poisoned)
            .initial_position(InitialPosition::Latest)
            .checkpoint_every(seconds(1))
            .failure(policy);
        let one = run(one);
        pause(seconds(10)).await;
        world.streams.advance(seconds(1));
        world.put(5..10).await;
        pause(seconds(30)).await;
        one.stop().await;
        let two = run(worker(&world, "two", &source));
        pause(seconds(5)).await;
        assert_eq!(seen(&world), numbers(5..10), "{end:?}: {:?}", world.leases().await);
        two.stop().await;
    }
}

/// Nothing comes until the worker is gone: killed, stopped, or cut off from the source for a while.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_quiet_shard_is_written_down_before_anything_is_read() {
    for end in [End::Number, End::Moment] {
        for fate in ["killed", "stopped", "cut off"] {
            let world = World::new(2).await;
            world.put(0..10).await;
            world.streams.advance(seconds(1));
            let source = Pushing::new(&world.streams, end);
            let one = run(worker(&world, "one", &source));
            pause(Duration::from_millis(500)).await;
            if fate == "cut off" {
                source.down.send_replace(true);
                pause(seconds(3)).await;
            } else if fate == "killed" {
                one.task.abort();
            } else {
                one.handle.shutdown();
            }
            pause(seconds(2)).await;
            world.streams.advance(seconds(1));
            world.put(10..20).await;
            pause(seconds(2)).await;
            source.down.send_replace(false);
            let two = run(worker(&world, "two", &source));
            pause(seconds(15)).await;
            assert_eq!(seen(&world), numbers(10..20), "{end:?} {fate}: {:?}", world.leases().await);
            two.stop().await;
            for lease in world.leases().await.values() {
                assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "{end:?} {fate}: {lease:?}");
                assert_eq!(lease.latest_since, None, "a number says more: {lease:?}");
            }
            one.handle.shutdown();
        }
    }
}

/// A shard without any record: its first one is behind the end.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_empty_shard_is_its_beginning() {
    for end in [End::Number, End::Moment] {
        let world = World::new(1).await;
        let source = Pushing::new(&world.streams, end);
        let one = run(worker(&world, "one", &source));
        pause(Duration::from_millis(500)).await;
        one.stop().await;
        world.put(0..3).await;
        let two = run(worker(&world, "two", &source));
        pause(seconds(2)).await;
        assert_eq!(seen(&world), numbers(0..3), "{end:?}");
        two.stop().await;
    }
}

/// Who sets a checkpoint to `LATEST` means the end as it is then, and not one that was found before.
#[tokio::test(start_paused = true)]
async fn latest_that_is_set_from_outside_is_found_anew() {
    let world = World::new(1).await;
    world.streams.advance(seconds(1));
    let source = Pushing::new(&world.streams, End::Moment);
    let one = run(worker(&world, "one", &source));
    pause(seconds(1)).await;
    one.stop().await;
    let key = "shardId-000000000000";
    assert_eq!(world.leases().await[key].latest_since, Some(world.streams.now()));
    world.put(0..5).await;
    world.streams.advance(seconds(1));
    let name = anabranch_model::TableName::new("app-1").unwrap();
    let application =
        anabranch_consumer::Application::open(Arc::new(world.tables.clone()), &name).await.unwrap();
    application.set_checkpoint(key, Checkpoint::Latest).await.unwrap();
    assert_eq!(world.leases().await[key].latest_since, None);
    let two = run(worker(&world, "two", &source));
    pause(seconds(1)).await;
    world.put(5..10).await;
    pause(seconds(2)).await;
    assert_eq!(seen(&world), numbers(5..10));
    two.stop().await;
}
