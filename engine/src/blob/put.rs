//! Putting, copying and deleting blobs: one frame each, in which the condition is decided.

use std::sync::Arc;

use anabranch_model::blob::{
    BlobKey, BlobMeta, Body, BodyOptions, BucketName, CopyOptions, ETag, PutOptions, WriteCondition,
};
use anabranch_model::limits::{BODY_BYTES_MAX, DELETE_KEYS_MAX};
use anabranch_model::{Error, Result, Timestamp};
use bytes::Bytes;

use super::layout::{self, FilePart, StoredBlob, StoredBody};
use super::malformed;
use super::write::{Place, TakenBody};
use super::{Entered, files::Files};
use crate::core::{Core, Halt};
use crate::journal::Urgency;
use crate::rows::write::Then;
use crate::rows::{Accepting, Change};

/// What a row takes in a frame beyond its key and value.
const CHANGE_BYTES: usize = 16;
/// Bytes of a frame that deletes many.
const DELETE_FRAME_BYTES: u64 = 128 << 10;

/// A blob that is to take its place.
pub struct Placing<'a> {
    pub bucket: &'a BucketName,
    pub key: &'a BlobKey,
    pub condition: &'a WriteCondition,
    pub meta: BlobMeta,
    pub place: Place,
}

impl Core {
    /// Stores a blob.
    pub async fn put_blob(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        options.properties.check()?;
        self.blobs.bucket(bucket)?;
        let TakenBody { digest, place } = self.take_body(body, options.body, self.inline_bytes_max()).await?;
        let meta = BlobMeta {
            size: digest.size,
            etag: digest.etag,
            properties: options.properties,
            checksums: digest.checksums,
            modified_at: Timestamp::from_millis(self.now_ms()),
            parts: None,
        };
        self.place(Placing { bucket, key, condition: &options.condition, meta, place }).await
    }

    async fn place(&self, placing: Placing<'_>) -> Result<BlobMeta> {
        let entered = self.blobs.enter(placing.bucket).await?;
        let Placing { bucket, key, condition, meta, mut place } = placing;
        let stored = StoredBlob { meta, body: place.stored(), part_checksums: Vec::new() };
        let value = Bytes::from(stored.encode());
        let row_key = Bytes::from(layout::blob_key(entered.number, key));
        let inline_bytes = if let Place::Inline(body) = &place { body.len() } else { 0 };
        let bytes = 2 * (row_key.len() + CHANGE_BYTES) + value.len() + inline_bytes;
        let mut permit = Some(self.admit_rows(bytes).await?);
        self.submit(|| {
            let accepting = self.rows.accept(vec![row_key.clone()]);
            let old = accepted_blob(&accepting, &row_key, bucket, key)?;
            condition.check(bucket, key, old.as_ref().map(|old| &old.meta.etag))?;
            let mut changes = vec![Change::put(row_key.clone(), value.clone())];
            let inline_key = layout::inline_key(entered.number, key);
            match (&place, &old) {
                (Place::Inline(body), _) => changes.push(Change::put(inline_key, body.clone())),
                (_, Some(old)) if old.body == StoredBody::Inline => changes.push(Change::remove(inline_key)),
                _ => {}
            }
            if let Place::File(file, _) = &place {
                changes.push(Change::put_fresh(layout::file_key(file.id()), Vec::new()));
            }
            let then = self.disown(old.map(|old| old.body), &mut changes, &entered);
            let placed = self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))?;
            place.keep();
            Ok(placed)
        })
        .await?;
        Ok(stored.meta)
    }

    /// Takes files from their owner in the same frame, and dooms them when it is durable.
    pub fn disown(&self, body: Option<StoredBody>, changes: &mut Vec<Change>, entered: &Entered) -> Then {
        let body = body.unwrap_or(StoredBody::Inline);
        let ids: Vec<u64> = body.files().iter().map(|file| file.id).collect();
        changes.extend(ids.iter().map(|id| Change::remove(layout::file_key(*id))));
        doom(self.blobs.files.clone(), ids, entered.clone())
    }

    /// Deletes a blob.
    pub async fn delete_blob(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        if_match: Option<&ETag>,
    ) -> Result<()> {
        let entered = self.blobs.enter(bucket).await?;
        let condition = if_match.map_or(WriteCondition::None, |tag| WriteCondition::IfMatch(tag.clone()));
        self.delete_in(bucket, &entered, std::slice::from_ref(key), &condition).await
    }

    /// Deletes blobs, in as many frames as it takes: each key goes or stays on its own.
    pub async fn delete_blobs(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        let entered = self.blobs.enter(bucket).await?;
        if keys.is_empty() || keys.len() > DELETE_KEYS_MAX {
            return Err(Error::Invalid(format!(
                "a deletion of {} keys is not allowed: it must have 1 to {DELETE_KEYS_MAX}",
                keys.len()
            )));
        }
        let mut results = Vec::new();
        let bytes_max = DELETE_FRAME_BYTES.min(self.sequencer.frame_bytes_max() / 4) as usize;
        let mut rest = keys;
        while !rest.is_empty() {
            let (mut bytes, mut fit) = (0, 0);
            while fit < rest.len() && bytes < bytes_max {
                bytes += self.deletion_bytes(entered.number, &rest[fit])?;
                fit += usize::from(bytes <= bytes_max || fit == 0);
            }
            let (now, later) = rest.split_at(fit);
            let deleted = self.delete_in(bucket, &entered, now, &WriteCondition::None).await;
            results.extend(now.iter().map(|_| deleted.clone()));
            rest = later;
        }
        Ok(results)
    }

    /// About what the deletion of a blob takes in a frame.
    fn deletion_bytes(&self, bucket: u64, key: &BlobKey) -> Result<usize> {
        let row = layout::blob_key(bucket, key);
        let stored = self.rows.get(&row)?.and_then(|value| StoredBlob::decode(&value).ok());
        let files = stored.map_or(0, |stored| stored.body.files().len());
        Ok(2 * (row.len() + CHANGE_BYTES) + files * 2 * CHANGE_BYTES)
    }

    async fn delete_in(
        &self,
        bucket: &BucketName,
        entered: &Entered,
        keys: &[BlobKey],
        condition: &WriteCondition,
    ) -> Result<()> {
        let mut rows: Vec<(Bytes, &BlobKey)> =
            keys.iter().map(|key| (layout::blob_key(entered.number, key).into(), key)).collect();
        rows.sort();
        rows.dedup();
        let row_keys: Vec<Bytes> = rows.iter().map(|(row, _)| row.clone()).collect();
        if *condition == WriteCondition::None && self.all_gone(&row_keys)? {
            return Ok(());
        }
        let bytes = row_keys.iter().map(|row| 3 * (row.len() + CHANGE_BYTES)).sum();
        let mut permit = Some(self.budget.write(bytes).await);
        self.submit(|| {
            let accepting = self.rows.accept(row_keys.clone());
            let (mut changes, mut files) = (Vec::new(), Vec::new());
            for (row, key) in &rows {
                let old = accepted_blob(&accepting, row, bucket, key)?;
                condition.check(bucket, key, old.as_ref().map(|old| &old.meta.etag))?;
                changes.push(Change::remove(row.clone()));
                match old.map(|old| old.body) {
                    Some(StoredBody::Files(parts)) => files.extend(parts),
                    Some(StoredBody::Inline) => {
                        changes.push(Change::remove(layout::inline_key(entered.number, key)));
                    }
                    None => {}
                }
            }
            let then = self.disown(Some(StoredBody::Files(files)), &mut changes, entered);
            self.write_rows(accepting, changes, Urgency::Upkeep, &mut permit, Some(then))
        })
        .await
        .map(|_| ())
    }

    /// Whether nothing is left to delete, durably: a deletion that is on its way has to be waited for.
    fn all_gone(&self, rows: &[Bytes]) -> Result<bool> {
        let accepting = self.rows.accept(rows.to_vec());
        for row in rows {
            if accepting.get(row)?.is_some() || self.rows.get(row)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores a blob with the body of another. The bytes are copied: so every file has one owner, and nobody counts.
    pub async fn copy_blob(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        self.blobs.bucket(target.0)?;
        let found = self.find_blob(source.0, source.1)?;
        let mut meta = found.stored.meta.clone();
        options.source.check(source.1, &meta).map_err(|_| Error::PreconditionFailed(source.1.clone()))?;
        if let Some(properties) = &options.properties {
            properties.check()?;
        }
        if source == target {
            return self.change_properties(source.0, source.1, options).await;
        }
        if meta.size > BODY_BYTES_MAX {
            return Err(Error::BodyTooLarge { limit_bytes: BODY_BYTES_MAX });
        }
        let body = self.open_body(source.0, source.1, found, 0..meta.size).await?;
        let expected = BodyOptions {
            size: Some(meta.size),
            md5: meta.etag.md5(),
            md5_tag: meta.parts.is_some(),
            computed: meta.checksums.iter().map(|checksum| checksum.algorithm()).collect(),
            ..BodyOptions::default()
        };
        let TakenBody { digest, place } = self.take_body(body, expected, self.inline_bytes_max()).await?;
        // The copy is put at once, whatever the source was.
        if meta.parts.is_some() {
            meta.etag = digest.etag;
        }
        meta.checksums = digest.checksums;
        meta.parts = None;
        meta.properties = options.properties.unwrap_or(meta.properties);
        meta.modified_at = Timestamp::from_millis(self.now_ms());
        self.place(Placing { bucket: target.0, key: target.1, condition: &options.target, meta, place }).await
    }

    /// Copies a blob onto itself: the body stays where it is, with the same owner.
    async fn change_properties(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        let Some(properties) = options.properties else {
            return Err(Error::Invalid("a copy of a blob onto itself must change its properties".into()));
        };
        let entered = self.blobs.enter(bucket).await?;
        let row_key = Bytes::from(layout::blob_key(entered.number, key));
        let mut permit = Some(self.admit_rows(row_key.len() + (12 << 10)).await?);
        let mut changed = None;
        self.submit(|| {
            let accepting = self.rows.accept(vec![row_key.clone()]);
            let Some(mut blob) = accepted_blob(&accepting, &row_key, bucket, key)? else {
                return Err(Error::BlobNotFound(bucket.clone(), key.clone()).into());
            };
            options.source.check(key, &blob.meta).map_err(|_| Error::PreconditionFailed(key.clone()))?;
            options.target.check(bucket, key, Some(&blob.meta.etag))?;
            blob.meta.properties = properties.clone();
            blob.meta.modified_at = Timestamp::from_millis(self.now_ms());
            let changes = vec![Change::put(row_key.clone(), blob.encode())];
            changed = Some(blob.meta);
            let then = doom(self.blobs.files.clone(), Vec::new(), entered.clone());
            self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))
        })
        .await?;
        changed.ok_or_else(|| Error::Stopped("it is shutting down".into()))
    }
}

/// What happens when a frame is durable: files go, and whoever waits for the bucket may have it.
pub fn doom(files: Arc<Files>, ids: Vec<u64>, entered: Entered) -> Then {
    Box::new(move |_| {
        files.doom(ids);
        drop(entered);
    })
}

/// The blob that is there when the frame gets its place.
pub fn accepted_blob(
    accepting: &Accepting<'_>,
    row_key: &[u8],
    bucket: &BucketName,
    key: &BlobKey,
) -> std::result::Result<Option<StoredBlob>, Halt> {
    let row = accepting.get(row_key)?;
    let blob = row.map(|row| StoredBlob::decode(&row)).transpose();
    Ok(blob.map_err(|_| malformed(bucket, key))?)
}

/// The files of a body that a row owns already.
pub fn owned(bodies: impl Iterator<Item = StoredBody>) -> Vec<FilePart> {
    bodies.flat_map(|body| body.files().to_vec()).collect()
}
