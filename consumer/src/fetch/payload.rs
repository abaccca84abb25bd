//! Puts payloads back that lie in blobs because they were too large for a record.
//!
//! A batch was cut before where its payloads together would take more room than there is: pointers are small, and a thousand
//! of them may point to more than fits into memory.

use std::time::Duration;

use anabranch_model::blob::GetOptions;
use anabranch_model::{Error, NextMove, Pointer};
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;

use super::{Fetcher, PAUSE_FIRST, PAUSE_MAX};
use crate::delivery::Received;
use crate::metrics;
use crate::pause::pause;

impl Fetcher {
    /// Puts the payloads of records back. One that is gone for good is delivered as it came: only the processor can tell
    /// what to do about it.
    pub(super) async fn put_back(&self, records: &mut [Received]) {
        if self.settings.payloads.is_none() {
            return;
        }
        for record in records {
            let Some(pointer) = Pointer::decode(&record.data) else { continue };
            let mut failures = 0;
            loop {
                match self.payload(&pointer).await {
                    Ok(payload) => record.data = payload,
                    Err(error) if error.next_move() == NextMove::Retry => {
                        failures += 1;
                        let wait = self.settings.dice.pause(failures, PAUSE_FIRST, PAUSE_MAX);
                        tracing::warn!(shard = %self.shard.shard, %error, failures, "a payload cannot be read yet");
                        pause(wait.max(Duration::from_millis(1))).await;
                        continue;
                    }
                    Err(error) => {
                        metrics::missing_payload(&self.shard);
                        let sequence = record.sequence;
                        tracing::error!(shard = %self.shard.shard, %sequence, %error, "a payload is gone");
                    }
                }
                break;
            }
        }
    }

    async fn payload(&self, pointer: &Pointer) -> Result<Bytes, Error> {
        let Some(blobs) = &self.settings.payloads else { return Ok(Bytes::new()) };
        let blob = blobs.get(&pointer.bucket, &pointer.key, GetOptions::default()).await?;
        // A body that is longer than announced is not the one; it is not read to its end.
        let limit = usize::try_from(pointer.size).unwrap_or(usize::MAX);
        let mut body = blob.body;
        let mut payload = BytesMut::new();
        while let Some(piece) = body.try_next().await? {
            payload.extend_from_slice(&piece);
            if payload.len() > limit {
                break;
            }
        }
        pointer.check(&payload)?;
        Ok(payload.freeze())
    }
}
