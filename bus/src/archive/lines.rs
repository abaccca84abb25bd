//! Many events in one compressed blob, one a line.

use std::sync::Arc;

use anabranch_model::{BlobStore, BucketName, Error, Result, ShardId, StreamName};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join;

use super::blobs::put;
use super::gzip;
use super::manifest::{Entry, Manifest};
use super::template::{KeyTemplate, date};
use crate::event::{Event, Origin, Place};
use crate::sink::{Earlier, Outcome, Sink};

/// A sink that writes each batch into one blob: a gzip file with a line of JSON for each event.
pub struct Lines {
    /// Where they are kept.
    pub blobs: Arc<dyn BlobStore>,
    /// In this bucket.
    pub bucket: BucketName,
    /// Under these keys, made of the first and the last event of a batch.
    pub template: KeyTemplate,
}

impl Lines {
    async fn write_batch(&self, events: &[Event]) -> Result<()> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let (stream, shard, start) = placed(first)?;
        let (_, _, end) = placed(last)?;
        let entry = Entry {
            first: start,
            last: end,
            blob: self.template.key_of_batch(first, last)?,
            records: events.len(),
            bytes: events.iter().map(|event| event.data.len() + 1).sum(),
        };
        let lines: Vec<Bytes> = events.iter().map(|event| event.data.clone()).collect();
        let packing = tokio::task::spawn_blocking(move || pack(&lines));
        let (saved, packed) = join(self.manifest(stream, shard).save(&entry), packing).await;
        // Nothing is written before it is durable where the batch ends.
        saved?;
        let packed = packed.map_err(|error| Error::Unavailable(format!("packing broke off: {error}")))?;
        put(&*self.blobs, &self.bucket, &entry.blob, "application/gzip", packed).await
    }

    fn manifest(&self, stream: &StreamName, shard: &ShardId) -> Manifest<'_> {
        Manifest::new(&*self.blobs, &self.bucket, &self.template.prefix(), stream, shard)
    }
}

#[async_trait]
impl Sink for Lines {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        vec![Outcome::from(self.write_batch(events).await); events.len()]
    }

    async fn earlier(&self, first: &Event) -> Result<Option<Earlier>> {
        let (stream, shard, place) = placed(first)?;
        self.manifest(stream, shard).earlier(place).await
    }

    fn belong_together(&self, first: &Event, other: &Event) -> bool {
        !self.template.is_dated() || date(first.at) == date(other.at)
    }
}

fn placed(event: &Event) -> Result<(&StreamName, &ShardId, Place)> {
    match (&event.origin, event.origin.place()) {
        (Origin::Shard { stream, shard, .. }, Some(place)) => Ok((stream, shard, place)),
        _ => Err(Error::Invalid("a message of a queue has no place in an order".to_owned())),
    }
}

/// The same lines give the same bytes, always.
fn pack(lines: &[Bytes]) -> Vec<Bytes> {
    gzip::compress(lines.iter().flat_map(|line| [&line[..], b"\n"]))
}
