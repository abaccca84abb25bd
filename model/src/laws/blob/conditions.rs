//! Writes that depend on what is there.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::join_all;

use super::bytes::{some_bytes, whole};
use super::trial::Trial;
use crate::blob::{BlobKey, BlobMeta, BucketName, ETag, PutOptions, WriteCondition};
use crate::laws::trial::give_way;
use crate::{Error, NextMove};

const WRITERS: u64 = 16;

fn under(condition: WriteCondition) -> PutOptions {
    PutOptions { condition, ..PutOptions::default() }
}

fn every_condition(mine: &ETag) -> [WriteCondition; 7] {
    let other = ETag::of_md5([0; 16]);
    [
        WriteCondition::None,
        WriteCondition::IfAbsent,
        WriteCondition::IfPresent,
        WriteCondition::IfMatch(mine.clone()),
        WriteCondition::IfMatch(other.clone()),
        WriteCondition::IfNoneMatch(mine.clone()),
        WriteCondition::IfNoneMatch(other),
    ]
}

/// A put goes ahead or changes nothing, as [`WriteCondition`] says, with and without a blob under its key.
pub async fn write_conditions_are_decided(trial: Trial) {
    let bucket = trial.bucket().await;
    let (old, new) = (some_bytes(1, 100), some_bytes(2, 200));
    let (present, absent) = (trial.key("present"), trial.key("absent"));
    let mine = trial.put(&bucket, &present, &old).await.etag;
    for condition in every_condition(&mine) {
        trial.put(&bucket, &present, &old).await;
        trial.ok("deleting", trial.store().delete(&bucket, &absent, None).await);
        for (key, current) in [(&present, Some(&mine)), (&absent, None)] {
            let what = format!("a put of {key} under {condition:?}");
            let before = trial.snapshot(&bucket).await;
            let expected = condition.check(&bucket, key, current);
            let put = trial.store().put(&bucket, key, whole(&new), under(condition.clone())).await;
            trial.same(&what, put.map(|_| ()), expected.clone());
            match expected {
                Ok(()) => trial.same_bytes(&what, &trial.read(&bucket, key).await, &new),
                Err(_) => trial.same(format!("after {what}"), trial.snapshot(&bucket).await, before),
            }
        }
    }
}

/// What each of the writers put, and those that were told that theirs was stored.
async fn race(
    trial: &Arc<Trial>,
    bucket: &BucketName,
    key: &BlobKey,
    condition: &WriteCondition,
) -> Vec<(BlobMeta, Bytes)> {
    let winners = Arc::new(Mutex::new(Vec::new()));
    let writers = (0..WRITERS).map(|writer| {
        let (trial, bucket, key) = (trial.clone(), bucket.clone(), key.clone());
        let (condition, winners) = (condition.clone(), winners.clone());
        trial.clone().spawn(async move {
            let bytes = some_bytes(100 + writer, 20_000 + writer as usize);
            give_way().await;
            match trial.store().put(&bucket, &key, whole(&bytes), under(condition)).await {
                Ok(meta) => winners.lock().unwrap_or_else(PoisonError::into_inner).push((meta, bytes)),
                Err(Error::PreconditionFailed(_)) => {}
                // A store may say that others were in the way, as long as it did nothing.
                Err(error) => trial.holds(
                    error.next_move() == NextMove::Retry,
                    format!("a writer that lost was refused with {error:?}"),
                ),
            }
        })
    });
    join_all(writers.collect::<Vec<_>>()).await;
    std::mem::take(&mut *winners.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn check_winner(trial: &Trial, bucket: &BucketName, key: &BlobKey, winners: &[(BlobMeta, Bytes)]) {
    trial.same("writers that won", winners.len(), 1);
    trial.same_blob("the blob of the winner", trial.head(bucket, key).await, winners[0].0.clone());
    trial.same_bytes("the body of the winner", &trial.read(bucket, key).await, &winners[0].1);
}

/// Of sixteen writers that all demand an absent key one succeeds, and its blob is there.
pub async fn one_of_many_puts_to_an_absent_key_wins(trial: Trial) {
    let trial = Arc::new(trial);
    let bucket = trial.bucket().await;
    for round in 0..10 {
        let key = trial.key(&format!("key-{round}"));
        let winners = race(&trial, &bucket, &key, &WriteCondition::IfAbsent).await;
        check_winner(&trial, &bucket, &key, &winners).await;
    }
}

/// Of sixteen writers that all replace the same blob one succeeds: a compare and swap.
pub async fn one_of_many_matching_puts_wins(trial: Trial) {
    let trial = Arc::new(trial);
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    for round in 0..10 {
        let current = trial.put(&bucket, &key, &some_bytes(round, 50)).await.etag;
        let winners = race(&trial, &bucket, &key, &WriteCondition::IfMatch(current)).await;
        check_winner(&trial, &bucket, &key, &winners).await;
    }
}

/// A deletion that names an etag removes the blob with this etag only.
pub async fn conditional_deletes_are_decided(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    let other = ETag::of_md5([0; 16]);
    let failed = |error: &Error| matches!(error, Error::PreconditionFailed(_));
    let absent = |error: &Error| matches!(error, Error::BlobNotFound(..));
    let mine = trial.put(&bucket, &key, &some_bytes(1, 100)).await.etag;
    let what = "a deletion with another etag";
    trial.refused_in(&bucket, what, failed, store.delete(&bucket, &key, Some(&other))).await;
    trial.ok("a deletion with the etag", store.delete(&bucket, &key, Some(&mine)).await);
    trial.is_absent("after a deletion with the etag", &bucket, &key).await;
    let what = "a deletion of nothing with an etag";
    trial.refused_in(&bucket, what, absent, store.delete(&bucket, &key, Some(&mine))).await;
}
