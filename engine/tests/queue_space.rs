//! A queue with many messages costs disk, not memory, and its room comes back. How long a message takes beside many is
//! printed and not asserted: machines are not equally quick all the time.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::queue::{NewMessage, QueueName, QueueOptions, QueueStore, ReceiveOptions};
use anabranch_model::{Clock, Error};

const MESSAGES: usize = 100_000;
const CALLERS: usize = 64;
const SEGMENT_BYTES: u64 = 16 << 20;

fn open(folder: &Path) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), options).expect("the directory opens")
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux says how large a process is");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("the second number counts pages") * 4096
}

/// Bytes of the files of a folder.
fn on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the folder is listed");
    let bytes = |entry: std::fs::DirEntry| match entry.metadata().expect("a file") {
        data if data.is_dir() => on_disk(&entry.path()),
        data => data.len(),
    };
    entries.map(|entry| bytes(entry.expect("an entry"))).sum()
}

async fn by_many<F: Future<Output = ()> + Send + 'static>(call: impl Fn(usize) -> F) {
    let calls: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(call(caller))).collect();
    for call in calls {
        call.await.expect("a caller");
    }
}

async fn fill(engine: &Engine, queue: &QueueName, count: usize) {
    by_many(|caller| {
        let (engine, queue) = (engine.clone(), queue.clone());
        async move {
            for batch in (caller..count / 10).step_by(CALLERS) {
                let messages = (0..10).map(|n| NewMessage::new(format!("{batch}-{n}-{}", "x".repeat(100))));
                for sent in engine.send(&queue, messages.collect()).await.expect("a send") {
                    sent.expect("a message is sent");
                }
            }
        }
    })
    .await;
}

async fn empty(engine: &Engine, queue: &QueueName) {
    by_many(|_| {
        let (engine, queue) = (engine.clone(), queue.clone());
        async move {
            loop {
                let messages = engine.receive(&queue, ReceiveOptions::all()).await.expect("a receive");
                if messages.is_empty() {
                    return;
                }
                let receipts = messages.into_iter().map(|message| message.receipt).collect();
                for deleted in engine.delete(&queue, receipts).await.expect("a delete") {
                    deleted.expect("a message is deleted");
                }
            }
        }
    })
    .await;
}

/// How long a message takes through the queue, one after the other.
async fn round_trip(engine: &Engine, queue: &QueueName, clock: &SystemClock) -> Duration {
    let start = clock.elapsed();
    for _ in 0..50 {
        engine.send(queue, vec![NewMessage::new("m")]).await.expect("a send");
        let options = ReceiveOptions { messages_max: 1, ..ReceiveOptions::all() };
        let receipt = engine.receive(queue, options).await.expect("a receive").swap_remove(0).receipt;
        engine.delete(queue, vec![receipt]).await.expect("a delete");
    }
    (clock.elapsed() - start) / 50
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_wait_cost_disk_and_give_it_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = SystemClock::new();
    let queue = QueueName::new("bulk").expect("a name");
    let engine = open(folder.path());
    let visibility = Duration::from_secs(3_600);
    let options = QueueOptions { visibility, ..QueueOptions::default() };
    engine.create_queue(&queue, options).await.expect("create");
    let first = round_trip(&engine, &queue, &clock).await;
    let before = resident();
    fill(&engine, &queue, MESSAGES).await;
    let filled = round_trip(&engine, &queue, &clock).await;
    engine.upkeep();
    let grown = resident().saturating_sub(before);
    let summary = engine.queue(&queue).await.expect("a summary");
    assert_eq!(summary.counts.visible, MESSAGES as u64);
    engine.close().await.expect("it closes");
    drop(engine);

    let start = clock.elapsed();
    let engine = open(folder.path());
    let opening = clock.elapsed() - start;
    assert_eq!(engine.queue(&queue).await.expect("a summary").counts, summary.counts);
    let mut sizes = Vec::new();
    for round in 0..3 {
        if round > 0 {
            fill(&engine, &queue, MESSAGES / 5).await;
        }
        empty(&engine, &queue).await;
        engine.upkeep();
        assert_eq!(engine.queue(&queue).await.expect("a summary").counts.visible, 0);
        sizes.push(on_disk(folder.path()));
    }
    let emptied = round_trip(&engine, &queue, &clock).await;
    println!(
        "{grown} bytes in memory for {MESSAGES} messages, opened in {opening:?}, {sizes:?} bytes on disk; a message \
         takes {first:?} at first, {filled:?} beside {MESSAGES}, {emptied:?} when these are gone"
    );
    // The budget is 64 MiB, and a part of it is for rows and the cache of the state.
    assert!(grown < 64 << 20, "{grown} bytes");
    // What comes later finds room where the first messages were, but for the segments that are being written.
    assert!(sizes[2] <= sizes[0] + 2 * SEGMENT_BYTES, "{sizes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_the_waiting_and_everything_is_there_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let queue = QueueName::new("kept").expect("a name");
    let engine = open(folder.path());
    engine.create_queue(&queue, QueueOptions::default()).await.expect("create");
    let late = NewMessage::new("late").after(Duration::from_secs(900));
    engine.send(&queue, vec![NewMessage::new("m"), NewMessage::new("n"), late]).await.expect("a send");
    let options = ReceiveOptions { messages_max: 1, ..ReceiveOptions::all() };
    let taken = engine.receive(&queue, options).await.expect("a receive").swap_remove(0);
    let rest = engine.receive(&queue, ReceiveOptions::all()).await.expect("a receive").swap_remove(0);
    let waiting = tokio::spawn({
        let (engine, queue) = (engine.clone(), queue.clone());
        let options = ReceiveOptions { wait: Some(Duration::from_secs(20)), ..ReceiveOptions::all() };
        async move { engine.receive(&queue, options).await }
    });
    let before = engine.queue(&queue).await.expect("a summary");
    engine.close().await.expect("it closes");
    let ended = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it does not wait on");
    assert!(matches!(ended.expect("a task"), Err(Error::Stopped(_))));
    drop(engine);

    let engine = open(folder.path());
    let after = engine.queue(&queue).await.expect("a summary");
    assert_eq!((after.counts, after.options), (before.counts, before.options));
    let deleted = engine.delete(&queue, vec![taken.receipt]).await.expect("a delete");
    assert_eq!(deleted, [Ok(())]);
    let shown =
        engine.change_visibility(&queue, vec![(rest.receipt, Duration::ZERO)]).await.expect("a change");
    assert_eq!(shown, [Ok(())]);
    let again = engine.receive(&queue, ReceiveOptions::all()).await.expect("a receive");
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0].id, again[0].receive_count), (&rest.id, 2));
}
