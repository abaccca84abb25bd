//! Directories of every released format open, and others are refused with a clear message.
//!
//! `ANABRANCH_MAKE_GOLDEN=1 cargo test -p anabranch-engine --test golden` writes the directory of the present format anew. That
//! is right only while no version with it was released.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::{
    Error, HashKey, NewRecord, Next, Position, ReadLimit, ShardSource, StreamName, StreamOptions, StreamStore,
};

/// Small, so that the directory is; it still has several of them.
const SEGMENT_BYTES: u64 = 16 << 10;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1")
}

fn open(folder: &Path) -> Result<Engine, Error> {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(SystemDisk::open(folder).unwrap()), Arc::new(SystemClock::new()), options)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn name(text: &str) -> StreamName {
    StreamName::new(text).unwrap()
}

/// Keeps its records for a year, so that they are there for as long as a test may look; the generator notes them.
async fn fill(engine: &Engine) {
    let options = StreamOptions { shards: 2, retention: Duration::from_secs(365 * 24 * 3600) };
    engine.create_stream(&name("rides"), options).await.unwrap();
    engine.create_stream(&name("gone"), StreamOptions::default()).await.unwrap();
    for round in 0..6 {
        let record =
            |i: u32| NewRecord::new(format!("key-{i}"), format!("round {round}, record {i}").repeat(20));
        engine.append(&name("rides"), (0..10).map(record).collect()).await.unwrap();
        engine.append(&name("gone"), vec![record(round)]).await.unwrap();
    }
    engine.delete_stream(&name("gone")).await.unwrap();
    let shards = engine.shards(&name("rides"), None, 10).await.unwrap().entries;
    let children = engine.split(&name("rides"), &shards[1].id, HashKey::new(3 << 126)).await.unwrap();
    engine.append(&name("rides"), vec![NewRecord::new("after", "the split")]).await.unwrap();
    engine.merge(&name("rides"), &shards[0].id, &children[0]).await.unwrap();
    engine.append(&name("rides"), vec![NewRecord::new("after", "the merge")]).await.unwrap();
}

/// One line a shard and one a record. Retention is a matter of the clock, so closed shards are shown by their records.
async fn describe(engine: &Engine) -> String {
    let mut text = String::new();
    for stream in engine.streams(None, 10).await.unwrap().entries {
        text += &format!("stream {} keeps {} h\n", stream.name, stream.retention.as_secs() / 3600);
        for shard in engine.shards(&stream.name, None, 10).await.unwrap().entries {
            let range = shard.range.unwrap();
            text += &format!("shard {} from {} of {:?}\n", shard.id, range.first(), shard.parents);
            let mut at = Position::TrimHorizon;
            loop {
                let batch = engine.read(&stream.name, &shard.id, at, ReadLimit::default()).await.unwrap();
                for record in &batch.records {
                    let (key, data) = (&record.partition_key, &record.data);
                    text += &format!("{} {key:?} {data:?}\n", record.sequence);
                }
                match batch.next {
                    Next::At(next) if !batch.records.is_empty() => at = next,
                    _ => break,
                }
            }
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_of_format_1_opens_and_goes_on() {
    let expected_file = golden().with_extension("expected");
    if std::env::var_os("ANABRANCH_MAKE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(golden());
        let engine = open(&golden()).unwrap();
        fill(&engine).await;
        fs::write(&expected_file, describe(&engine).await).unwrap();
        engine.close().await.unwrap();
        drop(engine);
        // Room for a full disk, of which nothing is lost.
        let _ = fs::remove_file(golden().join("ballast"));
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(), folder.path());
    let engine = open(folder.path()).unwrap();
    let expected = fs::read_to_string(&expected_file).unwrap();
    assert!(expected.lines().count() > 60, "the directory holds something");
    assert_eq!(describe(&engine).await, expected);

    // It is not only read: it goes on, with larger numbers, and the state can be built again.
    let results = engine.append(&name("rides"), vec![NewRecord::new("after", "the upgrade")]).await.unwrap();
    results[0].as_ref().unwrap();
    let after = describe(&engine).await;
    engine.close().await.unwrap();
    drop(engine);
    fs::remove_file(folder.path().join("state.redb")).unwrap();
    assert_eq!(describe(&open(folder.path()).unwrap()).await, after);
}

#[test]
fn another_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let line = "anabranch format 2 segment_bytes 67108864";
    let text = format!("{line} checksum {:08x}\n", crc32fast::hash(line.as_bytes())).repeat(2);
    fs::write(folder.path().join("FORMAT"), text).unwrap();
    let Err(Error::Invalid(text)) = open(folder.path()) else { panic!("it opened") };
    assert!(text.contains("format 2") && text.contains("format 1 only"), "{text}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["FORMAT"], "nothing was written beside it");
}

#[test]
fn a_format_file_that_says_nothing_is_refused() {
    for text in ["", "\n", "anabranch", "anabranch format 1 segment_bytes 67108864\n", "PK\u{3}\u{4}…"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("FORMAT"), text).unwrap();
        let Err(Error::Corrupt(answer)) = open(folder.path()) else { panic!("it opened with {text:?}") };
        assert!(answer.contains("FORMAT") && answer.contains("backup"), "{answer}");
    }
}
