//! The laws of blobs on the real disk. A crash here is a process that ends without a word: the page cache survives it, so
//! it proves recovery, not durability; that is what the simulated disk is for.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::blob::BlobStore;
use anabranch_model::laws::blob::BlobFixture;

fn open(folder: &Path) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), Options::default())
        .expect("the directory opens")
}

async fn fixture() -> BlobFixture {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let crashed = folder.clone();
    BlobFixture::new(Arc::new(open(folder.path()))).keeping(folder).with_crash(move || {
        let folder = crashed.clone();
        async move { Arc::new(open(folder.path())) as Arc<dyn BlobStore> }
    })
}

anabranch_model::blob_laws!(fixture());
