//! Many writers at once, with followers, while shards split and merge.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join, join_all};
use futures_util::stream::FuturesUnordered;

use super::trial::{Trial, give_way};
use super::writing::check_partition;
use super::written::{Notebook, Written, gist, gist_written, placed, some_records};
use crate::laws::dice::Dice;
use crate::{NewRecord, Next, Position, ReadLimit, Record, ShardId, StreamName};

const WRITERS: u64 = 8;
/// Payload of the record that tells a follower that nothing comes behind it.
const END: &[u8] = b"end";

/// Writers of one shard are served in some order: each keeps its own, and all see the same.
pub async fn writers_of_one_shard_keep_their_order(trial: Trial) {
    let trial = Arc::new(trial);
    let (stream, shard) = trial.single_shard().await;
    let notebook = Notebook::default();
    let writers = (0..WRITERS)
        .map(|writer| trial.spawn(write_keys(trial.clone(), stream.clone(), writer, 40, notebook.clone())));
    join_all(writers.collect::<Vec<_>>()).await;
    let read = trial.read_all(&stream, &shard).await;
    let mut expected = notebook.all();
    expected.sort_by_key(|written| written.sequence);
    trial.same("records of all writers", gist(&read), gist_written(&expected));
    check_order_of_keys(&trial, &read);
}

/// `Latest` divides the records of other writers as well: what was acknowledged before the call is not returned, what
/// is appended after it is.
pub async fn latest_holds_while_others_write(trial: Trial) {
    let trial = Arc::new(trial);
    let (stream, shard) = trial.single_shard().await;
    let notebook = Notebook::default();
    let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();
    for writer in 0..WRITERS {
        tasks.push(trial.spawn(write_keys(trial.clone(), stream.clone(), writer, 30, notebook.clone())));
    }
    let reader = {
        let (trial, notebook) = (trial.clone(), notebook.clone());
        async move {
            for round in 0..40 {
                let before = notebook.all();
                let latest = trial.read(&stream, &shard, Position::Latest, ReadLimit::default()).await;
                let mine = trial.write(&stream, some_records(&format!("mine-{round}"), 1)).await;
                let mut read = latest.records;
                read.extend(trial.read_on(&stream, &shard, trial.position(&latest.next)).await.records);
                let read: HashSet<_> = read.iter().map(|record| record.sequence).collect();
                let old = before.iter().find(|written| read.contains(&written.sequence));
                trial.holds(old.is_none(), format!("latest returned {old:?}, acknowledged before the call"));
                trial.holds(read.contains(&mine[0].sequence), format!("{mine:?} does not lie behind latest"));
                give_way().await;
            }
        }
    };
    tasks.push(trial.spawn(reader));
    join_all(tasks).await;
}

/// Eight writers, resharding, and a follower that goes from parents to children. In the end every acknowledged record is
/// there once, in the shard and under the number that was reported; each key is in order across shards; the follower
/// saw what can be read; and at every moment the open shards were a partition.
pub async fn nothing_is_lost_while_shards_split_and_merge(trial: Trial) {
    let trial = Arc::new(trial);
    let stream = trial.stream(4).await;
    let notebook = Notebook::default();
    let followed = Arc::new(Mutex::new(BTreeMap::new()));
    let follower = {
        let (trial, stream, followed) = (trial.clone(), stream.clone(), followed.clone());
        trial.clone().spawn(async move {
            let seen = follow_lineage(&trial, &stream).await;
            *followed.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        })
    };
    let mut tasks = vec![
        trial.spawn(reshard(trial.clone(), stream.clone(), notebook.clone())),
        trial.spawn(watch_partition(trial.clone(), stream.clone())),
    ];
    for writer in 0..WRITERS {
        tasks.push(trial.spawn(write_keys(trial.clone(), stream.clone(), writer, 60, notebook.clone())));
    }
    let writing = async {
        join_all(tasks).await;
        // Shards that are open now stay open, so this is what the follower of each of them waits for.
        for shard in trial.open_shards(&stream).await {
            let end = placed(trial.range(&shard).first(), END);
            notebook.note([trial.write_one(&stream, end).await]);
        }
    };
    join(follower, writing).await;
    let followed = std::mem::take(&mut *followed.lock().unwrap_or_else(PoisonError::into_inner));
    compare(&trial, &stream, &notebook.all(), &followed).await;
}

/// Appends records of three keys of its own, each key counting up.
async fn write_keys(trial: Arc<Trial>, stream: StreamName, writer: u64, appends: usize, notebook: Notebook) {
    let mut dice = Dice(writer);
    let mut counts = [0u32; 3];
    for _ in 0..appends {
        let records = (0..1 + dice.below(4)).map(|_| {
            let key = dice.below(counts.len());
            counts[key] += 1;
            NewRecord::new(format!("writer-{writer}-{key}"), counts[key].to_be_bytes().to_vec())
        });
        let records = records.collect();
        notebook.note(trial.write(&stream, records).await);
        give_way().await;
    }
}

/// Splits and merges at random, appending in between so that it keeps pace with the writers.
async fn reshard(trial: Arc<Trial>, stream: StreamName, notebook: Notebook) {
    let mut dice = Dice(42);
    for step in 0..16 {
        let records = some_records(&format!("reshard-{step}"), 2);
        for record in records {
            notebook.note([trial.write_one(&stream, record).await]);
            give_way().await;
        }
        let open = trial.open_shards(&stream).await;
        if open.len() > 2 && dice.below(2) == 0 {
            let lower = dice.below(open.len() - 1);
            trial.merge(&stream, &open[lower].id, &open[lower + 1].id).await;
        } else {
            trial.split(&stream, &open[dice.below(open.len())]).await;
        }
    }
}

/// A listing that fits on one page shows one moment, and at every moment the open shards are a partition.
async fn watch_partition(trial: Arc<Trial>, stream: StreamName) {
    for _ in 0..60 {
        check_partition(&trial, &trial.graph(&stream).await);
        give_way().await;
    }
}

/// Follows every shard, children once their parents have ended, until each has ended or shown the last record.
async fn follow_lineage(trial: &Trial, stream: &StreamName) -> BTreeMap<ShardId, Vec<Record>> {
    let mut done = BTreeMap::new();
    let mut started = BTreeSet::new();
    let mut running = FuturesUnordered::new();
    loop {
        let graph = trial.graph(stream).await;
        for shard in graph.readable(|id| done.contains_key(id)) {
            if started.insert(shard.id.clone()) {
                running.push(follow_shard(trial, stream, shard.id.clone()));
            }
        }
        match running.next().await {
            Some((id, records)) => drop(done.insert(id, records)),
            None => return done,
        }
    }
}

async fn follow_shard(trial: &Trial, stream: &StreamName, id: ShardId) -> (ShardId, Vec<Record>) {
    let mut follow = trial.follow(stream, &id, Position::TrimHorizon).await;
    let is_end = |records: &[Record]| records.last().is_some_and(|record| record.data == END);
    let reading = trial.take_until(&mut follow, is_end).await;
    if let Next::Ended(children) = &reading.next {
        let graph = trial.graph(stream).await;
        let listed = graph.children_of(&id).into_iter().cloned().collect();
        trial.same(
            format!("children of {id}"),
            super::trial::sorted(children.clone()),
            super::trial::sorted(listed),
        );
    }
    (id, reading.records)
}

async fn compare(
    trial: &Trial,
    stream: &StreamName,
    written: &[Written],
    followed: &BTreeMap<ShardId, Vec<Record>>,
) {
    let graph = trial.graph(stream).await;
    check_partition(trial, &graph);
    let mut in_order = Vec::new();
    let mut done = HashSet::new();
    while let Some(shard) = graph.readable(|id| done.contains(id)).first() {
        let read = trial.read_all(stream, &shard.id).await;
        let mut expected: Vec<_> = written.iter().filter(|w| w.shard == shard.id).collect();
        expected.sort_by_key(|w| w.sequence);
        trial.same(format!("records of {}", shard.id), gist(&read), gist_written(expected));
        let seen = followed.get(&shard.id);
        let seen = seen.unwrap_or_else(|| trial.fail(format!("{} was not followed", shard.id)));
        trial.same(format!("records followed of {}", shard.id), seen, &read);
        in_order.extend(read);
        done.insert(shard.id.clone());
    }
    trial.same("records in all shards", in_order.len(), written.len());
    check_order_of_keys(trial, &in_order);
}

/// Each key of the writers counts up by one.
fn check_order_of_keys(trial: &Trial, records: &[Record]) {
    let mut counts: HashMap<&[u8], u32> = HashMap::new();
    for record in records.iter().filter(|record| record.partition_key.starts_with(b"writer-")) {
        let count = counts.entry(&record.partition_key).or_default();
        *count += 1;
        let expected = count.to_be_bytes();
        trial.same(format!("the count of {:?}", record.partition_key), &record.data[..], &expected[..]);
    }
}
