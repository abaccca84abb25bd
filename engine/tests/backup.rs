//! Backups: whole, of one moment, made while others write, refused when they were cut short.

mod crash;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_engine::{
    Drive, Engine, Options, Progress, SystemClock, SystemDisk, backup_folder, restore, restore_folder,
};
use anabranch_model::blob::{BlobKey, BlobStore, Body, BucketName, GetOptions, PutOptions};
use anabranch_model::limits::RETENTION_MAX;
use anabranch_model::queue::{NewMessage, QueueName, QueueOptions, QueueStore, ReceiveOptions};
use anabranch_model::{
    Disk, Error, NewRecord, Next, Open, Position, ReadLimit, Result, ShardSource, StreamName, StreamOptions,
    StreamStore,
};
use anabranch_sim::{SimClock, SimDisk};
use bytes::Bytes;
use crash::explore::runtime;
use crash::run::{Call, Run, START, name, options};
use crash::world::World;
use futures_util::{StreamExt, stream};

fn go_on(_: Progress) -> bool {
    true
}

fn open(disk: &SimDisk) -> Result<Engine> {
    Engine::open(Arc::new(disk.clone()), Arc::new(SimClock::new(START)), options())
}

fn shared(disk: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// An engine with a few segments of records, some of them cleaned and recycled.
fn filled() -> Run {
    let mut run = Run::start(&runtime());
    run.call(Call::Create { stream: "kept", shards: 2, retention: RETENTION_MAX }).expect("create");
    run.call(Call::Create { stream: "gone", shards: 1, retention: RETENTION_MAX }).expect("create");
    for round in 0..12 {
        for stream in ["kept", "gone"] {
            let call = run.append(stream, 3, 700);
            run.call(call).expect("append");
        }
        if round == 6 {
            run.call(Call::Delete { stream: "gone" }).expect("a deletion");
            run.upkeep();
            run.call(Call::Create { stream: "gone", shards: 1, retention: RETENTION_MAX }).expect("create");
        }
    }
    let call = run.split("kept", 0);
    run.call(call).expect("split");
    run
}

#[test]
fn a_backup_opens_with_everything_and_the_source_goes_on() {
    let mut run = filled();
    let target = SimDisk::new();
    let mut last = Progress::default();
    let contents = run
        .engine()
        .backup(&shared(&target), &mut |progress| {
            assert!(progress.copied_bytes > last.copied_bytes && progress.total_bytes >= last.total_bytes);
            last = progress;
            true
        })
        .expect("a backup");
    assert_eq!(contents.streams, 2);
    assert_eq!((last.copied_bytes, last.total_bytes), (contents.bytes, contents.bytes));
    let at_backup = run.ledger.now().clone();
    let call = run.append("kept", 2, 100);
    run.call(call).expect("the source goes on");
    assert_eq!(run.world().expect("read").difference(run.ledger.now()), None);

    let restored = SimDisk::new();
    restore(&target, &shared(&restored), &mut go_on).expect("a restore");
    for copy in [target, restored] {
        let engine = open(&copy).expect("a backup opens");
        assert_eq!(engine.status().stopped, None);
        let found = runtime().block_on(World::read(&engine)).expect("everything can be read");
        assert_eq!(found.difference(&at_backup), None);
    }
}

#[test]
fn a_backup_of_an_empty_engine_opens() {
    let run = Run::start(&runtime());
    let target = SimDisk::new();
    run.engine().backup(&shared(&target), &mut go_on).expect("a backup");
    assert_eq!(open(&target).expect("it opens").status().stopped, None);
}

#[test]
fn power_loss_leaves_a_backup_whole_or_refused_and_the_source_sound() {
    let run = filled();
    let target = SimDisk::new();
    run.engine().backup(&shared(&target), &mut go_on).expect("a backup");
    let (mut refused, mut whole) = (0, 0);
    for operation in 0..=target.operations() {
        for seed in 0..3 {
            let crashed = target.crash_at(operation, seed);
            match restore(&crashed, &shared(&SimDisk::new()), &mut go_on) {
                Err(Error::Invalid(text)) => {
                    assert!(text.contains("cut short"), "{text}");
                    refused += 1;
                }
                Err(error) => panic!("operation {operation}: {error}"),
                Ok(_) => {
                    let engine = open(&crashed).expect("it opens");
                    let found = runtime().block_on(World::read(&engine)).expect("everything can be read");
                    assert_eq!(found.difference(run.ledger.now()), None, "operation {operation}");
                    whole += 1;
                }
            }
        }
    }
    assert!(refused > 10 && whole >= 3, "{refused} refused, {whole} whole");
    let source = run.disk.crash_at(run.disk.operations(), 7);
    let found = runtime().block_on(World::read(&open(&source).expect("it opens"))).expect("read");
    assert_eq!(found.difference(run.ledger.now()), None);
}

#[test]
fn a_full_target_is_an_error_and_no_backup() {
    let mut run = filled();
    for room in [0, 4 << 10, 100 << 10] {
        let target = SimDisk::new();
        target.set_capacity(Some(room));
        let backup = run.engine().backup(&shared(&target), &mut go_on);
        let Err(Error::LimitExceeded(text)) = backup else { panic!("{backup:?}") };
        assert!(text.contains("the source is as it was"), "{text}");
        target.set_capacity(None);
        assert!(matches!(restore(&target, &shared(&SimDisk::new()), &mut go_on), Err(Error::Invalid(_))));
    }
    let call = run.append("kept", 2, 100);
    run.call(call).expect("the source goes on");
    run.reopen().expect("it opens again");
    assert_eq!(run.world().expect("read").difference(run.ledger.now()), None);
}

#[test]
fn a_backup_can_be_called_off_and_needs_an_empty_target() {
    let run = filled();
    let target = SimDisk::new();
    let mut left = 2;
    let mut stop_soon = |_: Progress| {
        left -= 1;
        left > 0
    };
    let stopped = run.engine().backup(&shared(&target), &mut stop_soon);
    assert!(matches!(stopped, Err(Error::Unavailable(_))), "{stopped:?}");
    let again = run.engine().backup(&shared(&target), &mut go_on);
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    assert!(target.open("FORMAT", Open::Existing).is_err());
}

/// What each writer was told is stored, by its number.
#[derive(Default)]
struct Told {
    records: AtomicUsize,
    messages: AtomicUsize,
    blobs: AtomicUsize,
}

const BODY_BYTES: usize = 100 << 10;

fn body(number: usize) -> Bytes {
    Bytes::from(vec![number as u8; BODY_BYTES])
}

fn key(number: usize) -> BlobKey {
    BlobKey::new(&format!("k{number:06}")).expect("a good key")
}

fn names() -> (StreamName, QueueName, BucketName) {
    let queue = QueueName::new("orders").expect("a good name");
    (name("rides"), queue, BucketName::new("photos").expect("a good name"))
}

async fn append_on(engine: &Engine, told: &Told, over: &AtomicBool) {
    let (stream, ..) = names();
    while !over.load(Ordering::Acquire) {
        let number = told.records.load(Ordering::Acquire);
        let record = NewRecord::new("key", number.to_string().repeat(50));
        engine.append(&stream, vec![record]).await.expect("append")[0].as_ref().expect("stored");
        told.records.store(number + 1, Ordering::Release);
    }
}

async fn send_on(engine: &Engine, told: &Told, over: &AtomicBool) {
    let (_, queue, _) = names();
    while !over.load(Ordering::Acquire) {
        let number = told.messages.load(Ordering::Acquire);
        let sent = engine.send(&queue, vec![NewMessage::new(number.to_string())]).await.expect("send");
        sent[0].as_ref().expect("stored");
        told.messages.store(number + 1, Ordering::Release);
    }
}

/// Every second blob is deleted again, so that files go while they are copied.
async fn put_on(engine: &Engine, told: &Told, over: &AtomicBool) {
    let (.., bucket) = names();
    while !over.load(Ordering::Acquire) {
        let number = told.blobs.load(Ordering::Acquire);
        let whole: Body = Box::pin(stream::iter([Ok(body(number))]));
        engine.put(&bucket, &key(number), whole, PutOptions::default()).await.expect("put");
        if number % 2 == 1 {
            BlobStore::delete(engine, &bucket, &key(number), None).await.expect("delete");
        }
        told.blobs.store(number + 1, Ordering::Release);
    }
}

fn number(body: &Bytes) -> usize {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// Everything that was told to be stored before is there, and what is there is whole.
async fn assert_holds(engine: &Engine, records: usize, messages: usize, blobs: usize) {
    let (stream, queue, bucket) = names();
    let shard = engine.shards(&stream, None, 1).await.expect("shards").entries[0].id.clone();
    let (mut from, mut found) = (Position::TrimHorizon, 0);
    loop {
        let batch = engine.read(&stream, &shard, from, ReadLimit::default()).await.expect("read");
        for record in &batch.records {
            assert_eq!(record.data, found.to_string().repeat(50), "records are in order and whole");
            found += 1;
        }
        match batch.next {
            Next::At(next) if !batch.records.is_empty() => from = next,
            _ => break,
        }
    }
    assert!(found >= records, "{found} of {records} records");
    let mut received = BTreeSet::new();
    loop {
        let some = engine.receive(&queue, ReceiveOptions::all()).await.expect("receive");
        if some.is_empty() {
            break;
        }
        received.extend(some.iter().map(|message| number(&message.body)));
    }
    assert!((0..messages).all(|number| received.contains(&number)), "{} of {messages}", received.len());
    for number in (0..blobs).step_by(2) {
        let blob = engine.get(&bucket, &key(number), GetOptions::default()).await.expect("a blob");
        let pieces: Vec<Bytes> = blob.body.map(|piece| piece.expect("sound")).collect().await;
        assert_eq!(pieces.concat(), body(number), "blob {number}");
    }
    for number in (1..blobs).step_by(2) {
        let blob = engine.get(&bucket, &key(number), GetOptions::default()).await;
        assert!(matches!(blob, Err(Error::BlobNotFound(..))), "blob {number} was deleted");
    }
}

fn open_folder(folder: &Path) -> Engine {
    let options = Options { segment_bytes: 1 << 20, drive: Drive::Threads, ..Options::default() };
    let disk = Arc::new(SystemDisk::open(folder).expect("a folder"));
    Engine::open(disk, Arc::new(SystemClock::new()), options).expect("it opens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn backups_of_a_busy_engine_have_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let engine = open_folder(&data);
    let (stream, queue, bucket) = names();
    engine.create_stream(&stream, StreamOptions::default()).await.expect("create");
    engine.create_queue(&queue, QueueOptions::default()).await.expect("create");
    engine.create_bucket(&bucket).await.expect("create");
    let (told, over) = (Arc::new(Told::default()), Arc::new(AtomicBool::new(false)));
    let (e, t, o) = (engine.clone(), told.clone(), over.clone());
    let writers = tokio::spawn(async move {
        tokio::join!(append_on(&e, &t, &o), send_on(&e, &t, &o), put_on(&e, &t, &o));
    });
    let mut backups = Vec::new();
    for number in 0..3 {
        while told.blobs.load(Ordering::Acquire) < 8 * (number + 1) {
            tokio::task::yield_now().await;
        }
        let load = |count: &AtomicUsize| count.load(Ordering::Acquire);
        let before = (load(&told.records), load(&told.messages), load(&told.blobs));
        let target = folder.path().join(format!("backup-{number}"));
        let (engine, data, to) = (engine.clone(), data.clone(), target.clone());
        let contents = tokio::task::spawn_blocking(move || backup_folder(&engine, &data, &to, &mut go_on));
        let contents = contents.await.expect("no panic").expect("a backup");
        assert_eq!(
            (contents.streams, contents.queues, contents.tables, contents.buckets, contents.lost_bodies),
            (1, 1, 0, 1, 0)
        );
        backups.push((target, before));
    }
    over.store(true, Ordering::Release);
    writers.await.expect("the writers were not disturbed");

    for (target, (records, messages, blobs)) in &backups {
        let copy = target.with_extension("restored");
        let (from, to) = (target.clone(), copy.clone());
        let restored = tokio::task::spawn_blocking(move || restore_folder(&from, &to, &mut go_on));
        assert_eq!(restored.await.expect("no panic").expect("a restore").queues, 1);
        let engine = open_folder(&copy);
        assert_holds(&engine, *records, *messages, *blobs).await;
        engine.close().await.expect("close");
    }
    engine.close().await.expect("close");
    let engine = open_folder(&data);
    let count = |count: &AtomicUsize| count.load(Ordering::Acquire);
    assert_holds(&engine, count(&told.records), count(&told.messages), count(&told.blobs)).await;
    engine.close().await.expect("close");
}

#[test]
fn wrong_folders_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let engine = open_folder(&data);
    let refused = |target: &Path, what: &str| match backup_folder(&engine, &data, target, &mut go_on) {
        Err(Error::Invalid(text)) => assert!(text.contains(what), "{text}"),
        other => panic!("{}: {other:?}", target.display()),
    };
    std::os::unix::fs::symlink(&data, folder.path().join("link")).expect("a link");
    refused(&data, "lies in");
    refused(&data.join("inside"), "lies in");
    refused(&folder.path().join("link/inside"), "lies in");
    refused(&folder.path().join("missing/../data/inside"), "goes up");
    refused(Path::new("backup"), "absolute");
    let full = folder.path().join("full");
    std::fs::create_dir(&full).expect("made");
    std::fs::write(full.join("precious"), "x").expect("written");
    refused(&full, "not empty");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("written");
    refused(&file, "cannot be used");
    let cut = folder.path().join("cut");
    let stopped = backup_folder(&engine, &data, &cut, &mut |_| false);
    assert!(matches!(stopped, Err(Error::Unavailable(_))), "{stopped:?}");
    assert!(!cut.exists(), "what was cut short is removed");

    let backup = folder.path().join("a/backup");
    backup_folder(&engine, &data, &backup, &mut go_on).expect("a backup");
    let unrestored = |from: &Path, to: &Path, what: &str| match restore_folder(from, to, &mut go_on) {
        Err(Error::Invalid(text)) => assert!(text.contains(what), "{text}"),
        other => panic!("{other:?}"),
    };
    unrestored(&backup, &full, "not empty");
    unrestored(&backup, &backup.join("inside"), "lies in");
    unrestored(&full, &folder.path().join("new"), "cut short");
    unrestored(&folder.path().join("nowhere"), &folder.path().join("new"), "no backup");
    assert!(!folder.path().join("new").exists());
    assert_eq!(std::fs::read_dir(&full).expect("it is there").count(), 1);
    restore_folder(&backup, &folder.path().join("new"), &mut go_on).expect("a restore");
}
