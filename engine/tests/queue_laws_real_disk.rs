//! The laws of queues on the real disk. A crash here is a process that ends without a word.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::QueueStore;
use anabranch_model::laws::queue::QueueFixture;
use parking_lot::Mutex;

fn open(folder: &Path) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    let options = Options { in_flight_max: 250, ..Options::default() };
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), options).expect("the directory opens")
}

async fn fixture() -> QueueFixture {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let engine = open(folder.path());
    let current = Arc::new(Mutex::new(Some(engine.clone())));
    let (upkept, crashed) = (current.clone(), folder.clone());
    QueueFixture::new(Arc::new(engine))
        .with_in_flight_max(250)
        .keeping(folder)
        .with_upkeep(move || {
            let engine = upkept.lock().clone().expect("an engine is open");
            async move {
                let done = tokio::task::spawn_blocking(move || engine.upkeep());
                done.await.expect("upkeep does not panic");
            }
        })
        .with_crash(move || {
            let (folder, current) = (crashed.clone(), current.clone());
            async move {
                current.lock().take();
                let engine = open(folder.path());
                *current.lock() = Some(engine.clone());
                Arc::new(engine) as Arc<dyn QueueStore>
            }
        })
}

anabranch_model::queue_laws!(fixture());
