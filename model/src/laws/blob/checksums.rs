//! Bodies are verified on their way in, and what is refused or given up leaves nothing.

use bytes::Bytes;
use futures_util::future::{Either, select};

use super::bytes::{broken, digest, some_bytes, stalled, whole};
use super::trial::Trial;
use crate::Error;
use crate::blob::{
    BlobKey, BodyOptions, BucketName, Checksum, ChecksumAlgorithm, PartNumber, PutOptions, md5_of,
};
use crate::laws::trial::give_way;

/// Checksums that were given or asked for are remembered, together with nothing that is wrong.
pub async fn checksums_are_remembered(trial: Trial) {
    let bucket = trial.bucket().await;
    for size in [0, 1, 100_000] {
        let bytes = some_bytes(1, size);
        let right = digest(&bytes);
        for algorithm in ChecksumAlgorithm::ALL {
            let given = right.checksums.get(algorithm).into_iter().collect();
            let given = BodyOptions { expected: given, ..BodyOptions::default() };
            let asked = BodyOptions { computed: [algorithm].into(), ..BodyOptions::default() };
            for (how, body) in [("given", given), ("computed", asked)] {
                let key = trial.key(&format!("{}-{how}", algorithm.name()));
                let options = PutOptions { body, ..PutOptions::default() };
                let put = trial.put_with(&bucket, &key, whole(&bytes), options).await;
                let expected = right.checksums.get(algorithm);
                trial.same(format!("a {key} checksum of a put"), put.checksums.get(algorithm), expected);
                let seen = trial.head(&bucket, &key).await.checksums;
                trial.same(format!("a {key} checksum of a look"), seen.get(algorithm), expected);
                let wrong =
                    seen.iter().find(|checksum| right.checksums.get(checksum.algorithm()) != Some(*checksum));
                trial.same("a wrong checksum", wrong, None);
            }
        }
    }
    let bytes = some_bytes(2, 1_000);
    let right = digest(&bytes);
    let body = BodyOptions {
        size: Some(right.size),
        md5: Some(md5_of(&bytes)),
        expected: right.checksums.clone(),
        ..BodyOptions::default()
    };
    let options = PutOptions { body, ..PutOptions::default() };
    let put = trial.put_with(&bucket, &trial.key("all"), whole(&bytes), options).await;
    trial.same("all checksums", put.checksums, right.checksums);
}

/// What is declared about a body and does not fit these bytes.
fn wrong_about(bytes: &Bytes) -> Vec<(String, BodyOptions)> {
    let other = digest(b"something else");
    let size = bytes.len() as u64;
    let mut wrong = vec![
        ("md5".to_string(), BodyOptions { md5: Some(md5_of(b"something else")), ..BodyOptions::default() }),
        ("a shorter size".to_string(), BodyOptions { size: Some(size - 1), ..BodyOptions::default() }),
        ("a longer size".to_string(), BodyOptions { size: Some(size + 1), ..BodyOptions::default() }),
    ];
    let of = |checksum: Checksum| BodyOptions {
        expected: [checksum].into_iter().collect(),
        ..BodyOptions::default()
    };
    wrong.extend(other.checksums.iter().map(|checksum| (format!("{checksum:?}"), of(checksum))));
    wrong
}

fn mismatch(error: &Error) -> bool {
    matches!(error, Error::ChecksumMismatch(_) | Error::BodySizeMismatch { .. })
}

/// An absent key, and one with a blob.
async fn two_keys(trial: &Trial, bucket: &BucketName) -> [BlobKey; 2] {
    let keys = [trial.key("absent"), trial.key("present")];
    trial.put(bucket, &keys[1], &some_bytes(50, 500)).await;
    keys
}

/// A body that is not the declared one is refused: a key without a blob stays without, and one with a blob keeps it.
pub async fn a_damaged_body_leaves_nothing(trial: Trial) {
    let bucket = trial.bucket().await;
    let store = trial.store();
    for key in two_keys(&trial, &bucket).await {
        for bytes in [some_bytes(1, 1), some_bytes(2, 200_000)] {
            for (what, body) in wrong_about(&bytes) {
                let options = PutOptions { body, ..PutOptions::default() };
                let put = store.put(&bucket, &key, whole(&bytes), options);
                trial.refused_in(&bucket, &format!("a body with wrong {what}"), mismatch, put).await;
            }
        }
    }
}

/// A body that ends with an error is refused with this error, at whatever byte it ends.
pub async fn a_broken_body_leaves_nothing(trial: Trial) {
    let bucket = trial.bucket().await;
    let store = trial.store();
    for key in two_keys(&trial, &bucket).await {
        for size in [0, 1, 65_536, 200_000] {
            let error = Error::Invalid("the writer changed its mind".to_string());
            let body = broken(&some_bytes(1, size), error.clone());
            let put = store.put(&bucket, &key, body, PutOptions::default());
            let what = format!("a body that breaks after {size} bytes");
            trial.refused_in(&bucket, &what, |seen| *seen == error, put).await;
        }
    }
}

/// A put that is dropped in the middle of its body leaves what was there, and its key takes puts.
pub async fn a_dropped_put_leaves_nothing(trial: Trial) {
    let bucket = trial.bucket().await;
    let store = trial.store();
    for key in two_keys(&trial, &bucket).await {
        let before = trial.snapshot(&bucket).await;
        for size in [1, 65_536, 200_000] {
            let put = store.put(&bucket, &key, stalled(&some_bytes(1, size)), PutOptions::default());
            let patience = Box::pin(async {
                for _ in 0..50 {
                    give_way().await;
                }
            });
            if let Either::Left((put, _)) = select(put, patience).await {
                trial.fail(format!("a put ended before its body did: {put:?}"));
            }
            trial.same("the bucket after a dropped put", trial.snapshot(&bucket).await, before.clone());
        }
        let bytes = some_bytes(3, 300);
        trial.put(&bucket, &key, &bytes).await;
        trial.same_bytes("a put after dropped ones", &trial.read(&bucket, &key).await, &bytes);
    }
}

/// A part that is not the declared one, or that breaks off, is refused; one that was there before stays.
pub async fn a_damaged_part_leaves_nothing(trial: Trial) {
    let bucket = trial.bucket().await;
    let (store, key) = (trial.store(), trial.key("key"));
    let upload = trial.begin(&bucket, &key).await;
    trial.part(&upload, 2, &some_bytes(7, 700)).await;
    let bytes = some_bytes(1, 70_000);
    for number in [1, 2] {
        let number = trial.ok("a part number", PartNumber::new(number));
        for (what, options) in wrong_about(&bytes) {
            let put = store.put_part(&upload, number, whole(&bytes), options);
            trial.refused_in(&bucket, &format!("a part with wrong {what}"), mismatch, put).await;
        }
        let error = Error::Invalid("the writer changed its mind".to_string());
        let put = store.put_part(&upload, number, broken(&bytes, error.clone()), BodyOptions::default());
        trial.refused_in(&bucket, "a part that breaks off", |seen| *seen == error, put).await;
    }
    trial.is_absent("after damaged parts", &bucket, &key).await;
}
