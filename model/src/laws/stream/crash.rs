//! What was acknowledged is there after the store ended without warning.

use std::collections::{HashMap, HashSet};

use futures_util::future::select_all;

use super::trial::{NO_CRASH, Trial, give_way};
use super::written::{Notebook, gist, gist_written, some_records};
use crate::{Error, SequenceNumber, StreamName, StreamOptions, limits};

const WRITERS: usize = 8;

/// What `append` reported as stored is there after a crash, under its number; what was under way may be there, once.
pub async fn acknowledged_records_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let stream = trial.stream(3).await;
    let notebook = Notebook::default();
    for crash in 0..3 {
        // The first writer that is through leaves the others in the middle of an append.
        let writers = (0..WRITERS).map(|writer| {
            Box::pin(write_until_crash(&trial, &stream, format!("{crash}-{writer}"), notebook.clone()))
        });
        let (.., under_way) = select_all(writers).await;
        drop(under_way);
        trial.crash().await;
        check_survivors(&trial, &stream, &notebook).await;
    }
}

async fn write_until_crash(trial: &Trial, stream: &StreamName, label: String, notebook: Notebook) {
    for round in 0..25 {
        notebook.note(trial.write(stream, some_records(&format!("{label}-{round}"), 3)).await);
        give_way().await;
    }
}

async fn check_survivors(trial: &Trial, stream: &StreamName, notebook: &Notebook) {
    let mut payloads = HashSet::new();
    for shard in trial.open_shards(stream).await {
        let read = trial.read_all(stream, &shard.id).await;
        for record in &read {
            trial.holds(payloads.insert(record.data.clone()), format!("{record:?} is there twice"));
        }
        let mut expected: Vec<_> = notebook.all().into_iter().filter(|w| w.shard == shard.id).collect();
        expected.sort_by_key(|written| written.sequence);
        let numbers: HashSet<_> = expected.iter().map(|written| written.sequence).collect();
        let acknowledged: Vec<_> =
            read.into_iter().filter(|record| numbers.contains(&record.sequence)).collect();
        trial.same(
            format!("acknowledged records of {} after a crash", shard.id),
            gist(&acknowledged),
            gist_written(&expected),
        );
    }
}

/// Splits and merges that were acknowledged hold after a crash, with the records on both sides of them.
pub async fn shards_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let stream = trial.stream(2).await;
    for round in 0..3 {
        trial.write(&stream, some_records(&format!("round-{round}"), 20)).await;
        let open = trial.open_shards(&stream).await;
        trial.split(&stream, &open[1]).await;
        trial.merge(&stream, &open[0].id, &trial.open_shards(&stream).await[1].id).await;
        let shards = trial.shards(&stream).await;
        let mut readings = Vec::new();
        for shard in &shards {
            readings.push(trial.read_all(&stream, &shard.id).await);
        }
        trial.crash().await;
        trial.same("shards after a crash", trial.shards(&stream).await, shards.clone());
        for (shard, reading) in shards.iter().zip(readings) {
            let again = trial.read_all(&stream, &shard.id).await;
            trial.same(format!("records of {} after a crash", shard.id), again, reading);
        }
    }
}

/// Streams that were made, changed and deleted stay so after a crash.
pub async fn streams_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let (made, changed, deleted) = (trial.stream(3).await, trial.stream(1).await, trial.stream(1).await);
    let again = trial.stream(1).await;
    for stream in [&made, &changed, &deleted, &again] {
        trial.write(stream, some_records("before", 10)).await;
    }
    trial.ok("changing retention", trial.store().set_retention(&changed, limits::RETENTION_MAX).await);
    trial.ok("deleting", trial.store().delete_stream(&deleted).await);
    trial.ok("deleting", trial.store().delete_stream(&again).await);
    trial.ok("making again", trial.store().create_stream(&again, StreamOptions::default()).await);
    let mut before = Vec::new();
    for stream in [&made, &changed, &again] {
        before.push(trial.ok("describing", trial.store().stream(stream).await));
    }
    trial.crash().await;
    for summary in before {
        let after = trial.ok("describing after a crash", trial.store().stream(&summary.name).await);
        trial.same("a stream after a crash", after, summary);
    }
    let gone = trial.store().stream(&deleted).await.err();
    trial.same("a deleted stream after a crash", gone, Some(Error::StreamNotFound(deleted)));
    let shard = trial.open_shards(&again).await.swap_remove(0).id;
    trial.same("records of a stream made again", trial.read_all(&again, &shard).await, Vec::new());
}

/// After a crash numbers go on growing in every shard, and neither a number nor an identifier is given again.
pub async fn numbers_are_not_given_again_after_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let stream = trial.stream(2).await;
    let mut given: HashSet<SequenceNumber> = HashSet::new();
    let mut last = HashMap::new();
    let mut ids: HashSet<_> = trial.shards(&stream).await.into_iter().map(|shard| shard.id).collect();
    for round in 0..4 {
        for written in trial.write(&stream, some_records(&format!("round-{round}"), 20)).await {
            trial.holds(
                given.insert(written.sequence),
                format!("{written:?} has a number that was given before"),
            );
            let before = last.insert(written.shard.clone(), written.sequence);
            trial.holds(before < Some(written.sequence), format!("{written:?} comes behind {before:?}"));
        }
        let open = trial.open_shards(&stream).await;
        for child in trial.split(&stream, &open[0]).await {
            trial.holds(ids.insert(child.clone()), format!("a split gave {child} again"));
        }
        trial.crash().await;
    }
}
