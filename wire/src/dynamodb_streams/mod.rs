//! DynamoDB Streams: what happened to the items of a table, a file for each operation, and what they share.

mod iterator;
mod numbers;
mod stream;

mod describe_stream;
mod get_records;
mod get_shard_iterator;
mod list_streams;

use crate::operations::operations;

pub(crate) use stream::{label, remember};

operations! {
    "DescribeStream" => describe_stream,
    "GetRecords" => get_records,
    "GetShardIterator" => get_shard_iterator,
    "ListStreams" => list_streams,
}
