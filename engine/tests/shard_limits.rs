//! The limits of Kinesis on a shard, switched on and off; and streams with thousands of shards.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options};
use anabranch_model::{
    Error, NewRecord, Position, ReadLimit, ShardId, ShardSource, StreamName, StreamOptions, StreamStore,
    Timestamp,
};
use anabranch_sim::{SimClock, SimDisk};

fn open(disk: &SimDisk, clock: &SimClock, shard_limits: bool) -> Engine {
    let options = Options { shard_limits, segment_bytes: 4 << 20, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).unwrap()
}

fn clock() -> SimClock {
    SimClock::new(Timestamp::from_millis(1_800_000_000_000))
}

fn rides() -> StreamName {
    StreamName::new("rides").unwrap()
}

fn records(count: usize, bytes: usize) -> Vec<NewRecord> {
    (0..count).map(|i| NewRecord::new(format!("key-{i}"), vec![7; bytes])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_takes_a_thousand_records_a_second_and_says_when_it_takes_more() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, true);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    for _ in 0..2 {
        let results = engine.append(&rides(), records(500, 10)).await.unwrap();
        assert!(results.iter().all(Result::is_ok));
    }
    let results = engine.append(&rides(), records(3, 10)).await.unwrap();
    let Err(Error::Throttled { retry_after, limit, .. }) = &results[0] else { panic!("{results:?}") };
    assert!(limit.contains("1000 records"), "{limit}");
    assert!(results.iter().all(Result::is_err), "each record has its own answer: {results:?}");
    clock.advance(*retry_after);
    assert!(engine.append(&rides(), records(1, 10)).await.unwrap()[0].is_ok());
    clock.advance(Duration::from_secs(1));
    let results = engine.append(&rides(), records(12, 100_000)).await.unwrap();
    let stored = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(stored, 10, "1 MiB a second, and the rest is told apart: {results:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_record_takes_those_of_its_key_behind_it_along() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, true);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    assert!(engine.keeps_runs());
    let run = [("one", 700_000), ("one", 700_000), ("other", 10), ("one", 10), ("other", 10)];
    let run = run.map(|(key, bytes)| NewRecord::new(key, vec![7; bytes]));
    let results = engine.append(&rides(), run.to_vec()).await.unwrap();
    let stored: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(
        stored,
        [true, false, true, false, true],
        "the small one would fit, and there would be a hole"
    );
    assert!(matches!(results[3], Err(Error::Throttled { .. })), "{results:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_answers_five_reads_a_second_and_two_mebibytes() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, true);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    let (stream, shard) = (rides(), ShardId::numbered(0));
    let read = || engine.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default());
    for _ in 0..5 {
        read().await.unwrap();
    }
    let Err(Error::Throttled { limit, .. }) = read().await else { panic!("the sixth read was answered") };
    assert!(limit.contains("5 reads"), "{limit}");
    for _ in 0..4 {
        clock.advance(Duration::from_secs(1));
        engine.append(&rides(), records(10, 100_000)).await.unwrap();
    }
    clock.advance(Duration::from_secs(1));
    let batch = read().await.unwrap();
    assert!(batch.records.len() == 40, "one read may take more than a second's worth");
    clock.advance(Duration::from_millis(500));
    let Err(Error::Throttled { limit, .. }) = read().await else { panic!("the debt was forgotten") };
    assert!(limit.contains("2 MiB"), "{limit}");
    clock.advance(Duration::from_secs(2));
    read().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn to_settle_a_position_is_no_read() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, true);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    let (stream, shard, limit) = (rides(), ShardId::numbered(0), ReadLimit::default());
    let appended = engine.append(&rides(), records(1, 10)).await.unwrap().remove(0).unwrap();
    let first = Position::At(appended.sequence);
    for _ in 0..10 {
        for from in [Position::TrimHorizon, Position::AtTimestamp(Timestamp::EPOCH), first] {
            let settled = engine.settle(&stream, &shard, from).await.unwrap();
            let Position::At(start) = settled else { panic!("{settled:?}") };
            assert!(start <= appended.sequence, "{start} is behind the first record");
        }
        let latest = engine.settle(&stream, &shard, Position::Latest).await.unwrap();
        assert_eq!(latest, Position::At(appended.sequence.next()));
    }
    for _ in 0..5 {
        assert_eq!(engine.read(&stream, &shard, first, limit).await.unwrap().records.len(), 1);
    }
    assert!(engine.read(&stream, &shard, first, limit).await.is_err(), "the limits are on");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_being_asked_there_are_no_limits() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, Options::default().shard_limits);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    for _ in 0..10 {
        assert!(engine.append(&rides(), records(500, 4_000)).await.unwrap().iter().all(Result::is_ok));
        engine
            .read(&rides(), &ShardId::numbered(0), Position::TrimHorizon, ReadLimit::default())
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_shards_are_made_written_split_and_found_again() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, false);
    let options = StreamOptions { shards: 5_000, ..StreamOptions::default() };
    engine.create_stream(&rides(), options).await.unwrap();
    let mut stored = 0;
    for _ in 0..20 {
        let results = engine.append(&rides(), records(500, 100)).await.unwrap();
        stored += results.iter().filter(|result| result.is_ok()).count();
    }
    assert_eq!(stored, 10_000);
    let page = engine.shards(&rides(), Some(&ShardId::numbered(4_998)), 100).await.unwrap();
    let at = page.entries[0].range.unwrap().midpoint().unwrap();
    engine.split(&rides(), &page.entries[0].id, at).await.unwrap();
    drop(engine);

    let left = disk.crash_at(disk.operations(), 3);
    let engine = open(&left, &clock, false);
    let summary = engine.stream(&rides()).await.unwrap();
    assert_eq!((summary.open_shards, summary.closed_shards), (5_001, 1));
    let mut found = 0;
    for number in 0..5_002 {
        let from = Position::TrimHorizon;
        let batch =
            engine.read(&rides(), &ShardId::numbered(number), from, ReadLimit::default()).await.unwrap();
        found += batch.records.len();
    }
    assert_eq!(found, 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_does_not_keep_up_loses_no_record_and_holds_little() {
    use futures_util::StreamExt;
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, false);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    let mut follower = engine.follow(&rides(), &ShardId::numbered(0), Position::TrimHorizon).await.unwrap();
    engine.append(&rides(), records(1, 10)).await.unwrap();
    let mut seen = follower.next().await.unwrap().unwrap().records.len();
    // It is live now, and then it sleeps through 100 MiB.
    for _ in 0..200 {
        assert!(engine.append(&rides(), records(50, 10_000)).await.unwrap().iter().all(Result::is_ok));
        let status = engine.status();
        assert!(status.budget_used_bytes <= status.budget_bytes, "{status:?}");
    }
    while seen < 10_001 {
        seen += follower.next().await.unwrap().unwrap().records.len();
    }
    assert_eq!(seen, 10_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_hold_on_make_others_wait_and_not_the_memory_grow() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = open(&disk, &clock, false);
    engine.create_stream(&rides(), StreamOptions::default()).await.unwrap();
    for _ in 0..8 {
        engine.append(&rides(), records(50, 60_000)).await.unwrap();
    }
    let (stream, shard) = (rides(), ShardId::numbered(0));
    let read = || engine.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default());
    let mut held = Vec::new();
    let busy = loop {
        match read().await {
            Ok(batch) => held.push(batch),
            Err(error) => break error,
        }
        assert!(held.len() < 10, "there is no limit");
    };
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    held.clear();
    assert!(!read().await.unwrap().records.is_empty(), "the share comes back with the batches");
}
