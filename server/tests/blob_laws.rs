//! The laws of blobs, through the client, the control API and a real port: with the reference behind it, whose clock can
//! be moved, and with the engine of a real server on a real disk, which is killed and started again.

mod harness;

mod reference {
    use std::sync::Arc;

    use anabranch_model::BlobStore;
    use anabranch_model::laws::blob::BlobFixture;
    use anabranch_model::laws::reference::ReferenceBlobs;
    use anabranch_server::Stores;

    use super::harness::laws::Hosted;

    async fn fixture() -> BlobFixture {
        let store = ReferenceBlobs::new();
        let (host, remote) = Hosted::start(Stores::default().with_blobs(Arc::new(store.clone()))).await;
        BlobFixture::new(remote).with_advance(move |by| store.advance(by)).with_crash(move || {
            let crash = host.clone().crash();
            async move { crash.await as Arc<dyn BlobStore> }
        })
    }

    anabranch_model::blob_laws!(fixture());
}

mod engine {
    use std::sync::Arc;

    use anabranch_model::BlobStore;
    use anabranch_model::laws::blob::BlobFixture;

    use super::harness::laws::Killed;

    async fn fixture() -> BlobFixture {
        let (server, store) = Killed::start();
        BlobFixture::new(store).with_crash(move || {
            let crash = server.clone().crash();
            async move { crash.await as Arc<dyn BlobStore> }
        })
    }

    anabranch_model::blob_laws!(fixture());
}
