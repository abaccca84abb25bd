//! Stores that are simple enough to be right: everything in memory behind one lock. They show that the laws can be
//! kept, and tests of other crates may use them where a real store would be too much.

mod blobs;
mod moving;
mod queue;
mod queues;

pub use blobs::{BlobState, ReferenceBlobs};
pub use queues::{SimpleQueues, SimpleQueuesState};
