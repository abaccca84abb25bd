//! What was acknowledged is there after the store ended without warning, and nothing is there by halves.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::{Either, select, select_all};

use super::bytes::{PART, some_bytes, stalled, whole};
use super::trial::Trial;
use crate::blob::{BlobKey, BodyOptions, BucketName, CompleteOptions, PartChoice, PartNumber, PutOptions};
use crate::laws::trial::{NO_CRASH, give_way};
use crate::{Error, limits};

const WRITERS: u64 = 6;
const ROUNDS: u64 = 10;

/// The writer and the round that was acknowledged last under each key.
type Acknowledged = Mutex<BTreeMap<BlobKey, (u64, u64)>>;

fn body_of(label: u64, round: u64) -> Bytes {
    some_bytes(label * 1_000 + round, 1 + (round as usize * 39_973) % 150_000)
}

async fn write_until_crash(trial: &Trial, bucket: &BucketName, label: u64, acknowledged: &Acknowledged) {
    for round in 0..ROUNDS {
        // Keys of two rounds, so that half of the puts replace a blob.
        let key = trial.key(&format!("writer-{label}/{}", round % 5));
        trial.put(bucket, &key, &body_of(label, round)).await;
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (label, round));
        give_way().await;
    }
}

/// Acknowledged blobs are there after a crash, whole; a put that was under way has replaced one or has not.
pub async fn acknowledged_blobs_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let bucket = trial.bucket().await;
    for crash in 0..3 {
        let acknowledged = Acknowledged::default();
        {
            // The first writer that is through leaves the others in the middle of a put.
            let writers = (0..WRITERS).map(|writer| {
                Box::pin(write_until_crash(&trial, &bucket, crash * WRITERS + writer, &acknowledged))
            });
            let (.., under_way) = select_all(writers).await;
            drop(under_way);
        }
        trial.crash().await;
        let acknowledged = acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (key, (label, round)) in &acknowledged {
            let read = trial.read(&bucket, key).await;
            let size = trial.head(&bucket, key).await.size;
            trial.same(format!("the size of {key}"), size, read.len() as u64);
            // A put behind the acknowledged one may have arrived, but then all of it has.
            let known = (*round..ROUNDS).any(|round| body_of(*label, round) == read);
            trial.holds(known, format!("{key} is neither what was acknowledged nor what came behind it"));
        }
        let keys = trial.keys(&bucket).await;
        let missing = acknowledged.keys().find(|key| !keys.contains(key));
        trial.same("an acknowledged key that is not listed", missing, None);
    }
}

/// A put that was never acknowledged is absent or whole after a crash; one whose body had not ended is absent.
pub async fn unacknowledged_blobs_are_absent_or_whole(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let bucket = trial.bucket().await;
    for patience in [0, 1, 2, 5, 20, 60] {
        let (key, half) = (trial.key(&format!("whole-{patience}")), trial.key(&format!("half-{patience}")));
        let bytes = some_bytes(patience, 300_000);
        {
            let store = trial.store();
            let put = store.put(&bucket, &key, whole(&bytes), PutOptions::default());
            let stalled = store.put(&bucket, &half, stalled(&bytes), PutOptions::default());
            let wait = Box::pin(async {
                for _ in 0..patience {
                    give_way().await;
                }
            });
            // Polled together, so that both are as far as the waiting allows.
            let both = futures_util::future::join(put, stalled);
            if let Either::Left(_) = select(Box::pin(both), wait).await {
                trial.fail("a put ended before its body did");
            }
        }
        trial.crash().await;
        trial.is_absent("a body that had not ended", &bucket, &half).await;
        match trial.store().head(&bucket, &key).await {
            Ok(meta) => {
                trial.same("the size", meta.size, bytes.len() as u64);
                trial.same_bytes("the body", &trial.read(&bucket, &key).await, &bytes);
            }
            Err(error) => trial.same("the answer", error, Error::BlobNotFound(bucket.clone(), key.clone())),
        }
        trial.put(&bucket, &half, &bytes).await;
        trial.same_bytes("a put after the crash", &trial.read(&bucket, &half).await, &bytes);
    }
}

/// What was deleted stays deleted, and what was put again stays.
pub async fn deletions_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let bucket = trial.bucket().await;
    let [gone, again, many, kept] = ["gone", "again", "many", "kept"].map(|key| trial.key(key));
    for key in [&gone, &again, &many, &kept] {
        trial.put(&bucket, key, &some_bytes(1, 70_000)).await;
    }
    trial.crash().await;
    let results = trial.store().delete_many(&bucket, &[many.clone(), again.clone()]).await;
    trial.ok("deleting many", results);
    trial.put(&bucket, &again, &some_bytes(2, 20)).await;
    trial.ok("deleting", trial.store().delete(&bucket, &gone, None).await);
    for _ in 0..2 {
        trial.crash().await;
        trial.is_absent("a deleted blob after a crash", &bucket, &gone).await;
        trial.is_absent("a deleted blob after a crash", &bucket, &many).await;
        trial.same_bytes("a blob put again", &trial.read(&bucket, &again).await, &some_bytes(2, 20));
        trial.same_bytes("a blob that was kept", &trial.read(&bucket, &kept).await, &some_bytes(1, 70_000));
    }
}

/// An open upload keeps its acknowledged parts and can be completed after a crash; completed and aborted ones stay so.
/// A part that was under way is not there.
pub async fn uploads_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let bucket = trial.bucket().await;
    let [open, completed, aborted] = ["open", "completed", "aborted"].map(|key| trial.key(key));
    let (one, two) = (some_bytes(1, PART), some_bytes(2, 200));
    let upload = trial.begin(&bucket, &open).await;
    let parts = [trial.part(&upload, 1, &one).await, trial.part(&upload, 2, &two).await];
    let gone = trial.begin(&bucket, &aborted).await;
    trial.part(&gone, 1, &two).await;
    trial.ok("aborting", trial.store().abort_upload(&gone).await);
    let done = trial.begin(&bucket, &completed).await;
    let part = trial.part(&done, 7, &two).await;
    let meta = trial.complete(&done, &[part]).await;
    {
        let (store, third) = (trial.store(), trial.ok("a part number", PartNumber::new(3)));
        let put = store.put_part(&upload, third, stalled(&two), BodyOptions::default());
        let wait = Box::pin(async { give_way().await });
        if let Either::Left(_) = select(put, wait).await {
            trial.fail("a part ended before its body did");
        }
    }
    trial.crash().await;
    trial.is_absent("an open upload", &bucket, &open).await;
    trial.is_absent("an aborted upload", &bucket, &aborted).await;
    trial.same("a completed upload", trial.head(&bucket, &completed).await, meta);
    trial.same_bytes("a completed body", &trial.read(&bucket, &completed).await, &two);
    let listed: Vec<_> = trial.uploads(&bucket).await.into_iter().map(|summary| summary.upload).collect();
    trial.same("open uploads", listed, vec![upload.clone()]);
    trial.same("parts", trial.parts_by(&upload, limits::PAGE_ENTRIES_MAX).await, parts.to_vec());
    let choices: Vec<_> = parts.iter().map(PartChoice::from).collect();
    let joined = trial.store().complete_upload(&upload, &choices, CompleteOptions::default()).await;
    trial.ok("completing after a crash", joined);
    trial.crash().await;
    trial.same_bytes("the joined body", &trial.read(&bucket, &open).await, &[one, two].concat());
    trial.same("open uploads", trial.uploads(&bucket).await, Vec::new());
}

/// Buckets that were made and deleted stay so.
pub async fn buckets_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let (kept, gone, again) = (trial.bucket().await, trial.bucket().await, trial.bucket().await);
    let key = trial.key("key");
    trial.put(&again, &key, &some_bytes(1, 10)).await;
    trial.ok("deleting the blob", trial.store().delete(&again, &key, None).await);
    trial.ok("deleting a bucket", trial.store().delete_bucket(&again).await);
    trial.ok("making it again", trial.store().create_bucket(&again).await);
    let described = trial.ok("describing", trial.store().bucket(&kept).await);
    trial.ok("deleting a bucket", trial.store().delete_bucket(&gone).await);
    trial.crash().await;
    trial.same("a bucket after a crash", trial.store().bucket(&kept).await, Ok(described));
    let seen = trial.store().bucket(&gone).await.err();
    trial.same("a deleted bucket after a crash", seen, Some(Error::BucketNotFound(gone)));
    trial.same("keys of a bucket made again", trial.keys(&again).await, Vec::new());
}
