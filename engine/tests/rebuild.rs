//! The state is lost or damaged, and built again from the journal and the copy of the catalogue.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options};
use anabranch_model::{
    Disk, Error, HashKey, NewRecord, Next, Position, ReadLimit, ShardSource, StreamName, StreamOptions,
    StreamStore, Timestamp,
};
use anabranch_sim::{Rng, SimClock, SimDisk};

const SEGMENT_BYTES: u64 = 64 << 10;
/// Where, which number, how many bytes of which value.
type Seen = Vec<(String, String, usize, u8)>;

fn open(disk: &SimDisk, clock: &SimClock) -> Result<Engine, Error> {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options)
}

fn clock() -> SimClock {
    SimClock::new(Timestamp::from_millis(1_800_000_000_000))
}

fn name(name: &str) -> StreamName {
    StreamName::new(name).unwrap()
}

async fn append(engine: &Engine, stream: &str, from: usize, count: usize) {
    for batch in (from..from + count).collect::<Vec<_>>().chunks(10) {
        let record = |i: &usize| NewRecord::new(format!("key-{i}"), vec![*i as u8; 300]);
        let results = engine.append(&name(stream), batch.iter().map(record).collect()).await.unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}

async fn everything(engine: &Engine) -> Seen {
    let mut seen = Vec::new();
    for stream in engine.streams(None, 100).await.unwrap().entries {
        for shard in engine.shards(&stream.name, None, 100).await.unwrap().entries {
            let mut at = Position::TrimHorizon;
            loop {
                let batch = engine.read(&stream.name, &shard.id, at, ReadLimit::default()).await.unwrap();
                let end = batch.records.is_empty();
                let place = format!("{}/{}", stream.name, shard.id);
                seen.extend(
                    batch
                        .records
                        .iter()
                        .map(|r| (place.clone(), r.sequence.to_string(), r.data.len(), r.data[0])),
                );
                match batch.next {
                    Next::At(next) if !end => at = next,
                    _ => break,
                }
            }
        }
    }
    seen
}

fn assert_same(now: &Seen, before: &Seen) {
    let lost: Vec<_> = before.iter().filter(|record| !now.contains(record)).collect();
    let invented: Vec<_> = now.iter().filter(|record| !before.contains(record)).collect();
    assert!(lost.is_empty() && invented.is_empty(), "lost {lost:?}, invented {invented:?}");
    assert_eq!(now, before, "the same records in the same order");
}

/// Streams with a history: splits, a merge, trimmed and moved records, a deleted neighbour, several segments.
async fn history(disk: &SimDisk, clock: &SimClock) -> Engine {
    let engine = open(disk, clock).unwrap();
    let week = StreamOptions { shards: 2, retention: Duration::from_secs(7 * 24 * 3600) };
    engine.create_stream(&name("kept"), week).await.unwrap();
    engine.create_stream(&name("short"), StreamOptions::default()).await.unwrap();
    engine.create_stream(&name("gone"), StreamOptions::default()).await.unwrap();
    for round in 0..8 {
        append(&engine, "kept", round * 20, 20).await;
        append(&engine, "short", round * 60, 60).await;
        append(&engine, "gone", round * 20, 20).await;
    }
    let shards = engine.shards(&name("kept"), None, 10).await.unwrap().entries;
    let children = engine.split(&name("kept"), &shards[0].id, HashKey::new(1 << 100)).await.unwrap();
    append(&engine, "kept", 1_000, 50).await;
    engine.merge(&name("kept"), &children[0], &children[1]).await.unwrap();
    append(&engine, "kept", 2_000, 50).await;
    engine.delete_stream(&name("gone")).await.unwrap();
    clock.advance(Duration::from_secs(25 * 3600));
    let upkept = engine.clone();
    tokio::task::spawn_blocking(move || (0..4).for_each(|_| upkept.upkeep())).await.unwrap();
    append(&engine, "kept", 3_000, 50).await;
    append(&engine, "short", 3_000, 50).await;
    engine
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_state_is_built_again_after_a_shutdown_and_after_a_crash() {
    for clean in [true, false] {
        let (disk, clock) = (SimDisk::new(), clock());
        let engine = history(&disk, &clock).await;
        let before = everything(&engine).await;
        assert!(before.len() > 300, "the history is long enough: {}", before.len());
        if clean {
            engine.close().await.unwrap();
        }
        drop(engine);
        let left = disk.crash_at(disk.operations(), 1);
        left.remove("state.redb").unwrap();
        let engine = open(&left, &clock).unwrap();
        assert_same(&everything(&engine).await, &before);
        append(&engine, "kept", 4_000, 20).await;
        let after = everything(&engine).await;
        engine.close().await.unwrap();
        assert_same(&everything(&open(&left, &clock).unwrap()).await, &after);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bits_in_the_state_change_nothing_that_is_read() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = history(&disk, &clock).await;
    let before = everything(&engine).await;
    engine.close().await.unwrap();
    drop(engine);
    let bytes = disk.file_len("state.redb").unwrap();
    let mut rng = Rng::new(5);
    for _ in 0..200 {
        let left = disk.crash_at(disk.operations(), 1);
        left.flip_bit("state.redb", rng.below(bytes), rng.below(8) as u8).unwrap();
        let engine = open(&left, &clock).unwrap();
        assert_same(&everything(&engine).await, &before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_copy_as_well_the_directory_is_refused() {
    let (disk, clock) = (SimDisk::new(), clock());
    history(&disk, &clock).await.close().await.unwrap();
    let left = disk.crash_at(disk.operations(), 1);
    left.remove("state.redb").unwrap();
    left.flip_bit("catalogue", 9, 3).unwrap();
    let Err(Error::Corrupt(text)) = open(&left, &clock) else { panic!("the directory opened") };
    assert!(text.contains("backup"), "{text}");
}
