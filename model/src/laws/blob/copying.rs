//! Copies within a store.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bytes::{PART, some_bytes, whole};
use super::trial::Trial;
use crate::Error;
use crate::blob::{
    BodyOptions, ChecksumAlgorithm, CopyOptions, ETag, ETagMatch, Header, Properties, PutOptions,
    ReadConditions, WriteCondition,
};

fn properties(label: &str) -> Properties {
    Properties {
        headers: BTreeMap::from([(Header::ContentType, format!("text/{label}"))]),
        metadata: BTreeMap::from([("label".to_string(), label.to_string())]),
    }
}

/// A copy has the body of its source and outlives it, within a bucket and across buckets, also of a source that was put in
/// parts.
pub async fn a_copy_is_a_blob_of_its_own(trial: Trial) {
    let (here, there) = (trial.bucket().await, trial.bucket().await);
    let (source, target, joined) = (trial.key("source"), trial.key("target"), trial.key("joined"));
    let store = trial.store();
    for (seed, size) in [(1, 0), (2, 1), (3, 100_000)] {
        let bytes = some_bytes(seed, size);
        let put = trial.put(&here, &source, &bytes).await;
        for bucket in [&here, &there] {
            let copy = store.copy((&here, &source), (bucket, &target), CopyOptions::default()).await;
            let copy = trial.ok("copying", copy);
            trial.same("the etag of a copy", copy.etag.clone(), put.etag.clone());
            trial.same("what a copy and a look say", trial.head(bucket, &target).await, copy);
        }
        trial.put(&here, &source, &some_bytes(99, 10)).await;
        trial.ok("deleting the source", store.delete(&here, &source, None).await);
        for bucket in [&here, &there] {
            trial.same_bytes("the body of a copy", &trial.read(bucket, &target).await, &bytes);
        }
    }
    let upload = trial.begin(&here, &joined).await;
    let (one, two) = (some_bytes(5, PART), some_bytes(6, 10));
    let parts = [trial.part(&upload, 1, &one).await, trial.part(&upload, 2, &two).await];
    trial.complete(&upload, &parts).await;
    let copy = store.copy((&here, &joined), (&there, &joined), CopyOptions::default()).await;
    trial.ok("copying a blob in parts", copy);
    trial.ok("deleting the source", store.delete(&here, &joined, None).await);
    let expected = [one, two].concat();
    trial.same_bytes("the copy of a blob in parts", &trial.read(&there, &joined).await, &expected);
}

/// A copy has the properties and checksums of its source, or the properties that are given; its time is its own.
pub async fn a_copy_keeps_or_changes_properties(trial: Trial) {
    let bucket = trial.bucket().await;
    let (source, target) = (trial.key("source"), trial.key("target"));
    let body = BodyOptions { computed: [ChecksumAlgorithm::Sha256].into(), ..BodyOptions::default() };
    let options = PutOptions { properties: properties("source"), body, ..PutOptions::default() };
    let put = trial.put_with(&bucket, &source, whole(&some_bytes(1, 100)), options).await;
    trial.advance(Duration::from_secs(100)).await;
    for given in [None, Some(properties("target")), Some(Properties::default())] {
        let options = CopyOptions { properties: given.clone(), ..CopyOptions::default() };
        let copied = trial.store().copy((&bucket, &source), (&bucket, &target), options.clone()).await;
        let copied = trial.ok("copying", copied);
        let expected = given.clone().unwrap_or_else(|| put.properties.clone());
        trial.same("properties of a copy", copied.properties.clone(), expected);
        let sha = ChecksumAlgorithm::Sha256;
        trial.same("a checksum of a copy", copied.checksums.get(sha), put.checksums.get(sha));
        trial.same("what a copy and a look say", trial.head(&bucket, &target).await, copied.clone());
        let younger = copied.modified_at > put.modified_at;
        trial.holds(younger || !trial.can_advance(), "a copy has the time of its source");
        if let Some(given) = given {
            let onto_itself = trial.store().copy((&bucket, &target), (&bucket, &target), options).await;
            trial.same(
                "properties of a copy onto itself",
                trial.ok("copying", onto_itself).properties,
                given,
            );
        }
    }
    trial.same_blob("the source after copies", trial.head(&bucket, &source).await, put);
}

/// Conditions on the source and on what the copy replaces are decided; where one fails, nothing changes.
pub async fn copies_obey_conditions(trial: Trial) {
    let bucket = trial.bucket().await;
    let (source, target) = (trial.key("source"), trial.key("target"));
    let put = trial.put(&bucket, &source, &some_bytes(1, 100)).await;
    let replaced = trial.put(&bucket, &target, &some_bytes(2, 100)).await;
    let (store, other) = (trial.store(), ETag::of_md5([0; 16]));
    let tags = |etag: &ETag| Some(ETagMatch::OneOf(vec![etag.clone()]));
    let read = ReadConditions::default;
    let failed = |error: &Error| matches!(error, Error::PreconditionFailed(_));
    for (what, source_condition, target_condition) in [
        ("another source", ReadConditions { if_match: tags(&other), ..read() }, WriteCondition::None),
        ("a known source", ReadConditions { if_none_match: tags(&put.etag), ..read() }, WriteCondition::None),
        ("a target that is there", read(), WriteCondition::IfAbsent),
        ("another target", read(), WriteCondition::IfMatch(other.clone())),
    ] {
        let options =
            CopyOptions { source: source_condition, target: target_condition, ..CopyOptions::default() };
        let copy = store.copy((&bucket, &source), (&bucket, &target), options);
        trial.refused_in(&bucket, &format!("a copy with {what}"), failed, copy).await;
    }
    let options = CopyOptions {
        source: ReadConditions { if_match: tags(&put.etag), ..read() },
        target: WriteCondition::IfMatch(replaced.etag),
        ..CopyOptions::default()
    };
    let copied = store.copy((&bucket, &source), (&bucket, &target), options).await;
    trial.same("the etag of a copy", trial.ok("a copy whose conditions hold", copied).etag, put.etag);
}

/// A copy needs a source, a bucket to go to, allowed properties, and something to change.
pub async fn bad_copies_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let (source, target) = (trial.key("source"), trial.key("target"));
    trial.put(&bucket, &source, &some_bytes(1, 100)).await;
    let (store, unknown, none) = (trial.store(), trial.fresh_name(), CopyOptions::default);
    let no_blob = |error: &Error| matches!(error, Error::BlobNotFound(..));
    let no_bucket = |error: &Error| matches!(error, Error::BucketNotFound(_));
    let invalid = |error: &Error| matches!(error, Error::Invalid(_));
    let copy = |from, to, options| store.copy(from, to, options);
    let (from, to) = ((&bucket, &source), (&bucket, &target));
    trial.refused_in(&bucket, "a copy of nothing", no_blob, copy(to, from, none())).await;
    trial.refused_in(&bucket, "a copy from nowhere", no_bucket, copy((&unknown, &source), to, none())).await;
    trial.refused_in(&bucket, "a copy to nowhere", no_bucket, copy(from, (&unknown, &target), none())).await;
    trial.refused_in(&bucket, "a copy onto itself", invalid, copy(from, from, none())).await;
    let bad = Properties {
        metadata: BTreeMap::from([("UPPER".to_string(), String::new())]),
        ..Properties::default()
    };
    let options = CopyOptions { properties: Some(bad), ..none() };
    trial.refused_in(&bucket, "a copy with bad metadata", invalid, copy(from, to, options)).await;
}
