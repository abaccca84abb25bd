//! The laws of streams on the real disk. A crash here is a process that ends without a word: the page cache survives it,
//! so it proves recovery, not durability; that is what the simulated disk is for.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::StreamStore;
use anabranch_model::laws::stream::StreamFixture;

fn open(folder: &Path) -> Engine {
    open_with(folder, Options::default())
}

fn open_with(folder: &Path, options: Options) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), options).expect("the directory opens")
}

async fn fixture() -> StreamFixture {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let crashed = folder.clone();
    let strict = tempfile::tempdir().expect("a temporary folder");
    let strict_path = strict.path().to_owned();
    StreamFixture::new(Arc::new(open(folder.path())))
        .keeping(strict)
        .keeping(folder)
        .with_limits(move || {
            let limited = open_with(&strict_path, Options { shard_limits: true, ..Options::default() });
            async move { Arc::new(limited) as Arc<dyn StreamStore> }
        })
        .with_crash(move || {
            let folder = crashed.clone();
            async move { Arc::new(open(folder.path())) as Arc<dyn StreamStore> }
        })
}

anabranch_model::stream_laws!(fixture());
