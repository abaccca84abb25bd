//! What a processor is given, and what it says about it.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{HashKey, PartitionKey, SequenceNumber, ShardId, StreamName, Timestamp};
use bytes::Bytes;
use smol_str::SmolStr;

use crate::acknowledge::{Acknowledgement, Tracker};
use crate::lease::Checkpoint;

/// The shard that a processor works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// Its stream.
    pub stream: StreamName,
    /// The shard.
    pub shard: ShardId,
    /// The key of its lease.
    pub lease: SmolStr,
}

/// A record for a processor. What an aggregate holds comes as records of its own.
#[derive(Clone)]
pub struct Received {
    /// Its place in the shard.
    pub sequence: SequenceNumber,
    /// Which part of an aggregate it is; zero for a record that is none.
    pub sub_sequence: u64,
    /// When the store took it.
    pub arrival: Timestamp,
    /// UTF-8.
    pub partition_key: PartitionKey,
    /// The place in the hash-key space that a producer of aggregates chose for it.
    pub explicit_hash_key: Option<HashKey>,
    /// The payload.
    pub data: Bytes,
    /// How often it was delivered, this time included.
    pub attempt: u32,
    pub(crate) seat: Option<Seat>,
}

/// Where the acknowledgement of a record goes.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) index: u64,
}

impl Received {
    /// Takes the acknowledgement of this record out of the delivery: the record counts as processed when it says so,
    /// however much later. Return [`Outcome::Deferred`] for it.
    pub fn defer(&self) -> Acknowledgement {
        match &self.seat {
            Some(seat) => seat.tracker.defer(seat.index, self.attempt),
            None => Acknowledgement::of_nothing(),
        }
    }

    /// The checkpoint that says that everything up to this record is processed.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint::At { sequence: self.sequence, sub_sequence: self.sub_sequence }
    }

    /// Bytes of key and payload.
    pub fn size(&self) -> usize {
        self.partition_key.len() + self.data.len()
    }
}

impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} ({} bytes)", self.sequence, self.sub_sequence, self.data.len())
    }
}

/// Records of one shard, in order.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Where they come from.
    pub shard: ShardInfo,
    /// The records.
    pub records: Vec<Received>,
    /// How far they lie behind the end of the shard.
    pub behind: Duration,
}

impl Delivery {
    /// Every record is processed.
    pub fn done(&self) -> Vec<Outcome> {
        vec![Outcome::Done; self.records.len()]
    }

    /// No record is processed.
    pub fn failed(&self, why: impl Into<String>) -> Vec<Outcome> {
        vec![Outcome::Failed(why.into()); self.records.len()]
    }
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is processed.
    Done,
    /// It is not; the text says why. It is delivered again by itself, and in the end goes where the policy says.
    Failed(String),
    /// Its acknowledgement was taken with [`Received::defer`] and says so later.
    Deferred,
}
