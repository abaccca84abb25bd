//! A store that is driven by hand: nothing happens to its disk but what a call or a test asks for.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::blob::BlobStore;
use anabranch_model::{Result, Timestamp};
use anabranch_sim::{SimClock, SimDisk};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

/// Small, so that the script rolls some.
pub const SEGMENT_BYTES: u64 = 64 << 10;

/// An engine on a simulated disk.
pub struct Store {
    pub disk: SimDisk,
    engine: Mutex<Option<Engine>>,
    runtime: Runtime,
}

fn open(disk: &SimDisk) -> Result<Engine> {
    // The clock of the reference begins here, too.
    let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
    let options = Options { segment_bytes: SEGMENT_BYTES, drive: Drive::Caller, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock), options)
}

impl Store {
    pub fn open(disk: SimDisk) -> Result<Store> {
        let engine = Mutex::new(Some(open(&disk)?));
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Ok(Store { disk, engine, runtime })
    }

    pub fn engine(&self) -> Engine {
        self.engine.lock().clone().expect("it is open")
    }

    /// Does a call, and commits whatever it waits for.
    pub fn run<T>(&self, call: impl AsyncFnOnce(&dyn BlobStore) -> Result<T>) -> Result<T> {
        let engine = self.engine();
        self.runtime.block_on(async {
            let mut call = pin!(call(&engine));
            poll_fn(|context| {
                if let Poll::Ready(answer) = call.as_mut().poll(context) {
                    return Poll::Ready(answer);
                }
                engine.prepare();
                if engine.commit() {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            })
            .await
        })
    }

    pub fn upkeep(&self) {
        self.engine().upkeep();
    }

    /// Drops the engine without a word and opens the directory again.
    pub fn reopen(&self) {
        let mut engine = self.engine.lock();
        // Gone before the next one comes: two engines on one directory would write over each other.
        engine.take();
        *engine = Some(open(&self.disk).expect("it opens again"));
    }
}
