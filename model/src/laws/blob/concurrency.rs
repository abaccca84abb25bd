//! Readers and listings beside writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, join_all};

use super::bytes::{in_pieces, some_bytes, tagged_with_md5, whole};
use super::trial::Trial;
use crate::blob::{BlobKey, BucketName, ETag, GetOptions, md5_of};
use crate::laws::trial::give_way;

const WRITERS: u64 = 6;
const READERS: usize = 3;
const ROUNDS: u64 = 12;

/// Replaces every key with bodies that are this writer's own.
async fn overwrite(trial: &Trial, bucket: &BucketName, keys: &[BlobKey], writer: u64) {
    for round in 0..ROUNDS {
        for key in keys {
            let seed = writer * ROUNDS + round;
            let bytes = some_bytes(seed, 1_000 + (seed as usize * 7_919) % 90_000);
            trial.put_with(bucket, key, in_pieces(&bytes, 30_000), tagged_with_md5()).await;
            give_way().await;
        }
    }
}

/// Starts writers on `keys`, and `watch` again and again until they are through.
async fn beside_writers<F>(trial: &Arc<Trial>, bucket: &BucketName, keys: &[BlobKey], watch: F)
where
    F: Fn(Arc<Trial>, BucketName, Vec<BlobKey>) -> BoxFuture<'static, ()> + Clone + Send + Sync + 'static,
{
    let (running, done) = (Arc::new(AtomicUsize::new(WRITERS as usize)), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (trial, bucket, keys) = (trial.clone(), bucket.clone(), keys.to_vec());
        let (running, done) = (running.clone(), done.clone());
        tasks.push(trial.clone().spawn(async move {
            overwrite(&trial, &bucket, &keys, writer).await;
            if running.fetch_sub(1, Ordering::SeqCst) == 1 {
                done.store(true, Ordering::SeqCst);
            }
        }));
    }
    for _ in 0..READERS {
        let (trial, bucket, keys) = (trial.clone(), bucket.clone(), keys.to_vec());
        let (done, watch) = (done.clone(), watch.clone());
        tasks.push(trial.clone().spawn(async move {
            // A bound as well: a writer that failed never says that it is through.
            for _ in 0..2_000 {
                watch(trial.clone(), bucket.clone(), keys.clone()).await;
                if done.load(Ordering::SeqCst) {
                    return;
                }
                give_way().await;
            }
        }));
    }
    join_all(tasks).await;
}

/// While writers replace a blob, every reader gets one of them whole, with the size and the etag that belong to its body.
pub async fn readers_see_whole_blobs_while_others_write(trial: Trial) {
    let trial = Arc::new(trial);
    let (bucket, key) = (trial.bucket().await, trial.key("key"));
    trial.put_with(&bucket, &key, whole(&some_bytes(1_000, 1_000)), tagged_with_md5()).await;
    beside_writers(&trial, &bucket, std::slice::from_ref(&key), |trial, bucket, keys| {
        Box::pin(async move {
            let (meta, _, read) = trial.read_with(&bucket, &keys[0], GetOptions::default()).await;
            trial.same("the size of a body and of its blob", read.len() as u64, meta.size);
            trial.same("the etag of a body and of its blob", ETag::of_md5(md5_of(&read)), meta.etag);
            // Every body of this law has at least so many bytes.
            trial.holds(read.len() >= 1_000, format!("a reader saw a body of {} bytes", read.len()));
        })
    })
    .await;
    let (last, looked) = (trial.read(&bucket, &key).await, trial.head(&bucket, &key).await);
    trial.same("the etag of the last body", ETag::of_md5(md5_of(&last)), looked.etag);
}

/// While writers replace blobs, every listing shows every key, once.
pub async fn listings_hold_while_others_write(trial: Trial) {
    let trial = Arc::new(trial);
    let bucket = trial.bucket().await;
    let keys: Vec<_> = ["a", "a/b", "b", "c"].map(|key| trial.key(key)).into();
    for key in &keys {
        trial.put(&bucket, key, &some_bytes(1, 10)).await;
    }
    beside_writers(&trial, &bucket, &keys, |trial, bucket, keys| {
        Box::pin(async move {
            trial.same("keys while others write", trial.keys(&bucket).await, keys);
        })
    })
    .await;
}
