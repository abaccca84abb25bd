//! One blob for each event, named by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_model::blob::{Header, Properties, PutOptions};
use anabranch_model::{BlobKey, BlobStore, BucketName, Result};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::template::KeyTemplate;
use crate::event::Event;
use crate::sink::{Outcome, Sink};

/// Blobs that are written at the same time. Each waits for the disk or the network, and the waits fall together.
const AT_ONCE: usize = 64;

/// A sink that writes each event into a blob of its own.
pub struct Blobs {
    /// Where they are kept.
    pub blobs: Arc<dyn BlobStore>,
    /// In this bucket.
    pub bucket: BucketName,
    /// Under these keys.
    pub template: KeyTemplate,
}

impl Blobs {
    async fn put(&self, event: &Event) -> Outcome {
        let key = match self.template.key(event) {
            Ok(key) => key,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        put(&*self.blobs, &self.bucket, &key, "application/json", vec![event.data.clone()]).await.into()
    }
}

#[async_trait]
impl Sink for Blobs {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let puts: Vec<_> = events.iter().map(|event| self.put(event)).collect();
        stream::iter(puts).buffered(AT_ONCE).collect().await
    }
}

/// Writes a blob that is at hand.
pub(super) async fn put(
    blobs: &dyn BlobStore,
    bucket: &BucketName,
    key: &BlobKey,
    content_type: &str,
    pieces: Vec<Bytes>,
) -> Result<()> {
    let headers = BTreeMap::from([(Header::ContentType, content_type.to_owned())]);
    let mut options =
        PutOptions { properties: Properties { headers, ..Properties::default() }, ..PutOptions::default() };
    options.body.size = Some(pieces.iter().map(|piece| piece.len() as u64).sum());
    blobs.put(bucket, key, Box::pin(stream::iter(pieces.into_iter().map(Ok))), options).await.map(drop)
}
