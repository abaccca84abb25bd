//! Processors that fail: nothing is skipped, order is kept, and other shards go on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Checkpoint, Consumer, ConsumerBuilder, DeadLetters, Delivery, Driver, FailurePolicy, Finally, Outcome,
    StreamChoice, process_fn,
};
use anabranch_model::blob::{GetOptions, ListOptions};
use anabranch_model::laws::reference::{ReferenceBlobs, SimpleQueues, SimpleStreams};
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::{
    BlobStore, BucketName, NewRecord, Position, QueueName, QueueOptions, QueueStore, ReadLimit, ShardSource,
    StreamName, StreamOptions, StreamStore,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use parking_lot::Mutex;
use world::{World, pause, run, seconds};

mod world;

fn policy(finally: Finally) -> FailurePolicy {
    FailurePolicy { attempts: 3, pause_first: Duration::from_millis(10), pause_max: seconds(1), finally }
}

/// A worker whose processor is a closure over what it is given.
fn worker<F, Fut>(world: &World, finally: Finally, process: F) -> ConsumerBuilder
where
    F: Fn(Delivery) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Vec<Outcome>> + Send + 'static,
{
    let choice = [StreamChoice::only(world.stream.clone())];
    let (source, tables) = (Arc::new(world.streams.clone()), Arc::new(world.tables.clone()));
    Consumer::builder("app-1", choice, source, tables, world.clock.clone(), process_fn(process))
        .worker("one")
        .seed(1)
        .failure(policy(finally))
}

async fn queue() -> (SimpleQueues, QueueName) {
    let (queues, name) = (SimpleQueues::new(), QueueName::new("dead").unwrap());
    queues.create_queue(&name, QueueOptions::default()).await.unwrap();
    (queues, name)
}

async fn letters(queues: &SimpleQueues, name: &QueueName) -> Vec<serde_json::Value> {
    let mut letters = Vec::new();
    loop {
        let messages = queues.receive(name, ReceiveOptions::all()).await.unwrap();
        if messages.is_empty() {
            return letters;
        }
        letters.extend(messages.iter().map(|message| serde_json::from_slice(&message.body).unwrap()));
    }
}

/// A record that makes the whole call panic is found by bisection; every other one is processed, in order.
#[tokio::test(start_paused = true)]
async fn a_poisonous_record_is_found_and_becomes_a_dead_letter() {
    let world = World::new(1).await;
    world.put(0..40).await;
    let (queues, name) = queue().await;
    let seen = world.seen.clone();
    let dead = Finally::DeadLetter(DeadLetters::Queue(Arc::new(queues.clone()), name.clone()));
    let one = run(worker(&world, dead, move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            assert!(delivery.records.iter().all(|record| record.data != "0017"), "poison");
            seen.note("one", &delivery);
            delivery.done()
        }
    }));
    world.until("all others", seconds(120), async || world.seen.count() == 39).await;
    one.stop().await;
    let expected: Vec<_> = (0..40).filter(|n| *n != 17).map(|n| format!("{n:04}")).collect();
    assert_eq!(world.seen.data(), expected, "each once, in order");
    let letters = letters(&queues, &name).await;
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!(letter["data"], "MDAxNw==");
    assert_eq!((&letter["stream"], &letter["application"]), (&"orders".into(), &"app-1".into()));
    assert_eq!(letter["partitionKey"], "key-17");
    assert!(letter["error"].as_str().unwrap().contains("poison"), "{letter}");
    assert!(letter["attempts"].as_u64().unwrap() >= 3, "{letter}");
    let lease = world.leases().await.into_values().next().unwrap();
    assert!(matches!(lease.checkpoint, Checkpoint::At { .. }));
}

/// A worker that gives two of its records up.
async fn gives_up(world: &World, to: DeadLetters) {
    world.put(0..20).await;
    let seen = world.seen.clone();
    let one = run(worker(world, Finally::DeadLetter(to), move |delivery: Delivery| {
        let outcomes = delivery.records.iter().map(|record| match &record.data[..] {
            b"0007" | b"0013" => Outcome::Failed(format!("no use for {:?}", record.data)),
            _ => Outcome::Done,
        });
        let outcomes: Vec<_> = outcomes.collect();
        seen.note("one", &delivery);
        async move { outcomes }
    }));
    let last = async || world.seen.data().contains(&"0019".to_owned());
    world.until("all of it", seconds(120), last).await;
    pause(seconds(5)).await;
    one.stop().await;
    let lease = world.leases().await.into_values().next().unwrap();
    assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "nothing is left: {lease:?}");
}

/// What a letter says, whatever it lies in.
fn check_letter(letter: &serde_json::Value, data: &str) {
    assert_eq!(letter["data"], STANDARD.encode(data), "{letter}");
    assert_eq!((&letter["stream"], &letter["application"]), (&"orders".into(), &"app-1".into()));
    assert_eq!(letter["shard"], "shardId-000000000000");
    assert!(letter["error"].as_str().unwrap().contains(data), "{letter}");
}

#[tokio::test(start_paused = true)]
async fn dead_letters_lie_in_a_bucket_under_the_place_of_their_record() {
    let world = World::new(1).await;
    let (blobs, bucket) = (ReferenceBlobs::new(), BucketName::new("dead").unwrap());
    blobs.create_bucket(&bucket).await.unwrap();
    let to = DeadLetters::Blobs(Arc::new(blobs.clone()), bucket.clone(), "given-up/".to_owned());
    gives_up(&world, to).await;
    let page = blobs.list(&bucket, ListOptions::default()).await.unwrap();
    assert_eq!(page.entries.len(), 2);
    let mut found = Vec::new();
    for summary in &page.entries {
        let blob = blobs.get(&bucket, &summary.key, GetOptions::default()).await.unwrap();
        let body: Vec<_> = blob.body.map(Result::unwrap).collect().await;
        let letter: serde_json::Value = serde_json::from_slice(&body.concat()).unwrap();
        found.push(letter["partitionKey"].clone());
        let data = if letter["partitionKey"] == "key-7" { "0007" } else { "0013" };
        check_letter(&letter, data);
        let sequence = letter["sequenceNumber"].as_str().unwrap();
        let place = format!("given-up/orders/shardId-000000000000/{sequence}-0.json");
        assert_eq!(summary.key.as_str(), place);
    }
    found.sort_by_key(|key| key.to_string());
    assert_eq!(found, ["key-13", "key-7"]);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_lie_in_a_stream_under_the_key_of_their_record() {
    let world = World::new(1).await;
    let dead = StreamName::new("dead").unwrap();
    world.streams.create_stream(&dead, StreamOptions::default()).await.unwrap();
    gives_up(&world, DeadLetters::Stream(Arc::new(world.streams.clone()), dead.clone())).await;
    let mut letters = Vec::new();
    for shard in world.streams.shards(&dead, None, 100).await.unwrap().entries {
        let from = Position::TrimHorizon;
        let batch = world.streams.read(&dead, &shard.id, from, ReadLimit::default()).await.unwrap();
        letters.extend(batch.records);
    }
    letters.sort_by_key(|record| record.sequence);
    assert_eq!(letters.len(), 2);
    for (record, (key, data)) in letters.iter().zip([("key-7", "0007"), ("key-13", "0013")]) {
        assert_eq!(record.partition_key, key);
        check_letter(&serde_json::from_slice(&record.data).unwrap(), data);
    }
}

/// Without a place for dead letters the shard stands still at the bad record, and the other shards do not.
#[tokio::test(start_paused = true)]
async fn a_shard_halts_alone_and_is_checkpointed_before_the_bad_record() {
    let world = World::new(4).await;
    world.put(0..100).await;
    let seen = world.seen.clone();
    let process = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            let outcomes = delivery.records.iter().map(|record| match &record.data[..] {
                b"0050" => Outcome::Failed("it is the fiftieth".to_owned()),
                _ => Outcome::Done,
            });
            let outcomes: Vec<_> = outcomes.collect();
            seen.note("one", &delivery);
            outcomes
        }
    };
    let one = run(worker(&world, Finally::Halt, process.clone()).batch_records(1));
    pause(seconds(30)).await;
    world.put(100..200).await;
    pause(seconds(60)).await;
    let bad = world.seen.all().into_iter().find(|sight| sight.data == "0050").unwrap();
    let others: Vec<_> = world.seen.all().into_iter().filter(|sight| sight.shard != bad.shard).collect();
    assert!(others.iter().any(|sight| sight.data.as_str() >= "0100"), "other shards go on");
    let here: Vec<_> = world.seen.all().into_iter().filter(|sight| sight.shard == bad.shard).collect();
    assert!(here.iter().all(|sight| sight.data.as_str() <= "0050"), "nothing behind it is delivered");
    assert_eq!(here.iter().filter(|sight| sight.data == "0050").count(), 3, "tried as often as allowed");
    assert_eq!(world.leases().await[&bad.shard].owner.as_deref(), Some("one"), "the lease is kept");
    one.stop().await;
    // Somebody mends the processor: it goes on with the bad record.
    let before = world.seen.count();
    let two = run(world.builder("two"));
    world.until("the rest", seconds(10), async || world.seen.data()[before..].len() > 1).await;
    pause(seconds(2)).await;
    let after: Vec<_> = world.seen.all()[before..].iter().filter(|s| s.shard == bad.shard).cloned().collect();
    assert_eq!(after.first().map(|sight| sight.data.as_str()), Some("0050"));
    world.expect_all(200);
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_few_outcomes_and_a_call_that_hangs_are_failures() {
    for bad in ["few", "hang"] {
        let world = World::new(1).await;
        world.put(0..8).await;
        let tries = Arc::new(Mutex::new(0));
        let (seen, count) = (world.seen.clone(), tries.clone());
        let one = run(worker(&world, Finally::Halt, move |delivery: Delivery| {
            let seen = seen.clone();
            let first = {
                let mut count = count.lock();
                *count += 1;
                *count <= 2
            };
            async move {
                match bad {
                    "few" if first => return Vec::new(),
                    "hang" if first => std::future::pending().await,
                    _ => {}
                }
                seen.note("one", &delivery);
                delivery.done()
            }
        })
        .process_max(seconds(20)));
        world.until(bad, seconds(60), async || world.seen.count() == 8).await;
        assert_eq!(*tries.lock(), 3, "{bad}");
        one.stop().await;
    }
}

/// Acknowledgements that never come are noticed, and the shard begins anew behind its last checkpoint.
#[tokio::test(start_paused = true)]
async fn the_watchdog_restarts_a_shard_that_does_not_advance() {
    let world = World::new(2).await;
    world.put(0..20).await;
    let seen = world.seen.clone();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let one = run(worker(&world, Finally::Halt, move |delivery: Delivery| {
        let outcomes = delivery.records.iter().map(|record| {
            let lost = record.data == "0005" && keep.lock().is_empty();
            if lost {
                keep.lock().push(record.defer());
            }
            if lost { Outcome::Deferred } else { Outcome::Done }
        });
        let outcomes: Vec<_> = outcomes.collect();
        seen.note("one", &delivery);
        async move { outcomes }
    })
    .stall_max(seconds(30))
    .checkpoint_every(seconds(1)));
    let twice = async || world.seen.data().iter().filter(|data| *data == "0005").count() == 2;
    let took = world.until("it begins anew", seconds(60), twice).await;
    assert!(took >= seconds(30), "{took:?}");
    // What the old delivery says now is about nothing any more.
    kept.lock().pop().unwrap().failed("much too late");
    pause(seconds(5)).await;
    world.expect_all(20);
    one.stop().await;
    for lease in world.leases().await.values() {
        assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "{lease:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deferred_record_that_fails_is_delivered_again_by_itself() {
    let world = World::new(1).await;
    world.put(0..5).await;
    let (seen, delivered) = (world.seen.clone(), Arc::new(Mutex::new(Vec::new())));
    let attempts = delivered.clone();
    let one = run(worker(&world, Finally::Halt, move |delivery: Delivery| {
        seen.note("one", &delivery);
        for record in &delivery.records {
            attempts.lock().push((record.data.clone(), record.attempt));
            let acknowledgement = record.defer();
            let fails = record.data == "0002" && record.attempt == 1;
            tokio::spawn(async move {
                pause(seconds(1)).await;
                // Dropped without a word, it has failed.
                if !fails {
                    acknowledgement.done();
                }
            });
        }
        let outcomes = vec![Outcome::Deferred; delivery.records.len()];
        async move { outcomes }
    }));
    world.until("again", seconds(5), async || world.seen.count() == 6).await;
    pause(seconds(2)).await;
    one.stop().await;
    assert_eq!(delivered.lock().last(), Some(&("0002".into(), 2)));
    let lease = world.leases().await.into_values().next().unwrap();
    assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "{lease:?}");
}

#[tokio::test]
async fn a_driver_runs_a_processor_without_any_store() {
    let good = process_fn(|delivery: Delivery| async move { delivery.done() });
    let mut driver = Driver::new(good).await;
    let records = |range: std::ops::Range<u32>| range.map(|n| NewRecord::new("k", n.to_string())).collect();
    assert_eq!(driver.deliver(records(0..5)).await.acknowledged, 5);
    assert_eq!(driver.deliver(records(5..7)).await.acknowledged, 7);
    assert_eq!(driver.end().await.halted, None);
    let bad = process_fn(|delivery: Delivery| async move {
        let bad = delivery.records.iter().map(|record| match &record.data[..] {
            b"3" => Outcome::Failed("three".to_owned()),
            _ => Outcome::Done,
        });
        bad.collect()
    });
    let mut driver = Driver::new(bad).await;
    let report = driver.deliver(records(0..5)).await;
    assert_eq!((report.acknowledged, report.halted.as_deref()), (3, Some("three")));
    // Dead letters go to a stream here; the shard goes on.
    let (streams, name) = (SimpleStreams::new(), StreamName::new("dead").unwrap());
    streams.create_stream(&name, StreamOptions::default()).await.unwrap();
    let all_bad = process_fn(|delivery: Delivery| async move { delivery.failed("never") });
    let to = Finally::DeadLetter(DeadLetters::Stream(Arc::new(streams.clone()), name.clone()));
    let policy = FailurePolicy { pause_first: Duration::ZERO, ..policy(to) };
    let mut driver = Driver::with_policy(all_bad, policy).await;
    let report = driver.deliver(records(0..4)).await;
    assert_eq!((report.acknowledged, report.halted), (4, None));
    assert_eq!(driver.shutdown().await.acknowledged, 4);
}

/// A letter larger than its place takes lies in parts; joined, they are the letter.
#[tokio::test]
async fn a_dead_letter_larger_than_its_place_lies_in_parts() {
    let (queues, name) = queue().await;
    let streams = SimpleStreams::new();
    let dead = StreamName::new("dead").unwrap();
    streams.create_stream(&dead, StreamOptions::default()).await.unwrap();
    let small = QueueName::new("small").unwrap();
    let options = QueueOptions { message_bytes_max: 1 << 10, ..QueueOptions::default() };
    queues.create_queue(&small, options).await.unwrap();
    let to_queue = |name: &QueueName| DeadLetters::Queue(Arc::new(queues.clone()), name.clone());
    let to_stream = DeadLetters::Stream(Arc::new(streams.clone()), dead.clone());
    for (to, bytes) in [(to_queue(&name), 10 << 20), (to_stream, 10 << 20), (to_queue(&small), 3 << 10)] {
        let all_bad = process_fn(|delivery: Delivery| async move { delivery.failed("\"never\"\n") });
        let policy = FailurePolicy { pause_first: Duration::ZERO, ..policy(Finally::DeadLetter(to)) };
        let mut driver = Driver::with_policy(all_bad, policy).await;
        let data = "x".repeat(bytes - "key".len());
        let report = driver.deliver(vec![NewRecord::new("key", data.clone())]).await;
        assert_eq!((report.acknowledged, report.halted), (1, None));
        let mut parts = letters(&queues, &name).await;
        parts.extend(letters(&queues, &small).await);
        parts.extend(documents(&streams, &dead).await);
        parts.sort_by_key(|part| part["part"].as_u64());
        for name in [&name, &small] {
            queues.purge(name).await.unwrap();
        }
        streams.delete_stream(&dead).await.unwrap();
        streams.create_stream(&dead, StreamOptions::default()).await.unwrap();
        assert!(parts.len() > 1);
        let pieces = parts.iter().enumerate().map(|(index, part)| {
            assert_eq!((&part["part"], &part["parts"]), (&(index + 1).into(), &parts.len().into()));
            part["letter"].as_str().unwrap()
        });
        let letter: serde_json::Value = serde_json::from_str(&pieces.collect::<String>()).unwrap();
        assert_eq!(letter["error"], "\"never\"\n");
        assert_eq!(letter["data"], STANDARD.encode(data));
    }
}

/// All records of a stream as documents.
async fn documents(streams: &SimpleStreams, name: &StreamName) -> Vec<serde_json::Value> {
    let mut documents = Vec::new();
    for shard in streams.shards(name, None, 10).await.unwrap().entries {
        let mut from = Position::TrimHorizon;
        loop {
            let limit = ReadLimit { records: 10, bytes: 10 << 20 };
            let batch = streams.read(name, &shard.id, from, limit).await.unwrap();
            let Some(last) = batch.records.last() else { break };
            from = Position::After(last.sequence);
            documents
                .extend(batch.records.iter().map(|record| serde_json::from_slice(&record.data).unwrap()));
        }
    }
    documents
}

/// A call that fails as a whole after some of its records were acknowledged: those are neither delivered again nor given
/// up.
#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_is_not_delivered_again_when_its_call_fails() {
    let world = World::new(1).await;
    world.put(0..6).await;
    let (queues, name) = queue().await;
    let dead = Finally::DeadLetter(DeadLetters::Queue(Arc::new(queues.clone()), name.clone()));
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let calls = delivered.clone();
    let one = run(worker(&world, dead, move |delivery: Delivery| {
        let data: Vec<_> = delivery.records.iter().map(|record| record.data.clone()).collect();
        calls.lock().push(data);
        // Even ones are done, and then the call fails.
        for record in &delivery.records {
            let even = record.data.last().is_some_and(|digit| digit % 2 == 0);
            let acknowledgement = record.defer();
            if even {
                acknowledgement.done();
            } else {
                acknowledgement.failed("odd");
            }
        }
        async move { Vec::new() }
    }));
    pause(seconds(60)).await;
    one.stop().await;
    let even = |data: &bytes::Bytes| data.last().is_some_and(|digit| digit % 2 == 0);
    let times = delivered.lock().iter().flatten().filter(|data| even(data)).count();
    assert_eq!(times, 3, "each of the three once: {:?}", delivered.lock());
    let letters = letters(&queues, &name).await;
    assert_eq!(letters.len(), 3, "{letters:?}");
    assert!(
        letters
            .iter()
            .all(|letter| ["key-1", "key-3", "key-5"].contains(&letter["partitionKey"].as_str().unwrap()))
    );
}

/// A deferred record that has failed can only be delivered again: whoever is to hand its shard over waits for nothing.
#[tokio::test(start_paused = true)]
async fn a_deferred_record_that_failed_does_not_hold_a_stop_up() {
    let world = World::new(1).await;
    world.put(0..3).await;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let one = run(worker(&world, Finally::Halt, move |delivery: Delivery| {
        keep.lock().extend(delivery.records.iter().map(|record| record.defer()));
        let outcomes = vec![Outcome::Deferred; delivery.records.len()];
        async move { outcomes }
    })
    .drain_max(seconds(100)));
    world.until("all of it", seconds(5), async || kept.lock().len() == 3).await;
    one.handle.shutdown();
    pause(seconds(1)).await;
    // While it drains, one after the other says that it is not processed.
    std::mem::take(&mut *kept.lock()).into_iter().for_each(|kept| kept.failed("no"));
    let began = world.clock.elapsed();
    one.task.await.unwrap().unwrap();
    assert!(world.clock.elapsed() - began < seconds(1), "nothing is left to wait for");
}
