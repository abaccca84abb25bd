//! Appending: visibility, routing, order, and numbers that are given once.

use std::collections::{HashMap, HashSet};

use super::trial::Trial;
use super::written::{Written, gist, gist_written, placed, some_records};
use crate::{HashRange, NewRecord, Position, SequenceNumber, ShardGraph, ShardId, StreamName, limits};

/// A read that starts after the acknowledgement sees the record.
pub async fn acknowledged_records_are_visible(trial: Trial) {
    let stream = trial.stream(2).await;
    let mut next: HashMap<ShardId, Position> = HashMap::new();
    for round in 0..40 {
        let written = trial.write_one(&stream, NewRecord::new(format!("{round}"), "data")).await;
        let from = next.get(&written.shard).copied().unwrap_or(Position::TrimHorizon);
        for from in [from, Position::At(written.sequence)] {
            let reading = trial.read_on(&stream, &written.shard, from).await;
            trial.same("records just written", gist(&reading.records), gist_written([&written]));
            next.insert(written.shard.clone(), trial.position(&reading.next));
        }
    }
}

/// A record goes to the open shard whose range holds its hash key.
pub async fn records_go_where_their_key_belongs(trial: Trial) {
    for shards in [1, 2, 3, 7] {
        let stream = trial.stream(shards).await;
        let ranges: Vec<_> = trial.open_shards(&stream).await.iter().map(|s| trial.range(s)).collect();
        trial.same("ranges of a new stream", ranges, HashRange::even(shards));
        check_routing(&trial, &stream).await;
        let open = trial.open_shards(&stream).await;
        trial.split(&stream, &open[shards / 2]).await;
        check_routing(&trial, &stream).await;
        let open = trial.open_shards(&stream).await;
        trial.merge(&stream, &open[0].id, &open[1].id).await;
        check_routing(&trial, &stream).await;
    }
}

/// Writes to both ends of every range, and wherever some partition keys fall.
async fn check_routing(trial: &Trial, stream: &StreamName) {
    let open = trial.open_shards(stream).await;
    let mut records = some_records("hashed", 50);
    for range in open.iter().map(|shard| trial.range(shard)) {
        records.push(placed(range.first(), "first"));
        records.push(placed(range.last(), "last"));
    }
    for written in trial.write(stream, records).await {
        let key = written.record.hash_key();
        let owner = open.iter().find(|shard| trial.range(shard).contains(key)).map(|shard| &shard.id);
        trial.same(format!("the shard of {key}"), Some(&written.shard), owner);
        let read = trial.read(stream, &written.shard, Position::At(written.sequence), one()).await.records;
        trial.same("the record in its shard", gist(&read), gist_written([&written]));
    }
}

fn one() -> crate::ReadLimit {
    crate::ReadLimit { records: 1, ..crate::ReadLimit::default() }
}

/// Records of one append to one shard keep their order, and a later append gets larger numbers in every shard.
pub async fn appends_keep_their_order(trial: Trial) {
    let stream = trial.stream(3).await;
    let mut written: Vec<Written> = Vec::new();
    let mut last: HashMap<ShardId, SequenceNumber> = HashMap::new();
    for round in 0..20 {
        let batch = trial.write(&stream, some_records(&format!("round-{round}"), 1 + round * 3)).await;
        for record in &batch {
            let before = last.insert(record.shard.clone(), record.sequence);
            trial.holds(before < Some(record.sequence), format!("{record:?} comes behind number {before:?}"));
        }
        written.extend(batch);
    }
    for shard in trial.open_shards(&stream).await {
        let read = trial.read_all(&stream, &shard.id).await;
        let expected = gist_written(written.iter().filter(|w| w.shard == shard.id));
        trial.same(format!("records of {}", shard.id), gist(&read), expected);
    }
}

/// The results of an append are in the order of its records.
pub async fn results_stand_in_the_order_of_records(trial: Trial) {
    let stream = trial.stream(4).await;
    let open = trial.open_shards(&stream).await;
    // Neighbours in the append go to different shards, so that gathering by shard mixes them up.
    let key = |n: usize| trial.range(&open[n * 3 % 4]).first();
    let records = (0..100).map(|n| placed(key(n), format!("{n}"))).collect();
    for (n, written) in trial.write(&stream, records).await.into_iter().enumerate() {
        trial.same(format!("the shard of record {n}"), &written.shard, &open[n * 3 % 4].id);
        let read = trial.read(&stream, &written.shard, Position::At(written.sequence), one()).await.records;
        trial.same(format!("record {n}"), gist(&read), gist_written([&written]));
    }
}

/// The ranges of the open shards are a partition of the hash-key space after every change.
pub async fn open_ranges_are_a_partition(trial: Trial) {
    for shards in [1, 2, 3, 5, 16] {
        let stream = trial.stream(shards).await;
        check_partition(&trial, &trial.graph(&stream).await);
        trial.same("shards of a new stream", trial.open_shards(&stream).await.len(), shards);
        for step in 0..8 {
            let open = trial.open_shards(&stream).await;
            if step % 3 == 2 {
                trial.merge(&stream, &open[0].id, &open[1].id).await;
            } else {
                // Splits away from the middle leave small ranges beside large ones.
                let range = trial.range(&open[step % open.len()]);
                let at = HashRange::new(range.first(), range.midpoint().unwrap_or(range.last()));
                let at = trial.ok("half a range", at).midpoint().unwrap_or(range.last());
                let split = trial.store().split(&stream, &open[step % open.len()].id, at).await;
                let [_, upper] = trial.ok("split", split);
                let begins = trial.range(&trial.shard(&stream, &upper).await).first();
                trial.same("where the upper shard begins", begins, at);
            }
            check_partition(&trial, &trial.graph(&stream).await);
        }
    }
}

pub(super) fn check_partition(trial: &Trial, graph: &ShardGraph) {
    trial.same("parts that no open shard covers", graph.holes(), Vec::new());
    trial.same("parts that two open shards cover", graph.overlaps(), Vec::new());
}

/// A sequence number is given once in the life of a store, whatever stream and shard it is for.
pub async fn numbers_are_given_once(trial: Trial) {
    let mut given: HashSet<SequenceNumber> = HashSet::new();
    let streams = [trial.stream(1).await, trial.stream(4).await];
    for round in 0..20 {
        for stream in &streams {
            for written in trial.write(stream, some_records(&format!("round-{round}"), 15)).await {
                let fresh = given.insert(written.sequence);
                trial.holds(fresh, format!("{} was given before, and now to {written:?}", written.sequence));
            }
        }
    }
}

/// As many records as the limits allow are stored at once and come back, also one with the longest key.
pub async fn an_append_of_the_most_records_is_stored(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let mut most = some_records("most", limits::APPEND_RECORDS_MAX);
    most[0] = NewRecord::new(longest_key(), vec![0xab; 2_000]);
    let written = trial.write(&stream, most).await;
    let reading = trial.read_on(&stream, &shard, Position::TrimHorizon).await;
    trial.same("records", gist(&reading.records), gist_written(&written));
}

fn longest_key() -> String {
    "🦦".repeat(limits::PARTITION_KEY_CHARS_MAX)
}

/// What is as large as the limits allow is stored and comes back.
pub async fn the_largest_append_is_stored(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    // Where the key counts towards the size of a record, it takes its part of it. How long keys of other characters may be
    // is said by the law above.
    let key = "k".repeat(limits::PARTITION_KEY_CHARS_MAX);
    let data = vec![0xab; limits::RECORD_BYTES_MAX - key.len()];
    let largest = NewRecord::new(key, data);
    let half = NewRecord::new("k", vec![0xcd; limits::APPEND_BYTES_MAX / 2 - 1]);
    let mut from = Position::TrimHorizon;
    for records in [vec![largest], vec![half.clone(), half]] {
        let written = trial.write(&stream, records).await;
        let reading = trial.read_on(&stream, &shard, from).await;
        trial.holds(
            gist(&reading.records) == gist_written(&written),
            "a large append did not come back as it was",
        );
        from = trial.position(&reading.next);
    }
}
