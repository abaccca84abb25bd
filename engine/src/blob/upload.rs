//! Uploads in parts. A part is a file; a completed blob refers to the files of its parts, and nothing is copied.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_model::blob::{
    BlobKey, BlobMeta, Body, BodyOptions, BucketName, ChecksumScope, CompleteOptions, DigestOfParts, Part,
    PartChoice, PartNumber, Upload, UploadId, UploadOptions, check_parts,
};
use anabranch_model::limits::UPLOAD_PARTS_MAX;
use anabranch_model::{Error, Result, Timestamp};
use bytes::Bytes;

use super::Entered;
use super::layout::{self, StoredBlob, StoredBody, StoredPart, StoredUpload};
use super::put::{accepted_blob, doom, owned};
use super::write::{Place, TakenBody};
use crate::core::Core;
use crate::journal::Urgency;
use crate::rows::write::Then;
use crate::rows::{Accepting, Change};

/// About what the rows of a part take beyond its checksums.
const PART_FRAME_BYTES: usize = 512;

impl Core {
    /// Begins an upload. Its number is the position of its frame.
    pub async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        self.blobs.bucket(bucket)?;
        options.check()?;
        let entered = self.blobs.enter(bucket).await?;
        let prefix = Bytes::from(layout::uploads_of(entered.number, key));
        let begun_at = Timestamp::from_millis(self.now_ms());
        let value = Bytes::from(StoredUpload { options, begun_at }.encode());
        let mut permit = Some(self.admit_rows(prefix.len() + value.len()).await?);
        let number = self
            .submit(|| {
                let accepting = self.rows.accept(Vec::new());
                let changes = vec![Change::put_placed(prefix.clone(), 0, value.clone())];
                let then = doom(self.blobs.files.clone(), Vec::new(), entered.clone());
                self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))
            })
            .await?;
        Ok(Upload {
            bucket: bucket.clone(),
            key: key.clone(),
            id: UploadId::new(&layout::upload_id(number))?,
        })
    }

    /// The row of an upload, with its number and its key.
    pub fn find_upload(&self, bucket: u64, upload: &Upload) -> Result<(u64, Bytes, StoredUpload)> {
        let not_found = || Error::UploadNotFound(upload.id.clone());
        let number = layout::read_upload_id(&upload.id).ok_or_else(not_found)?;
        let key = layout::upload_key(bucket, &upload.key, number);
        let row = self.rows.get(&key)?.ok_or_else(not_found)?;
        let stored = StoredUpload::decode(&row).map_err(|_| malformed_upload(upload))?;
        Ok((number, key.into(), stored))
    }

    /// Stores a part.
    pub async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        mut options: BodyOptions,
    ) -> Result<Part> {
        let bucket = self.blobs.bucket(&upload.bucket)?.number;
        let (.., open) = self.find_upload(bucket, upload)?;
        options.computed.extend(open.options.checksum.map(|(algorithm, _)| algorithm));
        let TakenBody { digest, mut place } = self.take_body(body, options, 0).await?;
        if let Place::Inline(_) = place {
            // Only one without bytes is none; it needs no file.
            place = Place::Owned(Vec::new());
        }
        let part = Part {
            number,
            size: digest.size,
            etag: digest.etag,
            checksums: digest.checksums,
            modified_at: Timestamp::from_millis(self.now_ms()),
        };
        let stored = StoredPart { part, body: place.stored() };
        let mut permit = Some(self.admit_rows(PART_FRAME_BYTES).await?);
        let entered = self.blobs.enter(&upload.bucket).await?;
        let id = layout::read_upload_id(&upload.id).unwrap_or_default();
        let guard = Arc::new(self.blobs.upload_gate(id).read_owned().await);
        // It stays open as long as its gate is held.
        self.find_upload(entered.number, upload)?;
        let part_key = Bytes::from(layout::part_key(entered.number, id, number));
        self.submit(|| {
            let accepting = self.rows.accept(vec![part_key.clone()]);
            let old = accepted_part(&accepting, &part_key, upload, number)?;
            let mut changes = vec![Change::put(part_key.clone(), stored.encode())];
            if let Place::File(file, _) = &place {
                changes.push(Change::put_fresh(layout::file_key(file.id()), Vec::new()));
            }
            let then = self.disown(old.map(|old| old.body), &mut changes, &entered);
            let then = holding(then, guard.clone());
            let placed = self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))?;
            place.keep();
            Ok(placed)
        })
        .await?;
        Ok(stored.part)
    }

    /// Makes a blob of parts.
    pub async fn complete_upload(
        &self,
        upload: &Upload,
        choices: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        let Upload { bucket, key, .. } = upload;
        let entered = self.blobs.enter(bucket).await?;
        let (id, ..) = self.find_upload(entered.number, upload)?;
        let guard = Arc::new(self.blobs.upload_gate(id).write_owned().await);
        let (_, upload_key, open) = self.find_upload(entered.number, upload)?;
        let (blob, part_keys) = self.join(&entered, upload, id, open, choices, &options)?;
        let row_key = Bytes::from(layout::blob_key(entered.number, key));
        let value = Bytes::from(blob.encode());
        let bytes = row_key.len() + value.len() + part_keys.len() * 48 + PART_FRAME_BYTES;
        let mut permit = Some(self.admit_rows(bytes).await?);
        self.submit(|| {
            let accepting = self.rows.accept(vec![row_key.clone()]);
            let old = accepted_blob(&accepting, &row_key, bucket, key)?;
            options.condition.check(bucket, key, old.as_ref().map(|old| &old.meta.etag))?;
            let mut changes = self.end_of_upload(&entered, id, &upload_key);
            changes.push(Change::put(row_key.clone(), value.clone()));
            // The files of these belong to the blob from now on; those of the others go.
            changes.extend(part_keys.iter().map(|key| Change::remove(key.clone())));
            if old.as_ref().is_some_and(|old| old.body == StoredBody::Inline) {
                changes.push(Change::remove(layout::inline_key(entered.number, key)));
            }
            let then = self.disown(old.map(|old| old.body), &mut changes, &entered);
            let then = holding(then, guard.clone());
            self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))
        })
        .await?;
        Ok(blob.meta)
    }

    /// The blob that the chosen parts make, and the rows of these parts. Nobody else is in the upload.
    fn join(
        &self,
        entered: &Entered,
        upload: &Upload,
        id: u64,
        open: StoredUpload,
        choices: &[PartChoice],
        options: &CompleteOptions,
    ) -> Result<(StoredBlob, Vec<Bytes>)> {
        let (snapshot, mut found) = (self.rows.snapshot()?, BTreeMap::new());
        for choice in choices.iter().take(UPLOAD_PARTS_MAX) {
            if let Some(row) = snapshot.get(&layout::part_key(entered.number, id, choice.number))? {
                let part = StoredPart::decode(choice.number, &row).map_err(|_| malformed_upload(upload))?;
                found.insert(choice.number, part);
            }
        }
        let chosen = check_parts(choices, |number| found.get(&number).map(|stored| stored.part.clone()))?;
        let mut digest = DigestOfParts::new(open.options.checksum);
        for part in &chosen {
            digest.add(part.size, &part.etag, &part.checksums)?;
        }
        let (size, etag, checksums) = digest.finish();
        options.check(size, &checksums)?;
        let meta = BlobMeta {
            size,
            etag,
            properties: open.options.properties,
            checksums,
            modified_at: Timestamp::from_millis(self.now_ms()),
            parts: Some(chosen.len() as u16),
        };
        let keys = chosen.iter().map(|part| layout::part_key(entered.number, id, part.number).into());
        let keys = keys.collect();
        let bodies = chosen.iter().filter_map(|part| found.remove(&part.number)).map(|stored| stored.body);
        // That of a whole body says nothing about its parts, and nobody asks for theirs then.
        let part_checksums = match meta.checksums.scope() {
            ChecksumScope::Parts => chosen.iter().map(|part| part.checksums.clone()).collect(),
            ChecksumScope::Body => Vec::new(),
        };
        Ok((StoredBlob { meta, body: StoredBody::Files(owned(bodies)), part_checksums }, keys))
    }

    /// Ends an upload; upkeep removes its parts.
    pub async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        let entered = self.blobs.enter(&upload.bucket).await?;
        let (id, ..) = self.find_upload(entered.number, upload)?;
        let guard = Arc::new(self.blobs.upload_gate(id).write_owned().await);
        let (_, upload_key, _) = self.find_upload(entered.number, upload)?;
        let mut permit = Some(self.budget.write(PART_FRAME_BYTES).await);
        self.submit(|| {
            let accepting = self.rows.accept(Vec::new());
            let changes = self.end_of_upload(&entered, id, &upload_key);
            let then = doom(self.blobs.files.clone(), Vec::new(), entered.clone());
            let then = holding(then, guard.clone());
            self.write_rows(accepting, changes, Urgency::Upkeep, &mut permit, Some(then))
        })
        .await
        .map(|_| ())
    }

    fn end_of_upload(&self, entered: &Entered, id: u64, upload_key: &Bytes) -> Vec<Change> {
        let dead = layout::dead_key(entered.number, Some(id));
        vec![Change::remove(upload_key.clone()), Change::put(dead, Vec::new())]
    }
}

/// Holds something until the frame is durable and visible.
fn holding(then: Then, held: impl Send + 'static) -> Then {
    Box::new(move |position| {
        then(position);
        drop(held);
    })
}

fn accepted_part(
    accepting: &Accepting<'_>,
    part_key: &[u8],
    upload: &Upload,
    number: PartNumber,
) -> Result<Option<StoredPart>> {
    let part = accepting.get(part_key)?.map(|row| StoredPart::decode(number, &row)).transpose();
    part.map_err(|_| malformed_upload(upload))
}

/// The rows of an upload say something impossible.
pub fn malformed_upload(upload: &Upload) -> Error {
    Error::Corrupt(format!("a row of upload `{}` in bucket `{}` makes no sense", upload.id, upload.bucket))
}
