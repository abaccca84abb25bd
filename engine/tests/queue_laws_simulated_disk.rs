//! The laws of queues on the simulated disk: time is in our hand, and power can be lost.

use std::sync::Arc;

use anabranch_engine::{Engine, Options};
use anabranch_model::laws::queue::QueueFixture;
use anabranch_model::{QueueStore, Timestamp};
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;

/// Small, so that segments are rolled and recycled within one law; large enough for the largest send.
const SEGMENT_BYTES: u64 = 16 << 20;
/// As many messages in flight as a law can try.
const IN_FLIGHT_MAX: usize = 250;

fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    let options =
        Options { segment_bytes: SEGMENT_BYTES, in_flight_max: IN_FLIGHT_MAX, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

async fn fixture() -> QueueFixture {
    let clock = SimClock::new(Timestamp::from_millis(1_800_000_000_000));
    let disk = Arc::new(Mutex::new(SimDisk::new()));
    let engine = open(&disk.lock(), &clock);
    let current = Arc::new(Mutex::new(Some(engine.clone())));
    let (advancing, upkept) = (clock.clone(), current.clone());
    QueueFixture::new(Arc::new(engine))
        .with_in_flight_max(IN_FLIGHT_MAX)
        .with_advance(move |by| advancing.advance(by))
        // It also wakes receivers who wait: their own timers do not run on this clock.
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
                Arc::new(engine) as Arc<dyn QueueStore>
            }
        })
}

anabranch_model::queue_laws!(fixture());
