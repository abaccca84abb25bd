//! Tables: values, expressions, options, reads and writes.
//!
//! Most types here are those of the model field for field. [`mirrored`] writes such a type down once, together with the
//! way there and back, and a field that is added to the model does not compile before it is added here.

mod expression;
mod keyspace;
mod mirror;
mod options;
mod read;
mod value;
mod write;

#[cfg(test)]
mod journeys;

pub use expression::{
    ComparisonBody, ConditionBody, KeyConditionBody, KindBody, OperandBody, PathBody, ProjectionBody,
    RangeConditionBody, SetOperandBody, SetValueBody, StepBody, UpdateBody,
};
pub use keyspace::{ClusteringBody, ColumnBody, ColumnKindBody, KeyspaceShapeBody};
pub use mirror::{Millis, Mirror};
pub use options::{
    AlterationBody, ChangeViewBody, IndexOptionsBody, IndexProjectionBody, IndexScopeBody, IndexSummaryBody,
    KeyAttributeBody, KeyKindBody, KeySchemaBody, TableBody, TableOptionsBody, TableStateBody,
};
pub use read::{GetBody, GotBody, ItemPageBody, QueryBody, ReadingBody, ScanBody, SegmentBody};
pub use value::{Distinct, ItemBody, ValueBody};
pub use write::{ActionBody, CancelledBody, ReturningBody, WriteBody};

use anabranch_model::limits::{BATCH_GET_ITEMS_MAX, BATCH_WRITE_ITEMS_MAX, TRANSACTION_ITEMS_MAX};
use anabranch_model::{StreamName, TableName};
use serde::{Deserialize, Serialize};

use super::super::text::Text;
use super::bounded::bounded;

/// Asks for one table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRequest {
    /// Its name.
    pub table: Text<TableName>,
}

/// Asks for a page of names of tables.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablesRequest {
    /// The last table of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<TableName>>,
    /// Most entries.
    pub limit: usize,
}

/// Asks for something to be done to one table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableCall<T> {
    /// Its name.
    pub table: Text<TableName>,
    /// What is asked for.
    pub call: T,
}

/// Reads items. One more than a batch has is let through, for the store to refuse.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetsRequest {
    /// One read an item.
    #[serde(deserialize_with = "bounded::<_, _, { BATCH_GET_ITEMS_MAX + 1 }>")]
    pub gets: Vec<(Text<TableName>, GetBody)>,
}

/// What a batch of reads found, in its order.
#[derive(Debug, Serialize, Deserialize)]
pub struct GotReply {
    /// One answer a read.
    pub got: Vec<GotBody>,
}

/// The items of a transaction of reads, in its order.
#[derive(Debug, Serialize, Deserialize)]
pub struct ItemsReply {
    /// One answer a read.
    pub items: Vec<Option<ItemBody>>,
}

/// The streams of the changes of a table.
#[derive(Debug, Serialize, Deserialize)]
pub struct ChangeStreamsReply {
    /// The oldest first.
    pub streams: Vec<Text<StreamName>>,
}

/// One item, or nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct ItemReply {
    /// The item.
    pub item: Option<ItemBody>,
}

/// Writes items, each on its own; also those of them that were not done.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionsBody {
    /// One action an item.
    #[serde(deserialize_with = "bounded::<_, _, { BATCH_WRITE_ITEMS_MAX + 1 }>")]
    pub actions: Vec<(Text<TableName>, ActionBody)>,
}

/// Writes items, all or none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactRequest {
    /// One write an item.
    #[serde(deserialize_with = "bounded::<_, _, { TRANSACTION_ITEMS_MAX + 1 }>")]
    pub writes: Vec<(Text<TableName>, WriteBody)>,
    /// Makes it happen once however often it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
