//! What SQS remembers between calls.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_model::{Clock, QueueName};
use tokio::sync::{Mutex, MutexGuard};

/// How long after a purge a queue refuses another one.
const PURGE_PAUSE: Duration = Duration::from_secs(60);

/// What is remembered. Nothing of it outlives the server.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever reads what a queue is like to change it.
    changing: Mutex<()>,
    /// Queues that were purged a moment ago, and when (time of the stopwatch).
    purged: parking_lot::Mutex<HashMap<QueueName, Duration>>,
}

impl State {
    /// Keeps others from changing queues.
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Whether the queue may be purged now. If so, it may not for a while.
    pub(super) fn begin_purge(&self, clock: &dyn Clock, queue: &QueueName) -> bool {
        let now = clock.elapsed();
        let mut purged = self.purged.lock();
        purged.retain(|_, at| now.saturating_sub(*at) < PURGE_PAUSE);
        if purged.contains_key(queue) {
            return false;
        }
        purged.insert(queue.clone(), now);
        true
    }

    /// The queue may be purged again: it was not, or it is another one now.
    pub(super) fn forget_purge(&self, queue: &QueueName) {
        self.purged.lock().remove(queue);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::Timestamp;

    use super::*;

    struct Stopped(u64);

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0)
        }
    }

    #[test]
    fn a_queue_is_purged_once_a_minute() {
        let (state, queue) = (State::default(), QueueName::new("q").unwrap());
        assert!(state.begin_purge(&Stopped(100), &queue));
        assert!(!state.begin_purge(&Stopped(159), &queue));
        assert!(state.begin_purge(&Stopped(159), &QueueName::new("other").unwrap()));
        assert!(state.begin_purge(&Stopped(160), &queue));
        assert!(!state.begin_purge(&Stopped(161), &queue));
        state.forget_purge(&queue);
        assert!(state.begin_purge(&Stopped(161), &queue));
    }
}
