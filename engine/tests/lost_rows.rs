//! The state is damaged or lost, and there were rows, which only it has: the directory opens for reading, streams can be read,
//! nothing that rests on rows is served, nothing is written, and no byte of the directory changes.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::collections::BTreeMap;
use std::future::Future;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options};
use anabranch_model::blob::{
    BlobStore, Body, BodyOptions, CompleteOptions, CopyOptions, GetOptions, ListOptions, PartNumber,
    PutOptions, Upload, UploadListOptions, UploadOptions,
};
use anabranch_model::queue::{MoveId, QueueStore, ReceiveOptions};
use anabranch_model::table::{
    Action, Alteration, Get, Item, KeyCondition, KeyKind, KeySchema, Query, Scan, TableOptions, TableStore,
    Write,
};
use anabranch_model::{
    Admin, BlobKey, BucketName, Disk, Document, Error, HashKey, NewMessage, NewRecord, Open, Owner, Position,
    QueueName, QueueOptions, ReadLimit, Receipt, Result, ShardId, ShardSource, StreamName, StreamOptions,
    StreamStore, TableName, Timestamp,
};
use anabranch_sim::{Rng, SimClock, SimDisk};
use futures_util::{StreamExt, stream};

const SEGMENT_BYTES: u64 = 64 << 10;
const BLOB_BYTES: usize = 100_000;

struct Names {
    stream: StreamName,
    other: StreamName,
    queue: QueueName,
    table: TableName,
    bucket: BucketName,
    small: BlobKey,
    large: BlobKey,
}

fn names() -> Names {
    Names {
        stream: StreamName::new("kept").unwrap(),
        other: StreamName::new("other").unwrap(),
        queue: QueueName::new("work").unwrap(),
        table: TableName::new("things").unwrap(),
        bucket: BucketName::new("photos").unwrap(),
        small: BlobKey::new("small").unwrap(),
        large: BlobKey::new("large").unwrap(),
    }
}

fn clock() -> SimClock {
    SimClock::new(Timestamp::from_millis(1_800_000_000_000))
}

fn open(disk: &SimDisk, clock: &SimClock) -> Result<Engine> {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options)
}

fn body(byte: u8, bytes: usize) -> Body {
    Box::pin(stream::iter([Ok(vec![byte; bytes].into())]))
}

fn item(id: &str) -> Item {
    Item::new().with("id", id).with("text", format!("the text of {id}"))
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

async fn append(engine: &Engine, from: usize, count: usize) {
    for batch in (from..from + count).collect::<Vec<_>>().chunks(10) {
        let record = |i: &usize| NewRecord::new(format!("key-{i}"), vec![*i as u8; 300]);
        let results = engine.append(&names().stream, batch.iter().map(record).collect()).await.unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}

async fn upkeep(engine: &Engine) {
    let engine = engine.clone();
    tokio::task::spawn_blocking(move || engine.upkeep()).await.unwrap();
}

/// A directory with something of everything. Most of what was written to rows stood in segments that are retired.
async fn history(disk: &SimDisk, clock: &SimClock) -> Engine {
    let (engine, names) = (open(disk, clock).unwrap(), names());
    engine
        .create_stream(&names.stream, StreamOptions { shards: 2, ..StreamOptions::default() })
        .await
        .unwrap();
    engine.create_queue(&names.queue, QueueOptions::default()).await.unwrap();
    let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text));
    engine.create_table(&names.table, options).await.unwrap();
    engine.create_bucket(&names.bucket).await.unwrap();
    let shards = engine.shards(&names.stream, None, 10).await.unwrap().entries;
    engine.split(&names.stream, &shards[0].id, HashKey::new(1 << 100)).await.unwrap();
    append(&engine, 0, 50).await;
    upkeep(&engine).await;
    for round in 0..12 {
        for item in 0..20 {
            let item = self::item(&format!("{}", item % 7)).with("long", "x".repeat(2_000 + round));
            TableStore::write(&engine, &names.table, Write::put(item)).await.unwrap();
        }
        upkeep(&engine).await;
    }
    append(&engine, 50, 50).await;
    for number in 0..10 {
        let text = format!("message {number} {}", "m".repeat(number * 60));
        engine.send(&names.queue, vec![NewMessage::new(text)]).await.unwrap().remove(0).unwrap();
    }
    BlobStore::put(&engine, &names.bucket, &names.small, body(1, 100), PutOptions::default()).await.unwrap();
    BlobStore::put(&engine, &names.bucket, &names.large, body(2, BLOB_BYTES), PutOptions::default())
        .await
        .unwrap();
    let tags = vec![Document::new("colour", b"red".to_vec())];
    engine.put_documents(&Owner::Stream(names.stream.clone()), "tags", tags).await.unwrap();
    upkeep(&engine).await;
    TableStore::write(&engine, &names.table, Write::put(item("last"))).await.unwrap();
    append(&engine, 100, 50).await;
    engine
}

/// Where, which number, how many bytes of which value.
type Records = Vec<(String, String, usize, u8)>;

async fn records(engine: &Engine) -> Records {
    let mut seen = Vec::new();
    for stream in engine.streams(None, 100).await.unwrap().entries {
        for shard in engine.shards(&stream.name, None, 100).await.unwrap().entries {
            let limit = ReadLimit { records: 10_000, ..ReadLimit::default() };
            let batch = engine.read(&stream.name, &shard.id, Position::TrimHorizon, limit).await.unwrap();
            let place = format!("{}/{} {:?} {:?}", stream.name, shard.id, shard.parents, shard.range);
            let record = |r: &anabranch_model::Record| (r.sequence.to_string(), r.data.len(), r.data[0]);
            seen.push((place.clone(), String::new(), 0, 0));
            seen.extend(
                batch.records.iter().map(record).map(|(n, bytes, byte)| (place.clone(), n, bytes, byte)),
            );
        }
    }
    seen
}

/// Everything that lies in rows. The messages are received by it.
async fn rows(engine: &Engine) -> Result<Vec<String>> {
    let names = names();
    let mut seen = Vec::new();
    for queue in engine.queues(None, 10, "").await?.entries {
        seen.push(format!("{} {:?}", queue.name, queue.options));
    }
    for _ in 0..3 {
        let received = engine.receive(&names.queue, ReceiveOptions::all()).await?;
        seen.extend(received.iter().map(|message| format!("{:?}", message.body)));
    }
    for table in engine.tables(None, 10).await?.entries {
        seen.push(format!("{:?}", engine.table(&table).await?.items));
        seen.extend(engine.scan(&table, Scan::new()).await?.items.iter().map(|item| format!("{item:?}")));
    }
    for bucket in engine.buckets(None, 10).await?.entries {
        for entry in engine.list(&bucket.name, ListOptions::default()).await?.entries {
            let mut body =
                BlobStore::get(engine, &bucket.name, &entry.key, GetOptions::default()).await?.body;
            let (mut bytes, mut sum) = (0, 0);
            while let Some(piece) = body.next().await {
                let piece = piece?;
                (bytes, sum) =
                    (bytes + piece.len(), sum + piece.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            }
            seen.push(format!("{} {} {bytes} {sum}", entry.key, entry.size));
        }
    }
    let owner = Owner::Stream(names.stream);
    seen.extend(
        engine.documents(&owner, "tags", None, 10).await?.entries.iter().map(|tag| format!("{tag:?}")),
    );
    seen.sort();
    Ok(seen)
}

type Call<'a> = (&'static str, Pin<Box<dyn Future<Output = Result<()>> + 'a>>);

macro_rules! calls {
    ($($name:literal => $call:expr),* $(,)?) => {
        vec![$(($name, Box::pin(async move { $call.await.map(drop) }) as Pin<Box<dyn Future<Output = Result<()>> + '_>>)),*]
    };
}

/// Every call that reads rows.
fn reads<'a>(engine: &'a Engine, n: &'a Names) -> Vec<Call<'a>> {
    let owner = Owner::Stream(n.stream.clone());
    let (upload, changes) = (upload(n), StreamName::new("changes").unwrap());
    let (shard, start) = (ShardId::new("shardId-000000000000").unwrap(), Position::TrimHorizon);
    let get = || Get::new(key("1"));
    let query = Query::new(KeyCondition::of("id", "1"));
    let (owner_too, upload_too, changes_too) = (owner.clone(), upload.clone(), changes.clone());
    let shard_too = shard.clone();
    calls! {
        "queues" => engine.queues(None, 10, ""),
        "queue" => engine.queue(&n.queue),
        "moves" => engine.moves(&n.queue),
        "tables" => engine.tables(None, 10),
        "table" => engine.table(&n.table),
        "get" => TableStore::get(engine, &n.table, get()),
        "batch_get" => engine.batch_get(vec![(n.table.clone(), get())]),
        "transact_get" => engine.transact_get(vec![(n.table.clone(), get())]),
        "query" => engine.query(&n.table, query),
        "scan" => engine.scan(&n.table, Scan::new()),
        "shards of changes" => engine.changes().shards(&changes, None, 10),
        "changes" => engine.changes().read(&changes_too, &shard, start, ReadLimit::default()),
        "bucket" => engine.bucket(&n.bucket),
        "buckets" => engine.buckets(None, 10),
        "get blob" => BlobStore::get(engine, &n.bucket, &n.large, GetOptions::default()),
        "head" => engine.head(&n.bucket, &n.small),
        "list" => engine.list(&n.bucket, ListOptions::default()),
        "parts" => engine.parts(&upload, None, 10),
        "uploads" => engine.uploads(&upload_too.bucket, UploadListOptions::default()),
        "document" => engine.document(&owner, "tags", "colour"),
        "documents" => engine.documents(&owner_too, "tags", None, 10),
        "follow changes" => async { engine.changes().follow(&StreamName::new("changes")?, &shard_too, start).await },
    }
}

fn upload(n: &Names) -> Upload {
    let id = anabranch_model::blob::UploadId::new("0000000000010008").unwrap();
    Upload { bucket: n.bucket.clone(), key: n.large.clone(), id }
}

/// Every call that writes.
fn writes<'a>(engine: &'a Engine, n: &'a Names) -> Vec<Call<'a>> {
    let tags = || Owner::Stream(n.stream.clone());
    let colour = || Document::new("colour", b"blue".to_vec());
    let receipt = || Receipt::new("receipt").unwrap();
    let shard = || ShardId::new("shardId-000000000001").unwrap();
    let record = || NewRecord::new("k", "v");
    let table_options = TableOptions::new(KeySchema::hash("id", KeyKind::Text));
    let other_table = TableName::new("other").unwrap();
    let other_queue = QueueName::new("other").unwrap();
    let other_bucket = BucketName::new("other").unwrap();
    let part = PartNumber::new(1).unwrap();
    calls! {
        "create_stream" => engine.create_stream(&n.other, StreamOptions::default()),
        "delete_stream" => engine.delete_stream(&n.stream),
        "set_retention" => engine.set_retention(&n.stream, Duration::from_secs(48 * 3600)),
        "append" => engine.append(&n.stream, vec![record()]),
        "split" => async { engine.split(&n.stream, &shard(), HashKey::new(3 << 126)).await },
        "merge" => async {
            let shards = engine.shards(&n.stream, None, 10).await?.entries;
            engine.merge(&n.stream, &shards[2].id, &shards[3].id).await
        },
        "create_queue" => engine.create_queue(&other_queue, QueueOptions::default()),
        "delete_queue" => engine.delete_queue(&n.queue),
        "set_options" => engine.set_options(&n.queue, QueueOptions::default()),
        "send" => engine.send(&n.queue, vec![NewMessage::new("m")]),
        "receive" => engine.receive(&n.queue, ReceiveOptions::all()),
        "delete messages" => QueueStore::delete(engine, &n.queue, vec![receipt()]),
        "change_visibility" => engine.change_visibility(&n.queue, vec![(receipt(), Duration::ZERO)]),
        "purge" => engine.purge(&n.queue),
        "start_move" => engine.start_move(&n.queue, None, None),
        "cancel_move" => async { engine.cancel_move(&MoveId::new("move")?).await },
        "create_table" => engine.create_table(&other_table, table_options),
        "delete_table" => engine.delete_table(&n.table),
        "alter" => engine.alter(&n.table, Alteration::TimeToLive(None)),
        "write" => TableStore::write(engine, &n.table, Write::put(item("1"))),
        "batch_write" => engine.batch_write(vec![(n.table.clone(), Action::Put(item("1")))]),
        "transact_write" => engine.transact_write(vec![(n.table.clone(), Write::put(item("1")))], None),
        "create_bucket" => engine.create_bucket(&other_bucket),
        "delete_bucket" => engine.delete_bucket(&n.bucket),
        "put" => BlobStore::put(engine, &n.bucket, &n.large, body(3, BLOB_BYTES), PutOptions::default()),
        "delete blob" => BlobStore::delete(engine, &n.bucket, &n.small, None),
        "delete_many" => engine.delete_many(&n.bucket, std::slice::from_ref(&n.small)),
        "copy" => engine.copy((&n.bucket, &n.large), (&n.bucket, &n.small), CopyOptions::default()),
        "begin_upload" => engine.begin_upload(&n.bucket, &n.large, UploadOptions::default()),
        "put_part" => async { engine.put_part(&upload(n), part, body(4, BLOB_BYTES), BodyOptions::default()).await },
        "complete_upload" => async { engine.complete_upload(&upload(n), &[], CompleteOptions::default()).await },
        "abort_upload" => async { engine.abort_upload(&upload(n)).await },
        "put_documents" => async { engine.put_documents(&tags(), "tags", vec![colour()]).await },
        "put_document_if_absent" => async { engine.put_document_if_absent(&tags(), "tags", colour()).await },
        "delete_documents" => async { engine.delete_documents(&tags(), "tags", vec!["colour".to_owned()]).await },
    }
}

fn bytes(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.contents(&path).unwrap())).collect()
}

fn assert_same_bytes(disk: &SimDisk, before: &BTreeMap<String, Vec<u8>>) {
    let now = bytes(disk);
    assert!(now.keys().eq(before.keys()), "{:?}", now.keys());
    for (path, bytes) in before {
        assert!(now[path] == *bytes, "{path} has changed");
    }
}

/// Opens a directory whose rows are lost, tries everything, and closes it: nothing has changed.
async fn look_and_leave(disk: &SimDisk, clock: &SimClock, before: &Records) {
    let (files, names) = (bytes(disk), names());
    let engine = open(disk, clock).unwrap();
    let reason = engine.status().stopped.expect("it says why nothing is written");
    for part in ["open for reading only", "state.redb", "queues", "anabranch restore"] {
        assert!(reason.contains(part), "`{part}` is missing: {reason}");
    }
    assert_eq!(records(&engine).await, *before);
    for (name, call) in reads(&engine, &names) {
        match call.await {
            Err(Error::Corrupt(text)) => assert_eq!(text, reason, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    for (name, call) in writes(&engine, &names) {
        assert_eq!(call.await, Err(Error::Stopped(reason.clone())), "{name}");
    }
    upkeep(&engine).await;
    engine.prepare();
    engine.close().await.unwrap();
    drop(engine);
    assert_same_bytes(disk, &files);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_lost_rows_streams_are_read_and_nothing_else_is_served_or_written() {
    for clean in [true, false] {
        let (disk, clock) = (SimDisk::new(), clock());
        let engine = history(&disk, &clock).await;
        let oldest = engine.status().oldest_segment.unwrap();
        assert!(oldest > 5, "the journal has forgotten rows: it begins with segment {oldest}");
        let before = records(&engine).await;
        if clean {
            engine.close().await.unwrap();
        }
        drop(engine);
        let left = disk.crash_at(disk.operations(), 1);
        let state = left.contents("state.redb").unwrap();
        left.remove("state.redb").unwrap();
        for _ in 0..2 {
            look_and_leave(&left, &clock, &before).await;
        }
        // With the file put back everything is there.
        let file = left.open("state.redb", Open::CreateNew).unwrap();
        file.write_all_at(0, &[IoSlice::new(&state)]).unwrap();
        file.sync().unwrap();
        drop(file);
        let engine = open(&left, &clock).unwrap();
        assert_eq!(engine.status().stopped, None);
        assert_eq!(records(&engine).await, before);
        assert!(rows(&engine).await.unwrap().len() > 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bits_in_a_state_with_rows_are_found_or_change_nothing() {
    for clean in [true, false] {
        let (disk, clock) = (SimDisk::new(), clock());
        let engine = history(&disk, &clock).await;
        let before = records(&engine).await;
        if clean {
            engine.close().await.unwrap();
        }
        drop(engine);
        let whole = disk.crash_at(disk.operations(), 1);
        let state = whole.contents("state.redb").unwrap();
        let engine = open(&whole.crash_at(whole.operations(), 1), &clock).unwrap();
        let rows_before = rows(&engine).await.unwrap();
        drop(engine);
        let used: Vec<u64> = (0..state.len() as u64).filter(|at| state[*at as usize] != 0).collect();
        let (mut rng, mut found) = (Rng::new(9), 0);
        for round in 0..150 {
            let left = whole.crash_at(whole.operations(), 1);
            // The header of the file is where the most depends on every bit.
            let at =
                if round % 5 == 0 { rng.below(320) } else { used[rng.below(used.len() as u64) as usize] };
            left.flip_bit("state.redb", at, rng.below(8) as u8).unwrap();
            let files = bytes(&left);
            let engine = open(&left, &clock).unwrap();
            assert_eq!(records(&engine).await, before, "with a bit at {at}");
            if engine.status().stopped.is_none() {
                assert_eq!(rows(&engine).await.unwrap(), rows_before, "with a bit at {at}");
                continue;
            }
            found += 1;
            let refused = rows(&engine).await;
            assert!(matches!(refused, Err(Error::Corrupt(_))), "with a bit at {at}: {refused:?}");
            engine.close().await.unwrap();
            drop(engine);
            assert_same_bytes(&left, &files);
        }
        println!("clean: {clean}, {found} of 150 were found");
        // Most bits are in pages of earlier checkpoints.
        assert!(found > 15, "{found} were found");
    }
}

/// The state is lost, rows with it, and so is a change of the catalogue that the copy does not have.
#[tokio::test(flavor = "multi_thread")]
async fn with_lost_rows_a_damaged_change_of_the_catalogue_is_never_passed_over() {
    let (disk, clock, names) = (SimDisk::new(), clock(), names());
    let engine = history(&disk, &clock).await;
    let changes = |disk: &SimDisk| {
        let mut found = Vec::new();
        for (path, bytes) in bytes(disk).into_iter().filter(|(path, _)| path.starts_with("journal/")) {
            let starts = (0..bytes.len().saturating_sub(80)).step_by(8);
            // The kind stands behind the magic.
            let starts = starts.filter(|at| bytes[*at..].starts_with(b"ANB1") && bytes[at + 16] == 2);
            found.extend(starts.map(|at| (path.clone(), at as u64)));
        }
        found
    };
    let known = changes(&disk);
    let shards = engine.shards(&names.stream, None, 10).await.unwrap().entries;
    let shard = shards.iter().rfind(|shard| shard.is_open()).unwrap();
    engine.split(&names.stream, &shard.id, shard.range.unwrap().midpoint().unwrap()).await.unwrap();
    append(&engine, 200, 20).await;
    let before = records(&engine).await;
    drop(engine);
    let added: Vec<_> = changes(&disk).into_iter().filter(|place| !known.contains(place)).collect();
    let [(path, at)] = &added[..] else { panic!("one change of the catalogue: {added:?}") };
    let mut told = 0;
    for byte in 0..120 {
        let left = disk.crash_at(disk.operations(), 1);
        left.remove("state.redb").unwrap();
        left.flip_bit(path, at + byte, (byte % 8) as u8).unwrap();
        match open(&left, &clock) {
            Err(Error::Corrupt(text)) => assert!(text.contains("backup"), "{text}"),
            Err(error) => panic!("{error}"),
            Ok(engine) => {
                let reason = engine.status().stopped.unwrap();
                if reason.contains("state frame") {
                    told += 1;
                } else {
                    assert_eq!(records(&engine).await, before, "byte {byte} of the change is passed over");
                }
            }
        }
    }
    assert!(told > 50, "{told}");
}
