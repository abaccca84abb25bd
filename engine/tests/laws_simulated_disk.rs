//! The laws of streams on the simulated disk: time is in our hand, and power can be lost.

use std::sync::Arc;

use anabranch_engine::{Engine, Options};
use anabranch_model::laws::stream::StreamFixture;
use anabranch_model::{Clock, StreamStore, Timestamp};
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;

/// Small, so that segments are rolled, recycled and cleaned within one law; large enough for the largest append.
const SEGMENT_BYTES: u64 = 16 << 20;

fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    open_with(disk, clock, false)
}

fn open_with(disk: &SimDisk, clock: &SimClock, shard_limits: bool) -> Engine {
    let options = Options { segment_bytes: SEGMENT_BYTES, shard_limits, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

async fn fixture() -> StreamFixture {
    let clock = SimClock::new(Timestamp::from_millis(1_800_000_000_000));
    let disk = Arc::new(Mutex::new(SimDisk::new()));
    let engine = open(&disk.lock(), &clock);
    let current = Arc::new(Mutex::new(Some(engine.clone())));
    let (advancing, turned) = (clock.clone(), clock.clone());
    let upkept = current.clone();
    let strict = clock.clone();
    StreamFixture::new(Arc::new(engine))
        .with_limits(move || {
            let limited = open_with(&SimDisk::new(), &strict, true);
            async move { Arc::new(limited) as Arc<dyn StreamStore> }
        })
        .with_advance(move |by| advancing.advance(by))
        .with_turn_back(move |by| turned.jump_to(turned.now().minus(by)))
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
                Arc::new(engine) as Arc<dyn StreamStore>
            }
        })
}

anabranch_model::stream_laws!(fixture());
