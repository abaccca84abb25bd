//! Stores that are simple enough to be right: everything in memory behind one lock. They show that the laws can be
//! kept, and tests of other crates may use them where a real store would be too much.

mod blobs;
mod log;
mod moving;
mod queue;
mod queues;
mod store;
mod streams;
mod tables;

pub use blobs::{BlobState, ReferenceBlobs};
pub use queues::{SimpleQueues, SimpleQueuesState};
pub use store::ReferenceTables;
pub use streams::{SimpleStreams, SimpleStreamsState};
pub use tables::Tables;
