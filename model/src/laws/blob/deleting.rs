//! Blobs go, one or many at a time.

use super::bytes::some_bytes;
use super::trial::Trial;
use crate::blob::BlobKey;
use crate::{Error, limits};

/// A deleted blob is gone, deleting it again is no error, and its key takes a new one.
pub async fn a_deleted_blob_is_gone(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, kept, store) = (trial.key("key"), trial.key("kept"), trial.store());
    for size in [0, 10, 200_000] {
        trial.put(&bucket, &key, &some_bytes(1, size)).await;
        let before = trial.put(&bucket, &kept, &some_bytes(2, 20)).await;
        for _ in 0..2 {
            trial.ok("deleting", store.delete(&bucket, &key, None).await);
            trial.is_absent("after a deletion", &bucket, &key).await;
        }
        trial.same("another blob", trial.head(&bucket, &kept).await, before);
    }
    trial.ok("deleting what never was", store.delete(&bucket, &trial.key("never"), None).await);
}

/// Up to a thousand keys go in one call, whether or not they exist, also when one is named twice; others stay.
pub async fn many_are_deleted_at_once(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = |number: usize| trial.key(&format!("key-{number:04}"));
    let count = limits::DELETE_KEYS_MAX + 5;
    for number in 0..count {
        trial.put(&bucket, &key(number), &some_bytes(number as u64, 3)).await;
    }
    let some = [key(1), trial.key("never"), key(2), key(1)];
    let results = trial.ok("deleting some", trial.store().delete_many(&bucket, &some).await);
    trial.same("results", results, vec![Ok(()); some.len()]);
    let mut left: Vec<BlobKey> = (0..count).map(key).collect();
    left.retain(|key| !some.contains(key));
    trial.same("keys that are left", trial.keys(&bucket).await, left.clone());
    let most: Vec<_> = left.iter().take(limits::DELETE_KEYS_MAX).cloned().collect();
    let results = trial.ok("deleting many", trial.store().delete_many(&bucket, &most).await);
    trial.same("results", results.len(), most.len());
    trial.holds(results.iter().all(Result::is_ok), "a key could not be deleted");
    trial.same("keys that are left", trial.keys(&bucket).await, left.split_off(most.len()));
}

/// A deletion names 1 to 1,000 keys.
pub async fn bad_deletions_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let store = trial.store();
    let invalid = |error: &Error| matches!(error, Error::Invalid(_));
    let many = vec![key; limits::DELETE_KEYS_MAX + 1];
    trial.refused_in(&bucket, "a deletion of 1,001 keys", invalid, store.delete_many(&bucket, &many)).await;
    trial.refused_in(&bucket, "a deletion of no keys", invalid, store.delete_many(&bucket, &[])).await;
}
