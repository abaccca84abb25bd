//! A consumer on the embedded engine, and the commands that look at it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Consumer, Delivery, StreamChoice, process_fn};
use anabranch_engine::{DirectoryLock, Engine, Options, SystemClock, SystemDisk};
use anabranch_model::{HashKey, NewRecord, ShardId, StreamName, StreamOptions, StreamStore};
use harness::{Data, PATIENCE, run};
use tokio::sync::mpsc;

/// Reads until so many records have come, and stops properly.
async fn consume(engine: &Engine, stream: &StreamName, count: usize) -> Vec<(String, String)> {
    let (sender, mut seen) = mpsc::channel(1_000);
    let processor = process_fn(move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            for record in &delivery.records {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let _ = sender.send((text(&record.partition_key), text(&record.data))).await;
            }
            delivery.done()
        }
    });
    let (source, tables) = (Arc::new(engine.clone()), Arc::new(engine.clone()));
    let clock = Arc::new(SystemClock::new());
    let choice = [StreamChoice::only(stream.clone())];
    let consumer = Consumer::builder("billing", choice, source, tables, clock, processor)
        .lease_time(Duration::from_secs(2))
        .worker("one")
        .build()
        .unwrap();
    let handle = consumer.handle();
    let running = tokio::spawn(consumer.run());
    let mut records = Vec::new();
    while records.len() < count {
        let next = tokio::time::timeout(PATIENCE, seen.recv()).await;
        records.push(next.unwrap_or_else(|_| panic!("{} of {count} came", records.len())).unwrap());
    }
    handle.shutdown();
    running.await.unwrap().unwrap();
    // What came between the last one that was waited for and the end.
    while let Ok(more) = seen.try_recv() {
        records.push(more);
    }
    records
}

async fn put(engine: &Engine, stream: &StreamName, numbers: std::ops::Range<u32>) {
    let record = |n: u32| NewRecord::new(format!("key-{}", n % 5), format!("{n:04}"));
    let stored = engine.append(stream, numbers.map(record).collect()).await.unwrap();
    assert!(stored.iter().all(Result::is_ok));
}

#[test]
fn a_consumer_reads_the_engine_through_a_split_and_can_be_looked_at_and_rewound() {
    let data = Data::new();
    let stream = StreamName::new("orders").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let with_engine = |work: &dyn Fn(Engine) -> futures_util::future::BoxFuture<'static, ()>| {
        let lock = DirectoryLock::acquire(&data.path(), "a test").unwrap();
        let disk = Arc::new(SystemDisk::open(&data.path()).unwrap());
        let engine = Engine::open(disk, Arc::new(SystemClock::new()), Options::default()).unwrap();
        runtime.block_on(async {
            work(engine.clone()).await;
            engine.close().await.unwrap();
        });
        drop(lock);
    };
    let name = stream.clone();
    with_engine(&move |engine| {
        let stream = name.clone();
        Box::pin(async move {
            let options = StreamOptions { shards: 2, ..StreamOptions::default() };
            engine.create_stream(&stream, options).await.unwrap();
            put(&engine, &stream, 0..100).await;
            let middle = HashKey::new(u128::MAX / 4);
            engine.split(&stream, &ShardId::numbered(0), middle).await.unwrap();
            put(&engine, &stream, 100..200).await;
            let records = consume(&engine, &stream, 200).await;
            assert_eq!(records.len(), 200, "each once");
            for key in 0..5 {
                let key = format!("key-{key}");
                let of_key: Vec<_> = records.iter().filter(|(k, _)| *k == key).map(|(_, d)| d).collect();
                assert!(of_key.is_sorted(), "{key}: {of_key:?}");
            }
        })
    });
    let consumer = |arguments: &[&str]| run(data.command_on("consumer", arguments));
    let listed = consumer(&["ls", "--json"]).succeeded().json();
    let application = &listed["applications"][0];
    assert_eq!((&application["name"], &application["leases"]), (&"billing".into(), &4.into()));
    assert_eq!((&application["owned"], &application["finished"]), (&0.into(), &1.into()), "{application}");
    let leases = consumer(&["leases", "billing", "--json"]).succeeded().json();
    let leases = leases["leases"].as_array().unwrap().clone();
    assert_eq!(leases[0]["checkpoint"], "SHARD_END");
    assert_eq!(leases[0]["children"].as_array().unwrap().len(), 2);
    assert!(leases[1]["checkpoint"].as_str().unwrap().parse::<u128>().is_ok(), "{leases:?}");
    assert!(consumer(&["leases", "billing"]).succeeded().stdout.contains("SHARD_END"));

    let last = leases[1]["lease"].as_str().unwrap();
    consumer(&["checkpoint", "billing", last, "trim-horizon"]).succeeded();
    let leases = consumer(&["leases", "billing", "--json"]).succeeded().json();
    assert_eq!(leases["leases"][1]["checkpoint"], "TRIM_HORIZON");
    consumer(&["checkpoint", "billing", "nobody", "latest"])
        .failed(2, &["no lease `nobody`", "consumer leases"]);
    consumer(&["rewind", "billing", "soon"]).failed(2, &["no place"]);
    consumer(&["rewind", "billing", "1h ago"]).failed(2, &["--stream"]);
    consumer(&["rewind", "billing", "1h ago", "--stream", "orders"]).succeeded();

    let name = stream.clone();
    with_engine(&move |engine| {
        let stream = name.clone();
        Box::pin(async move {
            let records = consume(&engine, &stream, 200).await;
            assert_eq!(records.len(), 200, "everything of the last hour comes again");
        })
    });
    let unused = consumer(&["gc", "--json"]).succeeded().json();
    assert_eq!(unused["unused"][0]["tables"].as_array().unwrap().len(), 3, "{unused}");
    let unnamed = consumer(&["gc", "--delete", "--yes"]);
    assert_eq!((unnamed.code, unnamed.stderr.contains("<APPLICATIONS>")), (2, true), "{unnamed:#?}");
    consumer(&["gc", "orders"]).failed(2, &["orders", "consumer ls"]);
    consumer(&["gc", "billing", "--delete", "--yes"]).succeeded();
    assert_eq!(consumer(&["ls"]).succeeded().stdout, "no application has leases here\n");
    consumer(&["leases", "billing"]).failed(2, &["billing"]);
}
