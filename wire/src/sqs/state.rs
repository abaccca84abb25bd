//! What SQS remembers between calls.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_model::{Clock, QueueName};
use tokio::sync::{Mutex, MutexGuard};

use crate::making::Settled;

/// How long after a purge a queue refuses another one.
const PURGE_PAUSE: Duration = Duration::from_secs(60);

/// What is remembered. Nothing of it outlives the server.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever reads what a queue is like to change it.
    changing: Mutex<()>,
    /// Whether nothing is left that was begun before the start.
    pub(crate) settled: Settled,
    /// Queues that were purged a moment ago, and when (time of the stopwatch).
    purged: parking_lot::Mutex<HashMap<QueueName, Duration>>,
}

impl State {
    /// Keeps others from changing queues.
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// A purge of the queue, if it may be purged now. If so, no other may begin for a while, unless this one is dropped
    /// before it is [done](Purge::done).
    pub(super) fn begin_purge(&self, clock: &dyn Clock, queue: &QueueName) -> Option<Purge<'_>> {
        let now = clock.elapsed();
        let mut purged = self.purged.lock();
        purged.retain(|_, at| now.saturating_sub(*at) < PURGE_PAUSE);
        if purged.contains_key(queue) {
            return None;
        }
        purged.insert(queue.clone(), now);
        Some(Purge { state: self, queue: queue.clone(), began_at: now, done: false })
    }

    /// The queue may be purged again: it is another one now.
    pub(super) fn forget_purge(&self, queue: &QueueName) {
        self.purged.lock().remove(queue);
    }
}

/// A purge that has begun. Whoever gives up on it, or finds it refused, leaves no trace of it.
pub(super) struct Purge<'a> {
    state: &'a State,
    queue: QueueName,
    began_at: Duration,
    done: bool,
}

impl Purge<'_> {
    /// The queue was purged.
    pub(super) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Purge<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut purged = self.state.purged.lock();
        // The queue may be another one by now, with a purge of its own.
        if purged.get(&self.queue) == Some(&self.began_at) {
            purged.remove(&self.queue);
        }
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
        let begins = |seconds: u64, queue: &QueueName| match state.begin_purge(&Stopped(seconds), queue) {
            Some(purge) => {
                purge.done();
                true
            }
            None => false,
        };
        assert!(begins(100, &queue));
        assert!(!begins(159, &queue));
        assert!(begins(159, &QueueName::new("other").unwrap()));
        assert!(begins(160, &queue));
        assert!(!begins(161, &queue));
        state.forget_purge(&queue);
        assert!(begins(161, &queue));
    }

    #[test]
    fn a_purge_that_is_given_up_was_none() {
        let (state, queue) = (State::default(), QueueName::new("q").unwrap());
        let first = state.begin_purge(&Stopped(100), &queue).unwrap();
        assert!(state.begin_purge(&Stopped(101), &queue).is_none(), "it is still going on");
        drop(first);
        let second = state.begin_purge(&Stopped(102), &queue).unwrap();
        // The queue is deleted and made again, and its purge is not that of the older one.
        state.forget_purge(&queue);
        state.begin_purge(&Stopped(103), &queue).unwrap().done();
        drop(second);
        assert!(state.begin_purge(&Stopped(104), &queue).is_none());
    }
}
