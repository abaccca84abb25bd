//! The laws of tables on the real disk. A crash here is a process that ends without a word: the page cache survives it,
//! so it proves recovery, not durability; that is what the simulated disk is for.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::table::TableStore;
use anabranch_model::laws::table::TableFixture;

fn open(folder: &Path) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), Options::default())
        .expect("the directory opens")
}

async fn fixture() -> TableFixture {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let crashed = folder.clone();
    TableFixture::new(Arc::new(open(folder.path()))).keeping(folder).with_crash(move || {
        let folder = crashed.clone();
        async move { Arc::new(open(folder.path())) as Arc<dyn TableStore> }
    })
}

anabranch_model::table_laws!(fixture());
