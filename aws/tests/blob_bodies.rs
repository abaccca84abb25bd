//! Bodies that are not taken whole, on servers of S3's protocol that we did not write: the laws have none so large.

mod peer;

use std::time::Duration;

use anabranch_aws::Blobs;
use anabranch_model::blob::{
    Body, BodyDigest, BodyDigester, BodyOptions, ChecksumAlgorithm, CompleteOptions, ETag, GetOptions,
    PartChoice, PartNumber, PutOptions, Range, Upload, UploadListOptions, UploadOptions, WriteCondition,
    md5_of,
};
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, NextMove};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use peer::Peer;

/// The largest body that is taken whole.
const WHOLE: usize = 8 << 20;

fn bucket() -> BucketName {
    BucketName::new("bodies").expect("a name")
}

fn key(key: &str) -> BlobKey {
    BlobKey::new(key).expect("a key")
}

/// Bytes that differ from themselves at another place.
fn some_bytes(length: usize) -> Bytes {
    let bytes = (0..length as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8);
    bytes.collect()
}

/// A body in pieces that fit nothing.
fn pieces(bytes: &Bytes) -> Body {
    let mut rest = bytes.clone();
    let pieces = std::iter::from_fn(move || {
        let piece = rest.split_to(rest.len().min(300_007));
        (!piece.is_empty()).then_some(Ok(piece))
    });
    Box::pin(stream::iter(pieces.collect::<Vec<_>>()))
}

fn digest(bytes: &[u8], algorithm: ChecksumAlgorithm) -> BodyDigest {
    let options = BodyOptions { computed: [algorithm].into(), md5_tag: true, ..BodyOptions::default() };
    let mut digester = BodyDigester::new(options).expect("a digester");
    digester.update(bytes).expect("any size");
    digester.finish().expect("nothing was declared")
}

/// Everything that is known of a body before it is sent.
fn declared(digest: &BodyDigest) -> BodyOptions {
    BodyOptions {
        size: Some(digest.size),
        md5: digest.etag.md5(),
        expected: digest.checksums.clone(),
        ..BodyOptions::default()
    }
}

async fn read(blobs: &Blobs, key: &BlobKey, range: Option<Range>) -> Vec<u8> {
    let options = GetOptions { range, ..GetOptions::default() };
    let blob = blobs.get(&bucket(), key, options).await.expect("a blob");
    blob.body.try_collect::<Vec<_>>().await.expect("a body").concat()
}

async fn uploads(blobs: &Blobs) -> Vec<Upload> {
    let page = blobs.uploads(&bucket(), UploadListOptions::default()).await.expect("uploads");
    page.entries.into_iter().map(|summary| summary.upload).collect()
}

async fn connected(peer: &Peer) -> Blobs {
    let blobs = Blobs::new(&peer.connect().await).expect("an endpoint");
    blobs.create_bucket(&bucket()).await.expect("a bucket");
    blobs
}

#[tokio::test]
async fn a_declared_body_goes_through_as_it_comes() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = connected(&seaweedfs).await;
    for size in [WHOLE, WHOLE + 1, 20_000_003] {
        let bytes = some_bytes(size);
        let right = digest(&bytes, ChecksumAlgorithm::Sha256);
        let key = key(&size.to_string());
        let options = |condition| PutOptions { condition, body: declared(&right), ..PutOptions::default() };
        let put = async |condition| blobs.put(&bucket(), &key, pieces(&bytes), options(condition)).await;
        let meta = put(WriteCondition::IfAbsent).await.expect("a put");
        assert_eq!((meta.size, meta.parts, &meta.etag), (right.size, None, &right.etag));
        assert_eq!(meta.checksums, right.checksums);
        assert_eq!(blobs.head(&bucket(), &key).await, Ok(meta.clone()));
        assert!(read(&blobs, &key, None).await == bytes, "another body of {size} bytes");
        put(WriteCondition::IfMatch(meta.etag)).await.expect("a put that replaces what it names");
        // A server may close the connection while the body is on its way; then nobody knows.
        let refused = put(WriteCondition::IfAbsent).await.expect_err("it is there");
        let lost = refused.next_move() == NextMove::Retry && refused.to_string().contains("not known");
        assert!(refused == Error::PreconditionFailed(key.clone()) || lost, "{refused:?}");
        assert!(read(&blobs, &key, None).await == bytes, "another body of {size} bytes");
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_put_in_parts() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = connected(&seaweedfs).await;
    // A part may be of one byte, and the last one may be full.
    for size in [WHOLE + 1, 2 * WHOLE] {
        let bytes = some_bytes(size);
        let right = digest(&bytes, ChecksumAlgorithm::Crc32c);
        let key = key(&size.to_string());
        let body = BodyOptions { computed: [ChecksumAlgorithm::Crc32c].into(), ..BodyOptions::default() };
        let put = async |body: &BodyOptions, condition| {
            let options = PutOptions { condition, body: body.clone(), ..PutOptions::default() };
            blobs.put(&bucket(), &key, pieces(&bytes), options).await
        };
        let meta = put(&body, WriteCondition::IfAbsent).await.expect("a put");
        assert_eq!((meta.size, meta.parts), (right.size, Some(2)));
        assert_eq!(meta.checksums, right.checksums);
        assert!(read(&blobs, &key, None).await == bytes, "another body of {size} bytes");
        let again = put(&body, WriteCondition::IfAbsent).await;
        assert_eq!(again, Err(Error::PreconditionFailed(key.clone())));
        let wrong = BodyOptions { md5: Some([0; 16]), ..body };
        assert_eq!(put(&wrong, WriteCondition::None).await, Err(Error::ChecksumMismatch("md5")));
        assert_eq!(blobs.head(&bucket(), &key).await, Ok(meta));
        assert_eq!(uploads(&blobs).await, []);
    }
}

#[tokio::test]
async fn a_large_part_goes_through_as_it_comes() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = connected(&seaweedfs).await;
    let (key, bytes) = (key("key"), some_bytes(WHOLE + 100_000));
    let right = digest(&bytes, ChecksumAlgorithm::Crc32);
    let upload = blobs.begin_upload(&bucket(), &key, UploadOptions::default()).await.expect("an upload");
    let mut choices = Vec::new();
    // The second one comes without its size, and is taken whole.
    for (number, options) in [(1, declared(&right)), (2, BodyOptions::default())] {
        let number = PartNumber::new(number).expect("a number");
        let part = blobs.put_part(&upload, number, pieces(&bytes), options).await.expect("a part");
        assert_eq!((part.size, &part.etag), (right.size, &right.etag));
        choices.push(PartChoice::from(&part));
    }
    let number = PartNumber::new(2).expect("a number");
    let wrong = BodyOptions { md5: Some([0; 16]), ..declared(&right) };
    let put = blobs.put_part(&upload, number, pieces(&bytes), wrong).await;
    assert_eq!(put, Err(Error::ChecksumMismatch("md5")));
    let completed = blobs.complete_upload(&upload, &choices, CompleteOptions::default()).await;
    assert_eq!(completed.expect("a blob").etag, ETag::of_parts(&[md5_of(&bytes); 2]));
    let end = right.size;
    let across = read(&blobs, &key, Some(Range::FromTo(end - 10, end + 9))).await;
    assert_eq!(across, [&bytes[bytes.len() - 10..], &bytes[..10]].concat());
}

#[tokio::test]
async fn a_put_that_is_dropped_leaves_no_upload() {
    let ministack = Peer::ministack().await;
    let blobs = connected(&ministack).await;
    let endless: Body = Box::pin(pieces(&some_bytes(20 << 20)).chain(stream::pending()));
    let put = {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.put(&bucket(), &key("key"), endless, PutOptions::default()).await })
    };
    let mut again = tokio::time::interval(Duration::from_millis(20));
    // Two parts are full, and a third has begun.
    let parts = async |upload: &Upload| blobs.parts(upload, None, 1_000).await.map(|page| page.entries.len());
    while !matches!(uploads(&blobs).await.first(), Some(upload) if parts(upload).await == Ok(2)) {
        again.tick().await;
    }
    put.abort();
    while !uploads(&blobs).await.is_empty() {
        again.tick().await;
    }
    assert_eq!(blobs.head(&bucket(), &key("key")).await, Err(Error::BlobNotFound(bucket(), key("key"))));
    blobs.delete_bucket(&bucket()).await.expect("an empty bucket");
}
