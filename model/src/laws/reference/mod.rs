//! Stores that are simple enough to be right: everything in memory behind one lock. Laws are tried on them, and tests of
//! what is built on a port may use them in place of a real store.

mod blobs;

pub use blobs::{BlobState, ReferenceBlobs};
