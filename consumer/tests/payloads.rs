//! Payloads that were too large for a record come back to the processor.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;

use anabranch_model::blob::PutOptions;
use anabranch_model::laws::reference::ReferenceBlobs;
use anabranch_model::{BlobKey, BlobStore, BucketName, NewRecord, Pointer, StreamStore};
use bytes::Bytes;
use world::{World, run, seconds};

async fn large(blobs: &ReferenceBlobs, key: &str, payload: &str) -> Bytes {
    let (bucket, key) = (BucketName::new("large").unwrap(), BlobKey::new(key).unwrap());
    let body = Box::pin(futures_util::stream::iter([Ok(Bytes::copy_from_slice(payload.as_bytes()))]));
    blobs.put(&bucket, &key, body, PutOptions::default()).await.unwrap();
    Pointer::to(payload.as_bytes(), bucket, key).encode()
}

#[tokio::test(start_paused = true)]
async fn large_payloads_are_put_back_in_order_and_missing_ones_come_as_they_are() {
    let world = World::new(1).await;
    let blobs = ReferenceBlobs::new();
    blobs.create_bucket(&BucketName::new("large").unwrap()).await.unwrap();
    let long = |letter: &str| letter.repeat(700_000);
    let mut data: Vec<Bytes> = vec!["first".into()];
    for letter in ["a", "b", "c", "d"] {
        data.push(large(&blobs, letter, &long(letter)).await);
    }
    let gone = Pointer::to(b"gone", BucketName::new("large").unwrap(), BlobKey::new("gone").unwrap());
    let other = Pointer::to(b"other", BucketName::new("large").unwrap(), BlobKey::new("a").unwrap());
    data.extend([gone.encode(), other.encode(), "last".into()]);
    let records = data.iter().map(|data| NewRecord::new("key", data.clone())).collect();
    world.streams.append(&world.stream, records).await.unwrap();

    let worker = run(world.builder("one").payloads(Arc::new(blobs)));
    world.until("all are seen", seconds(60), async || world.seen.count() >= 8).await;
    let seen = world.seen.data();
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let expected = [
        "first".to_owned(),
        long("a"),
        long("b"),
        long("c"),
        long("d"),
        text(&gone.encode()),
        text(&other.encode()),
        "last".to_owned(),
    ];
    assert_eq!(seen.len(), expected.len());
    for (place, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert!(seen == expected, "record {place} has {} bytes", seen.len());
    }
    worker.stop().await;
}
