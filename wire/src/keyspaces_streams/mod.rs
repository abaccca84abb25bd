//! Keyspaces Streams: what happened to the rows of tables that belong to a keyspace.
//!
//! The streams are those of `dynamodb_streams`, told in another language: items are rows, attributes are cells, and the
//! shape of the table says which columns choose the partition and of which type each is.

mod cell;
mod faults;
mod stream;

mod get_records;
mod get_shard_iterator;
mod get_stream;
mod list_streams;

use crate::operations::operations;

/// What the iterators are for. They carry the name of their table.
const ITERATOR: &str = "row-change-iterator";

operations! {
    "GetRecords" => get_records,
    "GetShardIterator" => get_shard_iterator,
    "GetStream" => get_stream,
    "ListStreams" => list_streams,
}
