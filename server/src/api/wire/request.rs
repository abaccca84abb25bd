//! What callers send.

use std::fmt;
use std::time::Duration;

use anabranch_model::limits::APPEND_RECORDS_MAX;
use anabranch_model::{HashKey, ReadLimit, ShardId, StreamName, StreamOptions};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::super::text::Text;
use super::record::{NewRecordBody, PositionBody};

/// Asks for one stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRequest {
    /// Its name.
    pub stream: Text<StreamName>,
}

/// Makes a stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateRequest {
    /// Its name.
    pub stream: Text<StreamName>,
    /// Open shards at the start.
    pub shards: usize,
    /// How long records are kept.
    pub retention: Duration,
}

impl CreateRequest {
    /// What the store is asked for.
    pub fn options(&self) -> StreamOptions {
        StreamOptions { shards: self.shards, retention: self.retention }
    }
}

/// Asks for a page of streams.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamsRequest {
    /// The last stream of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<StreamName>>,
    /// Most entries.
    pub limit: usize,
}

/// Asks for a page of shards.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardsRequest {
    /// Whose shards.
    pub stream: Text<StreamName>,
    /// The last shard of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<ShardId>>,
    /// Most entries.
    pub limit: usize,
}

/// Changes how long records are kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRequest {
    /// Whose records.
    pub stream: Text<StreamName>,
    /// How long.
    pub retention: Duration,
}

/// Splits a shard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitRequest {
    /// Whose shard.
    pub stream: Text<StreamName>,
    /// The shard that is closed.
    pub shard: Text<ShardId>,
    /// The first key of the upper child.
    pub at: Text<HashKey>,
}

/// Merges two shards.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeRequest {
    /// Whose shards.
    pub stream: Text<StreamName>,
    /// One of them.
    pub shard: Text<ShardId>,
    /// The other one.
    pub neighbour: Text<ShardId>,
}

/// Stores records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppendRequest {
    /// Where.
    pub stream: Text<StreamName>,
    /// What.
    #[serde(deserialize_with = "records_of_one_append")]
    pub records: Vec<NewRecordBody>,
}

/// Stops at the first record too many: a large body of tiny records would take many times its size in memory.
fn records_of_one_append<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NewRecordBody>, D::Error> {
    struct Records;
    impl<'de> Visitor<'de> for Records {
        type Value = Vec<NewRecordBody>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of records")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
            let mut records = Vec::new();
            while let Some(record) = array.next_element()? {
                if records.len() == APPEND_RECORDS_MAX {
                    return Err(de::Error::custom(format_args!(
                        "an append of more than {APPEND_RECORDS_MAX} records is not allowed"
                    )));
                }
                records.push(record);
            }
            Ok(records)
        }
    }
    deserializer.deserialize_seq(Records)
}

/// Reads a batch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// Whose shard.
    pub stream: Text<StreamName>,
    /// The shard.
    pub shard: Text<ShardId>,
    /// Where reading starts.
    pub from: PositionBody,
    /// Most records.
    pub records: usize,
    /// Bytes after which no record is added.
    pub bytes: usize,
}

impl ReadRequest {
    /// How much is wanted at most.
    pub fn limit(&self) -> ReadLimit {
        ReadLimit { records: self.records, bytes: self.bytes }
    }
}

/// Reads and waits for more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowRequest {
    /// Whose shard.
    pub stream: Text<StreamName>,
    /// The shard.
    pub shard: Text<ShardId>,
    /// Where reading starts.
    pub from: PositionBody,
}

/// A call without arguments, and the answer of a call that has nothing to say but that it is done.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

impl From<()> for Empty {
    fn from((): ()) -> Self {
        Empty {}
    }
}

impl From<Empty> for () {
    fn from(Empty {}: Empty) -> Self {}
}
