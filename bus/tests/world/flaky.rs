//! Blobs that cannot be put at times.

use std::sync::Arc;

use anabranch_model::blob::{
    Blob, BlobMeta, Body, BodyOptions, BucketSummary, CompleteOptions, CopyOptions, ETag, GetOptions,
    ListOptions, ListPage, Part, PartChoice, PartNumber, PutOptions, Upload, UploadListOptions,
    UploadOptions, UploadSummary,
};
use anabranch_model::laws::reference::ReferenceBlobs;
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, Page, Result};
use async_trait::async_trait;
use parking_lot::Mutex;

/// What a put to this key answers, if not what the store does.
type Rule = Box<dyn FnMut(&str) -> Option<Error> + Send>;

#[derive(Clone, Default)]
pub struct FlakyBlobs {
    inner: ReferenceBlobs,
    rule: Arc<Mutex<Option<Rule>>>,
    puts: Arc<Mutex<Vec<String>>>,
}

impl FlakyBlobs {
    /// From now on, a put to a key answers what the rule says.
    pub fn on_put(&self, rule: impl FnMut(&str) -> Option<Error> + Send + 'static) {
        *self.rule.lock() = Some(Box::new(rule));
    }

    pub fn mend(&self) {
        *self.rule.lock() = None;
    }

    /// The keys of all puts that were tried, in order.
    pub fn puts(&self) -> Vec<String> {
        self.puts.lock().clone()
    }
}

#[async_trait]
impl BlobStore for FlakyBlobs {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.inner.create_bucket(bucket).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.inner.delete_bucket(bucket).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        self.inner.bucket(bucket).await
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        self.inner.buckets(after, limit).await
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        self.puts.lock().push(key.as_str().to_owned());
        let refused = self.rule.lock().as_mut().and_then(|rule| rule(key.as_str()));
        match refused {
            Some(error) => Err(error),
            None => self.inner.put(bucket, key, body, options).await,
        }
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        self.inner.get(bucket, key, options).await
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        self.inner.head(bucket, key).await
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        self.inner.delete(bucket, key, if_match).await
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        self.inner.delete_many(bucket, keys).await
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        self.inner.copy(source, target, options).await
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        self.inner.list(bucket, options).await
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        self.inner.begin_upload(bucket, key, options).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        options: BodyOptions,
    ) -> Result<Part> {
        self.inner.put_part(upload, number, body, options).await
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        self.inner.parts(upload, after, limit).await
    }

    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>> {
        self.inner.uploads(bucket, options).await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        self.inner.complete_upload(upload, parts, options).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        self.inner.abort_upload(upload).await
    }
}
