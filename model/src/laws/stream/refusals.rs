//! Bad input: it is refused with the error that says what is wrong, and nothing has changed.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use super::trial::Trial;
use super::written::{gist, gist_written, some_records};
use crate::{
    Error, HashKey, NewRecord, NextMove, Position, ReadLimit, Record, Result, Shard, ShardId, StreamName,
    StreamOptions, StreamSummary, limits,
};

/// Everything that can be seen of a stream.
type Snapshot = (StreamSummary, Vec<Shard>, Vec<Vec<Record>>);

async fn snapshot(trial: &Trial, stream: &StreamName) -> Snapshot {
    let summary = trial.ok("describing the stream", trial.store().stream(stream).await);
    let shards = trial.shards(stream).await;
    let mut records = Vec::new();
    for shard in &shards {
        records.push(trial.read_all(stream, &shard.id).await);
    }
    (summary, shards, records)
}

/// Asserts that `call` is refused with an error that `fits`, and leaves `stream` as it was.
async fn refused<T: Debug>(
    trial: &Trial,
    stream: &StreamName,
    what: &str,
    fits: fn(&Error) -> bool,
    call: impl Future<Output = Result<T>>,
) {
    let before = snapshot(trial, stream).await;
    match call.await {
        Ok(value) => trial.fail(format!("{what} was not refused, but gave {value:?}")),
        Err(error) => {
            trial.holds(fits(&error), format!("{what} was refused with {error:?}"));
            trial.same(format!("what to do after {what}"), error.next_move(), NextMove::FixCall);
            trial.holds(!error.to_string().is_empty(), format!("{what} was refused without a word"));
        }
    }
    trial.same(format!("the stream after {what}"), snapshot(trial, stream).await, before);
}

fn invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_))
}

/// In an append each record has its own result: a bad one is refused, the others are stored.
pub async fn a_bad_record_fails_alone(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let bad = [
        NewRecord::new("", "empty key"),
        NewRecord::new("k".repeat(limits::PARTITION_KEY_CHARS_MAX + 1), "long key"),
        NewRecord::new("🦦".repeat(limits::PARTITION_KEY_CHARS_MAX + 1), "long key of many bytes"),
        NewRecord::new(vec![b'k', 0xff], "key that is not UTF-8"),
    ];
    let mut stored = Vec::new();
    for (round, bad) in bad.into_iter().enumerate() {
        let good = some_records(&format!("{round}"), 2);
        let records = vec![good[0].clone(), bad.clone(), good[1].clone()];
        let results = trial.ok("append", trial.store().append(&stream, records).await);
        let kinds: Vec<_> = results.iter().map(|result| result.is_ok()).collect();
        trial.same(format!("which records are stored around {:?}", bad.data), kinds, vec![true, false, true]);
        trial.holds(results[1].as_ref().is_err_and(invalid), format!("a bad record gave {:?}", results[1]));
        stored.extend(good.into_iter().map(|record| record.data));
    }
    let too_large = NewRecord::new("k", vec![0; limits::RECORD_BYTES_MAX + 1]);
    let results = trial.ok("append of a large record", trial.store().append(&stream, vec![too_large]).await);
    trial.holds(
        matches!(&results[..], [Err(error)] if invalid(error)),
        "a record that is too large was taken",
    );
    let read: Vec<_> = trial.read_all(&stream, &shard).await.into_iter().map(|record| record.data).collect();
    trial.same("records stored", read, stored);
}

/// An append that breaks a limit as a whole is refused as a whole.
pub async fn bad_appends_are_refused(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let written = trial.write(&stream, some_records("before", 3)).await;
    let store = trial.store();
    let mebibyte = NewRecord::new("k", vec![0; 1 << 20]);
    for (what, records) in [
        ("an empty append", Vec::new()),
        ("an append of too many records", some_records("many", limits::APPEND_RECORDS_MAX + 1)),
        ("an append of too many bytes", vec![mebibyte; 10]),
    ] {
        refused(&trial, &stream, what, invalid, store.append(&stream, records)).await;
    }
    let read = trial.read_all(&stream, &shard).await;
    trial.same("records stored", gist(&read), gist_written(&written));
}

/// A shard cannot be split outside its range, at its first key, when it holds a single key, or twice.
pub async fn bad_splits_are_refused(trial: Trial) {
    let stream = trial.stream(3).await;
    trial.write(&stream, some_records("before", 20)).await;
    let store = trial.store();
    let open = trial.open_shards(&stream).await;
    let (id, range) = (&open[1].id, trial.range(&open[1]));
    for (what, at) in [
        ("a split at the first key", range.first()),
        ("a split behind the last key", HashKey::new(range.last().get() + 1)),
        ("a split before the first key", HashKey::new(range.first().get() - 1)),
        ("a split at the end of the space", HashKey::MAX),
        ("a split at the start of the space", HashKey::MIN),
    ] {
        refused(&trial, &stream, what, invalid, store.split(&stream, id, at)).await;
    }
    // A split at the last key leaves a shard with that key only, or is refused, as by Kinesis.
    match store.split(&stream, id, range.last()).await {
        Ok([_, single]) => {
            for (what, at) in [
                ("a split of a single key", range.last()),
                ("a split of a single key elsewhere", HashKey::MAX),
            ] {
                refused(&trial, &stream, what, invalid, store.split(&stream, &single, at)).await;
            }
        }
        Err(error) => {
            trial.holds(invalid(&error), format!("a split at the last key was refused with {error:?}"));
            trial.split(&stream, &open[1]).await;
        }
    }
    let closed = |error: &Error| matches!(error, Error::ShardClosed(_));
    refused(&trial, &stream, "a second split", closed, store.split(&stream, id, range.last())).await;
}

/// Shards are merged only if both are open and one ends where the other begins.
pub async fn bad_merges_are_refused(trial: Trial) {
    let stream = trial.stream(5).await;
    trial.write(&stream, some_records("before", 20)).await;
    let store = trial.store();
    let open = trial.open_shards(&stream).await;
    let strangers = |error: &Error| matches!(error, Error::NotNeighbours(..));
    let itself = |error: &Error| matches!(error, Error::NotNeighbours(..) | Error::Invalid(_));
    let closed = |error: &Error| matches!(error, Error::ShardClosed(_));
    let merge = |one: usize, other: usize| store.merge(&stream, &open[one].id, &open[other].id);
    refused(&trial, &stream, "a merge across a gap", strangers, merge(0, 2)).await;
    // The space is not a ring: its first and its last key do not touch.
    refused(&trial, &stream, "a merge around the space", strangers, merge(0, 4)).await;
    refused(&trial, &stream, "a merge of a shard with itself", itself, merge(1, 1)).await;
    let child = trial.merge(&stream, &open[1].id, &open[2].id).await;
    refused(&trial, &stream, "a merge of closed shards", closed, merge(1, 2)).await;
    refused(&trial, &stream, "a merge with a closed shard", closed, merge(0, 1)).await;
    refused(&trial, &stream, "a merge with a closed neighbour", closed, merge(3, 2)).await;
    let with_parent = store.merge(&stream, &child, &open[1].id);
    refused(&trial, &stream, "a merge of a child with its parent", closed, with_parent).await;
}

/// Streams are made and changed within the limits only, and a name is given once.
pub async fn bad_streams_are_refused(trial: Trial) {
    let stream = trial.stream(2).await;
    trial.write(&stream, some_records("before", 20)).await;
    let store = trial.store();
    let fine = StreamOptions::default();
    let short = limits::RETENTION_MIN - Duration::from_millis(1);
    let long = limits::RETENTION_MAX + Duration::from_millis(1);
    for (what, options) in [
        ("a stream without shards", StreamOptions { shards: 0, ..fine }),
        ("a stream with too many shards", StreamOptions { shards: limits::OPEN_SHARDS_MAX + 1, ..fine }),
        ("a stream with short retention", StreamOptions { retention: short, ..fine }),
        ("a stream with long retention", StreamOptions { retention: long, ..fine }),
    ] {
        let name = trial.fresh_name();
        refused(&trial, &stream, what, invalid, store.create_stream(&name, options)).await;
        let unknown = Some(Error::StreamNotFound(name.clone()));
        trial.same(format!("{what} afterwards"), store.stream(&name).await.err(), unknown);
    }
    for retention in [Duration::ZERO, short, long, Duration::MAX] {
        let what = format!("a retention of {retention:?}");
        refused(&trial, &stream, &what, invalid, store.set_retention(&stream, retention)).await;
    }
    let exists = |error: &Error| matches!(error, Error::StreamExists(_));
    let other = StreamOptions { shards: 5, retention: limits::RETENTION_MAX };
    refused(&trial, &stream, "a name that is taken", exists, store.create_stream(&stream, other)).await;
}

/// Every call says whether it is the stream or the shard that it does not know.
pub async fn unknown_names_are_refused(trial: Trial) {
    let stream = trial.stream(2).await;
    trial.write(&stream, some_records("before", 20)).await;
    let store = trial.store();
    let (name, known) = (trial.fresh_name(), trial.open_shards(&stream).await.swap_remove(0).id);
    let id = trial.ok("an identifier", ShardId::new("no-such-shard"));
    let (from, limit, at) = (Position::TrimHorizon, ReadLimit::default(), HashKey::MAX);

    let unknown = |error: &Error| matches!(error, Error::StreamNotFound(_));
    let call = "a call on an unknown stream";
    refused(&trial, &stream, call, unknown, store.stream(&name)).await;
    refused(&trial, &stream, call, unknown, store.delete_stream(&name)).await;
    refused(&trial, &stream, call, unknown, store.set_retention(&name, limits::RETENTION_MAX)).await;
    refused(&trial, &stream, call, unknown, store.append(&name, some_records("some", 1))).await;
    refused(&trial, &stream, call, unknown, store.shards(&name, None, 10)).await;
    refused(&trial, &stream, call, unknown, store.read(&name, &known, from, limit)).await;
    refused(&trial, &stream, call, unknown, follow(&trial, &name, &known)).await;
    refused(&trial, &stream, call, unknown, store.split(&name, &known, at)).await;
    refused(&trial, &stream, call, unknown, store.merge(&name, &known, &id)).await;

    let unknown = |error: &Error| matches!(error, Error::ShardNotFound(..));
    let call = "a call on an unknown shard";
    refused(&trial, &stream, call, unknown, store.read(&stream, &id, from, limit)).await;
    refused(&trial, &stream, call, unknown, follow(&trial, &stream, &id)).await;
    refused(&trial, &stream, call, unknown, store.split(&stream, &id, at)).await;
    refused(&trial, &stream, call, unknown, store.merge(&stream, &id, &known)).await;
    refused(&trial, &stream, call, unknown, store.merge(&stream, &known, &id)).await;
}

/// A follower without its batches, which cannot be shown.
async fn follow(trial: &Trial, stream: &StreamName, shard: &ShardId) -> Result<&'static str> {
    let follow = trial.store().follow(stream, shard, Position::TrimHorizon).await;
    follow.map(|_| "a follower")
}
