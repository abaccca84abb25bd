//! Making, listing and deleting buckets.

use super::bytes::some_bytes;
use super::trial::Trial;
use crate::blob::{BucketName, GetOptions, ListOptions};
use crate::{Error, limits};

async fn list(trial: &Trial, limit: usize) -> Vec<BucketName> {
    let mut names: Vec<BucketName> = Vec::new();
    for _ in 0..=limits::BUCKETS_MAX {
        let page = trial.ok("listing buckets", trial.store().buckets(names.last(), limit).await);
        trial.holds(page.entries.len() <= limit.max(1), format!("a page of {limit} is too long"));
        trial.holds(!page.more || !page.entries.is_empty(), "an empty page says that there are more buckets");
        names.extend(page.entries.into_iter().map(|summary| summary.name));
        if !page.more {
            return names;
        }
    }
    trial.fail("the listing of buckets does not end")
}

/// Buckets are listed in the order of their names, in pages of any size, and as they are described.
pub async fn buckets_are_listed_by_name(trial: Trial) {
    let mut names = Vec::new();
    for _ in 0..12 {
        names.push(trial.bucket().await);
    }
    names.sort();
    for limit in [0, 1, 5, limits::PAGE_ENTRIES_MAX, usize::MAX] {
        let listed = list(&trial, limit).await;
        // Other laws may use the same store, so only the buckets of this one are looked at.
        let mine: Vec<_> = listed.iter().filter(|name| names.contains(name)).cloned().collect();
        trial.same(format!("buckets in pages of {limit}"), mine, names.clone());
        trial.holds(listed.is_sorted(), format!("pages of {limit} are out of order: {listed:?}"));
    }
    // The name to go on from need not exist: the bucket may have been deleted meanwhile.
    trial.ok("deleting a bucket", trial.store().delete_bucket(&names[1]).await);
    let page = trial.ok("listing buckets", trial.store().buckets(Some(&names[1]), 1).await);
    let first = page.entries.into_iter().next().unwrap_or_else(|| trial.fail("the page is empty"));
    trial.holds(first.name > names[1] && first.name <= names[2], format!("{first:?} follows {}", names[1]));
    let described = trial.ok("describing a bucket", trial.store().bucket(&first.name).await);
    trial.same("a bucket listed and described", first, described);
}

/// A bucket with a blob is not deleted; without, it is.
pub async fn a_bucket_with_blobs_stays(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let not_empty = |error: &Error| matches!(error, Error::BucketNotEmpty(_));
    trial.refused_in(&bucket, "deleting a full bucket", not_empty, store.delete_bucket(&bucket)).await;
    let exists = |error: &Error| matches!(error, Error::BucketExists(_));
    trial.refused_in(&bucket, "making it again", exists, store.create_bucket(&bucket)).await;
    trial.ok("deleting the blob", store.delete(&bucket, &key, None).await);
    trial.ok("deleting the bucket", store.delete_bucket(&bucket).await);
}

/// When a deletion returns, the bucket is gone with its uploads, the name is free, and a new bucket is empty.
pub async fn a_deleted_bucket_is_gone(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    let upload = trial.begin(&bucket, &key).await;
    trial.part(&upload, 1, &some_bytes(1, 10)).await;
    trial.ok("deleting a bucket with an upload", store.delete_bucket(&bucket).await);
    let unknown = Some(Error::BucketNotFound(bucket.clone()));
    trial.same("describing it", store.bucket(&bucket).await.err(), unknown.clone());
    let read = store.get(&bucket, &key, GetOptions::default()).await;
    trial.same("reading from it", read.err(), unknown.clone());
    let listed = store.list(&bucket, ListOptions::default()).await;
    trial.same("listing its keys", listed.err(), unknown.clone());
    trial.same("deleting it again", store.delete_bucket(&bucket).await.err(), unknown);
    trial.holds(!list(&trial, 100).await.contains(&bucket), "it is still listed");
    trial.ok("making it again", store.create_bucket(&bucket).await);
    trial.same("what is in the new bucket", trial.snapshot(&bucket).await, (Vec::new(), Vec::new()));
    let parts = store.parts(&upload, None, 10).await;
    trial.same("parts of the old upload", parts.err(), Some(Error::UploadNotFound(upload.id)));
}

/// One key in two buckets is two blobs.
pub async fn buckets_are_apart(trial: Trial) {
    let (one, other) = (trial.bucket().await, trial.bucket().await);
    let key = trial.key("key");
    trial.put(&one, &key, &some_bytes(1, 10)).await;
    trial.is_absent("in another bucket", &other, &key).await;
    trial.put(&other, &key, &some_bytes(2, 20)).await;
    trial.same_bytes("the body in one", &trial.read(&one, &key).await, &some_bytes(1, 10));
    trial.ok("deleting", trial.store().delete(&one, &key, None).await);
    trial.same_bytes("the body in the other", &trial.read(&other, &key).await, &some_bytes(2, 20));
    // A name and a key that read the same when they are joined are still two places.
    let (short, long) = (trial.key("b/c"), trial.key("c"));
    trial.put(&one, &short, &some_bytes(3, 30)).await;
    trial.is_absent("in another bucket", &other, &short).await;
    trial.is_absent("a key that is the end of another", &one, &long).await;
}
