//! Memory is bounded by the budget, whatever readers do with what they were given.

#![cfg(target_os = "linux")]

mod crash;

use std::sync::Arc;

use anabranch_engine::{Engine, Options};
use anabranch_model::{
    HashKey, NewRecord, Position, ReadLimit, ShardId, ShardSource, StreamOptions, StreamStore,
};
use anabranch_sim::{SimClock, SimDisk};
use crash::run::{START, name};

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux says how large a process is");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("the second number counts pages") * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_reads_that_are_held_hold_little() {
    let options = Options { segment_bytes: 4 << 20, ..Options::default() };
    let engine =
        Engine::open(Arc::new(SimDisk::new()), Arc::new(SimClock::new(START)), options).expect("it opens");
    let (stream, shard) = (name("bulk"), ShardId::numbered(0));
    engine.create_stream(&stream, StreamOptions::default()).await.expect("create");
    for _ in 0..40 {
        let records = (0..10).map(|i| NewRecord::new(format!("{i}"), vec![7; 10_000])).collect();
        engine.append(&stream, records).await.expect("append");
    }
    let read = async |bytes| {
        let limit = ReadLimit { bytes, ..ReadLimit::default() };
        engine.read(&stream, &shard, Position::TrimHorizon, limit).await.expect("a read")
    };
    let (before, mut held, mut bytes) = (resident(), Vec::new(), 0);
    for _ in 0..120 {
        // A large buffer goes back to the pool, and must not be given to a small read for as long as it likes.
        drop(read(2_000_000).await);
        let batch = read(90_000).await;
        bytes += batch.records.iter().map(|record| record.size()).sum::<usize>();
        held.push(batch);
    }
    let grown = resident().saturating_sub(before);
    let status = engine.status();
    println!("{bytes} bytes are held, {} counted, {grown} in memory", status.budget_used_bytes);
    assert!(bytes as u64 <= status.budget_used_bytes);
    assert!(grown < 64 << 20, "{grown} bytes for {bytes} that are held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_others_between_ours_are_counted() {
    let options = Options { segment_bytes: 16 << 20, ..Options::default() };
    let engine =
        Engine::open(Arc::new(SimDisk::new()), Arc::new(SimClock::new(START)), options).expect("it opens");
    let (stream, shard) = (name("mixed"), ShardId::numbered(0));
    engine
        .create_stream(&stream, StreamOptions { shards: 2, ..StreamOptions::default() })
        .await
        .expect("create");
    for _ in 0..3_000 {
        let mut records = vec![NewRecord::new("small", vec![1; 10]), NewRecord::new("large", vec![2; 3_000])];
        records[0].explicit_hash_key = Some(HashKey::MIN);
        records[1].explicit_hash_key = Some(HashKey::MAX);
        engine.append(&stream, records).await.expect("append");
    }
    let (before, mut held, mut records) = (resident(), Vec::new(), 0);
    for _ in 0..12 {
        let read = engine.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default());
        let Ok(Ok(batch)) = tokio::time::timeout(std::time::Duration::from_millis(200), read).await else {
            break;
        };
        records += batch.records.len();
        held.push(batch);
    }
    let grown = resident().saturating_sub(before);
    println!(
        "{records} records are held, {} bytes counted, {grown} in memory",
        engine.status().budget_used_bytes
    );
    assert!(records > 0 && grown < 64 << 20, "{grown} bytes for {records} small records");
}
