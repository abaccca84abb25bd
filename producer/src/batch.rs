//! One append: records of different lanes, or aggregates of them.

use anabranch_model::aggregate::aggregate;
use anabranch_model::{Appended, Error, NewRecord, Result, ShardId};
use bytes::Bytes;

use crate::lane::{Entry, LaneKey};

/// The partition key of aggregates, as the Kinesis Producer Library has it; their place says where they go.
const AGGREGATE_KEY: &str = "a";
/// Bytes that an aggregate adds to each record, at most a little more.
pub(crate) const AGGREGATE_OVERHEAD: usize = 24;

/// Records that are stored or refused together: one, or an aggregate.
pub(crate) struct Unit {
    pub(crate) entries: Vec<(LaneKey, Vec<Entry>)>,
    /// The shard that is expected to take it.
    pub(crate) shard: ShardId,
}

/// Units of different lanes that share an append.
pub(crate) struct Batch {
    pub(crate) units: Vec<Unit>,
}

/// What became of a batch.
pub(crate) struct Landed {
    pub(crate) batch: Batch,
    pub(crate) results: Result<Vec<std::result::Result<Appended, Error>>>,
}

impl Unit {
    pub(crate) fn records(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flat_map(|(_, entries)| entries)
    }

    /// Whether its records belong to different places, so that a split may come between them.
    pub(crate) fn is_spread(&self) -> bool {
        let mut places = self.entries.iter().map(|(lane, _)| lane.hash_key);
        let first = places.next();
        places.any(|place| Some(place) != first)
    }

    /// The record that is sent. A single one goes as it is.
    fn encode(&self) -> Result<NewRecord> {
        let mut records = self.records();
        match (records.next(), records.next()) {
            (Some(only), None) => Ok(only.record.clone()),
            (first, _) => {
                let all: Vec<NewRecord> = self.records().map(|entry| entry.record.clone()).collect();
                Ok(NewRecord {
                    partition_key: Bytes::from_static(AGGREGATE_KEY.as_bytes()),
                    explicit_hash_key: first.map(|entry| entry.hash_key),
                    data: aggregate(&all)?,
                })
            }
        }
    }
}

impl Batch {
    /// The records that are sent, in the order of the units.
    pub(crate) fn encode(&self) -> Result<Vec<NewRecord>> {
        self.units.iter().map(Unit::encode).collect()
    }
}
