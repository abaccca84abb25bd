//! The laws of documents, on the real disk and on a simulated one that loses power.

use std::sync::Arc;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::Timestamp;
use anabranch_model::laws::admin::{AdminFixture, Everything};
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;

mod real_disk {
    use super::*;

    async fn fixture() -> AdminFixture {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let kept = folder.clone();
        let open = move || {
            let disk = SystemDisk::open(folder.path()).expect("the folder opens");
            Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), Options::default())
                .expect("the directory opens")
        };
        let store: Arc<dyn Everything> = Arc::new(open());
        AdminFixture::new(store).keeping(kept).with_crash(move || {
            let engine = open();
            async move { Arc::new(engine) as Arc<dyn Everything> }
        })
    }

    anabranch_model::admin_laws!(fixture());
}

mod simulated_disk {
    use super::*;

    fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
        let options = Options { segment_bytes: 1 << 20, ..Options::default() };
        Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
    }

    async fn fixture() -> AdminFixture {
        let clock = SimClock::new(Timestamp::from_millis(1_800_000_000_000));
        let disk = Arc::new(Mutex::new(SimDisk::new()));
        let store: Arc<dyn Everything> = Arc::new(open(&disk.lock(), &clock));
        AdminFixture::new(store).with_crash(move || {
            let (disk, clock) = (disk.clone(), clock.clone());
            async move {
                let mut disk = disk.lock();
                let left = disk.crash_at(disk.operations(), 7);
                disk.halt();
                *disk = left;
                Arc::new(open(&disk, &clock)) as Arc<dyn Everything>
            }
        })
    }

    anabranch_model::admin_laws!(fixture());
}
