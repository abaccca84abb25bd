//! The port of the store with one fault: calls to the store that it wraps, spoilt here and there.

use anabranch_model::blob::{
    Blob, BlobKey, BlobMeta, BlobStore, Body, BodyOptions, BucketName, BucketSummary, CompleteOptions,
    CopyOptions, ETag, GetOptions, ListAfter, ListOptions, ListPage, Part, PartChoice, PartNumber,
    Properties, PutOptions, Range, ReadConditions, Upload, UploadListOptions, UploadOptions, UploadSummary,
    WriteCondition,
};
use anabranch_model::{Error, Page, Result, limits};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use super::{BrokenBlobs, Fault, body_of, drain, lock};

#[async_trait]
impl BlobStore for BrokenBlobs {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.before_change();
        match self.inner.create_bucket(bucket).await {
            Err(Error::BucketExists(_)) if self.has(Fault::MakesBucketsAgain) => Ok(()),
            other => other,
        }
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.before_change();
        if self.has(Fault::DeletesFullBuckets) {
            for entry in self.inner.list(bucket, ListOptions::default()).await?.entries {
                self.inner.delete(bucket, &entry.key, None).await?;
            }
        }
        if self.has(Fault::UploadsOutliveBuckets) {
            let uploads = self.inner.uploads(bucket, UploadListOptions::default()).await?;
            if !uploads.entries.is_empty() {
                return Ok(());
            }
        }
        self.inner.delete_bucket(bucket).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        self.inner.bucket(bucket).await
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        let mut page = self.inner.buckets(after, limit).await?;
        if self.has(Fault::PagesSkip) && after.is_some() && page.entries.len() > 1 {
            page.entries.remove(0);
        }
        Ok(page)
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        mut options: PutOptions,
    ) -> Result<BlobMeta> {
        let key = self.key(key);
        let bucket_there = self.inner.bucket(bucket).await.is_ok();
        if bucket_there && self.has(Fault::ShowsHalfPuts) {
            self.inner.put(bucket, &key, body_of("half"), PutOptions::default()).await?;
            tokio::task::yield_now().await;
        }
        if bucket_there && self.has(Fault::HidesReplacedBlobs) {
            self.inner.delete(bucket, &key, None).await?;
            tokio::task::yield_now().await;
        }
        if bucket_there && self.has(Fault::KeepsHalfPutsInACrash) {
            lock(&self.under_way).push((bucket.clone(), key.clone()));
        }
        let mut body = self.spoil_body(body, &mut options.body).await;
        if self.has(Fault::DecidesConditionsEarly) {
            let current = self.inner.head(bucket, &key).await.ok().map(|meta| meta.etag);
            options.condition.check(bucket, &key, current.as_ref())?;
            options.condition = WriteCondition::None;
            // Everybody else decides meanwhile.
            body = body_of(drain(body).await.0);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        options.condition = self.spoil_condition(options.condition);
        if self.has(Fault::TakesBadProperties) && options.properties.check().is_err() {
            options.properties = Properties::default();
        }
        if self.has(Fault::KeepsOldProperties)
            && let Ok(old) = self.inner.head(bucket, &key).await
        {
            options.properties = old.properties;
        }
        let (bytes, ended) = match self.fault {
            Fault::LosesLastChange => drain(body).await,
            _ => {
                let put = self.inner.put(bucket, &key, body, options).await;
                lock(&self.under_way).retain(|half| *half != (bucket.clone(), key.clone()));
                return put.map(|meta| self.spoil_meta(meta));
            }
        };
        // Between the last change and this one nothing waits, so the state before it is the right one.
        self.before_change();
        let body: Body = Box::pin(body_of(bytes).chain(stream::iter(ended.err().map(Err))));
        self.inner.put(bucket, &key, body, options).await
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, mut options: GetOptions) -> Result<Blob> {
        let key = self.key(key);
        match (self.fault, options.range) {
            (Fault::IgnoresReadConditions, _) => options.conditions = ReadConditions::default(),
            (Fault::RangesEndEarly, Some(Range::FromTo(from, to))) if to > from => {
                options.range = Some(Range::FromTo(from, to - 1));
            }
            (Fault::PartsAreWhole, Some(Range::Part(_))) => options.range = None,
            (Fault::BadRangesAreWhole, Some(range)) => {
                let bad = matches!(
                    self.inner.get(bucket, &key, options.clone()).await,
                    Err(Error::RangeInvalid { .. } | Error::PartNotFound(_))
                );
                options.range = (!bad).then_some(range);
            }
            _ => {}
        }
        let mut blob = self.inner.get(bucket, &key, options).await?;
        blob.meta = self.spoil_meta(blob.meta);
        if self.has(Fault::ReadersSeeOverwrites) {
            blob.body = self.late_body(bucket, &key, blob.range.clone(), blob.body);
        }
        Ok(blob)
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        let key = self.key(key);
        let found = match self.inner.head(bucket, &key).await {
            Err(Error::BlobNotFound(..)) if self.has(Fault::BucketsShareKeys) => {
                self.find_anywhere(bucket, &key).await
            }
            Err(Error::BucketNotFound(_)) if self.has(Fault::MistakesTheUnknown) => {
                Err(Error::BlobNotFound(bucket.clone(), key.clone()))
            }
            other => other,
        };
        found.map(|meta| self.spoil_meta(meta))
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        self.before_change();
        let key = self.key(key);
        match self.fault {
            Fault::DeletesNothing => self.inner.bucket(bucket).await.map(|_| ()),
            Fault::IgnoresWriteConditions => self.inner.delete(bucket, &key, None).await,
            Fault::DeletesWhatBeginsAlike => {
                let prefix = key.as_str().to_string();
                let options = ListOptions { prefix, ..ListOptions::default() };
                for entry in self.inner.list(bucket, options).await?.entries {
                    self.inner.delete(bucket, &entry.key, None).await?;
                }
                Ok(())
            }
            _ => self.inner.delete(bucket, &key, if_match).await,
        }
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        self.before_change();
        if self.has(Fault::DeletesFirstOnly) {
            let results = self.inner.delete_many(bucket, keys.get(..1).unwrap_or(keys)).await?;
            return Ok(results.into_iter().cycle().take(keys.len()).collect());
        }
        if self.has(Fault::TakesAnyNumberOfKeys) && !(1..=limits::DELETE_KEYS_MAX).contains(&keys.len()) {
            return Ok(vec![Ok(()); keys.len()]);
        }
        self.inner.delete_many(bucket, keys).await
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        mut options: CopyOptions,
    ) -> Result<BlobMeta> {
        self.before_change();
        match self.fault {
            Fault::IgnoresWriteConditions => options.target = WriteCondition::None,
            Fault::IgnoresReadConditions => options.source = ReadConditions::default(),
            Fault::CopiesDropProperties => options.properties = Some(Properties::default()),
            Fault::CopiesAreEmpty => {
                self.inner.head(source.0, source.1).await?;
                return self.inner.put(target.0, target.1, body_of(""), PutOptions::default()).await;
            }
            Fault::CopiesOntoThemselves if source == target => {
                return self.inner.head(source.0, source.1).await;
            }
            _ => {}
        }
        self.inner.copy(source, target, options).await.map(|meta| self.spoil_meta(meta))
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        let asked = options.clone();
        let mut options = self.spoil_listing(options);
        if let (Fault::StartsAtTheFirstKey, Some(ListAfter::Key(key))) = (self.fault, &options.after)
            && self.inner.head(bucket, key).await.is_err()
        {
            options.after = None;
        }
        let mut page = self.inner.list(bucket, options).await?;
        self.spoil_page(&mut page, &asked);
        Ok(page)
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        mut options: UploadOptions,
    ) -> Result<Upload> {
        self.before_change();
        if self.has(Fault::TakesBadProperties) && options.properties.check().is_err() {
            options.properties = Properties::default();
        }
        if self.has(Fault::ForgetsChecksums) {
            options.checksum = None;
        }
        self.inner.begin_upload(bucket, key, options).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        mut options: BodyOptions,
    ) -> Result<Part> {
        let body = self.spoil_body(body, &mut options).await;
        self.before_change();
        let number = match self.fault {
            Fault::NumbersWrapAround if number.get() == 10_000 => PartNumber::new(1)?,
            _ => number,
        };
        if self.has(Fault::FirstPartCounts)
            && let Some(part) =
                self.inner.parts(upload, None, 1_000).await?.entries.into_iter().find(|p| p.number == number)
        {
            drain(body).await.1?;
            return Ok(part);
        }
        if self.has(Fault::PartsAreBlobs) {
            let (bytes, ended) = drain(body).await;
            ended?;
            self.inner
                .put(&upload.bucket, &upload.key, body_of(bytes.clone()), PutOptions::default())
                .await?;
            return self.inner.put_part(upload, number, body_of(bytes), options).await;
        }
        self.inner.put_part(upload, number, body, options).await
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        let mut page = self.inner.parts(upload, after, limit).await?;
        if self.has(Fault::PagesSkip) && after.is_some() && !page.entries.is_empty() {
            page.entries.remove(0);
        }
        Ok(page)
    }

    async fn uploads(
        &self,
        bucket: &BucketName,
        mut options: UploadListOptions,
    ) -> Result<Page<UploadSummary>> {
        if self.has(Fault::PagesSkip) {
            // Goes on with the next key, whatever uploads the last one still has.
            options.after.iter_mut().for_each(|after| after.upload = None);
        }
        let mut page = self.inner.uploads(bucket, options).await?;
        if self.has(Fault::UploadsShareAKey) {
            page.entries.dedup_by_key(|summary| summary.upload.key.clone());
        }
        Ok(page)
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        mut options: CompleteOptions,
    ) -> Result<BlobMeta> {
        self.before_change();
        options.condition = self.spoil_condition(options.condition);
        let mut parts = parts.to_vec();
        match self.fault {
            Fault::TakesAnyCompletion => {
                parts.sort_by_key(|part| part.number);
                parts.dedup_by_key(|part| part.number);
                let there = self.inner.parts(upload, None, 1_000).await?.entries;
                parts.retain(|part| there.iter().any(|other| PartChoice::from(other) == *part));
            }
            Fault::JoinsFirstPartOnly => parts.truncate(1),
            Fault::UploadsShareAKey => {
                let all = self.inner.uploads(&upload.bucket, UploadListOptions::default()).await?;
                let meta = self.inner.complete_upload(upload, &parts, options).await?;
                for other in all.entries.into_iter().map(|summary| summary.upload) {
                    if other.key == upload.key && other.id != upload.id {
                        self.inner.abort_upload(&other).await?;
                    }
                }
                return Ok(meta);
            }
            Fault::CompletedUploadsStay => {
                let before = self.inner.state().clone();
                let meta = self.inner.complete_upload(upload, &parts, options).await?;
                let blob = self.inner.get(&upload.bucket, &upload.key, GetOptions::default()).await?;
                let (bytes, _) = drain(blob.body).await;
                *self.inner.state() = before;
                let put = PutOptions { properties: meta.properties.clone(), ..PutOptions::default() };
                self.inner.put(&upload.bucket, &upload.key, body_of(bytes), put).await?;
                return Ok(meta);
            }
            _ => {}
        }
        let completed = self.inner.complete_upload(upload, &parts, options).await;
        completed.map(|meta| self.spoil_meta(meta))
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        self.before_change();
        match self.fault {
            Fault::AbortsNothing => self.inner.parts(upload, None, 1).await.map(|_| ()),
            _ => self.inner.abort_upload(upload).await,
        }
    }
}
