//! Payloads that are too large for a record: they go to a blob, and the record gets a [`Pointer`].
//!
//! A blob is durable before its record is sent, so a record never points to nothing. The other way round it may happen:
//! a blob whose record is certainly not stored is removed at once, and one whose record nobody knows about when
//! retention has removed every record that could point to it.

use std::time::Duration;

use anabranch_model::blob::{BodyOptions, ListOptions, PutOptions};
use anabranch_model::limits::DELETE_KEYS_MAX;
use anabranch_model::{BlobKey, Dice, Pointer, Result, StreamName, Timestamp};
use bytes::Bytes;
use futures_util::stream;

use crate::settings::Large;

/// Clocks of the stream and of the blobs may differ by this much.
const SLACK: Duration = Duration::from_secs(3600);

pub(crate) fn is_large(large: Option<&Large>, data: &Bytes) -> bool {
    large.is_some_and(|large| data.len() > large.threshold_bytes)
}

/// Stores a payload and returns what points to it.
pub(crate) async fn put(large: &Large, stream: &StreamName, data: &Bytes, dice: &Dice) -> Result<Pointer> {
    let key = format!("{}{stream}/{:016x}{:016x}", large.prefix, dice.roll(), dice.roll());
    let pointer = Pointer::to(data, large.bucket.clone(), BlobKey::new(&key)?);
    let body = BodyOptions { size: Some(pointer.size), md5: Some(pointer.digest), ..BodyOptions::default() };
    let options = PutOptions { body, ..PutOptions::default() };
    let bytes = Box::pin(stream::iter([Ok(data.clone())]));
    large.blobs.put(&large.bucket, &pointer.key, bytes, options).await?;
    Ok(pointer)
}

/// Removes a payload that no record points to. If that fails it is collected later.
pub(crate) async fn discard(large: &Large, pointer: &Pointer) {
    if let Err(error) = large.blobs.delete(&pointer.bucket, &pointer.key, None).await {
        tracing::debug!(key = %pointer.key, %error, "an unused payload stays until it is collected");
    }
}

/// Removes the payloads of a stream that are older than any record in it can be. Returns how many.
pub async fn collect(
    large: &Large,
    stream: &StreamName,
    retention: Duration,
    now: Timestamp,
) -> Result<usize> {
    let horizon = now.minus(retention + SLACK);
    let mut options = ListOptions { prefix: format!("{}{stream}/", large.prefix), ..ListOptions::default() };
    let mut removed = 0;
    loop {
        let page = large.blobs.list(&large.bucket, options.clone()).await?;
        let old = page.entries.iter().filter(|blob| blob.modified_at < horizon);
        let old: Vec<BlobKey> = old.map(|blob| blob.key.clone()).collect();
        for keys in old.chunks(DELETE_KEYS_MAX) {
            let results = large.blobs.delete_many(&large.bucket, keys).await?;
            removed += results.iter().filter(|result| result.is_ok()).count();
        }
        match page.next {
            Some(next) => options.after = Some(next),
            None => return Ok(removed),
        }
    }
}
