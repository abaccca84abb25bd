//! What only stores of queues are asked for.

use std::future::Future;

use crate::laws::Fixture;
#[cfg(doc)]
use crate::limits;
use crate::queue::QueueStore;

/// A store of queues for one law.
pub type QueueFixture = Fixture<dyn QueueStore>;

impl QueueFixture {
    /// How to wait until calls that were begun have reached the store, where that takes longer than a few turns of the
    /// runtime: a receive that is still on its way does not notice what it should be waiting for.
    pub fn with_settle<F>(mut self, settle: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.means.settle = Some(Box::new(move || Box::pin(settle())));
        self
    }

    /// How many messages of a queue can be in flight in this store, where that is fewer than
    /// [`limits::IN_FLIGHT_MAX`], which is more than a law can try. Other laws need more than 200: they have as many in flight while others ask.
    pub fn with_in_flight_max(mut self, in_flight_max: usize) -> Self {
        self.means.in_flight_max = in_flight_max;
        self
    }

    /// How large a message can be in this store, where that is less than [`limits::MESSAGE_BYTES_MAX`]: a queue that asks
    /// for more is made with this.
    pub fn with_message_bytes_max(mut self, message_bytes_max: usize) -> Self {
        self.means.message_bytes_max = message_bytes_max;
        self
    }

    /// For a store on a service that does not say how old the oldest message of a queue is.
    pub fn without_ages(mut self) -> Self {
        self.means.tells_age = false;
        self
    }
}
