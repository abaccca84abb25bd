//! One append: records of different lanes, or aggregates of them.

use std::sync::Arc;

use anabranch_model::aggregate::aggregate;
use anabranch_model::{HashKey, NewRecord, Result, ShardId};
use smallvec::SmallVec;

use crate::map::ShardMap;
use crate::queue::LaneId;

/// The partition key of aggregates, as the Kinesis Producer Library has it; their place says where they go.
const AGGREGATE_KEY: &str = "a";
/// Bytes that an aggregate adds to each record, at most a little more.
pub(crate) const AGGREGATE_OVERHEAD: usize = 24;

/// Records that are stored or refused together: one, or an aggregate.
pub(crate) struct Unit {
    /// Lanes, and how many of their first records it has.
    pub(crate) lanes: SmallVec<[(LaneId, usize); 1]>,
    pub(crate) records: usize,
    pub(crate) bytes: usize,
    /// Where the shard stands in the map that is expected to take it.
    pub(crate) slot: usize,
}

/// Units of different lanes that share an append.
pub(crate) struct Batch {
    pub(crate) units: Vec<Unit>,
    /// The shards as they were known when it was formed.
    pub(crate) map: Arc<ShardMap>,
}

/// What is sent of a unit.
pub(crate) enum Parcel {
    One(NewRecord),
    /// Several records, and the place of the first.
    Many(HashKey, Vec<NewRecord>),
}

impl Unit {
    pub(crate) fn new(slot: usize) -> Self {
        Unit { lanes: SmallVec::new(), records: 0, bytes: 0, slot }
    }
}

impl Batch {
    /// The shard that is expected to take a unit.
    pub(crate) fn shard(&self, unit: &Unit) -> &ShardId {
        &self.map.shards()[unit.slot].shard
    }
}

impl Parcel {
    /// The record that is sent.
    pub(crate) fn encode(self) -> Result<NewRecord> {
        match self {
            Parcel::One(record) => Ok(record),
            Parcel::Many(place, records) => Ok(NewRecord {
                partition_key: AGGREGATE_KEY.into(),
                explicit_hash_key: Some(place),
                data: aggregate(&records)?,
            }),
        }
    }
}
