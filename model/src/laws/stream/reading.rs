//! Order, completeness and the limits of a single read.

use std::time::Duration;

use super::trial::Trial;
use super::written::{gist, gist_written, some_records};
use crate::{NewRecord, Position, ReadLimit, limits};

/// Key and payload come back byte for byte, whatever is in them.
pub async fn records_come_back_as_they_were(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let records = vec![
        NewRecord::new("plain", "text"),
        NewRecord::new("empty", ""),
        NewRecord::new("binary", every_byte),
        NewRecord::new("new\nline\0and\u{1b}", "\0"),
        NewRecord::new("ключ🦦", "данные"),
        NewRecord::new("k".repeat(limits::PARTITION_KEY_CHARS_MAX), vec![7; 100_000]),
    ];
    let written = trial.write(&stream, records).await;
    let read = trial.read_all(&stream, &shard).await;
    trial.same("records read", gist(&read), gist_written(&written));
}

/// Records of a shard come in strictly increasing sequence numbers, the same at every reading.
pub async fn records_keep_their_order(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    for round in 0..10 {
        trial.write(&stream, some_records(&format!("round-{round}"), 20)).await;
    }
    let first = trial.read_all(&stream, &shard).await;
    for pair in first.windows(2) {
        let (one, other) = (&pair[0], &pair[1]);
        trial.holds(one.sequence < other.sequence, format!("{other:?} comes behind {one:?}"));
    }
    for records in [1, 3, 7, 1_000] {
        let again = trial.read_by(&stream, &shard, Position::TrimHorizon, records).await.records;
        trial.same(format!("records read again by {records}"), again, first.clone());
    }
}

/// Reading from the trim horizon and following `next` returns every acknowledged record once, whatever the limits.
pub async fn nothing_is_skipped(trial: Trial) {
    let stream = trial.stream(3).await;
    let mut written = Vec::new();
    for round in 0..12 {
        written.extend(trial.write(&stream, some_records(&format!("round-{round}"), 1 + round * 5)).await);
    }
    for shard in trial.open_shards(&stream).await {
        let expected = gist_written(written.iter().filter(|w| w.shard == shard.id));
        for records in [1, 2, 5, 64, usize::MAX] {
            let read = trial.read_by(&stream, &shard.id, Position::TrimHorizon, records).await.records;
            trial.same(format!("{} read by {records}", shard.id), gist(&read), expected.clone());
        }
        for bytes in [0, 1, 20, 300] {
            let limit = ReadLimit { bytes, ..ReadLimit::default() };
            let mut read = Vec::new();
            let mut position = Position::TrimHorizon;
            for _ in 0..=expected.len() {
                let batch = trial.read(&stream, &shard.id, position, limit).await;
                read.extend(batch.records);
                position = trial.position(&batch.next);
            }
            trial.same(format!("{} read by {bytes} bytes", shard.id), gist(&read), expected.clone());
        }
    }
}

/// A read returns no more than its limit, but at least one record where there is one.
pub async fn a_read_keeps_its_limits(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let sizes = [10usize, 2_000, 10, 10, 500, 1, 1, 3_000, 10];
    let records = sizes.iter().map(|&size| NewRecord::new("k", vec![1; size])).collect();
    trial.write(&stream, records).await;
    for records in [0, 1, 2, 100, usize::MAX] {
        for bytes in [0, 1, 11, 12, 600, 5_000, usize::MAX] {
            let limit = ReadLimit { records, bytes };
            let read = trial.read(&stream, &shard, Position::TrimHorizon, limit).await.records;
            trial.holds(!read.is_empty(), format!("{limit:?} returned nothing"));
            trial.holds(
                read.len() <= limit.clamped().records,
                format!("{limit:?} returned {} records", read.len()),
            );
            // The last record may be the one that reaches the limit; none is added behind it.
            let before_last: usize = read[..read.len() - 1].iter().map(|record| record.size()).sum();
            trial.holds(
                before_last < limit.clamped().bytes,
                format!("{limit:?} went on adding records behind {before_last} bytes"),
            );
        }
    }
    let everything = trial.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default()).await.records;
    trial.same("records within the usual limits", everything.len(), sizes.len());
}

/// `behind` is zero once a read has caught up, and not before.
pub async fn behind_is_zero_only_at_the_end(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let empty = trial.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default()).await;
    trial.same("behind in an empty shard", empty.behind, Duration::ZERO);
    trial.write(&stream, some_records("early", 2)).await;
    // Records of one millisecond are no distance apart, so this part needs a clock that can be moved.
    trial.advance(Duration::from_secs(60)).await;
    trial.write(&stream, some_records("late", 1)).await;
    let limit = ReadLimit { records: 1, ..ReadLimit::default() };
    let first = trial.read(&stream, &shard, Position::TrimHorizon, limit).await;
    trial.holds(
        !trial.can_advance() || first.behind > Duration::ZERO,
        "behind is zero although a record that came a minute later was not read yet",
    );
    let whole = trial.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default()).await;
    trial.same("behind at the end", (whole.records.len(), whole.behind), (3, Duration::ZERO));
    let rest = trial.read(&stream, &shard, trial.position(&whole.next), ReadLimit::default()).await;
    trial.same("behind beyond the end", (rest.records.len(), rest.behind), (0, Duration::ZERO));
}
