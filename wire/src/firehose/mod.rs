//! Firehose: records that are put one by one come to a bucket together.
//!
//! ```text
//!   PutRecord ─▶ a stream, which makes it durable ─▶ acknowledged
//!                  │ enough bytes, or the oldest has waited long enough
//!                  └─▶ one object in the bucket ─▶ how far it was delivered, as a document of the stream
//! ```
//!
//! What must hold: the document never gets ahead of the bucket, so a crash loses nothing. What it delivers again has the key
//! that it had before and takes its place. The stream of `NAME` is called `firehose.NAME`, keeps records for a week, and goes
//! with its delivery stream.

mod buffer;
mod contents;
mod definition;
mod delivery;
mod errors;
mod object;
mod prefix;
mod reading;
mod state;
mod tags;

mod create_delivery_stream;
mod delete_delivery_stream;
mod describe_delivery_stream;
mod list_delivery_streams;
mod list_tags_for_delivery_stream;
mod put_record;
mod put_record_batch;
mod tag_delivery_stream;
mod untag_delivery_stream;

use crate::operations::operations;

pub(crate) use create_delivery_stream::finish_making;
pub(crate) use delivery::deliver;
pub(crate) use state::State;

operations! {
    "CreateDeliveryStream" => create_delivery_stream,
    "DeleteDeliveryStream" => delete_delivery_stream,
    "DescribeDeliveryStream" => describe_delivery_stream,
    "ListDeliveryStreams" => list_delivery_streams,
    "ListTagsForDeliveryStream" => list_tags_for_delivery_stream,
    "PutRecord" => put_record,
    "PutRecordBatch" => put_record_batch,
    "TagDeliveryStream" => tag_delivery_stream,
    "UntagDeliveryStream" => untag_delivery_stream,
}
