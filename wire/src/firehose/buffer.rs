//! The stream that records wait in, and how far they were delivered.

use std::time::Duration;

use anabranch_model::{
    Document, Error, NewRecord, Owner, Position, SequenceNumber, ShardId, StreamName, StreamOptions,
};
use bytes::Bytes;

use crate::context::Ports;

/// The kind of the document of a stream that says how far its records were delivered.
const KIND: &str = "firehose";
const NAME: &str = "delivered";
/// How long a record waits for a bucket that is not there. The service has a day; a server on a desk may be off for longer.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The stream of a delivery stream.
pub(super) fn stream(name: &str) -> Result<StreamName, Error> {
    StreamName::new(&format!("firehose.{name}"))
}

/// Makes the stream: one shard, so that records keep their order.
pub(super) async fn create(ports: &Ports, name: &str) -> Result<(), Error> {
    ports.streams.create_stream(&stream(name)?, StreamOptions { shards: 1, retention: RETENTION }).await
}

/// Removes the stream with what waits in it.
pub(super) async fn delete(ports: &Ports, name: &str) -> Result<(), Error> {
    match ports.streams.delete_stream(&stream(name)?).await {
        Err(Error::StreamNotFound(_)) => Ok(()),
        other => other,
    }
}

/// Makes records durable; each has its own result.
pub(super) async fn append(
    ports: &Ports,
    name: &str,
    records: Vec<Bytes>,
) -> Result<Vec<Result<SequenceNumber, Error>>, Error> {
    let records = records.into_iter().map(|data| NewRecord::new("firehose", data)).collect();
    let results = ports.streams.append(&stream(name)?, records).await?;
    Ok(results.into_iter().map(|result| result.map(|appended| appended.sequence)).collect())
}

/// Where the next delivery begins.
pub(super) async fn delivered(ports: &Ports, name: &str) -> Result<Position, Error> {
    let document = ports.admin.document(&Owner::Stream(stream(name)?), KIND, NAME).await?;
    let Some(text) = document else { return Ok(Position::TrimHorizon) };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    number
        .map(Position::After)
        .ok_or_else(|| Error::Corrupt(format!("how far `{name}` was delivered is unreadable")))
}

/// Notes how far records were delivered.
pub(super) async fn note(ports: &Ports, name: &str, last: SequenceNumber) -> Result<(), Error> {
    let documents = vec![Document::new(NAME, last.to_string())];
    ports.admin.put_documents(&Owner::Stream(stream(name)?), KIND, documents).await
}

/// The shard of the stream.
pub(super) async fn shard(ports: &Ports, stream: &StreamName) -> Result<ShardId, Error> {
    let page = ports.streams.shards(stream, None, 1).await?;
    let shard = page.entries.into_iter().next();
    shard.map(|shard| shard.id).ok_or_else(|| Error::Corrupt(format!("stream `{stream}` has no shard")))
}
