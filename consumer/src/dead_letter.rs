//! Dead letters: a record in full, with where it comes from, what went wrong, and how often it was tried.
//!
//! What must hold: whatever a stream or a queue takes has a place among the dead letters, in parts if need be.

use anabranch_model::blob::PutOptions;
use anabranch_model::limits::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX_MIN, RECORD_BYTES_MAX};
use anabranch_model::{BlobKey, Error, NewMessage, NewRecord, Result, Timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::delivery::{Received, ShardInfo};
use crate::failure::DeadLetters;

/// What a part of a letter has beside its name and its piece, at most.
const ENVELOPE_BYTES: usize = 128;

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
    pub(crate) fn json(&self) -> String {
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
        document.to_string()
    }

    /// Puts the letter where it belongs. When this returns, it is durable.
    pub(crate) async fn send(&self, to: &DeadLetters) -> Result<()> {
        let (stream, shard) = (&self.shard.stream, &self.shard.shard);
        let (sequence, sub) = (self.record.sequence, self.record.sub_sequence);
        let name = format!("{stream}/{shard}/{sequence}-{sub}");
        to.send(self.record.partition_key.clone().into(), &name, self.json()).await
    }
}

impl DeadLetters {
    /// Puts a letter there. In a stream it lies under `key`, in a bucket under `name`. One that is larger than the place takes
    /// lies in several documents with the `name`, their number (`part` of `parts`) and a piece of the text: `letter`, which is
    /// the letter when those of all parts are joined. When this returns, all of it is durable.
    pub async fn send(&self, key: Bytes, name: &str, letter: String) -> Result<()> {
        let Some(mut bytes_max) = self.bytes_max(&key) else { return self.put(key, name, letter).await };
        loop {
            match self.send_within(bytes_max, &key, name, &letter).await {
                // A place may be set to take less than others of its kind.
                Err(Error::Invalid(_)) if bytes_max > MESSAGE_BYTES_MAX_MIN => bytes_max /= 2,
                sent => return sent,
            }
        }
    }

    async fn send_within(&self, bytes_max: usize, key: &Bytes, name: &str, letter: &str) -> Result<()> {
        if letter.len() <= bytes_max {
            return self.put(key.clone(), name, letter.to_owned()).await;
        }
        let pieces = pieces(letter, bytes_max.saturating_sub(ENVELOPE_BYTES + name.len()));
        for (index, piece) in pieces.iter().enumerate() {
            let part = json!({ "name": name, "part": index + 1, "parts": pieces.len(), "letter": piece });
            self.put(key.clone(), name, part.to_string()).await?;
        }
        Ok(())
    }

    /// The most that one letter under this key can have there, if there is a limit.
    fn bytes_max(&self, key: &[u8]) -> Option<usize> {
        match self {
            DeadLetters::Queue(..) => Some(MESSAGE_BYTES_MAX),
            DeadLetters::Stream(..) => Some(RECORD_BYTES_MAX.saturating_sub(key.len())),
            DeadLetters::Blobs(..) => None,
        }
    }

    async fn put(&self, key: Bytes, name: &str, letter: String) -> Result<()> {
        match self {
            DeadLetters::Queue(queues, queue) => {
                one(queues.send(queue, vec![NewMessage::new(letter)]).await?).map(drop)
            }
            DeadLetters::Stream(streams, stream) => {
                one(streams.append(stream, vec![NewRecord::new(key, letter)]).await?).map(drop)
            }
            DeadLetters::Blobs(blobs, bucket, prefix) => {
                let key = BlobKey::new(&format!("{prefix}{name}.json"))?;
                let body = Box::pin(stream::iter([Ok(letter.into())]));
                blobs.put(bucket, &key, body, PutOptions::default()).await.map(drop)
            }
        }
    }
}

/// Cuts a text into pieces that have so many bytes at most when they are quoted.
fn pieces(text: &str, bytes_max: usize) -> Vec<&str> {
    let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        let quoted = match character {
            '"' | '\\' => 2,
            '\0'..='\x1f' => 6,
            _ => character.len_utf8(),
        };
        if bytes + quoted > bytes_max && at > start {
            pieces.push(&text[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += quoted;
    }
    pieces.push(&text[start..]);
    pieces
}

/// The result of the only part of a call.
fn one<T>(results: Vec<Result<T>>) -> Result<T> {
    let missing = || Err(Error::Unavailable("the store says nothing about the dead letter".to_owned()));
    results.into_iter().next().unwrap_or_else(missing)
}
