//! Ranges, conditions, and readers that are overtaken by writers.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;

use super::bytes::some_bytes;
use super::trial::Trial;
use crate::Error;
use crate::blob::{BlobKey, Body, BucketName, ETag, ETagMatch, GetOptions, Range, ReadConditions};

fn ranged(range: Range) -> GetOptions {
    GetOptions { range: Some(range), ..GetOptions::default() }
}

/// A range returns its bytes, says which they are, and describes the whole blob.
pub async fn ranges_return_their_bytes(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    for size in [1_u64, 10, 65_536, 200_001] {
        let bytes = some_bytes(size, size as usize);
        let put = trial.put(&bucket, &key, &bytes).await;
        let (half, last) = (size / 2, size - 1);
        for range in [
            Range::FromTo(0, 0),
            Range::FromTo(0, last),
            Range::FromTo(half, half),
            Range::FromTo(half, last),
            Range::FromTo(0, size),
            Range::FromTo(last, u64::MAX),
            Range::From(0),
            Range::From(half),
            Range::From(last),
            Range::Last(1),
            Range::Last(half + 1),
            Range::Last(size),
            Range::Last(u64::MAX),
        ] {
            let what = format!("{range:?} of {size} bytes");
            let expected = trial.ok(&what, range.resolve(size, &[]));
            let (meta, seen, read) = trial.read_with(&bucket, &key, ranged(range)).await;
            trial.same(format!("the place of {what}"), seen, expected.clone());
            trial.same_bytes(&what, &read, &bytes[expected.start as usize..expected.end as usize]);
            trial.same_blob(format!("the blob of {what}"), meta, put.clone());
        }
    }
}

/// A range without a byte of the body is refused, and the error says how long the body is.
pub async fn ranges_outside_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, empty) = (trial.key("key"), trial.key("empty"));
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    trial.put(&bucket, &empty, &Bytes::new()).await;
    let store = trial.store();
    let outside =
        [Range::From(10), Range::FromTo(10, 20), Range::FromTo(5, 4), Range::Last(0), Range::From(u64::MAX)];
    for range in outside {
        let fits = |error: &Error| *error == Error::RangeInvalid { size: 10 };
        let what = format!("{range:?} of 10 bytes");
        trial.refused_in(&bucket, &what, fits, store.get(&bucket, &key, ranged(range))).await;
    }
    for range in [Range::From(0), Range::FromTo(0, 0), Range::Last(1)] {
        let fits = |error: &Error| *error == Error::RangeInvalid { size: 0 };
        let what = format!("{range:?} of an empty body");
        trial.refused_in(&bucket, &what, fits, store.get(&bucket, &empty, ranged(range))).await;
    }
}

/// Opens a body that is too long for one piece, and takes the first.
async fn begin_reading(trial: &Trial, bucket: &BucketName, key: &BlobKey, bytes: &Bytes) -> (Bytes, Body) {
    trial.put(bucket, key, bytes).await;
    let mut body = trial.ok("reading", trial.store().get(bucket, key, GetOptions::default()).await).body;
    let first = body.next().await.unwrap_or_else(|| trial.fail("the body has no pieces"));
    (trial.ok("reading the first piece", first), body)
}

/// A reader that started before an overwrite finishes with the old body, whole; one that starts after it gets the new.
pub async fn a_reader_keeps_a_replaced_body(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, old) = (trial.key("key"), some_bytes(1, 3 << 20));
    let (first, rest) = begin_reading(&trial, &bucket, &key, &old).await;
    let new = some_bytes(2, 3 << 20);
    for seed in [9, 2] {
        trial.put(&bucket, &key, &some_bytes(seed, 3 << 20)).await;
    }
    trial.same_bytes("a body read after the overwrite", &trial.read(&bucket, &key).await, &new);
    let read = [first, trial.drain("reading the old body", rest).await].concat();
    trial.same_bytes("the body of a reader that was overtaken", &read, &old);
}

/// A reader that started before a deletion finishes, even when the bucket goes as well.
pub async fn a_reader_keeps_a_deleted_body(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, old) = (trial.key("key"), some_bytes(1, 3 << 20));
    let (first, rest) = begin_reading(&trial, &bucket, &key, &old).await;
    trial.ok("deleting", trial.store().delete(&bucket, &key, None).await);
    trial.is_absent("after a deletion", &bucket, &key).await;
    trial.ok("deleting the bucket", trial.store().delete_bucket(&bucket).await);
    let read = [first, trial.drain("reading the old body", rest).await].concat();
    trial.same_bytes("the body of a reader that was overtaken", &read, &old);
}

/// Conditions on tags and times are decided as [`ReadConditions`] says.
pub async fn read_conditions_are_decided(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let meta = trial.put(&bucket, &key, &some_bytes(1, 100)).await;
    let other = ETagMatch::OneOf(vec![ETag::of_md5([0; 16])]);
    let mine = ETagMatch::OneOf(vec![ETag::of_md5([0; 16]), meta.etag.clone()]);
    let (day, none) = (Duration::from_secs(86_400), ReadConditions::default);
    let (before, after) = (Some(meta.modified_at.minus(day)), Some(meta.modified_at.plus(day)));
    for conditions in [
        none(),
        ReadConditions { if_match: Some(mine.clone()), ..none() },
        ReadConditions { if_match: Some(other.clone()), ..none() },
        ReadConditions { if_match: Some(ETagMatch::Any), ..none() },
        ReadConditions { if_none_match: Some(mine.clone()), ..none() },
        ReadConditions { if_none_match: Some(other.clone()), ..none() },
        ReadConditions { if_none_match: Some(ETagMatch::Any), ..none() },
        ReadConditions { if_modified_since: before, ..none() },
        ReadConditions { if_modified_since: after, ..none() },
        ReadConditions { if_unmodified_since: before, ..none() },
        ReadConditions { if_unmodified_since: after, ..none() },
        ReadConditions { if_match: Some(mine), if_unmodified_since: before, ..none() },
        ReadConditions { if_none_match: Some(other), if_modified_since: after, ..none() },
    ] {
        let expected = conditions.check(&key, &meta);
        let options = GetOptions { range: None, conditions: conditions.clone() };
        let read = trial.store().get(&bucket, &key, options).await;
        trial.same(format!("a read with {conditions:?}"), read.map(|_| ()), expected);
    }
}
