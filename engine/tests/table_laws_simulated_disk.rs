//! The laws of tables on the simulated disk: time is in our hand, and power can be lost.

use std::sync::Arc;

use anabranch_engine::{Engine, Options};
use anabranch_model::Timestamp;
use anabranch_model::laws::table::TableFixture;
use anabranch_model::table::TableStore;
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;

/// Small, so that segments are rolled, recycled and cleaned within one law; large enough for the largest append.
const SEGMENT_BYTES: u64 = 16 << 20;

fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

async fn fixture() -> TableFixture {
    let clock = SimClock::new(Timestamp::from_millis(1_800_000_000_000));
    let disk = Arc::new(Mutex::new(SimDisk::new()));
    let engine = open(&disk.lock(), &clock);
    let current = Arc::new(Mutex::new(Some(engine.clone())));
    let advancing = clock.clone();
    let upkept = current.clone();
    TableFixture::new(Arc::new(engine))
        .with_advance(move |by| advancing.advance(by))
        .with_upkeep(move || {
            let engine = upkept.lock().clone().expect("an engine is open");
            async move {
                let done = tokio::task::spawn_blocking(move || engine.upkeep());
                done.await.expect("upkeep does not panic");
            }
        })
        .with_crash(move || {
            let (disk, clock, current) = (disk.clone(), clock.clone(), current.clone());
            async move {
                current.lock().take();
                let mut disk = disk.lock();
                let left = disk.crash_at(disk.operations(), 7);
                disk.halt();
                *disk = left;
                let engine = open(&disk, &clock);
                *current.lock() = Some(engine.clone());
                Arc::new(engine) as Arc<dyn TableStore>
            }
        })
}

anabranch_model::table_laws!(fixture());
