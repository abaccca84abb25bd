//! The reference of [`BlobStore`]: what is right here is right everywhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use crate::blob::{
    Blob, BlobKey, BlobMeta, BlobStore, Body, BodyDigest, BodyDigester, BodyOptions, BucketName,
    BucketSummary, ChecksumScope, Checksums, CompleteOptions, CopyOptions, DigestOfParts, ETag, GetOptions,
    ListAfter, ListOptions, ListPage, Part, PartChoice, PartNumber, PutOptions, Range, Upload, UploadId,
    UploadListOptions, UploadOptions, UploadSummary, WriteCondition, check_parts,
};
use crate::{Error, Page, Result, Timestamp, limits};

/// Pieces in which a body is given back.
const PIECE_BYTES: usize = 64 << 10;

/// A handle; clones are the same store. Its clock stands still until it is moved.
#[derive(Clone)]
pub struct ReferenceBlobs {
    state: Arc<Mutex<BlobState>>,
    now_ms: Arc<AtomicU64>,
}

/// Everything that the store remembers.
#[derive(Clone, Debug, Default)]
pub struct BlobState {
    buckets: BTreeMap<BucketName, Bucket>,
    /// The last upload that was begun.
    uploads: u64,
}

#[derive(Clone, Debug)]
struct Bucket {
    created_at: Timestamp,
    blobs: BTreeMap<BlobKey, Stored>,
    uploads: BTreeMap<(BlobKey, UploadId), OpenUpload>,
}

#[derive(Clone, Debug)]
struct Stored {
    meta: BlobMeta,
    bytes: Bytes,
    /// The sizes of the parts that it was put in; none if it was put at once.
    parts: Vec<u64>,
    /// The checksums of these parts, where that of the whole is made of them.
    part_checksums: Vec<Checksums>,
}

impl Stored {
    fn at_once(meta: BlobMeta, bytes: Bytes) -> Self {
        Stored { meta, bytes, parts: Vec::new(), part_checksums: Vec::new() }
    }
}

#[derive(Clone, Debug)]
struct OpenUpload {
    options: UploadOptions,
    begun_at: Timestamp,
    parts: BTreeMap<PartNumber, (Part, Bytes)>,
}

impl ReferenceBlobs {
    /// An empty store.
    pub fn new() -> Self {
        ReferenceBlobs { state: Arc::default(), now_ms: Arc::new(AtomicU64::new(1_700_000_000_000)) }
    }

    /// Everything that the store remembers, to be kept or put back.
    pub fn state(&self) -> MutexGuard<'_, BlobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }
}

impl Default for ReferenceBlobs {
    fn default() -> Self {
        ReferenceBlobs::new()
    }
}

impl BlobState {
    fn bucket(&self, name: &BucketName) -> Result<&Bucket> {
        self.buckets.get(name).ok_or_else(|| Error::BucketNotFound(name.clone()))
    }

    fn bucket_mut(&mut self, name: &BucketName) -> Result<&mut Bucket> {
        self.buckets.get_mut(name).ok_or_else(|| Error::BucketNotFound(name.clone()))
    }

    fn blob(&self, bucket: &BucketName, key: &BlobKey) -> Result<&Stored> {
        let found = self.bucket(bucket)?.blobs.get(key);
        found.ok_or_else(|| Error::BlobNotFound(bucket.clone(), key.clone()))
    }

    /// Decides the condition and puts the blob in its place.
    fn place(
        &mut self,
        bucket: &BucketName,
        key: &BlobKey,
        condition: &WriteCondition,
        blob: Stored,
    ) -> Result<BlobMeta> {
        let blobs = &mut self.bucket_mut(bucket)?.blobs;
        condition.check(bucket, key, blobs.get(key).map(|old| &old.meta.etag))?;
        let meta = blob.meta.clone();
        blobs.insert(key.clone(), blob);
        Ok(meta)
    }

    fn upload_mut(&mut self, upload: &Upload) -> Result<&mut OpenUpload> {
        let uploads = &mut self.bucket_mut(&upload.bucket)?.uploads;
        let found = uploads.get_mut(&(upload.key.clone(), upload.id.clone()));
        found.ok_or_else(|| Error::UploadNotFound(upload.id.clone()))
    }
}

impl Bucket {
    fn delete(&mut self, name: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        if let Some(tag) = if_match {
            let current = self.blobs.get(key).map(|old| &old.meta.etag);
            WriteCondition::IfMatch(tag.clone()).check(name, key, current)?;
        }
        self.blobs.remove(key);
        Ok(())
    }
}

/// Takes a whole body, or says why it is refused.
async fn take(mut body: Body, options: BodyOptions) -> Result<(BodyDigest, Bytes)> {
    let mut digester = BodyDigester::new(options)?;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        digester.update(&piece)?;
        bytes.extend_from_slice(&piece);
    }
    Ok((digester.finish()?, bytes.into()))
}

fn give(bytes: Bytes) -> Body {
    Box::pin(stream::unfold(bytes, |mut rest| async move {
        let piece = rest.split_to(rest.len().min(PIECE_BYTES));
        (!piece.is_empty()).then_some((Ok(piece), rest))
    }))
}

fn page<T>(mut entries: Vec<T>, limit: usize) -> Page<T> {
    let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
    let more = entries.len() > limit;
    entries.truncate(limit);
    Page { entries, more }
}

#[async_trait]
impl BlobStore for ReferenceBlobs {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        let (mut state, created_at) = (self.state(), self.now());
        if state.buckets.contains_key(bucket) {
            return Err(Error::BucketExists(bucket.clone()));
        }
        if state.buckets.len() >= limits::BUCKETS_MAX {
            return Err(Error::LimitExceeded(format!("there are {} buckets already", limits::BUCKETS_MAX)));
        }
        let empty = Bucket { created_at, blobs: BTreeMap::new(), uploads: BTreeMap::new() };
        state.buckets.insert(bucket.clone(), empty);
        Ok(())
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        let mut state = self.state();
        if !state.bucket(bucket)?.blobs.is_empty() {
            return Err(Error::BucketNotEmpty(bucket.clone()));
        }
        state.buckets.remove(bucket);
        Ok(())
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        let created_at = self.state().bucket(bucket)?.created_at;
        Ok(BucketSummary { name: bucket.clone(), created_at })
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        let state = self.state();
        let behind = state.buckets.iter().filter(|(name, _)| Some(*name) > after);
        let summary = |(name, bucket): (&BucketName, &Bucket)| BucketSummary {
            name: name.clone(),
            created_at: bucket.created_at,
        };
        Ok(page(behind.map(summary).collect(), limit))
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        options.properties.check()?;
        self.state().bucket(bucket)?;
        let (digest, bytes) = take(body, options.body).await?;
        let meta = BlobMeta {
            size: digest.size,
            etag: digest.etag,
            properties: options.properties,
            checksums: digest.checksums,
            modified_at: self.now(),
            parts: None,
        };
        self.state().place(bucket, key, &options.condition, Stored::at_once(meta, bytes))
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        let Stored { meta, bytes, parts, part_checksums } = self.state().blob(bucket, key)?.clone();
        options.conditions.check(key, &meta)?;
        let part = match options.range {
            Some(Range::Part(number)) => part_checksums.get(usize::from(number.get()) - 1).cloned(),
            _ => None,
        };
        let range = options.range.map_or(Ok(0..meta.size), |range| range.resolve(meta.size, &parts))?;
        let body = give(bytes.slice(range.start as usize..range.end as usize));
        Ok(Blob { meta, range, part, body })
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        Ok(self.state().blob(bucket, key)?.meta.clone())
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        self.state().bucket_mut(bucket)?.delete(bucket, key, if_match)
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        let mut state = self.state();
        let found = state.bucket_mut(bucket)?;
        if keys.is_empty() || keys.len() > limits::DELETE_KEYS_MAX {
            return Err(Error::Invalid(format!(
                "a deletion of {} keys is not allowed: it must have 1 to {}",
                keys.len(),
                limits::DELETE_KEYS_MAX
            )));
        }
        Ok(keys.iter().map(|key| found.delete(bucket, key, None)).collect())
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        let (mut state, now) = (self.state(), self.now());
        state.bucket(target.0)?;
        let Stored { mut meta, bytes, mut parts, mut part_checksums } =
            state.blob(source.0, source.1)?.clone();
        options.source.check(source.1, &meta).map_err(|_| Error::PreconditionFailed(source.1.clone()))?;
        if source == target && options.properties.is_none() {
            return Err(Error::Invalid(
                "a copy of a blob onto itself must change its properties".to_string(),
            ));
        }
        if meta.size > limits::BODY_BYTES_MAX {
            return Err(Error::BodyTooLarge { limit_bytes: limits::BODY_BYTES_MAX });
        }
        if let Some(properties) = options.properties {
            properties.check()?;
            meta.properties = properties;
        }
        meta.modified_at = now;
        if source != target {
            let computed = meta.checksums.iter().map(|checksum| checksum.algorithm()).collect();
            let options = BodyOptions { computed, md5_tag: true, ..BodyOptions::default() };
            let mut digester = BodyDigester::new(options)?;
            digester.update(&bytes)?;
            let digest = digester.finish()?;
            // The copy is put at once, whatever the source was.
            if meta.parts.is_some() {
                meta.etag = digest.etag;
            }
            meta.checksums = digest.checksums;
            meta.parts = None;
            parts.clear();
            part_checksums.clear();
        }
        state.place(target.0, target.1, &options.target, Stored { meta, bytes, parts, part_checksums })
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        let state = self.state();
        let blobs = &state.bucket(bucket)?.blobs;
        let behind = |key: &BlobKey| match &options.after {
            None => true,
            Some(ListAfter::Key(after)) => key > after,
            Some(ListAfter::Prefix(prefix)) => {
                key.as_str() > prefix.as_str() && !key.as_str().starts_with(prefix)
            }
        };
        let mut page = ListPage::default();
        let mut last = None;
        for (key, Stored { meta, .. }) in blobs.iter().filter(|(key, _)| behind(key)) {
            let Some(rest) = key.as_str().strip_prefix(&options.prefix) else { continue };
            let cut = options.delimiter().and_then(|text| rest.find(text).map(|at| at + text.len()));
            let prefix = cut.map(|cut| &key.as_str()[..options.prefix.len() + cut]);
            if prefix.is_some() && page.prefixes.last().map(String::as_str) == prefix {
                continue;
            }
            if page.entries.len() + page.prefixes.len() == options.limit_clamped() {
                page.next = last;
                break;
            }
            match prefix {
                Some(prefix) => page.prefixes.push(prefix.to_string()),
                None => page.entries.push(meta.summary(key)),
            }
            let at_prefix = || ListAfter::Key(key.clone());
            last = Some(prefix.map_or_else(at_prefix, |prefix| ListAfter::Prefix(prefix.to_string())));
        }
        Ok(page)
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        let (mut state, begun_at) = (self.state(), self.now());
        state.bucket(bucket)?;
        options.check()?;
        state.uploads += 1;
        let id = UploadId::new(&format!("upload-{:012}", state.uploads))?;
        let open = OpenUpload { options, begun_at, parts: BTreeMap::new() };
        state.bucket_mut(bucket)?.uploads.insert((key.clone(), id.clone()), open);
        Ok(Upload { bucket: bucket.clone(), key: key.clone(), id })
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        mut options: BodyOptions,
    ) -> Result<Part> {
        let checksum = self.state().upload_mut(upload)?.options.checksum;
        options.computed.extend(checksum.map(|(algorithm, _)| algorithm));
        let (digest, bytes) = take(body, options).await?;
        let part = Part {
            number,
            size: digest.size,
            etag: digest.etag,
            checksums: digest.checksums,
            modified_at: self.now(),
        };
        self.state().upload_mut(upload)?.parts.insert(number, (part.clone(), bytes));
        Ok(part)
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        let mut state = self.state();
        let parts = state.upload_mut(upload)?.parts.values().map(|(part, _)| part);
        Ok(page(parts.filter(|part| Some(part.number) > after).cloned().collect(), limit))
    }

    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>> {
        let state = self.state();
        let behind = |key: &BlobKey, id: &UploadId| match &options.after {
            None => true,
            Some(after) if *key == after.key => after.upload.as_ref().is_some_and(|upload| id > upload),
            Some(after) => *key > after.key,
        };
        let uploads = state.bucket(bucket)?.uploads.iter();
        let listed = uploads
            .filter(|((key, id), _)| key.as_str().starts_with(&options.prefix) && behind(key, id))
            .map(|((key, id), open)| UploadSummary {
                upload: Upload { bucket: bucket.clone(), key: key.clone(), id: id.clone() },
                begun_at: open.begun_at,
                checksum: open.options.checksum,
            });
        Ok(page(listed.collect(), options.limit))
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        let mut state = self.state();
        let open = state.upload_mut(upload)?.clone();
        let chosen = check_parts(parts, |number| open.parts.get(&number).map(|(part, _)| part.clone()))?;
        let mut digest = DigestOfParts::new(open.options.checksum);
        let mut bytes = Vec::new();
        for part in &chosen {
            digest.add(part.size, &part.etag, &part.checksums)?;
            bytes.extend_from_slice(&open.parts[&part.number].1);
        }
        let (size, etag, checksums) = digest.finish();
        options.check(size, &checksums)?;
        let meta = BlobMeta {
            size,
            etag,
            properties: open.options.properties,
            checksums,
            modified_at: self.now(),
            parts: Some(chosen.len() as u16),
        };
        let parts = chosen.iter().map(|part| part.size).collect();
        let part_checksums = match meta.checksums.scope() {
            ChecksumScope::Parts => chosen.iter().map(|part| part.checksums.clone()).collect(),
            ChecksumScope::Body => Vec::new(),
        };
        let blob = Stored { meta, bytes: bytes.into(), parts, part_checksums };
        let meta = state.place(&upload.bucket, &upload.key, &options.condition, blob)?;
        state.bucket_mut(&upload.bucket)?.uploads.remove(&(upload.key.clone(), upload.id.clone()));
        Ok(meta)
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        let mut state = self.state();
        state.upload_mut(upload)?;
        state.bucket_mut(&upload.bucket)?.uploads.remove(&(upload.key.clone(), upload.id.clone()));
        Ok(())
    }
}
