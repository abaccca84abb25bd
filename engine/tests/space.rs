//! Space comes back: trimmed and deleted records give their room to younger ones, whatever shares a segment with them, and
//! nobody who reads notices.

mod crash;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use anabranch_model::{
    Error, NewRecord, Next, Position, ReadLimit, SequenceNumber, ShardId, ShardSource, StreamOptions,
    StreamStore,
};
use anabranch_sim::{SimClock, SimDisk};
use crash::explore::runtime;
use crash::frames::frames;
use crash::run::{Call, Run, SEGMENT_BYTES, START, name, options};

const HOUR: Duration = Duration::from_secs(3600);

fn assert_shown(run: &Run) {
    let world = run.world().expect("everything can be read");
    assert_eq!(world.difference(run.ledger.now()), None);
}

/// Segment files, in use or kept for recycling.
fn files(disk: &SimDisk) -> usize {
    disk.paths().iter().filter(|path| path.starts_with("journal/")).count()
}

/// A stream that keeps little for long and one that keeps much for a day, in the same segments.
fn mixed() -> Run {
    let mut run = Run::start(&runtime());
    run.call(Call::Create { stream: "long", shards: 1, retention: RETENTION_MAX }).expect("create");
    run.call(Call::Create { stream: "short", shards: 2, retention: RETENTION_MIN }).expect("create");
    run
}

fn round(run: &mut Run) {
    run.advance(2 * HOUR);
    let calls =
        vec![run.append("short", 6, 1_000), run.append("long", 1, 100), run.append("short", 4, 1_000)];
    run.group(calls).expect("append");
}

#[test]
fn the_room_of_short_retention_comes_back_from_under_the_long() {
    let mut run = mixed();
    for _ in 0..100 {
        round(&mut run);
        run.upkeep();
    }
    assert_shown(&run);
    // A day of the short stream is twelve rounds of 10 KiB, and everything of the long one is 20 KiB.
    let status = run.engine().status();
    assert!(status.segments <= 20, "{} segments for {} live bytes", status.segments, status.live_bytes);
    assert!(files(&run.disk) <= 30, "{} files", files(&run.disk));
    let long = &run.ledger.now().streams[&name("long")].shards[&ShardId::numbered(0)].records;
    assert_eq!(long.len(), 100, "nothing of the long stream is gone");
    let moved = frames(&run.disk).into_iter().filter(|frame| frame.is_moved()).count();
    assert!(moved > 10, "the cleaner has moved {moved} frames only");
    run.reopen().expect("reopen");
    assert_shown(&run);
}

#[test]
fn segments_are_recycled_and_not_made_again() {
    let mut run = mixed();
    let mut made = Vec::new();
    for _ in 0..100 {
        let before = run.disk.operations();
        round(&mut run);
        run.upkeep();
        let done = (before..run.disk.operations()).map(|operation| run.disk.describe(operation));
        let (mut created, mut renamed) = (0, 0);
        for operation in done {
            created += usize::from(operation.starts_with("create journal/"));
            renamed += usize::from(operation.starts_with("rename journal/"));
        }
        made.push((created, renamed));
    }
    let sum =
        |rounds: &[(usize, usize)]| rounds.iter().fold((0, 0), |sum, made| (sum.0 + made.0, sum.1 + made.1));
    let (created, renamed) = sum(&made[50..]);
    assert!(created <= 1, "{created} files are made although there are dead ones");
    assert!(renamed >= 25, "{renamed} files are recycled");
}

#[test]
fn a_long_run_keeps_the_directory_small() {
    let mut run = Run::start(&runtime());
    run.call(Call::Create { stream: "tide", shards: 1, retention: RETENTION_MIN }).expect("create");
    let mut most = 0;
    for round in 0..600 {
        run.advance(6 * HOUR);
        let call = run.append("tide", 3, 1_500);
        run.call(call).expect("append");
        if round % 3 == 0 {
            run.upkeep();
        }
        most = most.max(files(&run.disk));
    }
    assert_shown(&run);
    assert!(most <= 12, "{most} files at the most");
    let bytes: u64 = run.disk.paths().iter().map(|path| run.disk.file_len(path).expect("it is there")).sum();
    assert!(bytes < (4 << 20) + 12 * SEGMENT_BYTES, "{bytes} bytes in all files");
}

#[test]
fn a_deleted_stream_gives_its_room_back() {
    let mut run = mixed();
    run.call(Call::Create { stream: "bulk", shards: 3, retention: RETENTION_MAX }).expect("create");
    for _ in 0..60 {
        let calls = vec![run.append("bulk", 8, 1_200), run.append("long", 1, 50)];
        run.group(calls).expect("append");
    }
    run.upkeep();
    let before = run.engine().status().segments;
    run.call(Call::Delete { stream: "bulk" }).expect("delete");
    (0..before).for_each(|_| run.upkeep());
    let status = run.engine().status();
    assert!(before > 30 && status.segments <= 6, "{} of {before} segments are left", status.segments);
    assert!(files(&run.disk) <= status.segments + 8, "no more are kept than can be recycled soon");
    assert_shown(&run);
}

#[test]
fn a_reader_on_its_way_is_not_disturbed() {
    let mut run = mixed();
    for _ in 0..40 {
        round(&mut run);
    }
    run.upkeep();
    let (stream, shard) = (name("long"), ShardId::numbered(0));
    let (mut seen, mut from) = (Vec::new(), Position::TrimHorizon);
    let limit = ReadLimit { records: 1, ..ReadLimit::default() };
    for _ in 0..40 {
        let batch = run.wait(run.engine().read(&stream, &shard, from, limit)).expect("a read");
        seen.extend(batch.records);
        // Below the reader the cleaner moves what it has read and what it is about to read.
        run.upkeep();
        round(&mut run);
        let Next::At(next) = batch.next else { panic!("an open shard ends") };
        from = next;
    }
    let records = &run.ledger.now().streams[&stream].shards[&shard].records;
    assert_eq!(seen[..], records[..40]);
}

/// What a reader saw of the stream that nothing is removed from.
async fn read_for_ever(engine: Engine, stop: Arc<AtomicBool>) -> usize {
    let (stream, shard) = (name("long"), ShardId::numbered(0));
    let (mut readings, mut most) = (0, 0);
    while !stop.load(Ordering::Acquire) {
        let (mut numbers, mut from) = (Vec::<SequenceNumber>::new(), Position::TrimHorizon);
        loop {
            let limit = ReadLimit { records: 5, ..ReadLimit::default() };
            let batch = engine.read(&stream, &shard, from, limit).await.expect("a read while others clean");
            numbers.extend(batch.records.iter().map(|record| record.sequence));
            match batch.next {
                Next::At(next) if !batch.records.is_empty() => from = next,
                _ => break,
            }
        }
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert!(numbers.len() >= most, "{} records, and there were {most} before", numbers.len());
        most = numbers.len();
        readings += 1;
        tokio::task::yield_now().await;
    }
    readings
}

/// What a reader may see of the stream that is trimmed below it: gaps at the front, and no error.
async fn read_what_is_trimmed(engine: Engine, stop: Arc<AtomicBool>) -> usize {
    let (stream, shard) = (name("short"), ShardId::numbered(0));
    let mut readings = 0;
    while !stop.load(Ordering::Acquire) {
        let mut from = Position::TrimHorizon;
        loop {
            let limit = ReadLimit { records: 3, ..ReadLimit::default() };
            match engine.read(&stream, &shard, from, limit).await {
                Ok(batch) => match batch.next {
                    Next::At(next) if !batch.records.is_empty() => from = next,
                    _ => break,
                },
                Err(Error::StreamNotFound(_)) => return readings,
                Err(error) => panic!("a read while others trim: {error}"),
            }
        }
        readings += 1;
        tokio::task::yield_now().await;
    }
    readings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_and_the_cleaner_do_not_meet() {
    let (disk, clock) = (SimDisk::new(), SimClock::new(START));
    let options = Options { drive: Drive::Threads, ..options() };
    let engine = Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("it opens");
    for (stream, retention) in [("long", RETENTION_MAX), ("short", RETENTION_MIN)] {
        engine.create_stream(&name(stream), StreamOptions { shards: 1, retention }).await.expect("create");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for _ in 0..2 {
        readers.push(tokio::spawn(read_for_ever(engine.clone(), stop.clone())));
        readers.push(tokio::spawn(read_what_is_trimmed(engine.clone(), stop.clone())));
    }
    for round in 0..150 {
        clock.advance(2 * HOUR);
        for (stream, bytes) in [("short", 3_000), ("long", 100)] {
            let records = (0..2).map(|i| NewRecord::new(format!("{round}-{i}"), vec![7; bytes])).collect();
            engine.append(&name(stream), records).await.expect("append");
        }
        let upkept = engine.clone();
        tokio::task::spawn_blocking(move || upkept.upkeep()).await.expect("upkeep does not panic");
    }
    stop.store(true, Ordering::Release);
    let mut readings = 0;
    for reader in readers {
        readings += reader.await.expect("a reader is not disturbed");
    }
    println!("{readings} readings");
    assert!(files(&disk) <= 40, "{} files", files(&disk));
}
