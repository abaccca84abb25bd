//! Notices a shard that is owned and does not advance.
//!
//! Two things can stand still: the source, which should answer now and then even if there is nothing new, and the
//! acknowledgements of records that are under way. A call to the processor has a time limit of its own and does not count.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;
use parking_lot::Mutex;

use crate::acknowledge::Tracker;

/// What a pipeline is doing, as far as the watchdog is concerned.
pub(crate) struct Progress {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    tracker: Option<Arc<Tracker>>,
    /// When the source last answered, or the processor came back.
    advanced_at: Duration,
    /// How many records were acknowledged, and since when it is so many.
    done: u64,
    done_at: Duration,
    /// The processor is at work, or the shard stands still on purpose.
    excused: bool,
}

impl Progress {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let now = clock.elapsed();
        let state = State { tracker: None, advanced_at: now, done: 0, done_at: now, excused: false };
        Arc::new(Progress { clock, state: Mutex::new(state) })
    }

    /// Watches the acknowledgements of a shard.
    pub(crate) fn watch(&self, tracker: &Arc<Tracker>) {
        self.state.lock().tracker = Some(tracker.clone());
    }

    /// Something went forward, if only that the source said that there is nothing new.
    pub(crate) fn advanced(&self) {
        self.state.lock().advanced_at = self.clock.elapsed();
    }

    /// Whether standing still is all right from now on.
    pub(crate) fn excuse(&self, excused: bool) {
        let now = self.clock.elapsed();
        let mut state = self.state.lock();
        (state.excused, state.advanced_at, state.done_at) = (excused, now, now);
    }

    /// For how long nothing went forward that should have.
    pub(crate) fn stalled(&self) -> Duration {
        let now = self.clock.elapsed();
        let mut state = self.state.lock();
        if state.excused {
            return Duration::ZERO;
        }
        let (done, waiting) =
            state.tracker.as_ref().map_or((0, 0), |tracker| (tracker.done(), tracker.load().0));
        if done != state.done || waiting == 0 {
            (state.done, state.done_at) = (done, now);
        }
        now.saturating_sub(if waiting == 0 { state.advanced_at } else { state.done_at })
    }
}
