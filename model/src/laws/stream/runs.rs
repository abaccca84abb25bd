//! Runs: records of one append with one hash key, of which none is stored behind one that is not. A store that does not
//! promise that ([`StreamStore::keeps_runs`](crate::StreamStore::keeps_runs)) is left in peace.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;

use super::trial::{NO_CRASH, Trial, give_way};
use crate::{HashKey, NewRecord, PartitionKey, StreamName, StreamStore, limits};

/// Why a law about runs is not put to the test.
const NO_PROMISE: &str = "the store does not promise to keep runs";
/// Why a law about refusals is not put to the test.
const NO_LIMITS: &str = "the fixture has no store that refuses what is too much for a shard";
/// Runs that share an append.
const RUNS: usize = 3;
const WRITERS: usize = 8;

/// When a shard refuses a record, it stores none that comes behind it in its run; other runs of the append are their own.
pub async fn a_refused_record_takes_its_run_along(trial: Trial) {
    let Some(store) = trial.limited().await else { return trial.skip(NO_LIMITS) };
    if !store.keeps_runs() {
        return trial.skip(NO_PROMISE);
    }
    let stream = trial.stream_in(&*store, 1).await;
    let mut expected: HashMap<PartitionKey, Vec<Bytes>> = HashMap::new();
    let mut refused = 0;
    for round in 0..3 {
        // More than a shard takes in a second, large records before small ones that would still fit.
        let size = |number: usize| if number % 4 < 2 { 90_000 } else { 10 };
        let records: Vec<_> = (0..40).map(|number| record(round, number, size(number))).collect();
        let results = trial.ok("append", store.append(&stream, records.clone()).await);
        trial.same("results of an append", results.len(), records.len());
        let mut broken: HashMap<HashKey, usize> = HashMap::new();
        for (number, (record, result)) in records.into_iter().zip(results).enumerate() {
            let key = record.hash_key();
            match result {
                Err(_) => {
                    refused += 1;
                    broken.entry(key).or_insert(number);
                }
                Ok(_) => {
                    let before = broken.get(&key);
                    trial.holds(
                        before.is_none(),
                        format!("record {number} is stored, and {before:?} before it in its run is not"),
                    );
                    expected.entry(record.partition_key).or_default().push(record.data);
                }
            }
        }
        trial.advance(Duration::from_millis(100)).await;
    }
    trial.holds(refused > 0, "nothing was refused");
    trial.holds(!expected.is_empty(), "everything was refused");
    trial.same("what is stored", stored(&trial, &*store, &stream).await, expected);
}

/// An append that a crash interrupts leaves the beginning of each of its runs, or all, or nothing.
pub async fn a_crash_leaves_no_hole_in_a_run(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    if !trial.store().keeps_runs() {
        return trial.skip(NO_PROMISE);
    }
    let stream = trial.stream(RUNS).await;
    for crash in 0..3 {
        // The first writer that is through leaves the others in the middle of an append.
        let writers =
            (0..WRITERS).map(|writer| Box::pin(write_until_crash(&trial, &stream, crash * WRITERS + writer)));
        let (.., under_way) = select_all(writers).await;
        drop(under_way);
        trial.crash().await;
        for (run, payloads) in stored(&trial, &*trial.store(), &stream).await {
            let numbers = payloads.iter().map(|data| data.split(|byte| *byte == b' ').next());
            let numbers: Vec<_> = numbers.flatten().map(Bytes::copy_from_slice).collect();
            let expected: Vec<_> = (0..numbers.len()).map(|number| Bytes::from(number.to_string())).collect();
            trial.same(format!("records of run {run:?} after a crash"), numbers, expected);
        }
    }
}

async fn write_until_crash(trial: &Trial, stream: &StreamName, writer: usize) {
    for round in 0..10 {
        let name = |number: usize| format!("run-{writer}-{round}-{}", number % RUNS);
        let place = |number: usize| key_of(number % RUNS, round + writer);
        let record = |number: usize| NewRecord {
            explicit_hash_key: Some(place(number)),
            ..NewRecord::new(name(number), format!("{} {}", number / RUNS, "x".repeat(100 * (number % 5))))
        };
        let records: Vec<_> = (0..8 * RUNS).map(record).collect();
        for result in trial.ok("append", trial.store().append(stream, records).await) {
            trial.ok("appending a record", result);
        }
        give_way().await;
    }
}

/// A hash key in one of as many parts of the space as there are runs.
fn key_of(run: usize, salt: usize) -> HashKey {
    HashKey::new(u128::MAX / RUNS as u128 * run as u128 + salt as u128 * 1_000)
}

/// A record of one of the runs of a round, each with a key and a place of its own.
fn record(round: usize, number: usize, bytes: usize) -> NewRecord {
    let run = number % RUNS;
    NewRecord {
        explicit_hash_key: Some(key_of(run, round)),
        ..NewRecord::new(format!("run-{round}-{run}"), format!("{number} {}", "x".repeat(bytes)))
    }
}

/// Payloads by partition key, in the order of their shards.
async fn stored(
    trial: &Trial,
    store: &dyn StreamStore,
    stream: &StreamName,
) -> HashMap<PartitionKey, Vec<Bytes>> {
    let mut found: HashMap<PartitionKey, Vec<Bytes>> = HashMap::new();
    for shard in trial.shards_in(store, stream, limits::PAGE_ENTRIES_MAX).await {
        for record in trial.read_all_in(store, stream, &shard.id).await {
            found.entry(record.partition_key).or_default().push(record.data);
        }
    }
    found
}
