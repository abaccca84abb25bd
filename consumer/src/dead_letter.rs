//! Dead letters: a record in full, with where it comes from, what went wrong, and how often it was tried.

use anabranch_model::blob::PutOptions;
use anabranch_model::{BlobKey, Error, NewMessage, NewRecord, Result, Timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::delivery::{Received, ShardInfo};
use crate::failure::DeadLetters;

/// What is known about a record that was given up.
pub(crate) struct Letter<'a> {
    pub(crate) application: &'a str,
    pub(crate) shard: &'a ShardInfo,
    pub(crate) record: &'a Received,
    pub(crate) why: &'a str,
    pub(crate) now: Timestamp,
}

impl Letter<'_> {
    /// The letter as a document.
    pub(crate) fn json(&self) -> Bytes {
        let record = self.record;
        let key = String::from_utf8_lossy(&record.partition_key);
        let document = json!({
            "application": self.application,
            "stream": self.shard.stream.as_str(),
            "shard": self.shard.shard.as_str(),
            "sequenceNumber": record.sequence.to_string(),
            "subSequenceNumber": record.sub_sequence,
            "arrivedAt": record.arrival.as_millis(),
            "partitionKey": key,
            "explicitHashKey": record.explicit_hash_key.map(|key| key.to_string()),
            "data": STANDARD.encode(&record.data),
            "error": self.why,
            "attempts": record.attempt,
            "givenUpAt": self.now.as_millis(),
        });
        document.to_string().into()
    }

    /// Puts the letter where it belongs. When this returns, it is durable.
    pub(crate) async fn send(&self, to: &DeadLetters) -> Result<()> {
        let (stream, shard) = (&self.shard.stream, &self.shard.shard);
        let (sequence, sub) = (self.record.sequence, self.record.sub_sequence);
        let name = format!("{stream}/{shard}/{sequence}-{sub}");
        to.send(self.record.partition_key.clone(), &name, self.json()).await
    }
}

impl DeadLetters {
    /// Puts a letter there. In a stream it lies under `key`, in a bucket under `name`. When this returns, it is durable.
    pub async fn send(&self, key: Bytes, name: &str, letter: Bytes) -> Result<()> {
        match self {
            DeadLetters::Queue(queues, queue) => {
                one(queues.send(queue, vec![NewMessage::new(letter)]).await?).map(drop)
            }
            DeadLetters::Stream(streams, stream) => {
                one(streams.append(stream, vec![NewRecord::new(key, letter)]).await?).map(drop)
            }
            DeadLetters::Blobs(blobs, bucket, prefix) => {
                let key = BlobKey::new(&format!("{prefix}{name}.json"))?;
                let body = Box::pin(stream::iter([Ok(letter)]));
                blobs.put(bucket, &key, body, PutOptions::default()).await.map(drop)
            }
        }
    }
}

/// The result of the only part of a call.
fn one<T>(results: Vec<Result<T>>) -> Result<T> {
    let missing = || Err(Error::Unavailable("the store says nothing about the dead letter".to_owned()));
    results.into_iter().next().unwrap_or_else(missing)
}
