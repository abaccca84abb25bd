//! Streams and shards as listings show them.

use std::time::Duration;

use anabranch_model::{
    Error, HashKey, HashRange, Page, Result, SequenceNumber, Shard, ShardId, StreamName, StreamSummary,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::super::text::Text;

/// A page of a listing.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageReply<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Whether there are more behind the last one.
    pub more: bool,
}

impl<T> PageReply<T> {
    /// A page of the model in the words of the wire.
    pub fn of<M: Into<T>>(page: Page<M>) -> Self {
        PageReply { entries: page.entries.into_iter().map(M::into).collect(), more: page.more }
    }

    /// A page of the wire in the words of the model.
    pub fn into_page<M>(self) -> Result<Page<M>>
    where
        T: TryInto<M, Error = Error>,
    {
        let entries = self.entries.into_iter().map(T::try_into).collect::<Result<_>>()?;
        Ok(Page { entries, more: self.more })
    }
}

/// A stream as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct StreamBody {
    /// Its name.
    pub name: Text<StreamName>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// How long records are kept.
    pub retention: Duration,
    /// Shards that take records.
    pub open_shards: usize,
    /// Shards that take no more records.
    pub closed_shards: usize,
    /// Whether nothing of it is being changed.
    pub active: bool,
}

impl From<StreamSummary> for StreamBody {
    fn from(summary: StreamSummary) -> Self {
        StreamBody {
            name: Text(summary.name),
            created_at_ms: summary.created_at.as_millis(),
            retention: summary.retention,
            open_shards: summary.open_shards,
            closed_shards: summary.closed_shards,
            active: summary.active,
        }
    }
}

impl TryFrom<StreamBody> for StreamSummary {
    type Error = Error;

    fn try_from(body: StreamBody) -> Result<Self> {
        Ok(StreamSummary {
            name: body.name.0,
            created_at: Timestamp::from_millis(body.created_at_ms),
            retention: body.retention,
            open_shards: body.open_shards,
            closed_shards: body.closed_shards,
            active: body.active,
        })
    }
}

/// Hash keys from the first to the last, both included.
#[derive(Debug, Serialize, Deserialize)]
pub struct RangeBody {
    /// The smallest key.
    pub first: Text<HashKey>,
    /// The largest key.
    pub last: Text<HashKey>,
}

/// A shard.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShardBody {
    /// Its identifier.
    pub id: Text<ShardId>,
    /// Which shards it continues.
    pub parents: Vec<Text<ShardId>>,
    /// The keys it takes or took.
    pub range: Option<RangeBody>,
    /// No record has a smaller number.
    pub starts_at: Text<SequenceNumber>,
    /// Of a closed shard: no record has a number this large.
    pub ends_before: Option<Text<SequenceNumber>>,
    /// When it was closed, in milliseconds since the Unix epoch.
    pub closed_at_ms: Option<u64>,
}

impl From<Shard> for ShardBody {
    fn from(shard: Shard) -> Self {
        let range =
            shard.range.map(|range| RangeBody { first: Text(range.first()), last: Text(range.last()) });
        ShardBody {
            id: Text(shard.id),
            parents: shard.parents.into_iter().map(Text).collect(),
            range,
            starts_at: Text(shard.starts_at),
            ends_before: shard.ends_before.map(Text),
            closed_at_ms: shard.closed_at.map(Timestamp::as_millis),
        }
    }
}

impl TryFrom<ShardBody> for Shard {
    type Error = Error;

    fn try_from(body: ShardBody) -> Result<Self> {
        Ok(Shard {
            id: body.id.0,
            parents: body.parents.into_iter().map(|parent| parent.0).collect(),
            range: body.range.map(|range| HashRange::new(range.first.0, range.last.0)).transpose()?,
            starts_at: body.starts_at.0,
            ends_before: body.ends_before.map(|number| number.0),
            closed_at: body.closed_at_ms.map(Timestamp::from_millis),
        })
    }
}
