//! The state is lost or damaged, and built again from the journal and the copy of the catalogue. Where there were rows too, see
//! `lost_rows.rs`.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options};
use anabranch_model::{
    Admin, Disk, Document, Error, HashKey, NewRecord, Next, Owner, Position, ReadLimit, ShardSource,
    StreamName, StreamOptions, StreamStore, Timestamp,
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
    let (seen, damaged) = readable(engine).await;
    assert_eq!(damaged, 0, "nothing is damaged");
    seen
}

/// Everything that can be read, and how often readers were told of damage.
async fn readable(engine: &Engine) -> (Seen, usize) {
    let (mut seen, mut damaged) = (Vec::new(), 0);
    for stream in engine.streams(None, 100).await.unwrap().entries {
        for shard in engine.shards(&stream.name, None, 100).await.unwrap().entries {
            let mut at = Position::TrimHorizon;
            loop {
                let batch = match engine.read(&stream.name, &shard.id, at, ReadLimit::default()).await {
                    Err(Error::Damaged { resume_at, .. }) => {
                        damaged += 1;
                        at = Position::At(resume_at);
                        continue;
                    }
                    batch => batch.unwrap(),
                };
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
    (seen, damaged)
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

/// Where frames of one kind begin: file, and offset in it.
fn frames(disk: &SimDisk, kind: u8) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for path in disk.paths().into_iter().filter(|path| path.starts_with("journal/")) {
        let bytes = disk.contents(&path).unwrap();
        let starts = (0..bytes.len().saturating_sub(80)).step_by(8);
        found.extend(
            starts
                .filter(|at| bytes[*at..].starts_with(b"ANB1") && bytes[at + 16] == kind)
                .map(|at| (path.clone(), at)),
        );
    }
    found
}

const RECORDS: u8 = 1;
const CATALOGUE: u8 = 2;
/// Records of one append, and so of a frame at most.
const FRAME_RECORDS_MAX: usize = 10;

/// The state is lost, and a frame is damaged as well: what it held is missing, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_state_a_damaged_frame_costs_its_own_records() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = history(&disk, &clock).await;
    let before = everything(&engine).await;
    engine.close().await.unwrap();
    drop(engine);
    let places = frames(&disk, RECORDS);
    assert!(places.len() > 50, "{} frames", places.len());
    let mut rng = Rng::new(11);
    let (mut told, mut missed) = (0, 0);
    for _ in 0..150 {
        let left = disk.crash_at(disk.operations(), 1);
        left.remove("state.redb").unwrap();
        let (path, at) = &places[rng.below(places.len() as u64) as usize];
        // In the header, or in the records behind it.
        left.flip_bit(path, *at as u64 + rng.below(300), rng.below(8) as u8).unwrap();
        let engine = open(&left, &clock).unwrap();
        assert_eq!(engine.status().stopped, None, "no state is lost");
        let (now, damaged) = readable(&engine).await;
        let mut rest = before.iter();
        assert!(now.iter().all(|record| rest.any(|other| other == record)), "invented, or in another order");
        let lost = before.len() - now.len();
        assert!(lost <= FRAME_RECORDS_MAX, "{lost} records are lost with the frame at {at} of {path}");
        told += usize::from(damaged > 0);
        missed += usize::from(lost > 0);
        append(&engine, "kept", 4_000, 10).await;
    }
    // A frame that is dead may be damaged without a loss, and of the last one nobody can tell that it ever was durable.
    assert!(missed > 20 && told >= missed - 10, "{told} told of {missed}");
}

/// The state is lost, and so is a change of the catalogue that the copy does not have.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_state_a_damaged_change_of_the_catalogue_is_never_passed_over() {
    let (disk, clock) = (SimDisk::new(), clock());
    let engine = history(&disk, &clock).await;
    let shards = engine.shards(&name("kept"), None, 10).await.unwrap().entries;
    let known = frames(&disk, CATALOGUE);
    let shard = shards.iter().rfind(|shard| shard.is_open()).unwrap();
    let at = shard.range.unwrap().midpoint().unwrap();
    engine.split(&name("kept"), &shard.id, at).await.unwrap();
    append(&engine, "kept", 5_000, 20).await;
    drop(engine);
    let added: Vec<_> = frames(&disk, CATALOGUE).into_iter().filter(|place| !known.contains(place)).collect();
    let [(path, at)] = &added[..] else { panic!("one change of the catalogue: {added:?}") };
    for bit in 0..80 {
        let left = disk.crash_at(disk.operations(), 1);
        left.remove("state.redb").unwrap();
        left.flip_bit(path, *at as u64 + bit, (bit % 8) as u8).unwrap();
        match open(&left, &clock) {
            Err(Error::Corrupt(text)) => assert!(text.contains("backup"), "{text}"),
            Err(error) => panic!("{error}"),
            Ok(engine) => {
                assert!(engine.status().stopped.is_some(), "byte {bit} of the change is passed over")
            }
        }
    }
}

/// Documents are in the copy, and what came behind it in the journal.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_built_again_with_the_streams() {
    let owner = Owner::Stream(name("kept"));
    let documents = async |engine: &Engine| {
        let page = engine.documents(&owner, "tags", None, 100).await.unwrap();
        page.entries.into_iter().map(|document| (document.name, document.value)).collect::<Vec<_>>()
    };
    for clean in [true, false] {
        let (disk, clock) = (SimDisk::new(), clock());
        let engine = history(&disk, &clock).await;
        let put = async |engine: &Engine, text: &str, value: &str| {
            let document = Document::new(text, value.as_bytes().to_vec());
            engine.put_documents(&owner, "tags", vec![document]).await.unwrap();
        };
        put(&engine, "colour", "red").await;
        put(&engine, "gone", "soon").await;
        let gone = Owner::Stream(name("short"));
        engine.put_documents(&gone, "tags", vec![Document::new("a", b"b".to_vec())]).await.unwrap();
        let upkept = engine.clone();
        tokio::task::spawn_blocking(move || upkept.upkeep()).await.unwrap();
        put(&engine, "colour", "blue").await;
        engine.delete_documents(&owner, "tags", vec!["gone".to_owned()]).await.unwrap();
        append(&engine, "kept", 6_000, 400).await;
        engine.delete_stream(&name("short")).await.unwrap();
        append(&engine, "kept", 7_000, 400).await;
        put(&engine, "size", "large").await;
        let before = (everything(&engine).await, documents(&engine).await);
        if clean {
            engine.close().await.unwrap();
        }
        drop(engine);
        let left = disk.crash_at(disk.operations(), 1);
        left.remove("state.redb").unwrap();
        for _ in 0..2 {
            let engine = open(&left, &clock).unwrap();
            assert_eq!(documents(&engine).await, before.1, "clean: {clean}");
            assert_same(&everything(&engine).await, &before.0);
            engine.close().await.unwrap();
        }
    }
}
