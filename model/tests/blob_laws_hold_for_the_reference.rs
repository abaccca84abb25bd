//! The laws of blobs can be kept: a store that is obviously right passes every one of them.

use std::sync::Arc;

use anabranch_model::blob::BlobStore;
use anabranch_model::laws::blob::{self, BlobFixture};
use anabranch_model::laws::reference::ReferenceBlobs;

async fn fixture() -> BlobFixture {
    let store = ReferenceBlobs::new();
    let (clock, survivor) = (store.clone(), store.clone());
    BlobFixture::new(Arc::new(store))
        .with_advance(move |by| clock.advance(by))
        .with_crash(move || std::future::ready(Arc::new(survivor.clone()) as Arc<dyn BlobStore>))
}

anabranch_model::blob_laws!(fixture());

/// Laws make buckets of their own, need no runtime but a waker, and are not disturbed by what an earlier run left.
#[tokio::test]
async fn laws_share_a_store_and_run_twice() {
    let store = ReferenceBlobs::new();
    for law in blob::all().iter().chain(blob::all()) {
        law.check(BlobFixture::new(Arc::new(store.clone())).with_prefix("shared")).await;
    }
}
