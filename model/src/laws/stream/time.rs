//! Arrival, reading from a moment, and retention.
//!
//! Nothing is assumed about when a store frees space, only about what can be read once it had time to tidy up.

use std::time::Duration;

use super::trial::{NO_CLOCK, Trial};
use super::written::{gist, gist_written, some_records};
use crate::{Error, Position, Record, ShardId, StreamName, StreamOptions, Timestamp, limits};

const HOUR: Duration = Duration::from_secs(3600);

/// Arrival never decreases in a shard, even when the time of day jumps back.
pub async fn arrival_never_decreases(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    for round in 0..8 {
        trial.write(&stream, some_records(&format!("{round}"), 5)).await;
        // Forward in the end, so that times of arrival grow as well as stand still.
        match round % 3 {
            0 => trial.advance(Duration::from_secs(100)).await,
            1 => trial.turn_back(Duration::from_secs(150)),
            _ => trial.advance(Duration::from_secs(200)).await,
        }
    }
    let read = trial.read_all(&stream, &shard).await;
    trial.same("records read", read.len(), 40);
    for pair in read.windows(2) {
        let (one, other) = (&pair[0], &pair[1]);
        trial.holds(one.arrival <= other.arrival, format!("{other:?} arrived before {one:?}"));
    }
}

/// `AtTimestamp(t)` starts with the first record whose arrival is at least `t`.
pub async fn at_timestamp_starts_with_the_first_arrival(trial: Trial) {
    if !trial.store().capabilities().at_timestamp {
        return trial.skip("the store does not know AtTimestamp");
    }
    let (stream, shard) = trial.single_shard().await;
    for round in 0..6 {
        trial.write(&stream, some_records(&format!("{round}"), 4)).await;
        trial.advance(Duration::from_secs(10)).await;
    }
    let all = trial.read_all(&stream, &shard).await;
    let first = all.first().map(|record| record.arrival).unwrap_or_default();
    let last = all.last().map(|record| record.arrival).unwrap_or_default();
    if trial.can_advance() {
        trial.holds(
            last.since(first) >= Duration::from_secs(50),
            format!("records written 50 seconds apart arrived at {first:?} and {last:?}"),
        );
    }
    let milli = Duration::from_millis(1);
    let around = all.iter().flat_map(|r| [r.arrival.minus(milli), r.arrival, r.arrival.plus(milli)]);
    for moment in around.chain([Timestamp::EPOCH]) {
        let read = trial.read_on(&stream, &shard, Position::AtTimestamp(moment)).await.records;
        let expected: Vec<Record> = all.iter().filter(|record| record.arrival >= moment).cloned().collect();
        trial.same(format!("records from {moment:?}"), gist(&read), gist(&expected));
        let settled = trial.settle(&stream, &shard, Position::AtTimestamp(moment)).await;
        let read = trial.read_on(&stream, &shard, settled).await.records;
        trial.same(format!("records from {settled:?}, for {moment:?}"), gist(&read), gist(&expected));
    }
}

/// `AtTimestamp` in the future behaves like `Latest`: what comes next is returned, though it comes before that moment.
pub async fn at_timestamp_in_the_future_is_latest(trial: Trial) {
    if !trial.store().capabilities().at_timestamp {
        return trial.skip("the store does not know AtTimestamp");
    }
    let (stream, shard) = trial.single_shard().await;
    trial.write(&stream, some_records("before", 5)).await;
    let read = trial.read_all(&stream, &shard).await;
    let future = read[read.len() - 1].arrival.plus(10 * HOUR);
    let reading = trial.read_on(&stream, &shard, Position::AtTimestamp(future)).await;
    trial.same("records from the future", gist(&reading.records), Vec::new());
    let written = trial.write(&stream, some_records("after", 5)).await;
    let read = trial.read_on(&stream, &shard, trial.position(&reading.next)).await.records;
    trial.same("records behind the future", gist(&read), gist_written(&written));
}

/// What is older than the retention is not returned from any position.
pub async fn retention_removes_what_is_old(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let (stream, shard) = trial.single_shard().await;
    let old = trial.write(&stream, some_records("old", 10)).await;
    trial.advance(limits::RETENTION_MIN / 2).await;
    let young = trial.write(&stream, some_records("young", 10)).await;
    trial.advance(limits::RETENTION_MIN / 2 + HOUR).await;
    let first = old[0].sequence;
    let mut positions = vec![Position::TrimHorizon, Position::At(first), Position::After(first)];
    if trial.store().capabilities().at_timestamp {
        positions.push(Position::AtTimestamp(Timestamp::EPOCH));
    }
    for from in positions {
        let read = trial.read_on(&stream, &shard, from).await.records;
        trial.same(format!("records from {from:?}"), gist(&read), gist_written(&young));
    }
    trial.advance(limits::RETENTION_MIN).await;
    trial.same("records after everything is old", trial.read_all(&stream, &shard).await, Vec::new());
    let fresh = trial.write(&stream, some_records("fresh", 3)).await;
    trial.same("records after that", gist(&trial.read_all(&stream, &shard).await), gist_written(&fresh));
}

/// What is younger than the retention stays, whatever was removed around it.
pub async fn retention_keeps_what_is_young(trial: Trial) {
    let day = limits::RETENTION_MIN;
    let short = trial.stream(2).await;
    let long = trial.stream_with(StreamOptions { shards: 2, retention: 10 * day }).await;
    let mut written = Vec::new();
    for round in 0..10 {
        trial.write(&short, some_records(&format!("short-{round}"), 20)).await;
        written.extend(trial.write(&long, some_records(&format!("long-{round}"), 20)).await);
        // Nine days in all: nothing of the long stream grows old.
        trial.advance(day * 9 / 10).await;
    }
    trial.upkeep().await;
    for shard in trial.open_shards(&long).await {
        let expected = gist_written(written.iter().filter(|w| w.shard == shard.id));
        let read = trial.read_all(&long, &shard.id).await;
        trial.same(format!("young records of {}", shard.id), gist(&read), expected);
    }
}

/// Shortening the retention removes what is older; the stream reports the new retention.
pub async fn shortened_retention_removes_what_is_older(trial: Trial) {
    let day = limits::RETENTION_MIN;
    let stream = trial.stream_with(StreamOptions { shards: 1, retention: 3 * day }).await;
    let shard = trial.open_shards(&stream).await.swap_remove(0).id;
    let mut expected = trial.write(&stream, some_records("old", 5)).await;
    trial.advance(day + HOUR).await;
    expected.extend(trial.write(&stream, some_records("young", 5)).await);
    let lengthened = trial.store().set_retention(&stream, 4 * day).await;
    trial.ok("lengthening the retention", lengthened);
    let read = trial.read_all(&stream, &shard).await;
    trial.same("records under long retention", gist(&read), gist_written(&expected));
    trial.ok("shortening the retention", trial.store().set_retention(&stream, day).await);
    let summary = trial.ok("describing the stream", trial.store().stream(&stream).await);
    trial.same("the retention", summary.retention, day);
    trial.upkeep().await;
    if trial.can_advance() {
        expected.drain(..5);
    }
    let read = trial.read_all(&stream, &shard).await;
    trial.same("records under short retention", gist(&read), gist_written(&expected));
}

/// A position whose record was removed, and a reader that stopped before it, go on with the oldest record left.
pub async fn a_trimmed_position_goes_on_at_the_horizon(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let (stream, shard) = trial.single_shard().await;
    let old = trial.write(&stream, some_records("old", 10)).await;
    let stopped = trial.read(&stream, &shard, Position::TrimHorizon, first_few()).await;
    let empty = trial.read_on(&stream, &shard, Position::Latest).await;
    trial.advance(limits::RETENTION_MIN + HOUR).await;
    let written = trial.write(&stream, some_records("young", 10)).await;
    for next in [stopped.next, empty.next] {
        let from = trial.position(&next);
        let read = trial.read_on(&stream, &shard, from).await.records;
        trial.same(format!("records from {from:?}"), gist(&read), gist_written(&written));
    }
    if let Some(last) = trial.ok("asking what was removed", trial.store().trimmed(&stream, &shard).await) {
        let is_between = old[9].sequence <= last && last < written[0].sequence;
        trial.holds(is_between, format!("{last} was removed last, and is not between old and young"));
    }
}

fn first_few() -> crate::ReadLimit {
    crate::ReadLimit { records: 3, ..crate::ReadLimit::default() }
}

/// Once retention has emptied a closed shard it has no records: it is gone, or ends at once. Its children stay, and
/// identifiers are not given again.
pub async fn children_outlive_their_trimmed_parents(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let (stream, parent) = trial.single_shard().await;
    trial.write(&stream, some_records("parent", 10)).await;
    let [lower, upper] = trial.split(&stream, &trial.shard(&stream, &parent).await).await;
    trial.advance(limits::RETENTION_MIN / 2).await;
    let written = trial.write(&stream, some_records("child", 20)).await;
    trial.advance(limits::RETENTION_MIN / 2 + HOUR).await;
    check_emptied(&trial, &stream, &parent, [&lower, &upper]).await;
    for child in [&lower, &upper] {
        let expected = gist_written(written.iter().filter(|w| w.shard == *child));
        let read = trial.read_all(&stream, child).await;
        trial.same(format!("records of the child {child}"), gist(&read), expected);
    }
    let merged = trial.merge(&stream, &lower, &upper).await;
    trial.holds(![&parent, &lower, &upper].contains(&&merged), format!("identifier {merged} is given again"));
}

async fn check_emptied(trial: &Trial, stream: &StreamName, parent: &ShardId, children: [&ShardId; 2]) {
    let read = trial.store().read(stream, parent, Position::TrimHorizon, first_few()).await;
    match read {
        Err(Error::ShardNotFound(..)) => {}
        Ok(batch) => {
            trial.same("records of the emptied parent", gist(&batch.records), Vec::new());
            let expected = super::trial::sorted(children.map(ShardId::clone).into());
            trial.same("children of the emptied parent", trial.children(&batch.next), expected);
        }
        Err(error) => trial.fail(format!("reading an emptied shard failed: {error}")),
    }
    let open: Vec<_> = trial.open_shards(stream).await.into_iter().map(|shard| shard.id).collect();
    trial.same("open shards", open, children.map(ShardId::clone).into());
}
