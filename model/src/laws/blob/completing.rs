//! An upload becomes a blob, or stays as it is.

use std::collections::BTreeMap;

use super::bytes::{PART, digest, some_bytes};
use super::trial::Trial;
use crate::Error;
use crate::blob::{
    ChecksumAlgorithm, ChecksumScope, Checksums, CompleteOptions, DigestOfParts, ETag, Header, Part,
    PartChoice, PartNumber, Properties, UploadOptions, WriteCondition,
};

fn choices(parts: &[&Part]) -> Vec<PartChoice> {
    parts.iter().map(|part| PartChoice::from(*part)).collect()
}

/// A completed upload leaves a blob with the properties it was begun with, in place of the one that was there, and
/// nothing else: parts that were not chosen are forgotten.
pub async fn a_completed_upload_is_a_blob_and_gone(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    trial.put(&bucket, &key, &some_bytes(50, 500)).await;
    let properties = Properties {
        headers: BTreeMap::from([(Header::ContentType, "text/plain".to_string())]),
        metadata: BTreeMap::from([("owner".to_string(), "Jo".to_string())]),
    };
    let options = UploadOptions { properties: properties.clone(), checksum: None };
    let upload = trial.ok("beginning", store.begin_upload(&bucket, &key, options).await);
    trial.part(&upload, 1, &some_bytes(1, 10)).await;
    let chosen = trial.part(&upload, 2, &some_bytes(2, 20)).await;
    trial.part(&upload, 3, &some_bytes(3, 30)).await;
    let meta = trial.complete(&upload, &[chosen]).await;
    trial.same("properties", meta.properties, properties);
    trial.same_bytes("the body", &trial.read(&bucket, &key).await, &some_bytes(2, 20));
    trial.same("open uploads", trial.uploads(&bucket).await, Vec::new());
    let gone = |error: &Error| matches!(error, Error::UploadNotFound(_));
    trial.refused_in(&bucket, "listing its parts", gone, store.parts(&upload, None, 10)).await;
    trial.refused_in(&bucket, "aborting it", gone, store.abort_upload(&upload)).await;
    trial.same_bytes("the body, later", &trial.read(&bucket, &key).await, &some_bytes(2, 20));
}

/// The condition of a completion is decided; where it fails, the upload stays open and can be completed without it.
pub async fn completions_obey_conditions(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    let mine = trial.put(&bucket, &key, &some_bytes(1, 10)).await.etag;
    let upload = trial.begin(&bucket, &key).await;
    let part = trial.part(&upload, 1, &some_bytes(2, 20)).await;
    let failed = |error: &Error| matches!(error, Error::PreconditionFailed(_));
    let (parts, other) = (choices(&[&part]), ETag::of_md5([0; 16]));
    for condition in
        [WriteCondition::IfAbsent, WriteCondition::IfMatch(other), WriteCondition::IfNoneMatch(mine.clone())]
    {
        let what = format!("a completion under {condition:?}");
        let options = CompleteOptions { condition, ..CompleteOptions::default() };
        trial.refused_in(&bucket, &what, failed, store.complete_upload(&upload, &parts, options)).await;
    }
    let options = CompleteOptions { condition: WriteCondition::IfMatch(mine), ..CompleteOptions::default() };
    trial.ok("a completion that fits", store.complete_upload(&upload, &parts, options).await);
    trial.same_bytes("the body", &trial.read(&bucket, &key).await, &some_bytes(2, 20));
}

/// A blob in parts has the checksum of its bytes, if its upload was begun with that.
pub async fn checksums_of_joined_bodies_are_remembered(trial: Trial) {
    joined_with_checksums(trial, ChecksumScope::Body).await;
}

/// A blob in parts has the checksum of the checksums of its parts, if its upload was begun with that.
pub async fn checksums_of_joined_parts_are_remembered(trial: Trial) {
    joined_with_checksums(trial, ChecksumScope::Parts).await;
}

async fn joined_with_checksums(trial: Trial, scope: ChecksumScope) {
    let bucket = trial.bucket().await;
    let store = trial.store();
    let bodies = [some_bytes(1, PART), some_bytes(2, 100)];
    let body = digest(&bodies.concat());
    for algorithm in ChecksumAlgorithm::ALL {
        let key = trial.key(&format!("{}-{scope:?}", algorithm.name()));
        let options = UploadOptions { checksum: Some((algorithm, scope)), ..UploadOptions::default() };
        if !algorithm.allows(scope) {
            let invalid = |error: &Error| matches!(error, Error::Invalid(_));
            let begun = store.begin_upload(&bucket, &key, options);
            trial.refused_in(&bucket, &format!("an upload with {key}"), invalid, begun).await;
            continue;
        }
        let upload = trial.ok("beginning", store.begin_upload(&bucket, &key, options).await);
        let mut expected = DigestOfParts::new(Some((algorithm, scope)));
        let mut parts = Vec::new();
        for (number, bytes) in bodies.iter().enumerate() {
            let (part, right) = (trial.part(&upload, number as u64 + 1, bytes).await, digest(bytes));
            let of_part = part.checksums.get(algorithm);
            trial.same(format!("{key} of a part"), of_part, right.checksums.get(algorithm));
            trial.ok("expecting", expected.add(right.size, &right.etag, &right.checksums));
            parts.push(part);
        }
        let (_, _, expected) = expected.finish();
        let chosen: Vec<_> = parts.iter().map(PartChoice::from).collect();
        let mut wrong = Checksums::empty(scope);
        digest(b"wrong").checksums.get(algorithm).into_iter().for_each(|checksum| wrong.insert(checksum));
        let options = CompleteOptions { expected: wrong, ..CompleteOptions::default() };
        let mismatch = |error: &Error| matches!(error, Error::ChecksumMismatch(_));
        let completed = store.complete_upload(&upload, &chosen, options);
        trial.refused_in(&bucket, &format!("a completion with wrong {key}"), mismatch, completed).await;
        let options = CompleteOptions { expected: expected.clone(), ..CompleteOptions::default() };
        let meta = trial.ok("completing", store.complete_upload(&upload, &chosen, options).await);
        trial.same(format!("{key} of the blob"), meta.checksums.get(algorithm), expected.get(algorithm));
        trial.same(format!("the scope of {key}"), meta.checksums.scope(), scope);
        if scope == ChecksumScope::Body {
            let whole = body.checksums.get(algorithm);
            trial.same(format!("{key} of the whole"), meta.checksums.get(algorithm), whole);
        }
        trial.same("what a completion and a look say", trial.head(&bucket, &key).await, meta);
        // Blobs of five megabytes would make the snapshots behind refusals slow.
        trial.ok("deleting", store.delete(&bucket, &key, None).await);
    }
}

/// Parts out of order, twice, missing, replaced, too small, or none at all: the upload stays as it was.
pub async fn bad_completions_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    trial.put(&bucket, &key, &some_bytes(50, 500)).await;
    let upload = trial.begin(&bucket, &key).await;
    let one = trial.part(&upload, 1, &some_bytes(1, PART)).await;
    let small = trial.part(&upload, 2, &some_bytes(2, PART - 1)).await;
    let last = trial.part(&upload, 3, &some_bytes(3, 1)).await;
    let order = |error: &Error| matches!(error, Error::PartsOutOfOrder(..));
    let missing = |error: &Error| matches!(error, Error::PartNotFound(_));
    let too_small = |error: &Error| matches!(error, Error::PartTooSmall { .. });
    let invalid = |error: &Error| matches!(error, Error::Invalid(_));
    let size = |error: &Error| matches!(error, Error::BodySizeMismatch { .. });
    let four = trial.ok("a part number", PartNumber::new(4));
    let never_put = PartChoice { number: four, etag: last.etag.clone() };
    let other_tag = PartChoice { number: one.number, etag: last.etag.clone() };
    let none = CompleteOptions::default;
    let complete = |parts: Vec<PartChoice>, options: CompleteOptions| {
        let (store, upload) = (store.clone(), upload.clone());
        async move { store.complete_upload(&upload, &parts, options).await }
    };
    let refused = async |what, fits: fn(&Error) -> bool, parts| {
        trial.refused_in(&bucket, what, fits, complete(parts, none())).await;
    };
    refused("a completion without parts", invalid, Vec::new()).await;
    refused("parts out of order", order, choices(&[&last, &one])).await;
    refused("a part twice", order, choices(&[&one, &one])).await;
    refused("a part that was never put", missing, [choices(&[&one]), vec![never_put]].concat()).await;
    refused("a part with another etag", missing, vec![other_tag]).await;
    refused("a part that is too small", too_small, choices(&[&one, &small, &last])).await;
    let options = CompleteOptions { size: Some(7), ..none() };
    let wrong_size = complete(choices(&[&one, &last]), options);
    trial.refused_in(&bucket, "a completion of another size", size, wrong_size).await;
    // After all that it can be completed, with the small part at its end.
    trial.complete(&upload, &[one, small]).await;
    let expected = [some_bytes(1, PART), some_bytes(2, PART - 1)].concat();
    trial.same_bytes("the joined body", &trial.read(&bucket, &key).await, &expected);
}
