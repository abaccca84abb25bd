//! What only stores of streams are asked for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::laws::Fixture;
use crate::stream::StreamStore;

/// A store of streams for one law.
pub type StreamFixture = Fixture<dyn StreamStore>;

impl StreamFixture {
    /// How to make the time of day jump back, as [`Clock::now`](crate::Clock::now) may.
    pub fn with_turn_back(mut self, turn_back: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.means.turn_back = Some(Box::new(turn_back));
        self
    }

    /// How to open a store of the same kind that refuses what is more than a shard may take in a second
    /// ([`limits`](crate::limits)), for the law about refusals. It is a store of its own.
    pub fn with_limits<F>(mut self, limited: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn StreamStore>> + Send + 'static,
    {
        self.means.limited = Some(Box::new(move || Box::pin(limited())));
        self
    }
}
