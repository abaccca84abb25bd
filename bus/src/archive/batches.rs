//! Many events in one blob.

use std::sync::Arc;

use anabranch_model::{BlobStore, BucketName, Error, Result, ShardId, StreamName};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join;

use super::blobs::put;
use super::manifest::{Entry, Manifest};
use super::template::{KeyTemplate, Names, date};
use super::{columns, gzip};
use crate::event::{Event, Origin, Place};
use crate::sink::{Earlier, Outcome, Sink};

/// What a blob with many events is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A gzip file with a line for each event, whatever it is.
    Lines,
    /// A Parquet file with a row for each event, all of which are documents of changes of the table with these names.
    Parquet(Names),
}

/// A sink that writes each batch into one blob.
pub struct Batches {
    /// Where they are kept.
    pub blobs: Arc<dyn BlobStore>,
    /// In this bucket.
    pub bucket: BucketName,
    /// Under these keys, made of the first and the last event of a batch.
    pub template: KeyTemplate,
    /// In this format.
    pub format: Format,
}

impl Batches {
    async fn write_batch(&self, events: &[Event]) -> Result<()> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let (stream, shard, start) = placed(first)?;
        let (_, _, end) = placed(last)?;
        let entry = Entry {
            first: start,
            last: end,
            blob: self.template.key_of_batch(first, end)?,
            records: events.len(),
            bytes: events.iter().map(|event| event.data.len() + 1).sum(),
        };
        let (format, batch) = (self.format.clone(), events.to_vec());
        let packing = tokio::task::spawn_blocking(move || pack(&format, &batch));
        let (saved, packed) = join(self.manifest(stream, shard).save(&entry), packing).await;
        // Nothing is written before it is durable where the batch ends.
        saved?;
        let packed = packed.map_err(|error| Error::Unavailable(format!("packing broke off: {error}")))??;
        put(&*self.blobs, &self.bucket, &entry.blob, self.format.content_type(), packed).await
    }

    fn manifest(&self, stream: &StreamName, shard: &ShardId) -> Manifest<'_> {
        Manifest::new(&*self.blobs, &self.bucket, &self.template.prefix(), stream, shard)
    }
}

impl Format {
    fn content_type(&self) -> &'static str {
        match self {
            Format::Lines => "application/gzip",
            Format::Parquet(_) => "application/vnd.apache.parquet",
        }
    }
}

#[async_trait]
impl Sink for Batches {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        vec![Outcome::from(self.write_batch(events).await); events.len()]
    }

    async fn earlier(&self, first: &Event) -> Result<Option<Earlier>> {
        let (stream, shard, place) = placed(first)?;
        let blob = |end: Place| self.template.key_of_batch(first, end);
        self.manifest(stream, shard).earlier(place, blob).await
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

/// The same events give the same bytes, always.
fn pack(format: &Format, events: &[Event]) -> Result<Vec<Bytes>> {
    match format {
        Format::Lines => Ok(gzip::compress(events.iter().flat_map(|event| [&event.data[..], b"\n"]))),
        Format::Parquet(names) => Ok(vec![columns::write(events, names)?]),
    }
}
