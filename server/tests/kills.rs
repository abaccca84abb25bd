//! The real process, killed 200 times under load, with the whole history checked.
//!
//! Writers append numbered records, split and merge; each process gets a few hundred acknowledgements and then SIGKILL in the
//! middle of what follows. The page cache survives that, so this proves the process's own bookkeeping, recovery after
//! recovery; what a power loss leaves is explored on the simulated disk.

mod harness;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_model::{
    NewRecord, NextMove, SequenceNumber, Shard, ShardGraph, ShardId, ShardSource, StreamName, StreamOptions,
    StreamStore,
};
use anabranch_model::{Next, Position, ReadLimit};
use anabranch_server::Remote;
use harness::Data;
use tokio::sync::Notify;

const KILLS: usize = 200;
const WRITERS: usize = 8;

/// Where a record was acknowledged to be.
type Acknowledged = HashMap<(usize, u64), (ShardId, SequenceNumber)>;

/// What the writers know.
#[derive(Default)]
struct History {
    acknowledged: Mutex<Acknowledged>,
    count: AtomicUsize,
    /// Told of every acknowledgement, and when a writer gives up.
    changed: Notify,
}

fn rides() -> StreamName {
    StreamName::new("rides").expect("a valid name")
}

/// Appends records of one key, numbered without gaps over all processes, until the server goes away.
async fn write(store: Arc<Remote>, writer: usize, next: Arc<Mutex<Vec<u64>>>, history: Arc<History>) {
    loop {
        let first = next.lock().expect("no panic")[writer];
        // Batches of 1 to 7: some writes carry one record, some many.
        let numbers: Vec<u64> = (first..first + 1 + first % 7).collect();
        next.lock().expect("no panic")[writer] = first + numbers.len() as u64;
        let record = |number: &u64| NewRecord::new(format!("writer-{writer}"), format!("{writer} {number}"));
        let Ok(results) = store.append(&rides(), numbers.iter().map(record).collect()).await else {
            return history.changed.notify_one();
        };
        let mut acknowledged = history.acknowledged.lock().expect("no panic");
        for (number, result) in numbers.iter().zip(results) {
            let appended = result.expect("every record is good");
            acknowledged.insert((writer, *number), (appended.shard, appended.sequence));
            history.count.fetch_add(1, Ordering::Relaxed);
        }
        history.changed.notify_one();
    }
}

/// Splits and merges until the server goes away.
async fn reshard(store: Arc<Remote>) {
    loop {
        let Ok(shards) = all_shards(&store).await else { return };
        let mut open: Vec<&Shard> = shards.iter().filter(|shard| shard.is_open()).collect();
        open.sort_by_key(|shard| shard.range.map(|range| range.first()));
        let outcome = if open.len() < 4 {
            let at = open[0].range.and_then(|range| range.midpoint()).expect("the range can be split");
            store.split(&rides(), &open[0].id, at).await.map(|_| ())
        } else {
            store.merge(&rides(), &open[0].id, &open[1].id).await.map(|_| ())
        };
        if outcome.is_err_and(|error| error.next_move() != NextMove::FixCall) {
            return;
        }
    }
}

async fn all_shards(store: &Remote) -> anabranch_model::Result<Vec<Shard>> {
    let mut shards: Vec<Shard> = Vec::new();
    loop {
        let after = shards.last().map(|shard| shard.id.clone());
        let page = store.shards(&rides(), after.as_ref(), 1_000).await?;
        shards.extend(page.entries);
        if !page.more {
            return Ok(shards);
        }
    }
}

/// Everything in the stream, parents before children: writer, number, shard, sequence number.
async fn read_all(store: &Remote) -> Vec<(usize, u64, ShardId, SequenceNumber)> {
    let graph = ShardGraph::new(all_shards(store).await.expect("the server answers"));
    assert_eq!((graph.holes(), graph.overlaps()), (vec![], vec![]), "open shards partition the keys");
    let (mut done, mut seen): (Vec<ShardId>, Vec<_>) = (Vec::new(), Vec::new());
    loop {
        let readable: Vec<ShardId> =
            graph.readable(|id| done.contains(id)).into_iter().map(|shard| shard.id.clone()).collect();
        if readable.is_empty() {
            return seen;
        }
        for id in readable {
            let mut at = Position::TrimHorizon;
            loop {
                let batch = store.read(&rides(), &id, at, ReadLimit::default()).await.expect("a sound shard");
                let empty = batch.records.is_empty();
                for record in batch.records {
                    let text = String::from_utf8(record.data.to_vec()).expect("text was written");
                    let (writer, number) = text.split_once(' ').expect("two numbers were written");
                    let parse = |text: &str| text.parse::<u64>().expect("a number was written");
                    seen.push((parse(writer) as usize, parse(number), id.clone(), record.sequence));
                }
                match batch.next {
                    Next::At(next) if !empty => at = next,
                    _ => break,
                }
            }
            done.push(id);
        }
    }
}

/// Every acknowledged record is there once, where it was said to be, in the order of its writer; nothing is invented.
async fn check(store: &Remote, history: &History, submitted: &[u64], kills: usize) {
    let seen = read_all(store).await;
    let mut last: Vec<Option<u64>> = vec![None; WRITERS];
    let mut left = history.acknowledged.lock().expect("no panic").clone();
    for (writer, number, shard, sequence) in seen {
        let place =
            format!("record {number} of writer {writer} in {shard} at {sequence}, after {kills} kills");
        assert!(number < submitted[writer], "{place} was never sent");
        assert!(last[writer] < Some(number), "{place} comes behind {:?}", last[writer]);
        last[writer] = Some(number);
        if let Some(said) = left.remove(&(writer, number)) {
            assert_eq!(said, (shard, sequence), "{place} was acknowledged elsewhere");
        }
    }
    let example = left.iter().next();
    assert!(left.is_empty(), "after {kills} kills {} acknowledged records are lost: {example:?}", left.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_over_200_kills() {
    let data = Data::new();
    let history = Arc::new(History::default());
    let submitted = Arc::new(Mutex::new(vec![0; WRITERS]));
    for kill in 0..KILLS {
        let server = data.serve();
        let store = Arc::new(Remote::new(server.listen));
        if kill == 0 {
            store.create_stream(&rides(), StreamOptions::default()).await.expect("the stream is made");
        }
        if kill % 20 == 19 {
            let sent = submitted.lock().expect("no panic").clone();
            check(&store, &history, &sent, kill).await;
        }
        let start = history.count.load(Ordering::Relaxed);
        let mut tasks: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(store.clone(), writer, submitted.clone(), history.clone())))
            .collect();
        tasks.push(tokio::spawn(reshard(store.clone())));
        // A different moment each time: after 1 to 300 further acknowledgements.
        let enough = start + 1 + (kill * 37) % 300;
        while history.count.load(Ordering::Relaxed) < enough && tasks.iter().any(|task| !task.is_finished()) {
            history.changed.notified().await;
        }
        server.kill();
        for task in tasks {
            task.await.expect("writers end when the server is gone");
        }
    }
    let server = data.serve();
    let store = Remote::new(server.listen);
    let sent = submitted.lock().expect("no panic").clone();
    check(&store, &history, &sent, KILLS).await;
    println!("{} acknowledged records over {KILLS} kills", history.count.load(Ordering::Relaxed));
    server.stop().succeeded();
}
