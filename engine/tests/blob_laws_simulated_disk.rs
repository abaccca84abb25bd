//! The laws of blobs on the simulated disk: time is in our hand, and power can be lost.

use std::sync::Arc;

use anabranch_engine::{Engine, Options};
use anabranch_model::Timestamp;
use anabranch_model::blob::BlobStore;
use anabranch_model::laws::blob::BlobFixture;
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;

/// Small, so that segments are rolled and recycled within one law.
const SEGMENT_BYTES: u64 = 1 << 20;

fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

async fn fixture() -> BlobFixture {
    let clock = SimClock::new(Timestamp::from_millis(1_800_000_000_000));
    let disk = Arc::new(Mutex::new(SimDisk::new()));
    let engine = open(&disk.lock(), &clock);
    let advancing = clock.clone();
    BlobFixture::new(Arc::new(engine)).with_advance(move |by| advancing.advance(by)).with_crash(move || {
        let (disk, clock) = (disk.clone(), clock.clone());
        async move {
            let mut disk = disk.lock();
            let left = disk.crash_at(disk.operations(), 7);
            disk.halt();
            *disk = left;
            Arc::new(open(&disk, &clock)) as Arc<dyn BlobStore>
        }
    })
}

anabranch_model::blob_laws!(fixture());
