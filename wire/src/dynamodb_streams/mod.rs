//! DynamoDB Streams: what happened to the items of a table, a file for each operation, and what they share.

pub(crate) mod iterator;
pub(crate) mod numbers;
pub(crate) mod reading;
pub(crate) mod stream;

mod describe_stream;
mod get_records;
mod get_shard_iterator;
mod list_streams;

use crate::operations::operations;

pub(crate) use get_shard_iterator::resolved;
pub(crate) use stream::{label_of, remember};

/// What the iterators are for. They carry the view of their stream, which every record repeats.
const ITERATOR: &str = "change-iterator";

operations! {
    "DescribeStream" => describe_stream,
    "GetRecords" => get_records,
    "GetShardIterator" => get_shard_iterator,
    "ListStreams" => list_streams,
}
