//! A wish that is said once, to many. Whoever waits for it is woken in the order in which it began to wait: a channel that
//! wakes in a random order would make two runs of one seed differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flag(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_raised: AtomicBool,
    raised: Notify,
}

impl Flag {
    /// Says it. It cannot be taken back.
    pub(crate) fn raise(&self) {
        self.0.is_raised.store(true, Ordering::Release);
        self.0.raised.notify_waiters();
    }

    /// Whether it was said.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.is_raised.load(Ordering::Acquire)
    }

    /// Waits until it is said.
    pub(crate) async fn raised(&self) {
        let raised = self.0.raised.notified();
        tokio::pin!(raised);
        raised.as_mut().enable();
        if !self.is_raised() {
            raised.await;
        }
    }
}
