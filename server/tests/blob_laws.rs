//! The laws of blobs, through the client, the control API and a real port. Behind it is the reference, whose clock can be
//! moved.

use std::sync::Arc;

use anabranch_model::BlobStore;
use anabranch_model::laws::blob::BlobFixture;
use anabranch_model::laws::reference::ReferenceBlobs;
use anabranch_server::{Host, Remote, Stores};

async fn fixture() -> BlobFixture {
    let store = ReferenceBlobs::new();
    let host = Host::start(Stores::default().with_blobs(Arc::new(store.clone()))).await.expect("a free port");
    let remote: Arc<dyn BlobStore> = Arc::new(Remote::new(host.address()));
    let survivor = remote.clone();
    BlobFixture::new(remote)
        .with_advance(move |by| store.advance(by))
        .with_crash(move || std::future::ready(survivor.clone()))
        .keeping(host)
}

anabranch_model::blob_laws!(fixture());
