//! Sources that refuse, fall silent, and come back.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Consumer, Delivery, FailurePolicy, Finally, Outcome, StreamChoice, process_fn};
use anabranch_model::{Error, HashKey, NewRecord, ShardId, StreamStore};
use world::source::{End, Pushing};
use world::{World, pause, run, seconds};

mod world;

/// Whatever reading is refused with for a while, it goes on where it was: nothing is delivered twice.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_has_nothing_to_do_with_the_position_does_not_rewind() {
    let refusals = [
        Error::LimitExceeded("no consumer is left".to_owned()),
        Error::Invalid("the key is disabled".to_owned()),
    ];
    for refusal in refusals {
        let world = World::new(1).await;
        world.put(0..20).await;
        let source = Pushing::new(&world.streams, End::Number);
        let tables = Arc::new(world.tables.clone());
        let one = run(world.builder_on("one", Arc::new(source.clone()), tables, Duration::ZERO));
        world.until("all of it", seconds(5), async || world.seen.count() == 20).await;
        *source.refusal.lock() = Some(refusal.clone());
        source.down.send_replace(true);
        pause(seconds(1)).await;
        source.down.send_replace(false);
        pause(seconds(20)).await;
        *source.refusal.lock() = None;
        world.put(20..30).await;
        pause(seconds(20)).await;
        world.expect_all(30);
        assert_eq!(world.seen.count(), 30, "{refusal}: nothing twice");
        one.stop().await;
    }
}

/// A position that is refused for good: everything is read from the beginning, and what was processed is left out.
#[tokio::test(start_paused = true)]
async fn a_refused_position_delivers_nothing_twice() {
    let world = World::new(1).await;
    world.put(0..20).await;
    let source = Pushing::new(&world.streams, End::Number);
    let tables = Arc::new(world.tables.clone());
    let one = run(world.builder_on("one", Arc::new(source.clone()), tables, Duration::ZERO));
    world.until("all of it", seconds(5), async || world.seen.count() == 20).await;
    *source.refuses_numbers.lock() = true;
    source.down.send_replace(true);
    pause(seconds(1)).await;
    source.down.send_replace(false);
    world.put(20..30).await;
    pause(seconds(20)).await;
    world.expect_all(30);
    assert_eq!(world.seen.count(), 30, "nothing twice");
    one.stop().await;
}

/// The connection is dead and the shard ends without another record: its children are read all the same.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_shard_is_found_behind_a_dead_connection() {
    let world = World::new(1).await;
    let source = Pushing::new(&world.streams, End::Number);
    *source.silent.lock() = true;
    let tables = Arc::new(world.tables.clone());
    let one = run(world.builder_on("one", Arc::new(source.clone()), tables, Duration::ZERO));
    pause(seconds(5)).await;
    let middle = HashKey::new(u128::MAX / 2);
    world.streams.split(&world.stream, &ShardId::numbered(0), middle).await.unwrap();
    *source.silent.lock() = false;
    world.put(0..10).await;
    world.until("the children", seconds(90), async || world.seen.count() == 10).await;
    one.stop().await;
}

/// Shards that halt give their memory back: those that do not halt have enough of it.
#[tokio::test(start_paused = true)]
async fn halted_shards_do_not_starve_the_others() {
    let world = World::new(4).await;
    let large = |number: usize| NewRecord::new(format!("key-{number}"), vec![b'x'; 1000]);
    let put = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            world.streams.append(&world.stream, vec![large(number)]).await.unwrap();
        }
    };
    put(0..100).await;
    let seen = world.seen.clone();
    let healthy = ShardId::numbered(3);
    let process = process_fn(move |delivery: Delivery| {
        let (seen, healthy) = (seen.clone(), healthy.clone());
        async move {
            if delivery.shard.shard != healthy {
                return vec![Outcome::Failed("poison".to_owned()); delivery.records.len()];
            }
            seen.note("one", &delivery);
            delivery.done()
        }
    });
    let choice = [StreamChoice::only(world.stream.clone())];
    let (source, tables) = (Arc::new(world.streams.clone()), Arc::new(world.tables.clone()));
    let one = Consumer::builder("app-1", choice, source, tables, world.clock.clone(), process)
        .seed(2)
        .in_flight(5, 5_000)
        .memory(6 * 1024)
        .failure(FailurePolicy { attempts: 2, finally: Finally::Halt, ..FailurePolicy::default() });
    let one = run(one);
    pause(seconds(60)).await;
    let before = world.seen.count();
    put(100..200).await;
    pause(seconds(60)).await;
    let count = world.seen.count();
    assert!(count > before + 10 && before > 10, "{before} and then {count}");
    one.stop().await;
}
