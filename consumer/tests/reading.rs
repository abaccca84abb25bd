//! Workers read a stream of the reference store to its end, whatever happens to its shards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Checkpoint, Consumer, InitialPosition, Reading, Received, StreamChoice, process_fn,
};
use anabranch_model::aggregate::aggregate;
use anabranch_model::{
    HashKey, NewRecord, Position, ReadLimit, ShardId, ShardSource, StreamName, StreamOptions, StreamStore,
    Timestamp,
};
use parking_lot::Mutex;
use world::{World, pause, run, seconds};

mod world;

#[tokio::test(start_paused = true)]
async fn two_workers_share_a_stream_and_leave_nothing_behind() {
    let world = World::new(4).await;
    world.put(0..100).await;
    let one = run(world.builder("one"));
    world.until("one reads everything", seconds(2), async || world.seen.count() == 100).await;
    let two = run(world.builder("two"));
    world.until("two has its share", seconds(30), async || world.owners().await.get("two") == Some(&2)).await;
    world.put(100..200).await;
    world.until("the rest is read", seconds(5), async || world.seen.count() >= 200).await;
    world.expect_all(200);
    assert_eq!(world.seen.count(), 200, "a handoff delivers nothing twice");
    let by_two = world.seen.all().into_iter().filter(|sight| sight.worker == "two").count();
    assert!((1..200).contains(&by_two), "{by_two}");
    one.stop().await;
    two.stop().await;
    let leases = world.leases().await;
    assert_eq!(leases.len(), 4);
    for lease in leases.values() {
        assert_eq!((&lease.owner, &lease.checkpoint_owner), (&None, &None), "released: {lease:?}");
        assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "checkpointed: {lease:?}");
    }
    let three = run(world.builder("three"));
    world.put(200..210).await;
    world.until("what came meanwhile", seconds(2), async || world.seen.count() >= 210).await;
    assert_eq!(world.seen.count(), 210, "it resumes exactly behind the checkpoint");
    three.stop().await;
}

async fn resharded(reading: Reading) {
    let world = World::new(2).await;
    world.put(0..50).await;
    let one = run(world.builder("one").reading(reading));
    let two = run(world.builder("two").reading(reading));
    world.until("both read", seconds(40), async || world.seen.count() >= 50).await;
    let [low, high] = [0, 1].map(ShardId::numbered);
    let quarter = HashKey::new(u128::MAX / 4);
    let [a, b] = world.streams.split(&world.stream, &low, quarter).await.unwrap();
    world.put(50..100).await;
    let merged = world.streams.merge(&world.stream, &b, &high).await.unwrap();
    world.put(100..150).await;
    world.until("all of it", seconds(60), async || world.seen.count() >= 150).await;
    world.expect_all(150);
    assert_eq!(world.seen.count(), 150);
    let leases = world.leases().await;
    for ended in [&low, &high, &b] {
        assert_eq!(leases[ended.as_str()].checkpoint, Checkpoint::ShardEnd, "{ended}");
        assert_eq!(leases[ended.as_str()].owner, None);
    }
    assert_eq!(leases[low.as_str()].children, vec![a.clone(), b.clone()]);
    assert_eq!(leases[merged.as_str()].parents, vec![high.clone(), b.clone()], "both parents, as a set");
    one.stop().await;
    two.stop().await;
    let told = world.told.lock().clone();
    assert_eq!(told.iter().filter(|(.., word)| *word == "shard_ended").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_split_and_a_merge_keep_order_when_followed() {
    resharded(Reading::Auto).await;
}

#[tokio::test(start_paused = true)]
async fn a_split_and_a_merge_keep_order_when_polled() {
    resharded(Reading::Poll).await;
}

/// Children of a shard are not begun before its last record is acknowledged.
#[tokio::test(start_paused = true)]
async fn children_wait_for_the_last_record_of_their_parent() {
    let world = World::new(1).await;
    world.put(0..10).await;
    let slow =
        world.builder_on("one", Arc::new(world.streams.clone()), Arc::new(world.tables.clone()), seconds(20));
    let one = run(slow);
    pause(seconds(1)).await;
    let shard = ShardId::numbered(0);
    world.streams.split(&world.stream, &shard, HashKey::new(u128::MAX / 2)).await.unwrap();
    world.put(10..20).await;
    pause(seconds(10)).await;
    assert_ne!(world.leases().await[shard.as_str()].checkpoint, Checkpoint::ShardEnd);
    world.until("all of it", seconds(90), async || world.seen.count() == 20).await;
    world.expect_all(20);
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn latest_leaves_out_what_was_there_and_nothing_that_comes_later() {
    let world = World::new(2).await;
    world.put(0..10).await;
    let one = run(world.builder("one").initial_position(InitialPosition::Latest));
    pause(seconds(3)).await;
    one.stop().await;
    // Nobody reads, but the place is written down.
    world.put(10..20).await;
    let two = run(world.builder("two").initial_position(InitialPosition::Latest));
    world.until("what came between", seconds(3), async || world.seen.count() >= 10).await;
    pause(seconds(1)).await;
    let mut data = world.seen.data();
    data.sort();
    assert_eq!(data, (10..20).map(|number| format!("{number:04}")).collect::<Vec<_>>());
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_moment_is_found_in_the_right_generation_of_shards() {
    let world = World::new(1).await;
    world.put(0..5).await;
    world.streams.advance(seconds(60));
    let [low, _] =
        world.streams.split(&world.stream, &ShardId::numbered(0), HashKey::new(u128::MAX / 2)).await.unwrap();
    world.put(5..10).await;
    world.streams.advance(seconds(60));
    let moment = world.streams.now();
    world.put(10..15).await;
    world.streams.split(&world.stream, &low, HashKey::new(u128::MAX / 4)).await.unwrap();
    world.put(15..20).await;
    let one = run(world.builder("one").initial_position(InitialPosition::AtTimestamp(moment)));
    world.until("what is younger", seconds(5), async || world.seen.count() >= 10).await;
    pause(seconds(1)).await;
    let mut data = world.seen.data();
    data.sort();
    assert_eq!(data, (10..20).map(|number| format!("{number:04}")).collect::<Vec<_>>());
    world.expect_order();
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn aggregates_are_opened_and_resumed_in_their_middle() {
    let world = World::new(1).await;
    let parts: Vec<_> = (0..6).map(|n| NewRecord::new("key-0", format!("{n:04}"))).collect();
    let corrupt = [&aggregate(&parts).unwrap()[..], b"?"].concat();
    let whole = NewRecord::new("a", aggregate(&parts).unwrap());
    world.streams.append(&world.stream, vec![whole]).await.unwrap();
    // Three records at a time; the worker stops when it has seen the first three.
    let stop = Arc::new(Mutex::new(None::<anabranch_consumer::Handle>));
    let (seen, stopper) = (world.seen.clone(), stop.clone());
    let choice = [StreamChoice::only(world.stream.clone())];
    let consumer = Consumer::builder(
        "app-1",
        choice,
        Arc::new(world.streams.clone()),
        Arc::new(world.tables.clone()),
        world.clock.clone(),
        process_fn(move |delivery| {
            seen.note("one", &delivery);
            if let Some(handle) = stopper.lock().as_ref() {
                handle.shutdown();
            }
            async move { delivery.done() }
        }),
    )
    .batch_records(3)
    .build()
    .unwrap();
    *stop.lock() = Some(consumer.handle());
    consumer.run().await.unwrap();
    assert_eq!(world.seen.data(), ["0000", "0001", "0002"]);
    let lease = world.leases().await.into_values().next().unwrap();
    assert!(matches!(lease.checkpoint, Checkpoint::At { sub_sequence: 2, .. }), "{lease:?}");
    world.streams.append(&world.stream, vec![NewRecord::new("b", corrupt.clone())]).await.unwrap();
    let two = run(world.builder("two"));
    world.until("the rest", seconds(2), async || world.seen.count() >= 7).await;
    assert_eq!(world.seen.data()[3..6], ["0003", "0004", "0005"]);
    assert_eq!(world.seen.all()[6].data, String::from_utf8_lossy(&corrupt), "what is corrupt comes as it is");
    two.stop().await;
}

/// Twenty thousand records wait, and no more than a few of them are in memory or in flight.
#[tokio::test(start_paused = true)]
async fn a_slow_processor_slows_the_reader() {
    let world = World::new(1).await;
    world.put(0..300).await;
    let deferred = Arc::new(Mutex::new(Vec::new()));
    let keep = deferred.clone();
    let choice = [StreamChoice::only(world.stream.clone())];
    let consumer = Consumer::builder(
        "app-1",
        choice,
        Arc::new(world.streams.clone()),
        Arc::new(world.tables.clone()),
        world.clock.clone(),
        process_fn(move |delivery| {
            let mut outcomes = Vec::new();
            for record in &delivery.records {
                keep.lock().push((record.clone(), record.defer()));
                outcomes.push(anabranch_consumer::Outcome::Deferred);
            }
            async move { outcomes }
        }),
    )
    .worker("one")
    .in_flight(10, 1 << 20)
    .reading(Reading::Poll)
    .checkpoint_every(seconds(1))
    .build()
    .unwrap();
    let handle = consumer.handle();
    let running = tokio::spawn(consumer.run());
    pause(seconds(20)).await;
    let waiting = deferred.lock().len();
    assert!((10..=30).contains(&waiting), "{waiting} are under way");
    let checkpoint = async || world.leases().await.into_values().next().unwrap().checkpoint;
    assert_eq!(checkpoint().await, Checkpoint::TrimHorizon, "nothing is acknowledged");
    // All but the first are acknowledged, and still nothing is written down.
    let mut taken: Vec<(Received, _)> = std::mem::take(&mut *deferred.lock());
    let (first, acknowledgement) = taken.remove(0);
    taken.into_iter().for_each(|(_, acknowledgement)| acknowledgement.done());
    pause(seconds(3)).await;
    assert_eq!(checkpoint().await, Checkpoint::TrimHorizon, "there is a gap");
    acknowledgement.done();
    pause(seconds(3)).await;
    assert!(checkpoint().await.covers(first.sequence, 5), "the gap is closed: {}", checkpoint().await);
    // Everything else is acknowledged as it comes.
    let mut done = waiting;
    while done < 300 {
        pause(Duration::from_millis(100)).await;
        let taken = std::mem::take(&mut *deferred.lock());
        done += taken.len();
        taken.into_iter().for_each(|(_, acknowledgement)| acknowledgement.done());
    }
    handle.shutdown();
    running.await.unwrap().unwrap();
    let (shard, limit) = (ShardId::numbered(0), ReadLimit::default());
    let last = world.streams.read(&world.stream, &shard, Position::TrimHorizon, limit);
    let last = last.await.unwrap().records.last().unwrap().sequence;
    assert_eq!(checkpoint().await, Checkpoint::At { sequence: last, sub_sequence: 0 });
}

#[tokio::test(start_paused = true)]
async fn several_streams_have_leases_of_their_own() {
    let world = World::new(2).await;
    let other = StreamName::new("returns").unwrap();
    world.streams.create_stream(&other, StreamOptions::default()).await.unwrap();
    world.put(0..10).await;
    world.streams.append(&other, vec![NewRecord::new("x", "from returns")]).await.unwrap();
    let seen = world.seen.clone();
    let born = Timestamp::from_millis(1_700_000_000_000);
    let choices =
        [world.stream.clone(), other].map(|stream| StreamChoice::one_of_many(stream, "000000000000", born));
    let consumer = Consumer::builder(
        "app-1",
        choices,
        Arc::new(world.streams.clone()),
        Arc::new(world.tables.clone()),
        world.clock.clone(),
        process_fn(move |delivery| {
            seen.note("one", &delivery);
            async move { delivery.done() }
        }),
    );
    let one = run(consumer);
    world.until("both streams", seconds(2), async || world.seen.count() == 11).await;
    one.stop().await;
    let leases = world.leases().await;
    let key = "000000000000:returns:1700000000:shardId-000000000000";
    assert_eq!(leases[key].stream.as_deref(), Some("000000000000:returns:1700000000"));
    assert_eq!(leases[key].shard(), "shardId-000000000000");
    assert_eq!(leases.len(), 3);
}

/// A stream that is deleted and made again under its name is read from its beginning.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_made_again_is_read_anew() {
    let world = World::new(2).await;
    world.put(0..20).await;
    let one = run(world.builder("one").sync_every(seconds(5)));
    world.until("the old stream", seconds(2), async || world.seen.count() == 20).await;
    world.streams.split(&world.stream, &ShardId::numbered(0), HashKey::new(7)).await.unwrap();
    pause(seconds(15)).await;
    world.streams.delete_stream(&world.stream).await.unwrap();
    pause(seconds(15)).await;
    let options = StreamOptions { shards: 2, ..StreamOptions::default() };
    world.streams.create_stream(&world.stream, options).await.unwrap();
    world.put(20..40).await;
    world.until("the new stream", seconds(60), async || world.seen.count() >= 40).await;
    world.expect_all(40);
    one.stop().await;
}

/// The same while nobody looks, and at once: the leases of the old stream are all that is left of it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_made_again_behind_our_back_is_read_anew() {
    for runs in [true, false] {
        let world = World::new(2).await;
        world.put(0..20).await;
        let one = run(world.builder("one").sync_every(seconds(5)));
        world.until("the old stream", seconds(2), async || world.seen.count() == 20).await;
        world.streams.split(&world.stream, &ShardId::numbered(0), HashKey::new(7)).await.unwrap();
        world.put(20..40).await;
        world.until("its children", seconds(5), async || world.seen.count() == 40).await;
        let mut one = Some(one);
        if !runs {
            one.take().unwrap().stop().await;
        }
        world.streams.delete_stream(&world.stream).await.unwrap();
        let options = StreamOptions { shards: 2, ..StreamOptions::default() };
        world.streams.create_stream(&world.stream, options).await.unwrap();
        world.put(40..60).await;
        let one = one.unwrap_or_else(|| run(world.builder("two").sync_every(seconds(5))));
        world.until("the new stream", seconds(90), async || world.seen.different() == 60).await;
        world.expect_all(60);
        one.stop().await;
        let leases = world.leases().await;
        assert_eq!(leases.len(), 2, "nothing of the old stream is left: {leases:?}");
    }
}
