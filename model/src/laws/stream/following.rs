//! Following yields what reading would, as it becomes durable.

use futures_util::StreamExt;
use futures_util::future::join;

use super::trial::{Trial, sorted};
use super::written::{gist, gist_written, some_records};
use crate::{Error, Position};

/// `follow` yields the records that `read` would, in that order, without gaps: those that were there and those that
/// come.
pub async fn following_sees_what_reading_sees(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let mut written = trial.write(&stream, some_records("before", 25)).await;
    let mut follow = trial.follow(&stream, &shard, Position::TrimHorizon).await;
    for round in 0..20 {
        written.extend(trial.write(&stream, some_records(&format!("round-{round}"), 1 + round)).await);
    }
    let count = written.len();
    let followed = trial.take_until(&mut follow, |records| records.len() >= count).await;
    trial.same("records followed", gist(&followed.records), gist_written(&written));
    // Now the follower has caught up, and each append has to wake it.
    for round in 0..20 {
        let label = format!("late-{round}");
        let writing = trial.write(&stream, some_records(&label, 2));
        let following = trial.take_until(&mut follow, |records| records.len() >= 2);
        let (late, followed) = join(writing, following).await;
        trial.same("late records followed", gist(&followed.records), gist_written(&late));
        written.extend(late);
    }
    trial.same("records read", gist(&trial.read_all(&stream, &shard).await), gist_written(&written));
}

/// Following starts where reading from the same position would.
pub async fn following_starts_anywhere(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let written = trial.write(&stream, some_records("some", 20)).await;
    let all = trial.read_all(&stream, &shard).await;
    let mut positions = vec![Position::TrimHorizon];
    for place in [0, 7, 18] {
        positions.push(Position::At(written[place].sequence));
        positions.push(Position::After(written[place].sequence));
        if trial.store().capabilities().at_timestamp {
            positions.push(Position::AtTimestamp(all[place].arrival));
        }
    }
    for from in positions {
        let read = trial.read_on(&stream, &shard, from).await.records;
        let mut follow = trial.follow(&stream, &shard, from).await;
        let followed = trial.take_until(&mut follow, |records| records.len() >= read.len()).await;
        trial.same(format!("records followed from {from:?}"), gist(&followed.records), gist(&read));
    }
}

/// Once `follow` from `Latest` has returned, it yields everything that is acknowledged from then on and nothing older.
pub async fn following_latest_sees_only_what_comes_later(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    for round in 0..5 {
        trial.write(&stream, some_records(&format!("before-{round}"), 3)).await;
        let mut follow = trial.follow(&stream, &shard, Position::Latest).await;
        let written = trial.write(&stream, some_records(&format!("after-{round}"), 3)).await;
        let followed = trial.take_until(&mut follow, |records| records.len() >= 3).await;
        trial.same("records followed from latest", gist(&followed.records), gist_written(&written));
    }
}

/// Following yields `Ended` with the children after the last record, and then nothing: whether the shard is closed
/// before, or while it is followed.
pub async fn following_ends_with_the_shard(trial: Trial) {
    let (stream, parent) = trial.single_shard().await;
    let mut written = trial.write(&stream, some_records("before", 10)).await;
    let mut early = trial.follow(&stream, &parent, Position::TrimHorizon).await;
    let mut caught_up = trial.follow(&stream, &parent, Position::TrimHorizon).await;
    let start = trial.take_until(&mut caught_up, |records| records.len() >= 10).await;
    trial.same("records before the split", gist(&start.records), gist_written(&written));
    written.extend(trial.write(&stream, some_records("last", 3)).await);
    let parent_shard = trial.shard(&stream, &parent).await;
    let children = sorted(trial.split(&stream, &parent_shard).await.into());
    trial.write(&stream, some_records("child", 10)).await;
    let mut late = trial.follow(&stream, &parent, Position::TrimHorizon).await;
    let mut from_latest = trial.follow(&stream, &parent, Position::Latest).await;
    let cases = [
        ("an early follower", &mut early, &written[..]),
        ("a follower that had caught up", &mut caught_up, &written[10..]),
        ("a late follower", &mut late, &written[..]),
        ("a follower from latest", &mut from_latest, &[]),
    ];
    for (who, follow, expected) in cases {
        let followed = trial.take_until(follow, |_| false).await;
        trial.same(format!("records of {who}"), gist(&followed.records), gist_written(expected));
        trial.same(format!("children of {who}"), trial.children(&followed.next), children.clone());
        let beyond = follow.next().await;
        trial.holds(beyond.is_none(), format!("{who} got {beyond:?} behind the end"));
    }
}

/// Followers of one shard all see everything; one that stops or is slow takes nothing from the others.
pub async fn followers_do_not_disturb_each_other(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let mut reader = trial.follow(&stream, &shard, Position::TrimHorizon).await;
    let mut slow = trial.follow(&stream, &shard, Position::TrimHorizon).await;
    let mut written = Vec::new();
    let mut seen = Vec::new();
    for round in 0..10 {
        let mut quitter = trial.follow(&stream, &shard, Position::TrimHorizon).await;
        written.extend(trial.write(&stream, some_records(&format!("round-{round}"), 10)).await);
        trial.take_until(&mut quitter, |records| !records.is_empty()).await;
        drop(quitter);
        seen.extend(trial.take_until(&mut reader, |records| records.len() >= 10).await.records);
    }
    trial.same("records of the first follower", gist(&seen), gist_written(&written));
    let followed = trial.take_until(&mut slow, |records| records.len() >= 100).await;
    trial.same("records of the slow follower", gist(&followed.records), gist_written(&written));
}

/// Following a stream that is deleted ends with an error: it neither ends as if all was read nor waits for ever.
pub async fn following_a_deleted_stream_fails(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    let written = trial.write(&stream, some_records("some", 3)).await;
    let mut follow = trial.follow(&stream, &shard, Position::TrimHorizon).await;
    let followed = trial.take_until(&mut follow, |records| records.len() >= 3).await;
    trial.same("records followed", gist(&followed.records), gist_written(&written));
    trial.ok("deleting the stream", trial.store().delete_stream(&stream).await);
    let mut items = 0;
    let last = loop {
        match follow.next().await {
            Some(Ok(batch)) => trial.same("records after the deletion", gist(&batch.records), Vec::new()),
            other => break other,
        }
        items += 1;
        trial.holds(items < 1_000, "following a deleted stream yields empty batches without end");
    };
    trial.holds(
        matches!(last, Some(Err(Error::StreamNotFound(_) | Error::ShardNotFound(..)))),
        format!("following a deleted stream gave {last:?}"),
    );
    let beyond = follow.next().await;
    trial.holds(beyond.is_none(), format!("following went on with {beyond:?} behind an error"));
}
