//! The nouns that every crate of Anabranch shares, and the ports with their laws.
//!
//! Invariant: this crate performs no I/O, reads no clock, and knows no wire format. Whoever needs time or
//! files takes them as values ([`Clock`], [`Disk`]).
//!
//! Read in this order: a record and where it goes ([`record`], [`hash_key`], [`sequence`]), the shards of a
//! stream ([`shard`], [`graph`]), where reading starts ([`position`]), and then what a store must do ([`stream`]).
//! Queues ([`queue`]), tables ([`table`]) and blobs ([`blob`]) stand beside streams, each in a folder of its own;
//! what only a server keeps about them is in [`admin`].

pub mod limits;

pub mod aggregate;
pub mod digests;
pub mod hash_key;
pub mod name;
pub mod partition_key;
pub mod pointer;
pub mod record;
pub mod sequence;

pub mod graph;
pub mod position;
pub mod shard;

pub mod error;
pub mod stream;

pub mod blob;
pub mod queue;
pub mod table;

pub mod admin;

pub mod clock;
pub mod dice;
pub mod disk;

#[cfg(feature = "laws")]
pub mod laws;

pub use admin::{Admin, Document, Owner};
pub use blob::{BlobKey, BlobStore, BucketName};
pub use clock::{Clock, Timestamp};
pub use dice::Dice;
pub use disk::{Disk, DiskFile, Open};
pub use error::{Cancelled, Error, NextMove, Result};
pub use graph::ShardGraph;
pub use hash_key::{HashKey, HashRange};
pub use name::{IndexName, ShardId, StreamName, TableName};
pub use partition_key::PartitionKey;
pub use pointer::Pointer;
pub use position::Position;
pub use queue::{Message, MessageId, NewMessage, QueueName, QueueOptions, QueueStore, Receipt};
pub use record::{NewRecord, Record};
pub use sequence::SequenceNumber;
pub use shard::Shard;
pub use stream::{
    Appended, Batch, Capabilities, Follow, Next, Page, ReadLimit, ShardSource, StreamOptions, StreamStore,
    StreamSummary, check_append, check_retention,
};
pub use table::TableStore;
