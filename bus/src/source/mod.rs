//! Where events come from: the shards of a stream, which the consumer reads, or the messages of a queue.

mod changes;
mod lineage;
mod queue;
mod shards;

pub use changes::Changes;
pub use lineage::Lineage;
pub use queue::Queue;
pub use shards::Shards;

/// What a bot reads.
pub enum Source {
    /// The shards of a stream, or of the changes of a table: in order, with leases and checkpoints.
    Shards(Shards),
    /// The messages of a queue: in any order, many at once, each deleted when it is done with.
    Queue(Queue),
}
