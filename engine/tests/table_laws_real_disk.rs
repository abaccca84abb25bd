//! The laws of tables on the real disk. A crash here is a process that ends without a word: the page cache survives it,
//! so it proves recovery, not durability; that is what the simulated disk is for.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::laws::table::TableFixture;
use anabranch_model::table::TableStore;
use parking_lot::Mutex;

fn open(folder: &Path) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), Options::default())
        .expect("the directory opens")
}

async fn fixture() -> TableFixture {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let engine = open(folder.path());
    let current = Arc::new(Mutex::new(Some(engine.clone())));
    let (upkept, crashed) = (current, folder.clone());
    let reopened = upkept.clone();
    TableFixture::new(Arc::new(engine))
        .keeping(folder)
        .with_upkeep(move || {
            let engine = upkept.lock().clone().expect("an engine is open");
            async move {
                let done = tokio::task::spawn_blocking(move || engine.upkeep());
                done.await.expect("upkeep does not panic");
            }
        })
        .with_crash(move || {
            let (folder, current) = (crashed.clone(), reopened.clone());
            async move {
                current.lock().take();
                let engine = open(folder.path());
                *current.lock() = Some(engine.clone());
                Arc::new(engine) as Arc<dyn TableStore>
            }
        })
}

anabranch_model::table_laws!(fixture());
