//! The manifest of an archive with many events in a blob: one small document for each blob, written before it.
//!
//! It says where a batch ends, so that a bot which begins anew cuts what it reads at the same places, and writes over what is
//! there. Readers find in it which blobs there are; the last document of a shard may be of a blob that is not there yet.
//!
//! The documents of a shard are named by the last event of the batch and then by the first, so that the batch which holds an
//! event is the first one in the listing behind the number before it.

use anabranch_model::blob::{ListAfter, ListOptions};
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, Result, ShardId, StreamName};
use serde::Deserialize;
use serde_json::json;

use super::blobs::put;
use crate::event::Place;
use crate::sink::Earlier;

/// The folder of the documents, below what all keys of the archive begin with.
pub(super) const FOLDER: &str = "_manifest/";
/// Documents that are looked at for one batch. There is one, unless somebody set a checkpoint into the midst of a batch.
const LOOKED_AT: usize = 10;

/// The manifest of one shard.
pub(super) struct Manifest<'a> {
    pub(super) blobs: &'a dyn BlobStore,
    pub(super) bucket: &'a BucketName,
    pub(super) prefix: String,
}

/// A batch.
pub(super) struct Entry {
    pub(super) first: Place,
    pub(super) last: Place,
    pub(super) blob: BlobKey,
    pub(super) records: usize,
    pub(super) bytes: usize,
}

#[derive(Deserialize)]
struct Document {
    blob: String,
}

impl<'a> Manifest<'a> {
    pub(super) fn new(
        blobs: &'a dyn BlobStore,
        bucket: &'a BucketName,
        archive: &str,
        stream: &StreamName,
        shard: &ShardId,
    ) -> Self {
        Manifest { blobs, bucket, prefix: format!("{archive}{FOLDER}{stream}/{shard}/") }
    }

    /// Saves a batch. When this returns, it is durable.
    pub(super) async fn save(&self, entry: &Entry) -> Result<()> {
        let document = json!({
            "blob": entry.blob.as_str(),
            "first": entry.first.to_string(),
            "last": entry.last.to_string(),
            "records": entry.records,
            "bytes": entry.bytes,
        });
        let key =
            BlobKey::new(&format!("{}{}_{}.json", self.prefix, in_order(entry.last), in_order(entry.first)))?;
        put(self.blobs, self.bucket, &key, "application/json", vec![document.to_string().into()]).await
    }

    /// The batch of an earlier life that holds an event, or comes next after it. `blob` says where a batch lies that begins with
    /// this event and ends at a place.
    pub(super) async fn earlier(
        &self,
        place: Place,
        blob: impl Fn(Place) -> Result<BlobKey>,
    ) -> Result<Option<Earlier>> {
        let before = match (place.sub_sequence.checked_sub(1), place.sequence.previous()) {
            (Some(sub_sequence), _) => Some(in_order(Place { sub_sequence, ..place })),
            (None, Some(sequence)) => Some(number_in_order(&sequence.to_string())),
            (None, None) => None,
        };
        // The tilde is behind everything that a name has there.
        let after = before.map(|before| BlobKey::new(&format!("{}{before}~", self.prefix))).transpose()?;
        let after = after.map(ListAfter::Key);
        let options = ListOptions { prefix: self.prefix.clone(), delimiter: None, after, limit: LOOKED_AT };
        let page = self.blobs.list(self.bucket, options).await?;
        let mut next = None;
        for summary in &page.entries {
            let (first, last) = self.parse(&summary.key)?;
            if first == place {
                // Under another name, as of another format, it would not be written over.
                let there = self.blob(&summary.key).await?;
                let elsewhere = there != blob(last)? && self.is_written(&there).await?;
                return Ok(Some(if elsewhere { Earlier::Holds(last) } else { Earlier::EndsWith(last) }));
            }
            next = next.or(Some((&summary.key, first, last)));
        }
        Ok(match next {
            None => None,
            Some((_, first, _)) if first > place => Some(Earlier::BeginsWith(first)),
            Some((key, _, last)) if self.is_written(&self.blob(key).await?).await? => {
                Some(Earlier::Holds(last))
            }
            // Nobody has its beginning any more: what is left of it is a batch of its own.
            Some((_, _, last)) => Some(Earlier::EndsWith(last)),
        })
    }

    fn parse(&self, key: &BlobKey) -> Result<(Place, Place)> {
        let strange = || Error::Invalid(format!("`{key}` is no part of a manifest: remove it"));
        let name = key.as_str().strip_prefix(&self.prefix).and_then(|name| name.strip_suffix(".json"));
        let (last, first) = name.and_then(|name| name.split_once('_')).ok_or_else(strange)?;
        Ok((parsed(first).ok_or_else(strange)?, parsed(last).ok_or_else(strange)?))
    }

    /// Where the batch of a document lies.
    async fn blob(&self, key: &BlobKey) -> Result<BlobKey> {
        let text = super::read::whole(self.blobs, self.bucket, key).await?;
        let document: Document = serde_json::from_slice(&text)
            .map_err(|error| Error::Invalid(format!("`{key}` is no part of a manifest: {error}")))?;
        BlobKey::new(&document.blob)
    }

    async fn is_written(&self, blob: &BlobKey) -> Result<bool> {
        match self.blobs.head(self.bucket, blob).await {
            Ok(_) => Ok(true),
            Err(Error::BlobNotFound(..)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A place as a text that sorts as places do.
fn in_order(place: Place) -> String {
    let (sequence, sub_sequence) = (place.sequence.to_string(), place.sub_sequence.to_string());
    format!("{}.{}", number_in_order(&sequence), number_in_order(&sub_sequence))
}

/// A number as a text that sorts as numbers do: how many digits it has comes first.
fn number_in_order(digits: &str) -> String {
    format!("{:02}-{digits}", digits.len())
}

/// The place with this text.
fn parsed(text: &str) -> Option<Place> {
    let (sequence, sub_sequence) = text.split_once('.')?;
    let digits = |text: &str| text.split_once('-').map(|(_, digits)| digits.to_owned());
    Some(Place {
        sequence: digits(sequence)?.parse().ok()?,
        sub_sequence: digits(sub_sequence)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use anabranch_model::SequenceNumber;

    use super::*;

    #[test]
    fn texts_sort_as_places_do() {
        let numbers = [0, 1, 9, 10, 99, 100, u128::MAX / 2, u128::MAX].map(SequenceNumber::from_u128);
        let places: Vec<_> = numbers
            .into_iter()
            .chain([SequenceNumber::MAX])
            .flat_map(|sequence| [0, 1, 10, u64::MAX].map(|sub_sequence| Place { sequence, sub_sequence }))
            .collect();
        let texts: Vec<_> = places.iter().copied().map(in_order).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        for (place, text) in places.into_iter().zip(texts) {
            assert_eq!(parsed(&text), Some(place));
        }
    }
}
