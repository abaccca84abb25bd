//! The engine lends what it reads, and has little to lend. A processor that hangs keeps none of it from other readers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Consumer, Delivery, Reading, StreamChoice, process_fn};
use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::{
    HashKey, NewRecord, Next, Position, ReadLimit, Result, ShardId, ShardSource, StreamName, StreamOptions,
    StreamStore,
};
use tokio::sync::mpsc;

/// More than the consumer takes of one shard at a time, and in all more than the engine lends.
const SHARDS: usize = 16;
const SHARD_RECORDS: usize = 40;
const RECORD_BYTES: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

fn open(folder: &Path) -> Engine {
    let options = Options { memory_bytes: 48 << 20, ..Options::default() };
    let (disk, clock) = (SystemDisk::open(folder).unwrap(), SystemClock::new());
    Engine::open(Arc::new(disk), Arc::new(clock), options).unwrap()
}

/// As many records in every shard.
async fn fill(engine: &Engine, stream: &StreamName) {
    let options = StreamOptions { shards: SHARDS, ..StreamOptions::default() };
    engine.create_stream(stream, options).await.unwrap();
    let step = u128::MAX / SHARDS as u128;
    for shard in 0..SHARDS {
        let explicit_hash_key = Some(HashKey::new(step * shard as u128 + step / 2));
        let record =
            |_| NewRecord { explicit_hash_key, ..NewRecord::new("key", vec![shard as u8; RECORD_BYTES]) };
        let stored = engine.append(stream, (0..SHARD_RECORDS).map(record).collect()).await.unwrap();
        assert!(stored.iter().all(Result::is_ok));
    }
}

/// Reads a shard to its end and returns how many records it has.
async fn read(engine: &Engine, stream: &StreamName, shard: &ShardId) -> Result<usize> {
    let (mut at, mut seen) = (Position::TrimHorizon, 0);
    loop {
        let batch = engine.read(stream, shard, at, ReadLimit::default()).await?;
        seen += batch.records.len();
        match batch.next {
            Next::At(next) if !batch.records.is_empty() => at = next,
            _ => return Ok(seen),
        }
    }
}

async fn hangs_and_others_read(reading: Reading) {
    let folder = tempfile::tempdir().unwrap();
    let (engine, stream) = (open(folder.path()), StreamName::new("orders").unwrap());
    fill(&engine, &stream).await;
    let (begun, mut news) = mpsc::channel(SHARDS);
    let hang = process_fn(move |delivery: Delivery| {
        let begun = begun.clone();
        async move {
            let _ = begun.send(delivery.records.len()).await;
            std::future::pending().await
        }
    });
    let (source, choice) = (Arc::new(engine.clone()), [StreamChoice::only(stream.clone())]);
    let clock = Arc::new(SystemClock::new());
    let consumer = Consumer::builder("slow", choice, source.clone(), source.clone(), clock, hang)
        .reading(reading)
        .process_max(10 * PATIENCE)
        .drain_max(Duration::from_millis(10))
        .build()
        .unwrap();
    let handle = consumer.handle();
    let running = tokio::spawn(consumer.run());
    for _ in 0..SHARDS {
        let records = tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap();
        assert!(records > 1, "a processor has {records} records in hand");
    }
    let page = source.shards(&stream, None, SHARDS).await.unwrap();
    for shard in page.entries {
        assert_eq!(read(&engine, &stream, &shard.id).await, Ok(SHARD_RECORDS), "{}", shard.id);
    }
    handle.shutdown();
    running.await.unwrap().unwrap();
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_processor_that_hangs_starves_nobody_when_it_polls() {
    hangs_and_others_read(Reading::Poll).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_processor_that_hangs_starves_nobody_when_it_follows() {
    hangs_and_others_read(Reading::Auto).await;
}
