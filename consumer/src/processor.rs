//! What a user writes.

use async_trait::async_trait;

use crate::delivery::{Delivery, Outcome, ShardInfo};
use crate::lease::Checkpoint;

/// Processes the records of one shard. Each shard that this worker reads has its own.
///
/// A call that panics, takes too long or returns another number of outcomes than there are records has failed as a whole.
/// After a panic the shard gets a new processor. When the lease of a shard is lost, a call that is under way is dropped at
/// its next `await`.
#[async_trait]
pub trait Processor: Send {
    /// Before the first record; `from` is how far the shard was processed before.
    async fn initialized(&mut self, shard: &ShardInfo, from: Checkpoint) {
        let _ = (shard, from);
    }

    /// Processes records, and says of each what became of it, in their order.
    async fn process(&mut self, delivery: Delivery) -> Vec<Outcome>;

    /// Another worker reads the shard from now on. Nothing more is written down.
    async fn lease_lost(&mut self) {}

    /// Every record of the shard is acknowledged, and there will be no more.
    async fn shard_ended(&mut self) {}

    /// The worker stops, or hands the shard to another one: what is acknowledged before this returns is still written down.
    async fn shutdown(&mut self) {}
}

/// Makes the processor of a shard.
pub trait ProcessorFactory: Send + Sync + 'static {
    /// The processor of this shard.
    fn make(&self, shard: &ShardInfo) -> Box<dyn Processor>;
}

impl<F, P> ProcessorFactory for F
where
    F: Fn(&ShardInfo) -> P + Send + Sync + 'static,
    P: Processor + 'static,
{
    fn make(&self, shard: &ShardInfo) -> Box<dyn Processor> {
        Box::new(self(shard))
    }
}

/// A processor that is nothing but a closure.
pub fn process_fn<F, Fut>(process: F) -> impl ProcessorFactory
where
    F: Fn(Delivery) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Vec<Outcome>> + Send + 'static,
{
    move |_: &ShardInfo| ProcessFn { process: process.clone() }
}

struct ProcessFn<F> {
    process: F,
}

#[async_trait]
impl<F, Fut> Processor for ProcessFn<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = Vec<Outcome>> + Send,
{
    async fn process(&mut self, delivery: Delivery) -> Vec<Outcome> {
        (self.process)(delivery).await
    }
}
