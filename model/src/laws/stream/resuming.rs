//! Where reading starts, and where it goes on.

use super::trial::Trial;
use super::written::{gist, gist_written, some_records};
use crate::{Next, Position, ReadLimit};

/// `At(s)` starts with the record `s`, `After(s)` with the one behind it.
pub async fn at_and_after_find_their_record(trial: Trial) {
    let stream = trial.stream(2).await;
    let mut written = Vec::new();
    for round in 0..5 {
        written.extend(trial.write(&stream, some_records(&format!("round-{round}"), 8)).await);
    }
    for shard in trial.open_shards(&stream).await {
        let mine: Vec<_> = written.iter().filter(|w| w.shard == shard.id).collect();
        for (place, record) in mine.iter().enumerate() {
            let sequence = record.sequence;
            for (from, first) in [
                (Position::At(sequence), place),
                (Position::After(sequence), place + 1),
                // A number that no record has stands for the first one behind it.
                (Position::At(sequence.next()), place + 1),
            ] {
                let read = trial.read_on(&stream, &shard.id, from).await.records;
                let expected = gist_written(mine[first..].iter().copied());
                trial.same(format!("{} from {from:?}", shard.id), gist(&read), expected);
            }
        }
        let everything = trial.read_on(&stream, &shard.id, Position::At(shard.starts_at)).await.records;
        trial.same("from the start of the shard", gist(&everything), gist_written(mine));
    }
}

/// A batch's `next` starts with the first record that the batch did not contain, also when records came or the shard
/// was closed in between.
pub async fn a_batch_is_resumed_where_it_ended(trial: Trial) {
    for records in [1, 2, 3, 10] {
        let (stream, shard) = trial.single_shard().await;
        let mut written = trial.write(&stream, some_records("before", 11)).await;
        let limit = ReadLimit { records, ..ReadLimit::default() };
        let mut read = Vec::new();
        let mut next = Next::At(Position::TrimHorizon);
        let mut rounds = 0;
        while let Next::At(position) = next {
            let batch = trial.read(&stream, &shard, position, limit).await;
            read.extend(batch.records);
            next = batch.next;
            rounds += 1;
            trial.holds(rounds < 100, "reading a closed shard does not end");
            trial.holds(
                read.len() <= written.len(),
                format!("read {} records, but only {} were written", read.len(), written.len()),
            );
            match rounds {
                // A record for every one that is read, so that the end moves while it is approached.
                1..=3 => written.extend(trial.write(&stream, some_records(&format!("{rounds}"), 1)).await),
                4 => {
                    trial.split(&stream, &trial.shard(&stream, &shard).await).await;
                }
                _ => {}
            }
        }
        trial.same(format!("records read by {records}"), gist(&read), gist_written(&written));
    }
}

/// `Latest` returns nothing that was acknowledged before the call, and its `next` everything after.
pub async fn latest_returns_only_what_comes_later(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    for round in 0..5 {
        let latest = trial.read(&stream, &shard, Position::Latest, ReadLimit::default()).await;
        trial.same("records from latest", gist(&latest.records), Vec::new());
        let position = trial.position(&latest.next);
        for written_since in [1, 3] {
            let before = trial.read_on(&stream, &shard, position).await.records.len();
            let written = trial.write(&stream, some_records(&format!("{round}"), written_since)).await;
            let read = trial.read_on(&stream, &shard, position).await.records;
            trial.same("records behind latest", gist(&read[before..]), gist_written(&written));
        }
    }
    let children = trial.split(&stream, &trial.shard(&stream, &shard).await).await;
    let latest = trial.read(&stream, &shard, Position::Latest, ReadLimit::default()).await;
    trial.same("records from latest in a closed shard", gist(&latest.records), Vec::new());
    trial.same("children behind latest", trial.children(&latest.next), super::trial::sorted(children.into()));
}

/// `next` is never `Latest`, and neither is what a position is settled to: reading from it twice gives the same.
pub async fn a_resolved_position_stays_resolved(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let mut positions = Vec::new();
    for round in 0..4 {
        for from in [Position::Latest, Position::TrimHorizon] {
            let reading = trial.read_on(&stream, &shard, from).await;
            let position = trial.position(&reading.next);
            trial.holds(
                position != Position::Latest,
                format!("reading from {from:?} goes on at {position:?}"),
            );
            positions.push((position, round * 5));
            let settled = trial.settle(&stream, &shard, from).await;
            trial.holds(settled != Position::Latest, format!("{from:?} is settled to {settled:?}"));
            positions.push((settled, if from == Position::Latest { round * 5 } else { 0 }));
        }
        trial.write(&stream, some_records(&format!("{round}"), 5)).await;
    }
    let everything = trial.read_all(&stream, &shard).await;
    for (position, already_read) in positions {
        let read = trial.read_on(&stream, &shard, position).await.records;
        trial.same(format!("records from {position:?}"), gist(&read), gist(&everything[already_read..]));
    }
}
